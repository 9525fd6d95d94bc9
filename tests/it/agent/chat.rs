//! The chat on a terminal.

use rustix::process::Signal;
use serde_json::json;

use super::product;
use super::script::{Script, calls, says};
use crate::guest::HOSTILE;
use crate::mcp_ends::{Sleep, hears_hang_up, unfinished};
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

/// What has a terminal mark what is pasted.
const MARKS_PASTES: &str = "\u{1b}[?2004h";

/// What a terminal that marks it sends of a text that is pasted.
fn pasted(text: &str) -> Vec<u8> {
    format!("\u{1b}[200~{text}\u{1b}[201~").into_bytes()
}

#[test]
fn pasted_lines_are_one_prompt_and_no_answer() {
    let write = calls(&[("write", json!({"path": "a", "content": "b"}))]);
    let script = Script::new([says("all at once"), write, says("then not")]);
    let product = product(&script);
    let mut chat = Prompt::start_with(&product, &RUN, MARKS_PASTES);
    chat.press(&pasted("first line\r\nsecond line\r/quit\n"));
    chat.until("/quit");
    chat.type_line("");
    chat.until_all(&["all at once", "context", "> "]);
    let requests = script.requests();
    assert_eq!(requests.len(), 1);
    let sent = requests[0].to_string();
    assert!(sent.contains("first line\\nsecond line\\n/quit"), "{sent}");
    chat.type_line("write");
    chat.until_all(&[MARKS_PASTES, "Run it?"]);
    chat.press(&pasted("o\no\n"));
    chat.until_all(&["o", "o"]);
    chat.press(b"\x04");
    chat.press(b"\x15\x08\x08\x08\x08");
    chat.type_line("n");
    chat.until_all(&["then not", "context"]);
    assert!(!product.work.join("a").exists());
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn pasted_lines_are_no_calls_before_enter() {
    let script = Script::new([]);
    let product = product(&script);
    let mut prompt = Prompt::start_with(&product, &["run", "--no-model"], MARKS_PASTES);
    prompt.press(&pasted("write path=a content=b\nwrite path=c content=d\n"));
    prompt.until("content=d");
    prompt.press(b"\x03");
    prompt.until("zeph");
    prompt.type_line("/quit");
    assert_eq!(prompt.wait(), Some(0));
    assert!(!product.work.join("a").exists());
}

#[test]
fn what_was_typed_with_a_prompt_does_not_approve_its_calls() {
    let write = || calls(&[("write", json!({"path": "a", "content": "b"}))]);
    for (args, term) in [
        (&["run"][..], "xterm"),
        (&["run"], "dumb"),
        (&["run", "--tui"], "xterm"),
    ] {
        let script = Script::new([write(), says("then not")]);
        let product = product(&script);
        let mut command = product.command(args);
        command.env("TERM", term);
        let mut chat = Prompt::run(command, Some((80, 24)), "explains");
        chat.press(b"write\ra\ro\ry\r");
        chat.until("[o/s/a/N]");
        chat.press(b"\x15");
        chat.type_line("n");
        match args.contains(&"--tui") {
            true => chat.redraw_until(&["then"]),
            false => chat.until("then not"),
        }
        assert!(!product.work.join("a").exists(), "{args:?} {term}");
        assert_eq!(chat.terminate(), Some(143));
    }
}

#[test]
fn prompts_typed_while_the_model_works_follow() {
    let script = Script::new([
        calls(&[(
            "bash",
            json!({"command": "echo begun-here; until test -e go; do sleep 0.05; done"}),
        )]),
        says("first answer"),
        says("second answer"),
        says("third answer"),
    ]);
    let product = product(&script);
    let mut chat = Prompt::start_with(&product, &["run", "--allow", "bash"], "/help explains");
    chat.type_line("wait");
    chat.until("begun-here");
    chat.press(b"and then?\rand now?\r/quit\r");
    product.file("go", "");
    chat.until_all(&["first answer", "second answer", "third answer"]);
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn a_terminal_that_is_closed_at_a_question_is_a_hang_up() {
    for term in ["xterm", "dumb"] {
        let script = Script::new([calls(&[("write", json!({"path": "a", "content": "b"}))])]);
        let product = product(&script);
        let mut command = product.command(&RUN);
        command.env("TERM", term);
        let mut chat = Prompt::run(command, Some((80, 24)), "explains");
        chat.type_line("write");
        chat.until("Run it?");
        assert_eq!(chat.close(), Some(129), "{term}");
        assert!(!product.work.join("a").exists(), "{term}");
    }
}

#[test]
fn what_a_provider_does_not_report_is_marked_as_an_estimate() {
    let unreported = json!({ "text": "a guess", "usage": { "is_wrong": true } });
    let script = Script::new([says("counted"), unreported]);
    let product = product(&script);
    let mut chat = chat(&product);
    chat.type_line("one");
    chat.until_all(&["counted", "· 160 tokens · $", "context"]);
    chat.type_line("two");
    chat.until_all(&["a guess", "· ~", "tokens · ~$", "context", "> "]);
    chat.type_line("/cost");
    chat.until_all(&["· ~", "tokens · ~$", "are estimated from bytes"]);
    chat.type_line("/stats");
    chat.until_all(&["~input ", "~output "]);
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
    let ran = product.run(&["run", "--json", "--resume", "--", "three"]);
    let (_, result) = super::events(&ran);
    assert!(
        result["usage"]["estimated_tokens"].as_u64() > Some(0),
        "{result}"
    );
}

#[test]
fn the_model_that_was_chosen_stays_when_the_conversation_is_cleared() {
    let (script, other) = (Script::new([]), Script::new([says("from the other")]));
    let product = product(&script);
    let provider = |name: &str, script: &Script| {
        format!(
            "{{name=\"{name}\",type=\"openai\",model=\"script-1\",base_url=\"{}\"}}",
            script.base_url
        )
    };
    let providers = [provider("scripted", &script), provider("other", &other)].join(",");
    let providers = format!("llm.providers=[{providers}]");
    let args = ["--set", &providers, "run", "--provider", "scripted"];
    let mut chat = Prompt::start_with(&product, &args, "/help explains");
    chat.type_line("/model other");
    chat.until_all(&["other · script-1", "> "]);
    chat.type_line("/clear");
    chat.until_all(&["a new conversation", "other · script-1", "> "]);
    chat.type_line("who are you?");
    chat.until_all(&["from the other", "context"]);
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
        ("/revoke x", "no record of call `x`"),
        ("/resume x", "not the ID of a session"),
        ("/approve", "no call waits"),
        ("/approve x", "no call `x` waits"),
        ("/export notes.md", "written to"),
        ("/export notes.md", "File exists"),
        ("/export", "zeph-session-"),
        ("/export", "-2.md"),
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

/// A test that fails, and the function it tests.
fn failing(product: &Product) {
    product.file("sum.sh", "echo $(($1 - $2))\n");
    product.file(
        "test.sh",
        "test \"$(sh sum.sh 2 3)\" = 5 && echo it-has-passed || { echo it-has-failed; exit 1; }\n",
    );
}

#[test]
fn a_failing_test_is_mended_and_an_interrupted_session_resumed() {
    let test = || calls(&[("bash", json!({"command": "sh test.sh"}))]);
    let edit = json!({"path": "sum.sh", "old_string": "-", "new_string": "+"});
    let script = Script::new([
        calls(&[
            ("read", json!({"path": "sum.sh"})),
            ("read", json!({"path": "test.sh"})),
        ]),
        test(),
        calls(&[("edit", edit)]),
        test(),
        calls(&[("bash", json!({"command": "echo begun-here; sleep 600"}))]),
        says("it was mended before"),
    ]);
    let product = product(&script);
    failing(&product);
    let mut chat = chat(&product);
    chat.type_line("mend the failing test");
    chat.until_all(&["sh test.sh", "what fits the rule bash:sh *", "Run it?"]);
    chat.type_line("s");
    chat.until_all(&[
        "it-has-failed",
        "exit code 1",
        "edit",
        "rule edit:sum.sh",
        "Run it?",
    ]);
    chat.type_line("o");
    // The difference, and the test again, which needs no second answer.
    chat.until_all(&["-echo", "+echo", "it-has-passed", "exit code 0"]);
    chat.until_all(&["begun-here", "Run it?"]);
    chat.type_line("o");
    chat.until_all(&["│", "begun-here"]);
    chat.interrupt();
    chat.until_all(&["interrupted", "6 calls", "> "]);
    assert_eq!(product.read("sum.sh"), "echo $(($1 + $2))\n");
    chat.press(b"\x04");
    assert_eq!(chat.wait(), Some(0));
    let mut resumed = Prompt::start_with(&product, &["run", "--resume"], "resumed with");
    resumed.type_line("what was done?");
    resumed.until_all(&["it was mended before", "context"]);
    resumed.type_line("/quit");
    assert_eq!(resumed.wait(), Some(0));
    let last = script.requests().pop().unwrap();
    let told = super::results(&last);
    assert_eq!(told.len(), 6, "{told:#?}");
    assert!(last.to_string().contains("interrupted"), "{last}");
}

#[test]
fn a_hang_up_in_the_middle_of_a_turn_ends_it_in_order() {
    if !hears_hang_up() {
        return;
    }
    let sleep = Sleep::new();
    let script = Script::new([
        calls(&[("bash", sleep.command())]),
        says("it was interrupted"),
    ]);
    let product = product(&script);
    let mut chat = Prompt::start_with(&product, &["run", "--allow", "bash"], "/help explains");
    chat.type_line("wait");
    sleep.begins();
    chat.signal(Signal::HUP);
    assert_eq!(chat.wait(), Some(129));
    sleep.ends();
    assert_eq!(unfinished(&product), Vec::<serde_json::Value>::new());
    let mut resumed = Prompt::start_with(&product, &["run", "--resume"], "resumed with");
    resumed.type_line("what was done?");
    resumed.until_all(&["it was interrupted", "context", "> "]);
    assert_eq!(super::results(&script.requests()[1]).len(), 1);
    // At the prompt, too.
    resumed.signal(Signal::HUP);
    assert_eq!(resumed.wait(), Some(129));
}

#[test]
fn an_answer_makes_the_rule_it_shows_until_it_is_revoked() {
    let make = |n: u32| calls(&[("bash", json!({"command": format!("echo {n} && ls -a")}))]);
    let script = Script::new([make(1), make(2), says("made"), make(3), says("not made")]);
    let product = product(&script);
    let mut chat = chat(&product);
    chat.type_line("make it");
    chat.until_all(&["these 2 rules", "bash:echo *", "bash:ls *", "Run it?"]);
    chat.type_line("s");
    chat.until_all(&["made", "2 calls"]);
    assert!(!chat.shown().contains("asks to run"), "{}", chat.shown());
    chat.type_line("/stats");
    chat.until("1 question (50 per 100 calls)");
    chat.type_line("/approve");
    chat.until_all(&["APPROVED", "session", "all of bash:echo"]);
    let mut rows = chat.shown().lines();
    let row = rows.find(|row| row.contains("all of bash:echo")).unwrap();
    let id = row.split_whitespace().next().unwrap().to_owned();
    chat.type_line(&format!("/revoke {id}"));
    chat.until("revoked");
    chat.type_line("again");
    chat.until_all(&["echo 3", "Run it?"]);
    chat.type_line("n not now");
    chat.until_all(&["not made", "context"]);
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn words_are_wrapped_and_a_plain_terminal_gets_no_sequences() {
    let text = "word ".repeat(40);
    let script = Script::new([says(&text)]);
    let product = product(&script);
    let mut command = product.command(&RUN);
    command.env("NO_COLOR", "1").env("TERM", "dumb");
    let mut chat = Prompt::run(command, Some((80, 24)), "> ");
    chat.type_line("talk");
    chat.until_all(&["word", "context", "> "]);
    let shown = chat.shown();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let lines = shown.lines().filter(|line| line.starts_with("word"));
    let lengths: Vec<usize> = lines.map(|line| line.trim_end().len()).collect();
    assert_eq!(lengths, [79, 79, 39], "{shown}");
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}

/// What takes the whole screen.
const TAKEN: &str = "\u{1b}[?1049h";

/// What gives the terminal back.
const LEFT: &str = "\u{1b}[?1049l";

#[test]
fn the_full_screen_works_through_a_task_and_gives_the_terminal_back() {
    let script = Script::new([
        calls(&[("bash", json!({"command": "sh test.sh"}))]),
        calls(&[(
            "edit",
            json!({"path": "sum.sh", "old_string": "-", "new_string": "+"}),
        )]),
        calls(&[("bash", json!({"command": "sh test.sh; sleep 600"}))]),
        says("still there"),
    ]);
    let product = product(&script);
    failing(&product);
    let command = product.command(&["run", "--tui", "--allow", "edit"]);
    let mut chat = Prompt::run(command, Some((100, 30)), "\u{1b}[?1049h");
    chat.redraw_until(&["explains"]);
    chat.type_line("mend");
    chat.redraw_until(&["mend", "[o/s/a/N]", "bash:sh"]);
    chat.type_line("s");
    chat.redraw_until(&["it-has-failed", "[o/s/a/N]"]);
    chat.resize(40, 8);
    chat.type_line("o");
    chat.redraw_until(&[">"]);
    chat.resize(120, 40);
    chat.redraw_until(&["+echo", "it-has-passed", "running"]);
    chat.press(b"\x03");
    chat.redraw_until(&["interrupted"]);
    chat.type_line("there?");
    chat.redraw_until(&["still"]);
    chat.type_line("/tools");
    chat.redraw_until(&["read_overflow"]);
    chat.press(b"\x04");
    chat.until(LEFT);
    assert_eq!(chat.wait(), Some(0));
    assert_eq!(product.read("sum.sh"), "echo $(($1 + $2))\n");
}

#[test]
fn a_signal_gives_the_terminal_of_the_full_screen_back() {
    let script = Script::new([]);
    let product = product(&script);
    let command = product.command(&["run", "--tui"]);
    let mut chat = Prompt::run(command, Some((80, 24)), "\u{1b}[?1049h");
    chat.redraw_until(&["explains"]);
    chat.signal(Signal::TERM);
    chat.until(LEFT);
    assert_eq!(chat.wait(), Some(143));
}

#[test]
fn a_hang_up_gives_the_terminal_of_the_full_screen_back() {
    let script = Script::new([]);
    let product = product(&script);
    let command = product.command(&["run", "--tui"]);
    let mut chat = Prompt::run(command, Some((80, 24)), "\u{1b}[?1049h");
    chat.redraw_until(&["explains"]);
    chat.signal(Signal::HUP);
    chat.until(LEFT);
    assert_eq!(chat.wait(), Some(129));
}

#[test]
fn the_full_screen_comes_back_when_the_program_goes_on() {
    use std::os::unix::process::CommandExt as _;

    let script = Script::new([says("unharmed")]);
    let product = product(&script);
    let mut command = product.command(&["run", "--tui"]);
    // A job of its own: the test is not stopped with it.
    command.process_group(0);
    let mut chat = Prompt::run(command, Some((80, 24)), TAKEN);
    chat.redraw_until(&["explains"]);
    chat.press(b"\x1a");
    chat.until(LEFT);
    chat.until_stopped();
    chat.signal(Signal::CONT);
    chat.until(TAKEN);
    chat.redraw_until(&["explains"]);
    // Stopped from outside, it could not give the terminal back.
    chat.signal(Signal::STOP);
    chat.until_stopped();
    chat.signal(Signal::CONT);
    chat.until_all(&[LEFT, TAKEN]);
    chat.type_line("well?");
    chat.redraw_until(&["unharmed"]);
    chat.press(b"\x04");
    chat.until(LEFT);
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn a_lost_terminal_ends_the_full_screen_like_the_prompt() {
    let script = Script::new([]);
    let product = product(&script);
    let command = product.command(&["run", "--tui"]);
    let mut chat = Prompt::run(command, Some((80, 24)), "\u{1b}[?1049h");
    chat.redraw_until(&["explains"]);
    assert_eq!(chat.close(), Some(129));
}

#[test]
fn a_resumed_chat_shows_the_end_of_the_earlier_conversation() {
    let script = Script::new([
        calls(&[("read", json!({"path": "notes.txt"}))]),
        says("It is about herons."),
    ]);
    let product = product(&script);
    product.file("notes.txt", "herons\n");
    let ran = product.run(&["run", "what is @notes.txt about?"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let command = product.command(&["run", "--resume"]);
    let mut chat = Prompt::run(command, Some((80, 24)), "about?");
    for shown in ["read", "It is about herons.", "resumed with"] {
        chat.until(shown);
    }
    chat.type_line("/quit");
    assert_eq!(chat.wait(), Some(0));
}

#[test]
fn the_full_screen_needs_a_terminal_that_can_draw() {
    let script = Script::new([]);
    let product = product(&script);
    let ran = product.run(&["run", "--tui"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("needs a terminal"), "{}", ran.stderr);
    let mut command = product.command(&["run", "--tui"]);
    command.env("TERM", "dumb");
    let chat = Prompt::run(command, None, "TERM is `dumb`");
    assert_eq!(chat.wait(), Some(2));
}
