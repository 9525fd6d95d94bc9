//! Directories of the policy that are led elsewhere: between two commands, by a command or by another process that can write there.

use std::os::unix::fs::symlink;

use super::super::*;
use super::harness::{End, Room, run};

/// Both kinds of jail.
fn jails(room: &Room) -> [Jail; 2] {
    [room.jail(), Jail::without_namespaces(room.policy.clone())]
}

pub(super) fn room() -> Room {
    let room = Room::new();
    room.host("mkdir -p a/named/in a/other b && echo x > a/named/file && echo x > a/plain && echo mine > a/other/own");
    room
}

/// What is outside, and must not change or be seen.
pub(super) fn outside(room: &Room) -> String {
    room.host("cd ../outside && find . | sort && cat secret")
}

/// Tries to read and to write through every name.
pub(super) const PROBE: &str = "for place in a/named a/named/in a/plain a b; do cat $place/secret $place/named/secret; echo evil > $place/evil; echo evil > $place; done 2>/dev/null; echo done";

/// Ways to lead `a/named` or `a/plain` elsewhere. The first ones a command can try, the others only a process with more rights.
pub(super) const SWAPS: [&str; 9] = [
    "rm -rf a/named; ln -s ../../outside a/named",
    "mv a/named a/moved; ln -s ../../outside a/named",
    "mv a moved; mkdir a; ln -s ../../outside a/named",
    "mv a moved; ln -s ../outside a",
    "rm -rf a; ln -s ../outside a",
    "rm -f a/plain; ln -s ../../outside/secret a/plain",
    "rm -f a/plain; mkdir a/plain; ln -s ../../../outside a/plain/in",
    "rm -rf a/named/in; ln -s ../../../outside a/named/in",
    "umount a/named; rm -rf a/named; ln -s ../../outside a/named",
];

fn named(room: &Room, names: &[&str]) -> Option<Vec<PathBuf>> {
    Some(names.iter().map(|name| room.work.join(name)).collect())
}

/// How many policies there are.
pub(super) const N_POLICIES: std::ops::Range<usize> = 0..8;

/// The roots, and each list of the policy, name what is swapped.
pub(super) fn policies(room: &Room) -> Vec<JailPolicy> {
    let of = |change: &dyn Fn(&mut JailPolicy)| {
        let mut policy = room.policy.clone();
        change(&mut policy);
        policy
    };
    let inner = ["a/named", "a/named/in", "a/plain"];
    let with_root = [".", "a/named", "a/plain"];
    vec![
        of(&|policy| policy.allow_write = named(room, &inner)),
        of(&|policy| policy.allow_write = named(room, &with_root)),
        of(&|policy| policy.allow_read = named(room, &inner)),
        of(&|policy| {
            policy.allow_read = named(room, &inner);
            policy.allow_write = named(room, &["b"]);
        }),
        of(&|policy| policy.roots.push(room.work.join("a/named"))),
        of(&|policy| {
            policy.roots.push(room.work.join("a/named"));
            policy.allow_write = named(room, &["a/named/in", "a"]);
        }),
        of(&|policy| policy.protected = named(room, &inner).unwrap_or_default()),
        of(&|policy| policy.hidden = named(room, &inner).unwrap_or_default()),
    ]
}

#[test]
fn a_command_that_swaps_a_named_directory_gets_nothing_by_it() {
    for swap in SWAPS {
        let n_policies = policies(&room()).len();
        for idx in 0..n_policies {
            let room = room();
            let mut one = Room::new();
            one.policy = policies(&room).swap_remove(idx);
            let before = outside(&room);
            for jail in [
                Jail::new(one.policy.clone()),
                Jail::without_namespaces(one.policy.clone()),
            ] {
                for script in [swap, PROBE, swap, PROBE] {
                    let end = try_run(&jail, &room, script);
                    assert!(
                        !end.contains("hush"),
                        "{swap} under {:#?}: {end}",
                        one.policy
                    );
                }
            }
            assert_eq!(outside(&room), before, "{swap} under {:#?}", one.policy);
        }
    }
}

/// The same by one that has all rights in the workspace: a file tool, a plugin, another program.
#[test]
fn a_named_directory_that_somebody_swaps_is_not_given() {
    for swap in &SWAPS[..8] {
        let n_policies = policies(&room()).len();
        for idx in 0..n_policies {
            let room = room();
            let policy = policies(&room).swap_remove(idx);
            let before = outside(&room);
            for jail in [
                Jail::new(policy.clone()),
                Jail::without_namespaces(policy.clone()),
            ] {
                room.host(&format!("({swap}) 2>/dev/null; true"));
                let end = try_run(&jail, &room, PROBE);
                assert!(!end.contains("hush"), "{swap} under {policy:#?}: {end}");
                assert_eq!(outside(&room), before, "{swap} under {policy:#?}");
                room.host("rm -rf a moved b && mkdir -p a/named/in a/other b && echo x > a/named/file && echo x > a/plain && echo mine > a/other/own");
            }
        }
    }
}

