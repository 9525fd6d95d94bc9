//! How a command ended: from what the kernel says of its shell, what the shell said at its end, and what it printed.
//!
//! A shell turns a signal that ended a program into 128 + the number of the signal, and so does the first process of a namespace. A
//! program may also choose such a code itself, as git does with 129. The two are told apart by the line that bash prints about a
//! program that a signal ended.

use zeph_core::exit::CommandExit;

use super::ExitState;

/// Numbers of signals.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

/// `SIGINT`, `SIGPIPE` and `SIGTERM`: bash prints nothing about them, or nothing that could be told from other output.
const SILENT: [i32; 3] = [2, 13, 15];

/// What bash calls itself in its messages.
const SHELL: &str = "/bin/bash:";

/// Most words of a message before the number of the process: `line 3:` in any language.
const WORDS_MAX: usize = 4;

/// What is known of a command that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    /// The command line.
    pub(crate) text: &'a str,
    /// The status that its shell reported at its end; nothing when the shell did not get there.
    pub(crate) reported: Option<i32>,
    /// The end of its error stream.
    pub(crate) stderr: &'a str,
    /// Whether the first process of a namespace waited for it.
    pub(crate) is_namespace: bool,
}

/// How the command of a shell ended that the kernel says ended so.
pub(crate) fn of(status: ExitState, evidence: Evidence<'_>) -> CommandExit {
    let code = match status {
        ExitState::Signal(signal) => return CommandExit::Signal(signal),
        ExitState::Unknown => return CommandExit::Unknown,
        ExitState::Code(code) => code,
    };
    match SIGNALS.contains(&(code - 128)) && evidence.is_of_signal(code) {
        true => CommandExit::Signal(code - 128),
        false => CommandExit::Code(code),
    }
}

impl Evidence<'_> {
    /// Whether a code above 128 means a signal.
    fn is_of_signal(self, code: i32) -> bool {
        match self.reported {
            // The shell was killed: it reported nothing, or the status before that.
            None => self.is_namespace,
            Some(reported) if reported != code => self.is_namespace,
            Some(_) if SILENT.contains(&(code - 128)) => !self.chooses(code),
            Some(_) => self.stderr.lines().any(is_report),
        }
    }

    /// Whether the command line itself names the code.
    fn chooses(self, code: i32) -> bool {
        let chooses = |word: &str| self.text.contains(&format!("{word} {code}"));
        chooses("exit") || chooses("return")
    }
}

/// Whether a line is what bash prints about a program that a signal ended.
///
/// Shape: `/bin/bash: line 1:    12 Killed    sleep 9`; in a pipeline the line of a later program begins with spaces and the number.
fn is_report(line: &str) -> bool {
    let (rest, words_max) = match line.strip_prefix(SHELL) {
        Some(rest) => (rest, WORDS_MAX),
        None if line.starts_with("    ") => (line, 1),
        None => return false,
    };
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = rest.split_ascii_whitespace();
    words.by_ref().take(words_max).any(is_number) && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::{CommandExit, Evidence, ExitState, of};

    const REPORT: &str = "/bin/bash: line 1:     3 Segmentation fault      perl -e 'kill 11, $$'\n";

    #[test]
    fn a_code_above_128_is_a_signal_only_where_one_ended_a_program() {
        use CommandExit::{Code, Signal};
        let piped = "/bin/bash: line 1:    36 Done    true\n        37 Killed     | perl x\n";
        let missing = "/bin/bash: line 1: 7: command not found\n";
        let usage = "    --exit-code      exit with 1 if there were differences, 0 otherwise\n";
        let table = [
            ("perl x", 139, Some(139), REPORT, Signal(11)),
            ("perl x; exit $?", 139, Some(139), REPORT, Signal(11)),
            ("true | perl x", 137, Some(137), piped, Signal(9)),
            ("exit 139", 139, Some(139), "", Code(139)),
            ("git log -x", 129, Some(129), "usage: git log\n", Code(129)),
            ("git diff -O x", 129, Some(129), usage, Code(129)),
            ("7", 127, Some(127), missing, Code(127)),
            ("sh x", 143, Some(143), "", Signal(15)),
            ("sh -c 'exit 143'", 143, Some(143), "", Code(143)),
            ("kill -9 $$", 137, None, "", Signal(9)),
            ("kill -HUP $$", 129, Some(0), "", Signal(1)),
            ("perl x", 255, Some(255), REPORT, Code(255)),
            ("perl x; exit 3", 3, Some(3), REPORT, Code(3)),
        ];
        for (text, code, reported, stderr, expect) in table {
            let evidence = Evidence {
                text,
                reported,
                stderr,
                is_namespace: true,
            };
            assert_eq!(of(ExitState::Code(code), evidence), expect, "{evidence:?}");
        }
        let outside = Evidence {
            text: "exec sh x",
            reported: None,
            stderr: "",
            is_namespace: false,
        };
        assert_eq!(of(ExitState::Code(137), outside), Code(137));
        assert_eq!(of(ExitState::Signal(9), outside), Signal(9));
    }
}
