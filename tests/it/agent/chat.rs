//! The chat on a terminal.

use serde_json::json;

use super::product;
use super::script::{Script, calls, says};
use crate::guest::HOSTILE;
use crate::product::Product;
use crate::terminal::Prompt;

const RUN: [&str; 1] = ["run"];

/// A chat that has begun.
fn chat(product: &Product) -> Prompt {
    Prompt::start_with(product, &RUN, "/help explains")
}

#[test]
fn a_task_is_worked_on_with_an_approval() {
    let script = Script::new([
        calls(&[("read", json!({"path": "sum.sh"}))]),
        calls(&[(
            "edit",
            json!({"path": "sum.sh", "old_string": "-", "new_string": "+"}),
        )]),
        calls(&[("bash", json!({"command": "sh test.sh"}))]),
        says("It **passes** now."),
        says("second answer"),
    ]);
    let product = product(&script);
    product.file("sum.sh", "echo $(($1 - $2))\n");
    product.file(
        "test.sh",
        "test \"$(sh sum.sh 2 3)\" = 5 && echo it-has-passed\n",
    );
    let mut chat = chat(&product);
    chat.type_line("mend sum.sh");
    chat.until_all(&["edit", "n  deny", "Run it?"]);
    chat.type_line("o");
    chat.until_all(&["sh test.sh", "n  deny", "Run it?"]);
    chat.type_line("s");
    chat.until_all(&["it-has-passed", "now.", "context"]);
    assert_eq!(product.read("sum.sh"), "echo $(($1 + $2))\n");
    chat.type_line("/cost");
    chat.until("3 calls");
    chat.type_line("/approve");
    chat.until("APPROVED");
    chat.type_line("/stats");
    chat.until("2 questions");
    chat.type_line("/export");
    chat.until("written to");
    chat.type_line("go on");
    chat.until("second answer");
    chat.type_line("/resume");
    chat.until("mend sum.sh");
    chat.type_line("/nonsense");
    chat.until("there is no command");
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn a_denial_has_a_reason_and_ctrl_c_ends_the_turn_alone() {
    let script = Script::new([
        calls(&[("write", json!({"path": "a", "content": "b"}))]),
        says("then not"),
        calls(&[("bash", json!({"command": "echo begun-here; sleep 600"}))]),
        says("still here"),
    ]);
    let product = product(&script);
    let mut chat = Prompt::start_with(&product, &["run", "--allow", "bash"], "/help explains");
    chat.type_line("write a");
    chat.until_all(&["n  deny", "Run it?"]);
    chat.type_line("n use another file");
    chat.until_all(&["then not", "context"]);
    assert!(
        script.requests()[1]
            .to_string()
            .contains("use another file")
    );
    assert!(!product.work.join("a").exists());
    chat.type_line("wait");
    chat.until("begun-here");
    chat.interrupt();
    chat.until("interrupted");
    chat.type_line("are you there?");
    // Keys count for the editor once its prompt is there.
    chat.until_all(&["still here", "context", "> "]);
    chat.press(b"\x04");
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn a_model_cannot_drive_the_terminal() {
    let script = Script::new([says("a\u{1b}]0;stolen\u{7}b")]);
    let product = product(&script);
    let mut chat = chat(&product);
    chat.type_line("hello");
    chat.until("\\x1b]0;stolen\\x07b");
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn without_a_model_the_prompt_stays_what_it_was() {
    let script = Script::new([]);
    let product = product(&script);
    let mut prompt = Prompt::start_with(&product, &["run", "--no-model"], "zeph");
    prompt.type_line("/quit");
    assert_eq!(prompt.wait(), Some(0));
}

#[test]
fn every_command_of_the_chat_answers() {
    let script = Script::new([says("hello yourself")]);
    let product = product(&script);
    let mut chat = chat(&product);
    chat.type_line("hello");
    chat.until_all(&["hello yourself", "context", "> "]);
    for (command, words) in [
        ("/help", "Ctrl-C ends the turn"),
        ("/tools", "read_overflow"),
        ("/model", "script-1"),
        ("/model scripted", "scripted · script-1"),
        ("/model none", "there is no provider"),
        ("/undo", "> "),
        ("/redo", "> "),
        ("/compact", "nothing to make shorter"),
        ("/revoke x", "not the ID of an approval"),
        ("/resume x", "not the ID of a session"),
        ("/approve", "no call waits"),
        ("/approve x", "no call `x` waits"),
        ("/export notes.md", "notes.md"),
        ("/clear", "a new conversation begins"),
    ] {
        chat.type_line(command);
        chat.until_all(&[words, "> "]);
    }
    assert!(product.read("notes.md").contains("hello yourself"));
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
    let mut resumed = Prompt::start_with(&product, &["run", "--resume"], "resumed with");
    resumed.type_line("/quit");
    assert_eq!(resumed.wait(), Some(0));
}

#[test]
fn a_tool_that_asks_the_user_is_answered() {
    let script = Script::new([calls(&[("asks", json!({"n": 1}))]), says("it is known")]);
    let product = product(&script);
    product.drop_in("hostile", HOSTILE);
    let mut chat = Prompt::start_with(&product, &["run", "--allow", "*"], "/help explains");
    chat.type_line("ask me");
    chat.until_all(&["asks:", "branch –"]);
    chat.type_line("main");
    chat.until("force –");
    chat.type_line("yes");
    chat.until("it is known");
    let told = super::results(&script.requests()[1]).concat();
    assert!(told.contains("main"), "{told}");
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}
