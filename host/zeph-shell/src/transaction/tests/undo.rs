//! The list behind `/undo` and `/redo`.

use std::fs;
use std::sync::Arc;

use super::Bench;
use crate::transaction::UndoStack;

/// Runs "commands" that each write one letter more.
fn session(bench: &Bench, steps_max: usize, letters: &str) -> UndoStack {
    let mut stack = UndoStack::new(steps_max);
    for (at, letter) in letters.char_indices() {
        let snapshot = Arc::new(bench.take());
        fs::write(bench.at("state"), &letters[..=at]).unwrap();
        stack.push(format!("echo {letter}"), vec![snapshot]);
    }
    stack
}

fn state(bench: &Bench) -> String {
    fs::read_to_string(bench.at("state")).unwrap_or_default()
}

#[test]
fn steps_go_back_and_forth() {
    let bench = Bench::new();
    let mut stack = session(&bench, 20, "abc");
    assert_eq!(
        stack.commands().collect::<Vec<_>>(),
        ["echo c", "echo b", "echo a"]
    );
    let mut check = |step: fn(&mut UndoStack) -> super::super::UndoEnd, text: &str, left: &str| {
        assert_eq!(step(&mut stack).text, text);
        assert_eq!(state(&bench), left, "{text}");
    };
    check(|it| it.undo(0), "Undo count must be > 0.", "abc");
    check(UndoStack::redo, "Nothing to redo.", "abc");
    check(
        |it| it.undo(1),
        "Undid 1 of 3 available command(s); 2 more available.",
        "ab",
    );
    check(UndoStack::redo, "Redone: echo c", "abc");
    check(
        |it| it.undo(2),
        "Undid 2 of 3 available command(s); 1 more available.",
        "a",
    );
    check(UndoStack::redo, "Redone: echo b", "ab");
    check(|it| it.undo(9), "Undid 2 command(s).", "");
    check(|it| it.undo(1), "Nothing to undo.", "");
    check(UndoStack::redo, "Redone: echo a", "a");
    check(UndoStack::redo, "Redone: echo b", "ab");
    check(UndoStack::redo, "Redone: echo c", "abc");
    check(UndoStack::redo, "Nothing to redo.", "abc");
    check(|it| it.undo(3), "Undid 3 command(s).", "");
    drop(stack);
    assert_eq!(bench.n_vaults(), 0, "no copy outlives the list");
}

#[test]
fn an_edit_made_since_comes_back_with_redo() {
    let bench = Bench::new();
    let mut stack = session(&bench, 20, "a");
    fs::write(bench.at("src/main.rs"), "a person's work").unwrap();
    stack.undo(1);
    assert_eq!(
        fs::read(bench.at("src/main.rs")).unwrap(),
        b"fn main() {}\n"
    );
    stack.redo();
    assert_eq!(
        fs::read(bench.at("src/main.rs")).unwrap(),
        b"a person's work"
    );
}

#[test]
fn a_new_command_ends_what_could_be_redone() {
    let bench = Bench::new();
    let mut stack = session(&bench, 20, "ab");
    stack.undo(1);
    stack.push("echo x", vec![Arc::new(bench.take())]);
    assert_eq!(stack.redo().text, "Nothing to redo.");
}

#[test]
fn only_the_last_steps_are_kept() {
    let bench = Bench::new();
    let mut stack = session(&bench, 2, "abcd");
    assert_eq!(stack.undo(4).text, "Undid 2 command(s).");
    assert_eq!(state(&bench), "ab");
    let mut none = session(&bench, 0, "ab");
    assert_eq!(none.undo(1).text, "Nothing to undo.");
}

#[test]
fn a_failure_keeps_the_list() {
    let bench = Bench::new();
    let mut stack = session(&bench, 20, "ab");
    let aside = bench.top.path().join("aside");
    fs::rename(&bench.root, &aside).unwrap();
    let text = stack.undo(1).text;
    assert_eq!(
        text,
        "Nothing was undone: the directory is not the one that was kept."
    );
    fs::rename(&aside, &bench.root).unwrap();
    assert_eq!(
        stack.undo(1).text,
        "Undid 1 of 2 available command(s); 1 more available."
    );
    assert_eq!(state(&bench), "a");
}
