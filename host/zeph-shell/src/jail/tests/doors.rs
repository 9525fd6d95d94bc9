//! Files that programs outside obey, made where none was: below the uppermost directory too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use zeph_core::draft::LiveDraft;

use super::super::{HostWrite, Job};
use super::harness::{Room, finish};

/// What is left of the findings: the paths, and whether each was moved away.
#[track_caller]
fn check(room: &Room, script: &str, expect: &[(&str, bool)]) {
    let end = room.run(script);
    let found = end.findings.iter().map(|one| {
        let is_gone = one.path.symlink_metadata().is_err();
        (one.path.clone(), is_gone)
    });
    let found: Vec<_> = found.collect();
    let expect = expect
        .iter()
        .map(|(path, is_gone)| (room.work.join(path), *is_gone));
    assert_eq!(found, expect.collect::<Vec<_>>(), "{script}: {end:#?}");
}

#[test]
fn new_ones_are_held_back_at_every_depth() {
    for (script, expect) in [
        (
            "mkdir lib/.vscode && echo x > lib/.vscode/tasks.json",
            "lib/.vscode",
        ),
        (
            "mkdir -p new/er/.idea && echo x > new/er/.idea/workspace.xml",
            "new/er/.idea",
        ),
        ("echo x > lib/deep/.mcp.json", "lib/deep/.mcp.json"),
        ("echo x > lib/.envrc", "lib/.envrc"),
        ("ln -s ../e lib/.husky", "lib/.husky"),
        (
            "mkdir lib/.cargo && echo x > lib/.cargo/config.toml",
            "lib/.cargo/config.toml",
        ),
        (
            "mkdir lib/c && echo x > lib/c/config.toml && ln -s c lib/.cargo",
            "lib/.cargo",
        ),
        (
            "mkdir lib/c && echo x > lib/c/config.toml && mv lib/c lib/.cargo",
            "lib/.cargo/config.toml",
        ),
        ("mkdir -p a/.zeph && mv a lib/b", "lib/b/.zeph"),
        ("mv lib/other lib/.vscode", "lib/.vscode"),
        ("mv lib l2 && mkdir -p lib/deep/.vscode", "lib/deep/.vscode"),
        (
            "mkdir lib/.vscode && touch -d 2001-01-01 lib/.vscode lib",
            "lib/.vscode",
        ),
        ("git init -q lib && mkdir lib/.vscode", "lib/.vscode"),
    ] {
        let room = Room::new();
        room.host("mkdir -p lib/deep lib/other && echo x > lib/other/tasks.json");
        check(&room, script, &[(expect, true)]);
    }
}

#[test]
fn what_comes_whole_is_told() {
    let room = Room::new();
    room.host("mkdir lib && git init -q ../outside/r && cd ../outside/r && mkdir .vscode && echo x > .vscode/a && git add . && git -c user.name=n -c user.email=e commit -qm a && cp -r . ../../work/r");
    check(
        &room,
        "git clone -q r copy && git -C copy status -s",
        &[("copy/.vscode", false)],
    );
    check(
        &room,
        "mkdir -p node_modules/a/.vscode node_modules/b/.idea",
        &[("node_modules/a/.vscode", false)],
    );
    check(&room, "echo x > lib/.bashrc", &[("lib/.bashrc", false)]);
}

#[test]
fn what_was_there_is_left_alone() {
    let room = Room::new();
    room.host("mkdir -p lib/.vscode lib/in/.cargo && echo x > lib/.vscode/a && echo x > lib/in/.cargo/config.toml && echo x > lib/.envrc");
    check(
        &room,
        "touch lib/x lib/in/x lib/in/.cargo/x lib/y && mkdir lib/z && rm lib/x",
        &[],
    );
    check(&room, "echo evil > lib/.vscode/a; mv lib/in lib/out", &[]);
}

#[test]
fn what_cannot_be_looked_at_is_told_once() {
    let room = Room::new();
    room.host("mkdir -p lib/a && cd lib/a && seq 20100 | xargs touch");
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script).findings;
    let first = run("true");
    assert!(
        first.len() == 1 && first[0].text.contains("too much"),
        "{first:?}"
    );
    assert_eq!(run("true"), []);
    // What lies higher is looked at all the same.
    assert_eq!(
        run("mkdir lib/.vscode")[0].path,
        room.work.join("lib/.vscode")
    );
}

/// A command makes a directory that cannot be looked at beside one of the user: each is told, and once.
#[test]
fn what_cannot_be_looked_at_of_the_user_is_told_after_that_of_a_command() {
    let room = Room::new();
    room.host("mkdir -p lib/a && cd lib/a && seq 20100 | xargs touch");
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script).findings;
    let of_command = run("mkdir pad && cd pad && seq 25500 | xargs touch");
    assert!(of_command[0].path.ends_with("pad"), "{of_command:?}");
    let of_user = run("true");
    assert!(
        of_user.len() == 1 && of_user[0].text.contains("too much"),
        "{of_user:?}"
    );
    assert_eq!(run("true"), []);
}

