use std::time::Duration;

use serde_json::{Value, json};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{CallId, OverflowId};
use zeph_core::output::{Blob, Content, FileLocation, Outcome, ToolOutput};

use super::{RequestOrigin, Status, of_failure, of_report};
use crate::calls::CallReport;
use crate::run::jsonl::request::{LineRequest, decode};

fn origin(id: &str) -> RequestOrigin {
    match decode(format!("{{\"cancel\":{id}}}").as_bytes()) {
        Ok(LineRequest::Cancel(id)) => RequestOrigin {
            id: Some(id),
            line: None,
        },
        other => panic!("{other:?}"),
    }
}

fn parsed(line: &str) -> Value {
    assert!(!line.contains('\n'));
    serde_json::from_str(line).unwrap()
}

#[test]
fn every_category_has_a_status() {
    for category in ErrorCategory::ALL {
        let expect = match category.label() {
            "policy_blocked" | "confirmation_required" => Status::Refused,
            "cancelled" => Status::Cancelled,
            _ => Status::Failed,
        };
        let failure = ToolFailure::new(category, ErrorPhase::Execution, "x");
        assert_eq!(Status::of(&Outcome::Failed(failure)), expect, "{category}");
    }
    assert_eq!(Status::of(&Outcome::Done), Status::Ok);
}

#[test]
fn a_success_shows_what_it_has_and_nothing_else() {
    let report = CallReport {
        messages: Vec::new(),
        id: CallId::new(),
        output: ToolOutput {
            outcome: Outcome::Done,
            text: "line\nnext".to_owned(),
            structured: None,
            attachments: Vec::new(),
            locations: Vec::new(),
            notes: Vec::new(),
            overflow: None,
            is_cut: false,
        },
        duration: Duration::from_nanos(1_234_567),
        request: None,
        asked: None,
    };
    let line = of_report(&origin("1.50"), &report, &[]);
    assert!(line.starts_with(r#"{"id":1.50,"status":"ok","#), "{line}");
    let expect = json!({
        "id": 1.5, "status": "ok", "text": "line\nnext", "duration_ms": 1.235, "call_id": report.id,
    });
    assert_eq!(parsed(&line), expect);
}

#[test]
fn a_full_success_shows_everything() {
    let overflow = OverflowId::new();
    let report = CallReport {
        messages: Vec::new(),
        id: CallId::new(),
        output: ToolOutput {
            outcome: Outcome::Done,
            text: "t".to_owned(),
            structured: Some(json!({ "n": 1 })),
            attachments: vec![Content::Image(Blob {
                media_type: "image/png".to_owned(),
                data: b"ab".to_vec(),
            })],
            locations: vec![FileLocation {
                path: "a.rs".to_owned(),
                line: Some(3),
                column: None,
            }],
            notes: vec!["of the call".to_owned()],
            overflow: Some(overflow),
            is_cut: true,
        },
        duration: Duration::ZERO,
        request: None,
        asked: None,
    };
    let line = of_report(&origin("\"x\""), &report, &["of the door".to_owned()]);
    let expect = json!({
        "id": "x", "status": "ok", "text": "t", "structured": { "n": 1 },
        "attachments": [{ "kind": "image", "media_type": "image/png", "data": "YWI=" }],
        "locations": [{ "path": "a.rs", "line": 3 }],
        "notes": ["of the door", "of the call"],
        "duration_ms": 0.0, "overflow": format!("overflow:{overflow}"), "truncated": true,
        "call_id": report.id,
    });
    assert_eq!(parsed(&line), expect);
}

#[test]
fn a_malformed_line_is_named_by_its_number() {
    let failure = ToolFailure::new(
        ErrorCategory::InvalidParameters,
        ErrorPhase::ParamHandling,
        "not JSON",
    );
    let origin = RequestOrigin {
        id: None,
        line: Some(7),
    };
    let answer = parsed(&of_failure(&origin, Status::Invalid, &failure));
    assert_eq!(answer["line"], 7);
    assert_eq!(answer["status"], "invalid");
    assert_eq!(answer["error"]["category"], "invalid_parameters");
    assert_eq!(answer["error"]["retryable"], false);
    assert!(answer.get("id").is_none() && answer.get("call_id").is_none());
}
