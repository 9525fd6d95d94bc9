use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;

use super::{PlainEnd, PlainRun, Streams, start};
use crate::run::StreamKind;

fn sh(script: &str) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), script.into()]
}

fn heard(words: &[OsString]) -> io::Result<PlainRun> {
    start(words, Streams::Heard)
}

fn check(script: &str, expect: PlainEnd, expect_stdout: &str, expect_stderr: &str) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let end = heard(&sh(script)).unwrap().until_over(|stream, bytes| {
        match stream {
            StreamKind::Stdout => stdout.extend(bytes),
            StreamKind::Stderr => stderr.extend(bytes),
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), expect, "{script}");
    assert_eq!(String::from_utf8_lossy(&stdout), expect_stdout, "{script}");
    assert_eq!(String::from_utf8_lossy(&stderr), expect_stderr, "{script}");
}

#[test]
fn a_command_prints_and_ends_as_it_would_alone() {
    check("echo a; echo b >&2", PlainEnd::Code(0), "a\n", "b\n");
    check("echo a; exit 101", PlainEnd::Code(101), "a\n", "");
    check("kill -TERM $$", PlainEnd::Signal(15), "", "");
    assert_eq!(PlainEnd::Signal(15).shell_code(), 143);
    assert_eq!(PlainEnd::Signal(15).code(), None);
    assert_eq!(PlainEnd::Code(3).shell_code(), 3);
}

#[test]
fn much_output_arrives_whole() {
    let mut n_bytes = 0;
    let run = heard(&sh(
        "head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2",
    ))
    .unwrap();
    let end = run.until_over(|_, bytes| {
        n_bytes += bytes.len();
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), PlainEnd::Code(0));
    assert_eq!(n_bytes, 4_000_000);
}

#[test]
fn nobody_who_reads_ends_what_prints_without_end() {
    let end = heard(&sh("exec yes"))
        .unwrap()
        .until_over(|_, _| ControlFlow::Break(()));
    assert_eq!(end.unwrap(), PlainEnd::Signal(13), "as in `yes | head -1`");
}

#[test]
fn what_stays_in_the_background_is_not_waited_for() {
    check(
        "sleep 20 & echo started",
        PlainEnd::Code(0),
        "started\n",
        "",
    );
}

#[test]
fn one_that_prints_where_we_do_is_only_waited_for() {
    let run = start(&sh("exit 7"), Streams::Own).unwrap();
    let end = run.until_over(|_, _| panic!("nothing is heard"));
    assert_eq!(end.unwrap(), PlainEnd::Code(7));
}

#[test]
fn a_signal_reaches_it() {
    let run = heard(&sh("echo ready; exec sleep 600")).unwrap();
    let handle = run.handle().unwrap();
    let end = run.until_over(|_, _| {
        handle.terminate();
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap(), PlainEnd::Signal(15));
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let missing = heard(&["zeph-no-such-program".into()]).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    let folder = heard(&["/".into()]).unwrap_err();
    assert_eq!(folder.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(heard(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}