/// As package managers link to their stores; of the user's own files, too many to be compared are told once.
#[test]
fn very_many_hard_links_are_told_once_and_none_of_packages() {
    let room = Room::new();
    room.host("mkdir ../outside/store && cd ../outside/store && seq 4200 | xargs touch");
    room.host("mkdir node_modules && cp -al ../outside/store node_modules/a");
    let jail = room.jail();
    let run = || super::harness::run(&jail, &room.work, "true").findings;
    assert_eq!(run(), []);
    room.host("cp -al ../outside/store own");
    let told = run();
    assert!(
        told.len() == 1 && told[0].text.contains("and 135 more files"),
        "{told:?}"
    );
    assert_eq!(run(), []);
}

/// A link beyond the first ones, and one in a folder of packages, are not made read-only.
#[test]
fn hard_links_that_are_not_held_are_told_when_changed() {
    let room = Room::new();
    room.host("mkdir node_modules && ln ../outside/secret node_modules/linked && mkdir many && cd many && for i in $(seq 99); do echo $i > ../../outside/f$i; ln ../../outside/f$i l$i; done");
    check(
        &room,
        "echo x >> node_modules/linked",
        &[("node_modules/linked", false)],
    );
    let end = room.run("for i in many/l*; do echo x >> $i; done 2>/dev/null; true");
    assert!(
        end.findings.len() == 1 && end.findings[0].text.contains("hard link"),
        "{end:#?}"
    );
    check(&room, "rm -rf node_modules", &[]);
}

/// What is obeyed through a link lies elsewhere in the project.
#[test]
fn what_links_lead_to_is_held_too() {
    let room = Room::new();
    room.host("git init -q . && mkdir -p scripts shared/tasks && echo ok > scripts/check && ln -s ../../scripts/check .git/hooks/pre-commit && ln -s shared/tasks .vscode && ln -s scripts/env .envrc && echo ok > scripts/env && echo ok > scripts/free");
    room.run("for f in scripts/check scripts/env shared/tasks/t scripts/free; do echo evil > $f; done; mv scripts s2; rm -rf shared");
    assert_eq!(
        room.host("cat scripts/check scripts/env scripts/free; ls shared/tasks"),
        "ok\nok\nevil\n"
    );
}

/// A survey of a large tree holds for a while, but not for what came since.
#[test]
fn what_came_before_a_run_is_not_its_work() {
    let room = Room::new();
    room.host("mkdir -p lib/deep many && cd many && seq 3000 | xargs touch");
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script);
    assert_eq!(run("true").findings, []);
    room.host("echo ok > lib/deep/.npmrc");
    let end = run("echo evil > lib/deep/.npmrc; cat lib/deep/.npmrc");
    assert_eq!((end.stdout.as_str(), end.findings), ("ok\n", vec![]));
    assert_eq!(
        run("touch lib/.envrc").findings[0].path,
        room.work.join("lib/.envrc")
    );
}

/// Runs `script` beside a call of the host that does `written` with leave, and notes what it `wrote`; the paths that it names are those
/// that it wrote, and `template`, and it began at `since_ms`. Gives the findings: the paths, and whether each is still there.
fn beside_a_call(
    script: &str,
    (written, since_ms): (&str, i64),
    wrote: &[&str],
) -> Vec<(String, bool)> {
    let room = Room::new();
    room.host("mkdir template && echo ok > template/tasks.json");
    let jail = room.jail();
    let variables = BTreeMap::new();
    let arguments: Vec<OsString> = vec!["-c".into(), script.into()];
    let prepared = jail.prepare(Job {
        program: Path::new("/bin/bash"),
        arguments: &arguments,
        directory: &room.work,
        variables: &variables,
        files: Vec::new(),
        rc: None,
        made: None,
    });
    let paths: Vec<PathBuf> = wrote.iter().map(|path| room.work.join(path)).collect();
    let template = std::iter::once(room.work.join("template"));
    let call = HostWrite::begin(paths.iter().cloned().chain(template).collect(), since_ms);
    room.host(written);
    paths.iter().for_each(|path| call.note(path));
    let found = finish(prepared.unwrap()).findings.into_iter();
    let found = found.map(|finding| {
        let path = finding.path.strip_prefix(&room.work).unwrap();
        (path.display().to_string(), finding.path.exists())
    });
    found.collect()
}