/// What it printed and said; a jail that is refused runs nothing.
fn try_run(jail: &Jail, room: &Room, script: &str) -> String {
    let variables = BTreeMap::new();
    let arguments: Vec<OsString> = vec!["-c".into(), script.into()];
    let job = Job {
        program: Path::new("/bin/bash"),
        arguments: &arguments,
        directory: &room.work,
        variables: &variables,
        files: Vec::new(),
        rc: None,
        made: None,
    };
    match jail.prepare(job) {
        Ok(prepared) => {
            let End {
                stdout, findings, ..
            } = super::harness::finish(prepared);
            format!("{stdout}{findings:?}")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_not_given_any_more_is_said() {
    let mut room = room();
    room.policy.allow_write = named(&room, &["b", "a/named"]);
    for idx in 0..2 {
        let [full, alone] = jails(&room);
        let jail = if idx == 0 { full } else { alone };
        let end = run(&jail, &room.work, "echo x > b/x && echo x > a/named/x");
        assert_eq!((end.code, end.findings.len()), (Some(0), 0), "{end:#?}");
        room.host("rm -rf b && mkdir b");
        let end = run(&jail, &room.work, "echo x > a/named/y; echo x > b/x");
        assert_ne!(end.code, Some(0), "{end:#?}");
        assert_eq!(end.findings[0].path, room.work.join("b"), "{end:#?}");
    }
}

#[test]
fn a_root_that_was_exchanged_runs_nothing() {
    let room = room();
    for jail in jails(&room) {
        let old = room.outside.join("old");
        std::fs::rename(&room.work, &old).unwrap();
        for make in [
            |room: &Room| std::fs::create_dir(&room.work).unwrap(),
            |room: &Room| symlink(&room.outside, &room.work).unwrap(),
        ] {
            make(&room);
            let told = try_run(&jail, &room, "cat secret; echo x > x");
            assert!(told.contains("not the directory it was"), "{told}");
            let removed = std::fs::remove_file(&room.work);
            removed
                .or_else(|_| std::fs::remove_dir(&room.work))
                .unwrap();
        }
        std::fs::rename(&old, &room.work).unwrap();
        assert!(try_run(&jail, &room, "echo fine").starts_with("fine"));
    }
}

/// Moved by a tool with more rights, it is hidden and protected where it is now.
#[test]
fn what_is_hidden_or_protected_stays_so_when_it_is_moved() {
    let mut room = room();
    room.host("echo hush > a/other/key && echo fine > a/other/fixed");
    room.policy.hidden = vec![room.work.join("a/other/key"), room.work.join("b/later")];
    room.policy.protected = vec![room.work.join("a/other/fixed")];
    let jail = room.jail();
    let all = "grep -rh hush . ; for f in $(find . -type f); do echo evil > $f; done; true";
    for change in [
        "true",
        "mv a/other b/moved",
        "mv b/moved/key b/k2; mv b/moved/fixed b/f2",
        "echo hush > b/later; mkdir -p a/other; echo hush > a/other/key; echo fine > a/other/fixed",
    ] {
        room.host(change);
        let end = run(&jail, &room.work, all);
        assert!(!end.stdout.contains("hush"), "{change}: {end:#?}");
        let kept = room
            .host("cat $(find . -name key -o -name k2 -o -name later -o -name fixed -o -name f2)");
        assert!(!kept.contains("evil"), "{change}: {kept}");
    }
}

/// The directory for what does not exist yet stays where it is.
#[test]
fn the_way_to_what_does_not_exist_yet_is_not_led_elsewhere() {
    let mut room = room();
    room.policy.hidden = vec![room.work.join("a/other/none/key")];
    room.policy.allow_write = None;
    let jail = room.jail();
    run(&jail, &room.work, "mv a/other a/away; ln -s ../b a/other");
    room.host("mkdir -p a/other/none && echo hush > a/other/none/key");
    let end = run(&jail, &room.work, "grep -rh hush .; cat b/none/key");
    assert!(!end.stdout.contains("hush"), "{end:#?}");
}

#[test]
fn toolchains_and_settings_are_not_led_elsewhere() {
    let mut room = room();
    room.host("mkdir -p ../outside/home/.cargo dots && printf '[user]\\nname = fine\\n' > dots/git && echo '[net]' > dots/cargo && ln -s ../../work/dots/git ../outside/home/.gitconfig && ln -s ../../../work/dots/cargo ../outside/home/.cargo/config.toml && printf '[user]\\nname = hush\\n' > ../outside/secret");
    room.policy.home = Some(room.outside.join("home"));
    let jail = room.jail();
    let look = "cat ~/.gitconfig ~/.cargo/config.toml";
    let end = run(&jail, &room.work, look);
    let expect = "[user]\n\tname = \"fine\"\n[net]\n";
    assert!(end.stdout.ends_with(expect), "{end:#?}");
    run(
        &jail,
        &room.work,
        "cd dots && rm git cargo && ln -s ../../outside/secret git && ln -s ../../outside/secret cargo",
    );
    let end = run(&jail, &room.work, look);
    assert!(!end.stdout.contains("hush"), "{end:#?}");
}
