//! The syntax is that of git, which is asked; and what is named is found whichever way it is spelled.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{GitReader, GitUser, settings};

/// What git finds in a file, as it prints it; `None` when it rejects the file.
#[expect(clippy::disallowed_methods, reason = "git is the oracle")]
fn git_settings(text: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["config", "--file", "-", "--list", "-z"])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut git = git.spawn().expect("git");
    let mut input = git.stdin.take().expect("input");
    input.write_all(text.as_bytes()).expect("write");
    drop(input);
    let output = git.wait_with_output().expect("output");
    let text = String::from_utf8(output.stdout).expect("text");
    output.status.success().then_some(text)
}

fn own_settings(text: &str) -> String {
    let settings = settings(text).into_iter().map(|setting| {
        let value = setting.value.map(|value| format!("\n{value}"));
        format!("{}{}\0", setting.name, value.unwrap_or_default())
    });
    settings.collect()
}

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(own_settings(text), expect, "{text:?}");
    assert_eq!(git_settings(text).as_deref(), Some(expect), "{text:?}");
}

#[test]
fn settings_are_read_as_git_reads_them() {
    for (text, expect) in [
        ("[core]\n\thooksPath = h\n", "core.hookspath\nh\0"),
        ("[CORE] HooksPath=../h", "core.hookspath\n../h\0"),
        ("[core]hooksPath = h ; c\n", "core.hookspath\nh\0"),
        ("[a] [core] # c\nhooksPath=h#c\n", "core.hookspath\nh\0"),
        (
            "[core]\nhooksPath = \"a ;b\" c # d\n",
            "core.hookspath\na ;b c\0",
        ),
        ("[core]\nhooksPath = a\\\n  b\n", "core.hookspath\na  b\0"),
        (
            "[core]\nhooksPath = \\\\a\\\"\\t\n",
            "core.hookspath\n\\a\"\t\0",
        ),
        ("[core]\r\nhooksPath = h \r\n", "core.hookspath\nh\0"),
        ("\u{feff}[core]\nhooksPath\n", "core.hookspath\0"),
        ("[core]\nhooksPath =\n", "core.hookspath\n\0"),
        (
            "[includeIf \"gitdir:~/A\\\"]\"] path = x\n",
            "includeif.gitdir:~/A\"].path\nx\0",
        ),
        ("[Include.Sub]\npath = x\n", "include.sub.path\nx\0"),
    ] {
        check(text, expect);
    }
}

/// A file that git rejects may be repaired.
#[test]
fn a_bad_line_hides_no_other() {
    for text in [
        "[core\n[core]\nhooksPath = h\n",
        "[core]\n= x\nhooksPath = h\n",
        "[core]\na = \"x\nhooksPath = h\n",
        "[core]\na = \\x\nhooksPath = h\n",
        "[core]\na b = x\nhooksPath = h\n",
    ] {
        assert_eq!(own_settings(text), "core.hookspath\nh\0", "{text:?}");
        assert_eq!(git_settings(text), None, "{text:?}");
    }
}

/// A part of a file, of which git accepts most.
fn part() -> impl Strategy<Value = String> {
    let section = prop::sample::select(vec![
        "[core]",
        "[Core]\n",
        "[includeIf \"a B\"] ",
        "[x.Y]\r\n",
        "# c\n",
        "",
    ]);
    let key = prop::sample::select(vec!["hooksPath", "path ", "K-2\t"]);
    let equals = prop::sample::select(vec!["", " = ", "=", "=\t"]);
    let piece = prop::sample::select(vec![
        "a", "../b", "\"x y\"", "\" ;\"", " ", "  ", "\t", "\\\\", "\\\"", "\\\n", "\\n", "\r",
        "#c", "; c", "é", "~/",
    ]);
    let value = prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    let end = prop::sample::select(vec!["\n", "\r\n", "\n\n"]);
    (section, key, equals, value, end).prop_map(|(section, key, equals, value, end)| {
        let value = if equals.is_empty() {
            String::new()
        } else {
            value
        };
        format!("{section}{key}{equals}{value}{end}")
    })
}

proptest! {
    #[test]
    fn generated_files_are_read_as_git_reads_them(parts in prop::collection::vec(part(), 1..5)) {
        let text = format!("[core]\n{}", parts.concat());
        if let Some(expect) = git_settings(&text) {
            prop_assert_eq!(own_settings(&text), expect);
        }
    }
}

