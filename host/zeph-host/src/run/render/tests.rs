use std::time::Duration;

use proptest::prelude::*;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{CallId, OverflowId};
use zeph_core::output::{Outcome, ToolOutput};

use super::{duration, escape, report};
use crate::calls::CallReport;

#[test]
fn controls_are_written_out() {
    let table = [
        ("plain\n\ttext é 漢", "plain\n\ttext é 漢"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\r\nb", "a\\r\nb"),
        ("\x07\x08\0\x7f", "\\x07\\x08\\x00\\x7f"),
        ("\u{9b}2J", "\\x9b2J"),
        ("evil\u{202e}txt.exe", "evil\\u{202e}txt.exe"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ];
    for (text, expect) in table {
        assert_eq!(escape(text), expect);
    }
}

#[test]
fn durations() {
    for (us, expect) in [
        (40, "0.0 ms"),
        (1_440, "1.4 ms"),
        (12_300, "12 ms"),
        (3_210_000, "3.2 s"),
    ] {
        assert_eq!(duration(Duration::from_micros(us)), expect);
    }
}

fn plain(output: ToolOutput) -> String {
    let report = super::report(
        "read",
        &CallReport {
            messages: Vec::new(),
            id: CallId::new(),
            output,
            duration: Duration::from_millis(12),
            request: None,
            asked: None,
        },
    );
    anstream::adapter::strip_str(&report).to_string()
}

#[test]
fn a_result_has_a_head_and_its_text() {
    let failure = ToolFailure::new(
        ErrorCategory::Timeout,
        ErrorPhase::Execution,
        "too \x1bslow",
    );
    let failed = ToolOutput::failed(failure);
    assert_eq!(
        plain(failed.clone()),
        "read · 12 ms\ntimeout: too \\x1bslow\nthe same call may succeed when made again\n"
    );
    let id = OverflowId::new();
    let done = ToolOutput {
        outcome: Outcome::Done,
        text: "one\ntwo".to_owned(),
        overflow: Some(id),
        ..failed
    };
    assert_eq!(
        plain(done),
        format!("read · 12 ms · overflow:{id}\none\ntwo\n")
    );
}

proptest! {
    #[test]
    fn nothing_escaped_can_drive_a_terminal(text in any::<String>()) {
        let shown = escape(&text);
        prop_assert!(shown.chars().all(|character| !character.is_control() || "\n\t".contains(character)));
    }

    #[test]
    fn no_tool_can_reach_the_terminal(text in any::<String>()) {
        let failed = ToolOutput::failed(ToolFailure::new(ErrorCategory::Timeout, ErrorPhase::Execution, text));
        let shown = report("t", &CallReport { id: CallId::new(), output: failed, duration: Duration::ZERO, request: None, asked: None, messages: Vec::new() });
        let stripped = anstream::adapter::strip_str(&shown).to_string();
        prop_assert!(stripped.chars().all(|character| !character.is_control() || "\n\t".contains(character)));
    }
}
