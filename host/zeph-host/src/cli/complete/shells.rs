//! The scripts of two shells. Those of clap cannot complete `KEY=VALUE`: bash hands a word that holds `=` or `:` over in pieces, and zsh
//! would put a blank behind a key.
//!
//! Names of files and values of schemas are others' texts: what is completed is one word that stands for the candidate, whatever it holds.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::engine::complete;
use clap_complete::env::{self, EnvCompleter, Shells};

/// Every shell that can ask. Elvish, fish and zsh quote what they put on the line.
pub(super) const SHELLS: Shells<'static> =
    Shells(&[&BASH, &env::Elvish, &env::Fish, &POWERSHELL, &ZSH]);

/// It needs no other script, and bash 3.2 reads it. The script quotes candidates.
const BASH: AskingShell = AskingShell {
    shell: &env::Bash,
    script: Some(include_str!("bash.sh")),
    answer: Some(Answer {
        separator: "\x0b",
        is_offered: is_printable,
    }),
};

/// Its script puts candidates on the line as they are: those that it would read otherwise are not offered.
const POWERSHELL: AskingShell = AskingShell {
    shell: &env::Powershell,
    script: None,
    answer: Some(Answer {
        separator: "\n",
        is_offered: is_bare,
    }),
};

const ZSH: AskingShell = AskingShell {
    shell: &env::Zsh,
    script: Some(include_str!("zsh.sh")),
    answer: None,
};

/// A shell of clap with another script or other answers.
struct AskingShell {
    shell: &'static dyn EnvCompleter,
    script: Option<&'static str>,
    answer: Option<Answer>,
}

/// What a shell is answered that does not quote candidates: those that can stand on a line, without help.
struct Answer {
    separator: &'static str,
    is_offered: fn(&str) -> bool,
}

impl EnvCompleter for AskingShell {
    fn name(&self) -> &'static str {
        self.shell.name()
    }

    fn is(&self, name: &str) -> bool {
        self.shell.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn io::Write,
    ) -> io::Result<()> {
        match self.script {
            Some(text) => {
                script.write_all(filled(text, variable, name, program, completer).as_bytes())
            }
            None => self
                .shell
                .write_registration(variable, name, program, completer, script),
        }
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        answer: &mut dyn io::Write,
    ) -> io::Result<()> {
        let Some(Answer {
            separator,
            is_offered,
        }) = &self.answer
        else {
            return self.shell.write_complete(command, words, directory, answer);
        };
        let last_idx = words.len().saturating_sub(1);
        let candidates = complete(command, words, last_idx, directory)?;
        let values = candidates.iter().filter_map(|one| one.get_value().to_str());
        let offered: Vec<&str> = values.filter(|value| is_offered(value)).collect();
        answer.write_all(offered.join(separator).as_bytes())
    }
}

/// Whether a text has no control character, which would end a candidate or act on the terminal.
pub(super) fn is_printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// Whether every shell reads a text as it is.
fn is_bare(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_./=:+".contains(letter))
}

/// A script with the names in their places. None of them has a letter that a shell reads.
fn filled(script: &str, variable: &str, name: &str, program: &str, completer: &str) -> String {
    script
        .replace("@VARIABLE@", variable)
        .replace("@NAME@", name)
        .replace("@PROGRAM@", program)
        .replace("@COMPLETER@", completer)
}

#[cfg(test)]
mod tests {
    use super::{is_bare, is_printable};

    #[test]
    fn what_a_shell_would_run_is_not_offered_unquoted() {
        let table = [
            ("path=src/main.rs", true, true),
            ("--allow=write:a-b_c+d/", true, true),
            ("path=a$(id)", true, false),
            ("a;b", true, false),
            ("a b", true, false),
            ("a`b", true, false),
            ("a\u{2019}b", true, false),
            ("a\nb", false, false),
            ("a\x0bb", false, false),
            ("a\u{9b}b", false, false),
        ];
        for (text, printable, bare) in table {
            assert_eq!(is_printable(text), printable, "{text:?}");
            assert_eq!(is_bare(text), bare, "{text:?}");
        }
    }
}
