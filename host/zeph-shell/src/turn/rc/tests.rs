use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use zeph_core::call::TurnContext;

use super::super::{Turn, TurnChange, TurnRecord};
use super::{Leftovers, text};

/// A real shell that reads the text, without a jail.
struct Shell {
    directory: tempfile::TempDir,
    turn: Turn,
}

struct Ran {
    output: Output,
    record: Option<TurnRecord>,
    change: TurnChange,
}

impl Shell {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().canonicalize().expect("it exists");
        let context = TurnContext {
            turn_id: "t".to_owned(),
            goal_id: None,
            skill_name: None,
            timestamp_ms: 0,
        };
        Self {
            directory,
            turn: Turn::new(context, root),
        }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it exists")
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a shell without a jail, to read its record"
    )]
    fn run(&mut self, command: &str) -> Ran {
        let rc = tempfile::NamedTempFile::new().expect("a temporary file");
        let told = tempfile::NamedTempFile::new().expect("a temporary file");
        let exports = BTreeMap::from([("ZEPH_TURN_ID".to_owned(), "it's 7".to_owned())]);
        std::fs::write(
            rc.path(),
            text(&self.turn, &self.root(), &exports, (59, Leftovers::Jobs)),
        )
        .expect("writes");
        let output = Command::new("/bin/bash")
            .args(["-c", r#"exec 59>"$0"; BASH_ENV=$1 exec /bin/bash -c "$2""#])
            .args([told.path(), rc.path(), Path::new(command)])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("FROM_START", "1")
            .current_dir(self.root())
            .output()
            .expect("bash runs");
        let record = TurnRecord::parse(&std::fs::read(told.path()).expect("reads"));
        let before = self.turn.directory.clone();
        let change = match &record {
            Some(record) => self.turn.take_over(&before, record, &[self.root()]),
            None => TurnChange::default(),
        };
        Ran {
            output,
            record,
            change,
        }
    }

    /// What the command prints.
    fn says(&mut self, command: &str) -> String {
        let ran = self.run(command);
        assert_eq!(String::from_utf8_lossy(&ran.output.stderr), "", "{command}");
        String::from_utf8(ran.output.stdout).expect("it prints text")
    }
}

#[test]
fn the_directory_carries_on() {
    let mut shell = Shell::new();
    let root = shell.root();
    shell.run("mkdir -p 'a b/c'; cd 'a b/c'");
    assert_eq!(shell.turn.directory, root.join("a b/c"));
    assert_eq!(shell.says("pwd"), format!("{}/a b/c\n", root.display()));
    let ran = shell.run("cd ../..");
    assert_eq!(
        ran.change.directory,
        Some((root.join("a b/c"), root.clone()))
    );
    assert_eq!(shell.says("cd -"), format!("{}/a b/c\n", root.display()));
}

#[test]
fn exports_carry_on_byte_by_byte() {
    let mut shell = Shell::new();
    for value in [
        "plain",
        "",
        "two\nlines\n",
        "it's \"quoted\" $HOME `x` \\ !",
        "\u{1}\t\u{7f}",
        "ü😀",
        "a\r\u{1b}[31m",
        "-n",
    ] {
        std::fs::write(shell.root().join("value"), value).expect("writes");
        // A trailing line end survives `$(…)` thanks to the dot.
        shell.run("V=$(cat value; printf .); export V=${V%.}; NOT_EXPORTED=1");
        let got = shell.says(r#"printf %s "$V${NOT_EXPORTED-}""#);
        assert_eq!(got, value);
    }
}

#[test]
fn what_is_removed_stays_removed() {
    let mut shell = Shell::new();
    shell.run("export A=1 B=2");
    shell.run("unset A FROM_START");
    assert_eq!(
        shell.says("echo ${A-gone} $B ${FROM_START-gone}"),
        "gone 2 gone\n"
    );
    shell.run("export A=3");
    assert_eq!(shell.says("echo $A"), "3\n");
}

#[test]
fn only_what_a_command_changed_is_taken() {
    let mut shell = Shell::new();
    shell.run("export A=1");
    let slow = shell.turn.clone();
    shell.run("export A=2; mkdir d; cd d");
    // A command that began before and ended after changes back nothing.
    let mut other = Shell::new();
    other.turn = Turn {
        directory: other.root(),
        ..slow
    };
    let record = other.run("export C=1").record.expect("it tells");
    let before = record.start_directory.clone();
    let now = shell.turn.directory.clone();
    shell.turn.take_over(&before, &record, &[]);
    assert_eq!(shell.turn.directory, now);
    assert_eq!(shell.turn.variables["A"], Some(b"2".to_vec()));
    assert_eq!(shell.turn.variables["C"], Some(b"1".to_vec()));
}

#[test]
fn a_shell_tells_its_end_however_it_ends() {
    let check = |command: &str, code: i32, tells: bool| {
        let mut shell = Shell::new();
        let ran = shell.run(command);
        assert_eq!(ran.output.status.code(), Some(code), "{command}");
        let end = ran.record.and_then(|record| record.end);
        assert_eq!(end.is_some(), tells, "{command}");
        if let Some(end) = end {
            assert_eq!(end.status, code, "{command}");
        }
    };
    check("true", 0, true);
    check("exit 3", 3, true);
    check("exit 137", 137, true);
    check("set -e; false; exit 9", 1, true);
    check("set -u; echo $nope", 127, true);
    check("f() { return 4; }; f", 4, true);
    check("( exit 5 )", 5, true);
    check("trap 'echo mine' EXIT; exit 6", 6, false);
    check("exec sh -c 'exit 7'", 7, false);
    check("exec 59>&-; exit 2", 2, false);
    check(
        "pwd() { :; }; declare() { :; }; printf() { :; }; exit 8",
        8,
        true,
    );
    check("echo $((", 2, true);
}

/// What a shell leaves running may remove its locks; what does not end is not waited for.
#[test]
fn what_is_left_running_is_asked_to_end() {
    let waits = "while :; do read -rt 0.01; done <> <(:)";
    let until_ready = "until [[ -s ready ]]; do read -rt 0.01; done <> <(:)";
    for (at_term, expect) in [("echo ended > end; exit", "ended\n"), ("", "")] {
        let mut shell = Shell::new();
        std::fs::write(shell.root().join("end"), "").expect("writes");
        let server = format!("(trap '{at_term}' TERM; echo $BASHPID > ready; {waits})");
        let ran = shell.run(&format!(
            "{server} > /dev/null 2>&1 & {until_ready}; exit 3"
        ));
        assert_eq!(ran.output.status.code(), Some(3));
        assert_eq!(String::from_utf8_lossy(&ran.output.stderr), "");
        let end = ran.record.and_then(|record| record.end);
        assert_eq!(end.expect("it tells").left_running, ["a subshell"]);
        let left = std::fs::read_to_string(shell.root().join("end"));
        assert_eq!(left.expect("reads"), expect);
        // Nothing is around this shell that would end it.
        shell.run("kill -KILL $(<ready)");
    }
}

/// A stopped process does not come to the signal that waits for it, as on a busy machine one does not for a moment.
#[test]
fn what_the_command_has_ended_itself_is_not_told() {
    let waits = "while :; do read -rt 0.01; done <> <(:)";
    let until = |holds: &str| format!("until {holds}; do read -rt 0.01; done <> <(:)");
    let is_ready = until("[[ -s ready ]]");
    let is_stopped = until("[[ $(</proc/$(<ready)/status) == *'T (stopped)'* ]]");
    for (ended, expect) in [
        ("", &["a subshell"][..]),
        ("kill -TERM $(<ready);", &[]),
        ("kill -CHLD $(<ready);", &["a subshell"]),
    ] {
        let mut shell = Shell::new();
        let ran = shell.run(&format!(
            "(echo $BASHPID > ready; {waits}) > /dev/null 2>&1 & {is_ready}; kill -STOP $(<ready); {is_stopped}; \
             {ended} exit 3"
        ));
        assert_eq!(ran.output.status.code(), Some(3));
        let end = ran.record.and_then(|record| record.end);
        let end = end.expect("it tells");
        assert_eq!(end.left_running, expect, "{ended}");
    }
}

#[test]
fn an_exit_trap_of_the_command_runs() {
    let mut shell = Shell::new();
    assert_eq!(shell.says("trap 'echo bye' EXIT; echo hi"), "hi\nbye\n");
}

#[test]
fn subshells_and_children_tell_nothing() {
    let mut shell = Shell::new();
    let ran = shell
        .run("(cd /; true); bash -c 'cd /usr; exit 1'; printf 'cd /\n' > s; sh ./s; bash s; . ./s");
    let record = ran.record.expect("it is well formed");
    assert_eq!(record.end.expect("it ended").directory, Path::new("/"));
    assert_eq!(shell.says("echo ${BASH_ENV-none}"), "none\n");
}

#[test]
fn functions_and_aliases_do_not_carry_on() {
    let mut shell = Shell::new();
    let ran = shell.run("f() { echo f; }; export -f f; g() { :; }; alias ll=ls; export A=1");
    assert!(ran.record.is_some_and(|record| record.end.is_some()));
    assert_eq!(shell.says("type f g ll 2>/dev/null; echo $A"), "1\n");
}

#[test]
fn injectors_do_not_carry_on_and_it_is_said() {
    let mut shell = Shell::new();
    let ran = shell.run("export LD_PRELOAD=/x GIT_SSH_COMMAND=y GIT_AUTHOR_NAME=me PS4='$(id)' ENV=z ZEPH_X=1 2>/dev/null");
    let names: Vec<_> = shell.turn.variables.keys().map(String::as_str).collect();
    assert_eq!(names, ["GIT_AUTHOR_NAME"]);
    let [note] = ran.change.notes.as_slice() else {
        panic!("one note: {:?}", ran.change.notes);
    };
    assert!(note.contains("GIT_SSH_COMMAND, LD_PRELOAD, PS4"), "{note}");
}

#[test]
fn what_leads_programs_elsewhere_does_not_carry_on() {
    let mut shell = Shell::new();
    shell.run(
        "export HOME=/x XDG_CONFIG_HOME=/x RIPGREP_CONFIG_PATH=rc CARGO_BUILD_RUSTC=evil EDITOR=./evil \
         NUMBER='a[$(id)]' CARGO_TERM_COLOR=never RUSTFLAGS=-Dwarnings PAGER=less",
    );
    let names: Vec<_> = shell.turn.variables.keys().map(String::as_str).collect();
    assert_eq!(names, ["CARGO_TERM_COLOR", "PAGER", "RUSTFLAGS"]);
}

#[test]
fn arrays_and_odd_variables_do_no_harm() {
    let mut shell = Shell::new();
    let ran = shell.run(
        "declare -ax L=([0]=$'a\\nb' [1]='\"' [3]='declare -x FORGED=1'); declare -Ax M=(['k\"']=v); export ONLY_NAME; \
         declare -rx RO=1; declare -ix N=5; export A=1",
    );
    assert!(ran.record.is_some_and(|record| record.end.is_some()));
    assert_eq!(
        shell.says("echo $A $RO $N ${FORGED-no} ${L-no}"),
        "1 1 5 no no\n"
    );
}

#[test]
fn history_carries_on() {
    let mut shell = Shell::new();
    shell.turn.history = VecDeque::from(["echo 'one'".to_owned(), "two\nlines".to_owned()]);
    let history = shell.says("history");
    assert!(history.contains("1  echo 'one'\n"), "{history}");
    assert!(history.contains("2  two\nlines\n"), "{history}");
}

#[test]
fn the_context_is_exported() {
    let mut shell = Shell::new();
    assert_eq!(shell.says("sh -c 'echo $ZEPH_TURN_ID'"), "it's 7\n");
}

#[test]
fn a_directory_that_is_gone_is_told() {
    let mut shell = Shell::new();
    shell.run("mkdir gone; cd gone");
    std::fs::remove_dir(shell.root().join("gone")).expect("it is there");
    let ran = shell.run("pwd");
    let root = shell.root();
    assert_eq!(
        String::from_utf8_lossy(&ran.output.stdout),
        format!("{}\n", root.display())
    );
    assert!(
        ran.change.notes[0].contains("not there any more"),
        "{:?}",
        ran.change.notes
    );
    assert_eq!(shell.turn.directory, root);
    // One that the command itself removed is not kept.
    let ran = shell.run("mkdir x; cd x; rmdir ../x");
    assert!(
        ran.change.notes[0].contains("does not exist"),
        "{:?}",
        ran.change.notes
    );
    assert_eq!(shell.turn.directory, root);
}
