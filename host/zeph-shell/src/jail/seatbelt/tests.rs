use std::path::PathBuf;

use super::*;
use crate::jail::tests::harness::Room;

fn made(change: impl FnOnce(&mut JailPolicy, &mut Roots)) -> String {
    let mut policy = Room::new().policy;
    let mut roots = Roots::of_paths(&["/w/project"]);
    change(&mut policy, &mut roots);
    profile(
        &policy,
        &roots,
        Path::new("/bin/bash"),
        Path::new("/private/tmp/run"),
    )
}

#[test]
fn everything_is_denied_first_and_protected_last() {
    let text = made(|_, roots| roots.hidden = vec!["/w/project/a/state".into()]);
    assert!(text.starts_with("(version 1)\n(deny default)\n"));
    let at = |line: &str| {
        text.find(line)
            .unwrap_or_else(|| panic!("no {line} in {text}"))
    };
    let allowed = at("(allow file-read* file-write* (subpath \"/w/project\"))\n");
    assert!(allowed < at("(deny file-read* file-write* (subpath \"/w/project/a/state\"))\n"));
    assert!(allowed < at("(deny file-write-unlink (literal \"/w/project/a\"))\n"));
    assert!(allowed < at("(deny file-write* (regex #\"/\\.git/(hooks|"));
    let (last_allow, first_deny) = (text.rfind("(allow "), text.match_indices("(deny ").nth(1));
    assert!(last_allow < first_deny.map(|(at, _)| at), "{text}");
}

#[test]
fn what_may_be_written_is_exactly_what_is_named() {
    let text = made(|_, roots| {
        roots.readable = vec!["/w/project".into()];
        roots.writable = vec!["/w/project/build".into()];
    });
    assert!(text.contains("(allow file-read* (subpath \"/w/project\"))\n"));
    let written: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("(allow") && line.contains("file-write*"))
        .filter(|line| !line.contains("/dev/"))
        .collect();
    assert_eq!(
        written,
        [
            "(allow file-read* file-write* (subpath \"/w/project/build\"))",
            "(allow file-read* file-write* (subpath \"/private/tmp/run\"))",
        ]
    );
}

#[test]
fn the_network_is_opened_only_when_asked() {
    assert!(!made(|_, _| {}).contains("(allow network*)"));
    assert!(made(|policy, _| policy.network = Network::Open).contains("(allow network*)"));
}

#[test]
fn no_path_ends_its_rule() {
    for path in [
        "/w/a\")(allow default)(\"",
        "/w/b\\\")\n(allow default)",
        "/w/c\\",
        "/w/d\n)(allow default)",
    ] {
        let text = made(|_, roots| roots.writable = vec![PathBuf::from(path)]);
        for line in text.lines() {
            let outside_strings: String = strip_strings(line);
            assert!(!outside_strings.contains("allow default"), "{line}");
            let opened = outside_strings.matches('(').count();
            assert_eq!(opened, outside_strings.matches(')').count(), "{line}");
        }
    }
}

/// The line without its quoted strings, read as Seatbelt reads them.
fn strip_strings(line: &str) -> String {
    let (mut out, mut inside, mut characters) = (String::new(), false, line.chars());
    while let Some(character) = characters.next() {
        match character {
            '"' => inside = !inside,
            '\\' if inside => drop(characters.next()),
            other if !inside => out.push(other),
            _ => {}
        }
    }
    assert!(!inside, "an open string in {line}");
    out
}