/// Written while a command runs: by a call of the host with leave, by the command, and by both.
#[test]
fn what_calls_wrote_with_leave_is_left_and_told() {
    let file = "mkdir .vscode && echo ok > .vscode/tasks.json";
    let both = "mkdir .vscode && echo evil > .vscode/tasks.json";
    let copy = "cp -r template .vscode";
    let copy_and_more = "cp -r template .vscode && echo evil > .vscode/more";
    let task = ".vscode/tasks.json";
    for (script, written, wrote, found, is_left) in [
        ("true", file, task, ".vscode", true),
        ("true", file, "other", ".vscode", false),
        ("echo evil > .vscode/tasks.json", file, task, task, false),
        ("echo x > .vscode/more", file, task, ".vscode/more", false),
        (
            "mv .vscode a && cp -r a .vscode",
            file,
            task,
            ".vscode",
            false,
        ),
        ("true", "mkdir .vscode", ".vscode", ".vscode", true),
        // The command was quick: a call makes a directory with nothing in it.
        ("true", both, ".vscode", task, false),
        ("true", copy, ".vscode", ".vscode", true),
        ("true", copy_and_more, ".vscode", ".vscode/more", false),
        // More than one look comes to a file in the uppermost directory.
        ("true", "echo ok > .envrc", ".envrc", ".envrc", true),
    ] {
        let told = beside_a_call(script, (written, 0), &[wrote]);
        let expect = [(found.to_owned(), is_left)];
        assert_eq!(told, expect, "{script}; {written}");
    }
}

/// What a call fills under a temporary name is its own until it has another; what others left under such a name is not, nor what a
/// command has put in its place.
#[test]
fn drafts_of_calls_that_run_are_left_alone() {
    let draft = ".zeph-0123456789abcdef.tmp";
    let fill = |folder: &str| {
        format!("mkdir -p {folder}/.vscode {folder}/sub && echo x > {folder}/sub/.envrc")
    };
    let exchanged = format!("{} && mv {draft} moved && mv n {draft}", fill("n"));
    for (script, is_alive, n_findings) in [
        (fill(draft), true, 0),
        (fill(draft), false, 2),
        (exchanged, true, 2),
    ] {
        let room = Room::new();
        let path = room.work.join(draft);
        std::fs::create_dir(&path).unwrap();
        let about = path.metadata().unwrap();
        let live = is_alive.then(|| LiveDraft::begin(path.clone(), (about.dev(), about.ino())));
        let findings = room.run(&script).findings;
        assert_eq!(findings.len(), n_findings, "{script}: {findings:#?}");
        let is_left = path.join(".vscode").exists();
        assert_eq!(is_left, n_findings == 0, "{script}");
        drop(live);
    }
}

/// A move changes nothing in what it moves: that it is older than the call, and gone from where it was, makes it nobody else's.
#[test]
fn what_calls_moved_with_leave_is_left_and_told() {
    let moved = "mv template .vscode";
    let moved_and_more = "mv template .vscode && echo evil > .vscode/more";
    let other = "mv template .vscode && echo evil > .vscode/tasks.json";
    let (task, more) = (".vscode/tasks.json", ".vscode/more");
    for (written, found, is_left) in [
        (moved, ".vscode", true),
        (moved_and_more, more, false),
        (other, task, false),
    ] {
        let told = beside_a_call("true", (written, i64::MAX), &[".vscode"]);
        assert_eq!(told, [(found.to_owned(), is_left)], "{written}");
    }
}

/// A command fills a directory beyond what is looked at: what lies deeper stays protected, and what is new there is held back.
#[test]
fn a_full_directory_opens_nothing() {
    let room = Room::new();
    room.host("git init -q proj && mkdir -p proj/src/.vscode && cd proj/src && echo ok | tee .envrc > .vscode/tasks.json && ln ../../../outside/secret linked");
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script);
    let end = run("mkdir pad && cd pad && seq 20500 | xargs touch");
    assert_eq!(end.findings, []);
    assert_eq!(run("true").findings, []);
    run(
        "cd proj; for f in src/.envrc src/.vscode/tasks.json src/linked .git/config .git/hooks/pre-commit; do echo evil > $f; done",
    );
    assert_eq!(
        room.host("cat proj/src/.envrc proj/src/.vscode/tasks.json ../outside/secret; grep -c evil proj/.git/config; ls proj/.git/hooks | grep -v sample; true"),
        "ok\nok\nhush\n0\n"
    );
    let new = room.work.join("proj/src/new/.idea");
    let end = run("mkdir -p proj/src/new/.idea");
    assert_eq!(end.findings[0].path, new, "{end:#?}");
    assert!(!new.exists());
    // In one step, too.
    let end = run("seq 25500 | sed 's,^,pad/x,' | xargs touch; echo x > proj/src/.npmrc");
    assert!(!room.work.join("proj/src/.npmrc").exists(), "{end:#?}");
}

