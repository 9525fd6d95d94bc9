use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use zeph_agent::event::AgentEvent;
use zeph_agent::message::{Arguments, ToolCall};
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_agent::{Cost, Usage};

use super::draw;
use crate::agent::chat::full::model::FullModel;
use crate::agent::chat::status::ChatStatus;

/// The rows of a screen of this size.
fn rows(model: &FullModel, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(usize::from(width.max(1)));
    let rows = cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    rows.map(|row| row.trim_end().to_owned()).collect()
}

fn call() -> ToolCall {
    ToolCall {
        id: "1".to_owned(),
        name: "bash".to_owned(),
        arguments: Arguments::read("{\"command\":\"make \\u001b[2J test\"}"),
    }
}

/// A turn in which a command runs.
fn model() -> FullModel {
    let mut model = FullModel::new(true);
    model.status = ChatStatus {
        model: "m-1".to_owned(),
        context_max: 1_000,
        ..ChatStatus::default()
    };
    model.is_busy = true;
    model.echo("mend it");
    model.on(&AgentEvent::Text("I run the **tests** of the project now, all of them, one after the other, which takes a while."));
    model.on(&AgentEvent::Answered);
    let usage = Usage {
        input: 60,
        cache_read: 40,
        output: 5,
        ..Usage::default()
    };
    model.on(&AgentEvent::Spent {
        usage: &usage,
        cost: Some(Cost::from_usd(0.25)),
        session_cost: Cost::from_usd(0.25),
        context_tokens: 500,
    });
    model.on(&AgentEvent::CallStarted(&call()));
    model.live("compiling\nrunn");
    model
}

#[test]
fn a_turn_is_shown_with_its_tools_and_counters() {
    let rows = rows(&model(), (80, 12));
    assert!(rows[0].starts_with("> mend it"), "{rows:#?}");
    assert!(rows[0].contains("1 call"), "{rows:#?}");
    assert!(
        rows[1].starts_with("I run the tests of the project now, all of them,"),
        "{rows:#?}"
    );
    let screen = rows.join("\n");
    assert_eq!(screen.matches("▸ bash make").count(), 2, "{screen}");
    assert!(!screen.contains('\u{1b}'), "{screen}");
    assert!(screen.contains("│ compiling"), "{screen}");
    assert!(screen.contains("running"), "{screen}");
    assert!(
        screen.contains(
            "m-1 · 105 tokens · $0.2500 · cache 40% · 1 call · context 50% · working 0 s"
        ),
        "{screen}"
    );
    assert_eq!(rows[11], ">");
}

#[test]
fn the_end_of_a_call_is_shown_in_both_panes() {
    let mut model = model();
    let end = CallEnd::of(CallEndKind::Failed, "no\n[exit code 2]");
    model.on(&AgentEvent::CallEnded {
        call: &call(),
        end: &end,
        duration: Duration::from_millis(1_500),
    });
    let screen = rows(&model, (100, 20)).join("\n");
    assert!(
        screen.contains("failed · bash · 1.5 s · exit code 2"),
        "{screen}"
    );
    assert!(
        screen.contains("failed · 1.5 s\n") || screen.contains("   failed · 1.5 s"),
        "{screen}"
    );
    assert!(!screen.contains("running"), "{screen}");
}

#[test]
fn a_question_waits_where_answers_are_typed() {
    let mut model = model();
    model.ask("May it?\no  once\n", "Run it? [o/s/a/N]");
    let rows = rows(&model, (80, 12));
    assert_eq!(rows[11], "Run it? [o/s/a/N]");
    assert!(
        rows.iter().any(|row| row.starts_with("o  once")),
        "{rows:#?}"
    );
}

#[test]
fn the_transcript_can_be_scrolled() {
    let mut model = FullModel::new(true);
    for n in 0..50 {
        model.append(&format!("line {n}\n"));
    }
    assert_eq!(
        rows(&model, (40, 6))[..4],
        ["line 46", "line 47", "line 48", "line 49"]
    );
    model.scroll = 3;
    assert_eq!(rows(&model, (40, 6))[..2], ["line 43", "line 44"]);
    model.scroll = usize::MAX - 100;
    assert_eq!(rows(&model, (40, 6))[0], "line 0");
}

#[test]
fn any_size_can_be_drawn() {
    let mut model = model();
    model
        .input
        .insert("a prompt that is longer than the screen is wide\nand has a second line");
    for width in [0, 1, 2, 3, 10, 31, 40, 71, 72, 73, 200] {
        for height in [0, 1, 2, 3, 5, 9, 60] {
            rows(&model, (width, height));
        }
    }
    let small = rows(&model, (30, 3));
    assert!(small[2].contains("second line"), "{small:#?}");
    assert!(!rows(&model, (60, 12)).join("\n").contains("1 call\n"));
}
