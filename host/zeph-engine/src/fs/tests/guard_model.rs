//! Whatever calls do one after the other, or in turns: what programs obey is neither made nor changed without leave.
//!
//! Random sequences run through the guard; then the tree is looked at, by other means than the guard's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Guest, Tree};

const DRAFTS: [&str; 2] = [".zeph-0123456789abcdef.tmp", ".zeph-fedcba9876543210.tmp"];

const DIRECTORIES: [&str; 12] = [
    "t",
    "u",
    "t/u",
    "u/t",
    "src",
    "src/in",
    "conf",
    "conf/editor",
    "tools",
    "tools/hooks",
    "repo.git",
    "repo.git/hooks",
];

const LEAVES: [&str; 11] = [
    "HEAD",
    "objects",
    "refs",
    "config",
    "hooks",
    "commondir",
    ".envrc",
    ".vscode",
    "in",
    "t",
    "x",
];

/// What is in a directory that git takes for its own.
const GIT: [&str; 4] = [
    "mkdir objects",
    "mkdir refs",
    "create HEAD",
    "create config",
];

/// An operation, and which of two calls makes it; sometimes another call goes on in the place of that one.
#[derive(Debug, Clone)]
struct Step {
    guest: usize,
    is_new: bool,
    lines: Vec<String>,
}

fn directory() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(&DIRECTORIES[..]).prop_map(str::to_owned);
    let above = prop::sample::select(&["", "t/", "u/", "src/"][..]);
    let draft = (above, prop::sample::select(&DRAFTS[..]))
        .prop_map(|(above, draft)| format!("{above}{draft}"));
    let in_draft = (
        draft.clone(),
        prop::sample::select(&["in", "t", "u", "repo.git"][..]),
    );
    prop_oneof![
        3 => plain,
        3 => draft,
        2 => in_draft.prop_map(|(draft, leaf)| format!("{draft}/{leaf}")),
    ]
}

fn entry() -> impl Strategy<Value = String> {
    let leaf = (directory(), prop::sample::select(&LEAVES[..]));
    prop_oneof![
        3 => directory(),
        2 => leaf.prop_map(|(directory, leaf)| format!("{directory}/{leaf}")),
        1 => prop::sample::select(&LEAVES[..]).prop_map(str::to_owned),
    ]
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let one = |line: String| vec![line];
    let git = |top: String| -> Vec<String> {
        let lines = GIT.iter().filter_map(|line| line.split_once(' '));
        let lines = lines.map(|(verb, leaf)| format!("{verb} {top}/{leaf} evil"));
        lines.collect()
    };
    prop_oneof![
        3 => directory().prop_map(move |path| one(format!("private {path}"))),
        2 => entry().prop_map(move |path| one(format!("mkdir {path}"))),
        2 => directory().prop_map(git),
        3 => entry().prop_map(move |path| one(format!("create {path} evil"))),
        1 => entry().prop_map(move |path| one(format!("write {path} evil"))),
        1 => entry().prop_map(move |path| one(format!("unlink {path}"))),
        1 => entry().prop_map(move |path| one(format!("rmdir {path}"))),
        1 => (entry(), entry()).prop_map(move |(old, new)| one(format!("link {old} {new}"))),
        1 => (directory(), entry()).prop_map(move |(target, new)| one(format!("symlink {target} {new}"))),
        8 => (entry(), entry()).prop_map(move |(old, new)| one(format!("rename {old} {new}"))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let call = (0..2_usize, prop::bool::weighted(0.1));
    (call, lines()).prop_map(|((guest, is_new), lines)| Step {
        guest,
        is_new,
        lines,
    })
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/src/main.c", "x")
        .file("ws/src/config", "x")
        .dir("ws/conf/editor")
        .file("ws/conf/editor/tasks.json", "{}")
        .link("ws/.idea", "conf/editor")
        .file("ws/.git/config", "[core]\n\thooksPath = tools/hooks\n")
        .file("ws/tools/hooks/pre-push", "#!")
        .dir("ws/repo.git/objects")
        .dir("ws/repo.git/refs")
        .file("ws/repo.git/HEAD", "ref: refs/heads/main")
        .file("ws/repo.git/config", "[core]\n")
        .file("ws/repo.git/hooks/post-receive", "#!");
    tree
}

/// What is obeyed in a tree: the object and the content behind every name under which programs would come to it. Names in drafts are
/// none.
fn obeyed(top: &Path) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    gather(&top.join("tools/hooks"), 0, &mut found);
    let mut pending = vec![(top.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        let is_git = |names: &[&str]| names.iter().all(|name| directory.join(name).exists());
        if is_git(&["HEAD", "objects", "refs"]) || is_git(&["HEAD", "commondir"]) {
            for part in ["HEAD", "config", "hooks", "commondir"] {
                gather(&directory.join(part), 0, &mut found);
            }
        }
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if DRAFTS.iter().any(|draft| name == *draft) {
                continue;
            }
            if [".envrc", ".idea", ".vscode"]
                .iter()
                .any(|obeyed| name == *obeyed)
            {
                gather(&path, 0, &mut found);
            } else if path.is_dir() && depth < 6 {
                pending.push((path, depth + 1));
            }
        }
    }
    found
}

/// The files at and below `path`, through links.
fn gather(path: &Path, depth: usize, found: &mut BTreeMap<PathBuf, (u64, Vec<u8>)>) {
    if path.is_dir() && depth < 6 {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            gather(&entry.path(), depth + 1, found);
        }
    }
    if let (Ok(about), Ok(content)) = (path.metadata(), fs::read(path)) {
        found.insert(path.to_owned(), (about.ino(), content));
    }
}

/// What is obeyed now and was not at first, or was something else. A further link to what was obeyed is nothing new, nor is a git
/// directory that has nothing in it to obey.
fn made(before: &BTreeMap<PathBuf, (u64, Vec<u8>)>, top: &Path) -> Vec<PathBuf> {
    let now = obeyed(top);
    let is_plain = |path: &Path| !path.canonicalize().is_ok_and(|real| real != *path);
    let is_bare = |path: &Path| {
        let parts = ["config", "hooks", "commondir"];
        let directory = path.parent().unwrap_or(path);
        path.ends_with("HEAD") && parts.iter().all(|part| !directory.join(part).exists())
    };
    let is_known = |path: &PathBuf, object: &(u64, Vec<u8>)| match is_plain(path) {
        true => before.get(path) == Some(object),
        false => before.values().any(|known| known == object),
    };
    let made = now
        .iter()
        .filter(|(path, object)| !is_known(path, object) && !is_bare(path));
    made.map(|(path, _)| path.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_operations_makes_what_programs_obey(steps in prop::collection::vec(step(), 1..20)) {
        let tree = tree();
        let top = tree.at("ws");
        let before = obeyed(&top);
        let mut guests = [tree.guest(), tree.guest()];
        let mut session = Vec::new();
        for Step { guest, is_new, lines } in steps {
            let running: &mut Guest = &mut guests[guest];
            if is_new {
                *running = running.again();
            }
            for line in lines {
                let answer = running.run(&line);
                session.push(format!("{guest}{} {line}: {answer}", if is_new { " new" } else { "" }));
            }
        }
        let made = made(&before, &top);
        prop_assert!(made.is_empty(), "{made:?}\n{}", session.join("\n"));
    }
}