/// Files that commands may make are no reason to leave the user's own unprotected, in this process and in the next.
#[test]
fn decoys_take_no_place_from_the_files_of_the_user() {
    let room = Room::new();
    room.host(
        "mkdir -p a/b/c/.vscode && cd a/b/c && echo ok | tee .envrc .npmrc > .vscode/tasks.json",
    );
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script);
    let end = run(
        "mkdir z && cd z && seq 1600 | xargs mkdir && seq 1600 | sed s,$,/.tool-versions, | xargs touch; ls | wc -l",
    );
    assert_eq!(end.stdout, "1600\n", "{end:#?}");
    let script = "cd a/b/c; for f in .envrc .npmrc .vscode/tasks.json; do echo evil > $f; done";
    run(script);
    room.run(script);
    assert_eq!(
        room.host("cd a/b/c; cat .envrc .npmrc .vscode/tasks.json"),
        "ok\nok\nok\n"
    );
    // What a command made it may remove: it is not held while the rest would not fit.
    assert_eq!(run("rm -rf z; ls").stdout, "a\n");
}

/// A file that is renamed or linked keeps the time of its birth: decoys made of older files are newer than the user's all the same.
#[test]
fn decoys_made_of_older_files_take_no_place_either() {
    let room = Room::new();
    room.run("mkdir -p f z && seq 1700 | sed s,^,f/, | xargs touch && seq 1700 | sed s,^,z/, | xargs mkdir");
    room.host("mkdir -p user/deep && echo ok > user/deep/.tool-versions");
    let end = room.run(
        "for i in $(seq 850); do mv f/$i z/$i/.tool-versions; done; for i in $(seq 851 1700); do ln f/$i z/$i/.tool-versions; done; ls z/*/.tool-versions | wc -l",
    );
    assert_eq!(end.stdout, "1700\n", "{end:#?}");
    room.run("echo evil > user/deep/.tool-versions");
    assert_eq!(room.host("cat user/deep/.tool-versions"), "ok\n");
}

/// Each is a repository that the command may change and remove, in the process that knows who made it.
#[test]
fn very_many_new_repositories_are_in_nobodys_way() {
    let room = Room::new();
    let jail = room.jail();
    let run = |script: &str| super::harness::run(&jail, &room.work, script);
    run(
        "mkdir z && cd z && for i in $(seq 1600); do echo $i/.git/objects $i/.git/refs; done | xargs mkdir -p && for i in $(seq 1600); do echo 'ref: refs/heads/a' > $i/.git/HEAD; done",
    );
    assert_eq!(run("rm -rf z; ls; echo ended").stdout, "ended\n");
}

/// More than can be made read-only: the first ones are, changes of the others are told.
#[test]
fn very_many_are_told_when_changed() {
    let room = Room::new();
    room.host(
        "for i in $(seq 1000 1800); do mkdir -p packages/p$i; echo ok > packages/p$i/.npmrc; done",
    );
    check(&room, "cat packages/p1799/.npmrc >/dev/null", &[]);
    let script = "for i in packages/*/.npmrc; do echo evil > $i; done 2>/dev/null; grep -l ok packages/*/.npmrc | wc -l";
    let end = room.run(script);
    assert_eq!(end.stdout, "200\n", "{end:#?}");
    assert!(
        end.findings.len() == 1 && end.findings[0].text.contains("(and 581 more"),
        "{end:#?}"
    );
}

#[test]
fn what_cannot_be_protected_is_named() {
    let room = Room::new();
    room.host("for i in $(seq 1600); do mkdir -p r$i/.git; echo 'ref: refs/heads/a' > r$i/.git/HEAD; done");
    let error = room.jail().prepare(Job {
        program: Path::new("/bin/true"),
        arguments: &[],
        directory: &room.work,
        variables: &BTreeMap::new(),
        files: Vec::new(),
        rc: None,
        made: None,
    });
    let error = error.err().unwrap().to_string();
    assert!(error.contains("most of them named `.git`"), "{error}");
    assert!(error.contains("outside the jail"), "{error}");
}

/// Only the directory that was not read holds the other name of a file, or no directory does.
#[test]
fn links_into_what_was_not_read_lead_nowhere_else() {
    let room = Room::new();
    room.host("mkdir -p build src/many && seq 20100 | sed 's,^,src/many/,' | xargs touch && ln src/many/7 build/out && ln ../outside/secret build/linked");
    let end = room.run("echo new > build/out; echo new > build/linked");
    assert_eq!(
        room.host("cat build/out build/linked"),
        "new\nhush\n",
        "{end:#?}"
    );
}
