//! A call replaces and removes only what it read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Barrier;

use rustix::fs::{FlockOperation, flock};

use super::left_out::leave_out;
use super::{Guest, Tree};

const CHANGED: &str = "would-block";

/// One call that reads `f` and puts something else in its place.
fn replace(guest: &mut Guest, text: &str) -> String {
    let made = guest.run(&format!("create {text} {text}"));
    assert_eq!(made, "ok");
    guest.run(&format!("rename {text} f"))
}

#[test]
fn what_changed_since_it_was_read_is_not_replaced_or_removed() {
    type Change = (&'static str, fn(&Tree));
    let changes: [Change; 5] = [
        ("replaced", |tree| {
            fs::write(tree.at("ws/g"), "old").expect("write");
            fs::rename(tree.at("ws/g"), tree.at("ws/f")).expect("rename");
        }),
        ("written in place", |tree| {
            fs::write(tree.at("ws/f"), "new").expect("write");
        }),
        ("longer", |tree| {
            fs::write(tree.at("ws/f"), "longer").expect("write");
        }),
        ("gone", |tree| {
            fs::remove_file(tree.at("ws/f")).expect("remove");
        }),
        ("moved", |tree| {
            fs::rename(tree.at("ws/f"), tree.at("ws/h")).expect("rename");
        }),
    ];
    for (what, change) in changes {
        let tree = Tree::new();
        tree.file("ws/f", "old");
        let mut guest = tree.guest();
        assert_eq!(guest.run("read f"), "old");
        change(&tree);
        assert_eq!(replace(&mut guest, "mine"), CHANGED, "{what}");
        if tree.has("ws/f") {
            assert_eq!(guest.run("unlink f"), CHANGED, "{what}");
            assert_eq!(guest.run("cut f"), CHANGED, "{what}");
            assert_ne!(guest.run("read f"), CHANGED, "{what}");
            assert_eq!(guest.run("rename mine f"), "ok", "{what}, read again");
        }
    }
}

#[test]
fn a_name_that_was_free_is_not_taken_from_another_call() {
    let tree = Tree::new();
    let mut guest = tree.guest();
    assert_eq!(guest.run("stat f"), "no-entry");
    tree.file("ws/f", "theirs");
    assert_eq!(replace(&mut guest, "mine"), CHANGED);
    assert_eq!(tree.text("ws/f"), "theirs");
}

/// A call that finds a directory missing finds every name in it free.
#[test]
fn a_name_in_a_directory_that_was_missing_is_not_taken_from_another_call() {
    for path in ["d/f", "d/e/f", "./d//f", "old/../d/f"] {
        let tree = Tree::new();
        tree.file("ws/old/x", "x");
        let mut guest = tree.guest();
        assert_eq!(guest.run(&format!("stat {path}")), "no-entry", "{path}");
        let theirs = path.replace("old/../", "");
        tree.file(&format!("ws/{theirs}"), "theirs");
        assert_eq!(guest.run("create t mine"), "ok");
        assert_eq!(guest.run(&format!("rename t {theirs}")), CHANGED, "{path}");
        assert_eq!(tree.text(&format!("ws/{theirs}")), "theirs");
    }
}

#[test]
fn what_the_call_changed_itself_is_its_own() {
    let tree = Tree::new();
    tree.file("ws/f", "old").file("ws/d/x", "x");
    tree.guest().check(&[
        ("read f", "old"),
        ("write f mine", "ok"),
        ("read f", "mine"),
        ("create t 2", "ok"),
        ("rename t f", "ok"),
        ("create t 3", "ok"),
        ("rename t f", "ok"),
        ("unlink f", "ok"),
        ("stat f", "no-entry"),
        ("create f 4", "ok"),
        ("create t 5", "ok"),
        ("rename t f", "ok"),
        ("read d/x", "x"),
        ("rename d e", "ok"),
        ("mkdir d", "ok"),
        ("create d/x y", "ok"),
        ("unlink e/x", "ok"),
    ]);
}

/// Many calls read a number, and put the next one in its place; those that were told that it worked are counted by it.
#[test]
fn concurrent_replacements_lose_nothing() {
    const CALLS: usize = 16;
    let tree = Tree::new();
    tree.file("ws/f", "0");
    let start = Barrier::new(CALLS);
    let done: usize = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..CALLS)
            .map(|call| {
                let (tree, start) = (&tree, &start);
                scope.spawn(move || {
                    start.wait();
                    (0..10).filter(|turn| count_up(tree, call, *turn)).count()
                })
            })
            .collect();
        calls
            .into_iter()
            .map(|call| call.join().expect("call"))
            .sum()
    });
    assert_eq!(tree.text("ws/f"), done.to_string());
    assert!(done > 0);
}