/// The files of a machine.
fn read(path: &Path) -> Option<String> {
    let text = match path.to_str()? {
        "/etc/passwd" => "root:x:0:0:root:/root:/bin/sh\nann:x:7:7:Ann:/srv/ann:/bin/sh\n",
        "/ws/one/.git/config" => {
            "[core] hooksPath = ../hk ; c\n[include] path = ../../shared.cfg\n"
        }
        "/ws/one/.git/../../shared.cfg" => "[INCLUDE]\n\tpath = \"deep/more.cfg\"\n",
        "/ws/one/.git/../../deep/more.cfg" => {
            "[includeIf \"onbranch:x\"]\npath = ../last.cfg\n[core]\nhooksPath = ~/hk\n"
        }
        "/ws/one/.git/../../deep/../last.cfg" => {
            "[core]\nhooksPath = ~ann/hk\n[include]\npath = last.cfg\n"
        }
        "/ws/two/.git/config" => {
            "[core]\nhooksPath = %(prefix)/hk\nhooksPath=\nhooksPath = ~bob\nhooksPath = .\nworktree = ../../tree\n"
        }
        "/ws/three/.git/config" => "[include]\npath = 0/c\n",
        "/home/u/.gitconfig" => "[core]\nhooksPath = own\n[include]\npath = ws.cfg\n",
        "/home/u/.config/git/config" => "[core]\nhooksPath = :(optional)~/ws/all\n",
        path if path.ends_with("/c") => "[include]\npath = 0/c\n",
        _ => return None,
    };
    Some(text.to_owned())
}

fn found(home: Option<&str>, work: &str) -> Vec<String> {
    let user = GitUser {
        home: home.map(PathBuf::from),
        ..GitUser::default()
    };
    let git = Path::new(work).join(".git");
    let reader = GitReader::new(user, read);
    let found = reader.of_repository(&git, &git, Path::new(work));
    let mut found: Vec<String> = found
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    found.sort();
    found
}

#[test]
fn what_a_repository_names_is_found() {
    let expect = [
        "/home/x/hk",
        "/srv/ann/hk",
        "/ws/one/../hk",
        "/ws/one/.git/../../deep/../last.cfg",
        "/ws/one/.git/../../deep/more.cfg",
        "/ws/one/.git/../../shared.cfg",
        // It includes itself.
        "/ws/one/.git/../../deep/../last.cfg",
    ];
    let mut expect = expect.map(str::to_owned);
    expect.sort();
    assert_eq!(found(Some("/home/x"), "/ws/one"), expect);
    // Of its own working directory, only the hooks.
    let two = found(Some("/home/x"), "/ws/two");
    assert!(two.contains(&"/ws/two/./pre-commit".to_owned()), "{two:?}");
    let tree = "/ws/two/.git/../../tree/./update".to_owned();
    assert!(two.contains(&tree), "{two:?}");
    assert!(two.contains(&"/home/bob/".to_owned()), "{two:?}");
    assert!(!two.contains(&"/ws/two".to_owned()), "{two:?}");
    assert!(!two.iter().any(|path| path.contains("prefix")), "{two:?}");
    assert_eq!(found(None, "/ws/three").len(), super::DEPTH_MAX + 1);
}

#[test]
fn what_the_user_configured_counts_for_every_repository() {
    let user = GitUser {
        home: Some("/home/u".into()),
        ..GitUser::default()
    };
    let reader = GitReader::new(user, read);
    let everywhere: Vec<&PathBuf> = reader.everywhere().collect();
    for path in [
        "/home/u/ws/all",
        "/home/u/ws.cfg",
        "/home/u/.gitconfig",
        "/home/u/.config/git/config",
    ] {
        assert!(everywhere.contains(&&PathBuf::from(path)), "{path}");
    }
    let git = Path::new("/ws/none/.git");
    let of_none = reader.of_repository(git, git, Path::new("/ws/none"));
    assert_eq!(
        of_none,
        [PathBuf::from("/home/u/ws/all"), "/ws/none/own".into()]
    );
}

/// Files that the words of a command line may be; of mere words only those that are there.
#[test]
fn programs_that_values_name_are_found() {
    for (command, expect) in [
        ("tools/fsm", "tools/fsm"),
        ("cat", ""),
        ("git-lfs clean -- %f", ""),
        ("sh -e tools/x.sh %A", "tools/x.sh"),
        ("node merge.js", "merge.js?"),
        ("bash driver", "driver?"),
        ("!f() { ../x | cat; }; f", "../x"),
        (
            "\"$(git rev-parse --show-toplevel)/tools/x\"",
            "/tools/x tools/x?",
        ),
        ("$HOME/x --config=a/b", "x? a/b"),
        ("https://x/y", ""),
    ] {
        let words = super::run::words_of(command).into_iter();
        let words = words.map(|(word, is_spelled)| match is_spelled {
            true => word.to_owned(),
            false => format!("{word}?"),
        });
        let words: Vec<String> = words.collect();
        assert_eq!(words.join(" "), expect, "{command}");
    }
}
