//! What is learned of the paths that commands ask for in vain, with namespaces and without.

use std::fs;

use super::super::*;
use super::harness::{self, Room};

/// What was denied, without the home directory's, as it would be granted: `r` or `w`, and the path below the room.
fn learned(room: &Room, watch: &PathWatch) -> Vec<String> {
    assert_eq!(watch.problem(), None);
    let base = room.work.parent().unwrap();
    let denied = watch.denied().into_iter();
    let open = denied.filter(|denied| denied.obstacle.is_none());
    let shown = open.filter_map(|denied| {
        let below = denied.path.strip_prefix(base).ok()?;
        let kind = if denied.write { 'w' } else { 'r' };
        Some(format!("{kind} {}", below.display()))
    });
    shown.collect()
}

fn jails(room: &Room) -> Vec<(Jail, PathWatch)> {
    let mut jails = vec![Jail::without_namespaces(room.policy.clone())];
    if Jail::support().namespaces.is_ok() {
        jails.push(room.jail());
    }
    let watched = jails.into_iter().map(|jail| {
        let watch = PathWatch::default();
        (jail.with_watch(watch.clone()), watch)
    });
    watched.collect()
}

#[test]
fn paths_that_are_asked_for_in_vain_are_learned_and_stay_refused() {
    for script in [
        "cat ../outside/secret",
        "cd /var; cat $OLDPWD/../outside/secret",
        "ln -sf ../outside/secret link; cat link",
        "python3 -c 'open(\"../outside/secret\")'",
        "bash -c 'sleep 0; bash ../outside/secret'",
    ] {
        let room = Room::new();
        for (jail, watch) in jails(&room) {
            let end = harness::run(&jail, &room.work, script);
            assert_eq!(end.start, Start::Ran, "{script}: {end:#?}");
            assert_ne!(end.code, Some(0), "{script}: {end:#?}");
            assert!(!end.stdout.contains("hush"), "{script}: {end:#?}");
            assert_eq!(
                learned(&room, &watch),
                ["r outside/secret"],
                "{script}: {:?}",
                jail.label()
            );
        }
    }
}

#[test]
fn what_is_to_be_changed_is_granted_as_far_as_it_is_changed() {
    for (script, expected) in [
        ("echo x >> ../outside/secret", "w outside/secret"),
        ("touch ../outside/new", "w outside"),
        ("mkdir -p ../outside/new/deeper", "w outside"),
        ("rm -f ../outside/secret", "w outside"),
        ("echo x > here && mv here ../outside/there", "w outside"),
    ] {
        let mut room = Room::new();
        room.policy.allow_read = Some(vec![room.work.clone(), room.outside.clone()]);
        for (jail, watch) in jails(&room) {
            harness::run(&jail, &room.work, script);
            assert_eq!(
                learned(&room, &watch),
                [expected],
                "{script}: {:?}",
                jail.label()
            );
            assert_eq!(
                fs::read_to_string(room.outside.join("secret")).unwrap(),
                "hush\n"
            );
        }
    }
}

#[test]
fn what_works_or_is_nowhere_is_not_learned() {
    let script = "cat note >/dev/null; echo x > new; mkdir -p sub; rm new; ls / >/dev/null; cat ../outside/none ./none; touch $TMPDIR/x; true";
    let room = Room::new();
    fs::write(room.work.join("note"), "x").unwrap();
    for (jail, watch) in jails(&room) {
        let end = harness::run(&jail, &room.work, script);
        assert_eq!(end.code, Some(0), "{end:#?}");
        let none: Vec<String> = Vec::new();
        assert_eq!(learned(&room, &watch), none, "{:?}", jail.label());
    }
}

#[test]
fn no_grant_of_what_is_hidden_or_private_is_proposed() {
    let mut room = Room::new();
    let home = room.outside.join("home");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::create_dir_all(room.work.join(".vscode")).unwrap();
    for file in [
        home.join(".ssh/id"),
        room.outside.join("own"),
        home.join(".bashrc"),
    ] {
        fs::write(file, "x").unwrap();
    }
    room.policy.hidden = vec![room.outside.join("own")];
    room.policy.home = Some(home.clone());
    let script = format!(
        "cat {home}/.ssh/id ../outside/own; echo x >> {home}/.bashrc; echo x > .vscode/tasks.json; ls {home}",
        home = home.display()
    );
    for (jail, watch) in jails(&room) {
        harness::run(&jail, &room.work, &script);
        let none: Vec<String> = Vec::new();
        assert_eq!(learned(&room, &watch), none, "{:?}", jail.label());
        let denied = watch.denied();
        for path in [home.join(".ssh/id"), room.outside.join("own")] {
            let found = denied.iter().find(|denied| denied.path == path);
            assert!(
                found.is_some_and(|denied| denied.obstacle.is_some()),
                "{path:?}: {denied:#?}"
            );
        }
    }
}

#[test]
fn many_processes_are_watched_at_once_and_what_is_kept_is_bounded() {
    let room = Room::new();
    for n in 0..1_100 {
        fs::write(room.outside.join(format!("f{n}")), "").unwrap();
    }
    let script =
        "for k in 1 2 3 4; do (for n in {0..1099}; do [ -e ../outside/f$n ]; done) & done; wait";
    for (jail, watch) in jails(&room) {
        harness::run(&jail, &room.work, script);
        if jail.label() == Ok(JailLabel::Full) {
            assert_eq!(watch.denied().len(), 1_000);
            assert!(watch.n_omitted() > 0);
        }
    }
}