fn count_up(tree: &Tree, call: usize, turn: usize) -> bool {
    let mut guest = tree.guest();
    let n: usize = guest.run("read f").parse().expect("a number");
    let name = format!("t{call}-{turn}");
    assert_eq!(guest.run(&format!("create {name} {}", n + 1)), "ok");
    match guest.run(&format!("rename {name} f")).as_str() {
        "ok" => true,
        CHANGED => false,
        other => panic!("{other}"),
    }
}

#[test]
fn a_directory_that_another_host_holds_is_waited_for() {
    let tree = Tree::new();
    tree.file("ws/f", "old");
    let held = fs::File::open(tree.at("ws")).expect("open");
    flock(&held, FlockOperation::LockExclusive).expect("lock");
    let mut guest = tree.guest();
    guest.check(&[("read f", "old"), ("create t new", "ok")]);
    assert_eq!(guest.run("rename t f"), "busy");
    drop(held);
    assert_eq!(guest.run("rename t f"), "ok");
}

/// Another host compares under its lock and changes after it: what is taken away or moved out meanwhile would come back.
#[test]
fn nothing_leaves_a_directory_that_another_host_holds() {
    let tree = Tree::new();
    tree.file("ws/f", "old").file("ws/d/x", "x");
    let mut guest = tree.guest();
    for (held, steps) in [
        ("ws", ["unlink f", "rename f d/f"]),
        ("ws/d", ["unlink d/x", "rename f d/f"]),
    ] {
        let lock = fs::File::open(tree.at(held)).expect("open");
        flock(&lock, FlockOperation::LockExclusive).expect("lock");
        for step in steps {
            assert_eq!(guest.run(step), "busy", "{step}");
        }
    }
    guest.check(&[
        ("rename f d/f", "ok"),
        ("rename d/f f", "ok"),
        ("unlink d/x", "ok"),
    ]);
}

/// Attempts to be given a number again: beside others that make files, the first one may miss it.
const ATTEMPTS: usize = 200;

/// A file of another process with the number of one that is gone; none where its turn has not come.
fn numbered(tree: &Tree, number: u64) -> Option<PathBuf> {
    (0..64).find_map(|n| {
        let path = tree.at(&format!("ws/other-{n}"));
        fs::write(&path, "theirs").expect("write");
        let found = fs::metadata(&path).expect("metadata").ino();
        (found == number).then_some(path)
    })
}

#[test]
fn a_number_that_another_file_got_again_makes_it_nobodys_own() {
    // How the call's own file, whose number is told, loses its last name.
    let ways: [(&str, &[&str]); 2] = [
        ("removed", &["unlink t"]),
        ("replaced", &["create u x", "rename u t"]),
    ];
    for (what, gone) in ways {
        let met = (0..ATTEMPTS).any(|_| {
            let tree = Tree::new();
            tree.file("ws/f", "old");
            let mut guest = tree.guest();
            guest.check(&[("read f", "old"), ("create t mine", "ok")]);
            let number = fs::metadata(tree.at("ws/t")).expect("metadata").ino();
            gone.iter()
                .for_each(|step| assert_eq!(guest.run(step), "ok"));
            let Some(theirs) = numbered(&tree, number) else {
                return false;
            };
            fs::rename(theirs, tree.at("ws/f")).expect("rename");
            assert_eq!(replace(&mut guest, "new"), CHANGED, "{what}");
            assert_eq!(guest.run("unlink f"), CHANGED, "{what}");
            assert_eq!(tree.text("ws/f"), "theirs", "{what}");
            true
        });
        if !met {
            leave_out(&format!(
                "a file that was {what}: this file system gives no number twice"
            ));
        }
    }
}
