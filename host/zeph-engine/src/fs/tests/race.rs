//! A tree that changes while it is used: directories swapped for links that lead out, thousands of times.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};
use zeph_core::capability::FsRights;

use super::{Guest, Tree};

/// Rounds per race. Enough that both sides meet in every window, and over in a few seconds.
const ROUNDS: usize = 20_000;

/// Swaps two names over and over while `work` runs.
fn while_swapping(tree: &Tree, a: &str, b: &str, work: impl FnOnce()) {
    let (a, b) = (tree.at(a), tree.at(b));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).expect("swap");
            }
        });
        work();
        done.store(true, Ordering::Relaxed);
    });
}

fn race(guests: [Guest; 2], tree: &Tree, lines: &[&str]) -> (usize, usize) {
    let (mut through, mut refused) = (0, 0);
    while_swapping(tree, "ws/d", "ws/swap", || {
        for mut guest in guests {
            for round in 0..ROUNDS / 2 {
                let answer = guest.run(lines[round % lines.len()]);
                assert!(!answer.contains("OUTSIDE"), "{answer}");
                match answer.as_str() {
                    "not-permitted" | "no-entry" | "exist" | "not-directory" => refused += 1,
                    _ => through += 1,
                }
            }
        }
    });
    (through, refused)
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("ws/d/secret", "inside")
        .file("ws/src", "x")
        .link("ws/swap", tree.at("out"));
    tree
}

#[test]
fn nothing_is_read_through_a_directory_that_turns_into_a_link() {
    let tree = tree();
    let guests = tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]);
    let (through, refused) = race(guests, &tree, &["read d/secret", "stat d/secret", "list d"]);
    println!("read: {through} inside, {refused} refused");
    assert!(
        through > 0 && refused > 0,
        "the race must meet both sides: {through} {refused}"
    );
}

#[test]
fn nothing_is_changed_through_a_directory_that_turns_into_a_link() {
    let tree = tree();
    let guests = tree.guests_with(&[("ws", FsRights::ALL)], &[], &[]);
    let lines = [
        "write d/secret inside",
        "cut d/secret",
        "write d/new x",
        "unlink d/new",
        "mkdir d/m",
        "rmdir d/m",
        "rename src d/src",
        "rename d/src src",
        "symlink secret d/s",
        "unlink d/s",
        "link src d/l",
        "unlink d/l",
        "touch d/secret",
    ];
    let (through, refused) = race(guests, &tree, &lines);
    println!("change: {through} inside, {refused} refused");
    assert!(
        through > 0 && refused > 0,
        "the race must meet both sides: {through} {refused}"
    );
    assert_eq!(tree.text("out/secret"), "OUTSIDE");
    let left: Vec<_> = std::fs::read_dir(tree.at("out")).expect("list").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_hidden_file_does_not_show_while_names_are_swapped() {
    let tree = Tree::new();
    tree.file("ws/d/.env", "OUTSIDE")
        .file("ws/e/.env", "OUTSIDE")
        .file("ws/d/f", "x")
        .file("ws/e/f", "x");
    while_swapping(&tree, "ws/d", "ws/e", || {
        for mut guest in tree.guests_with(&[("ws", FsRights::ALL)], &[".env"], &[]) {
            for _ in 0..ROUNDS / 8 {
                for line in ["read d/.env", "list d", "read e/../d/.env", "stat d/.env"] {
                    let answer = guest.run(line);
                    assert!(
                        !answer.contains("OUTSIDE") && !answer.contains(".env"),
                        "{line}: {answer}"
                    );
                }
            }
        }
    });
}

#[test]
fn a_file_swapped_for_a_hidden_one_is_never_read() {
    let tree = Tree::new();
    tree.file("ws/f", "plain").file("ws/.env", "OUTSIDE");
    tree.link("ws/l", "f").link("ws/m", ".env");
    let mut guest = tree.guest_with(&[("ws", FsRights::ALL)], &[".env"], &[]);
    while_swapping(&tree, "ws/l", "ws/m", || {
        for _ in 0..ROUNDS {
            let answer = guest.run("read l");
            assert!(answer == "plain" || answer == "no-entry", "{answer}");
        }
    });
}

#[test]
fn a_walk_stays_inside_while_directories_turn_into_links() {
    let tree = tree();
    tree.file("out/deep/canary", "x");
    let mut guest = tree.guest();
    while_swapping(&tree, "ws/d", "ws/swap", || {
        for _ in 0..ROUNDS / 10 {
            let seen = super::walk::walk(&mut guest, "", |_| {}).expect("walk");
            assert!(!seen.contains("canary") && !seen.contains("deep"), "{seen}");
        }
    });
}

#[test]
fn a_pipe_swapped_in_is_never_opened() {
    let tree = Tree::new();
    tree.file("ws/f", "plain");
    rustix::fs::mkfifoat(CWD, tree.at("ws/p"), rustix::fs::Mode::from_raw_mode(0o666))
        .expect("make pipe");
    let mut guest = tree.guest();
    while_swapping(&tree, "ws/f", "ws/p", || {
        for _ in 0..ROUNDS {
            let answer = guest.run("read f");
            assert!(
                ["plain", "not-permitted", "no-entry"].contains(&answer.as_str()),
                "{answer}"
            );
        }
    });
}
