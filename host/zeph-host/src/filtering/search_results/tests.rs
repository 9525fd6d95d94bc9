use serde_json::{Value, json};
use zeph_core::output::{Content, RawOutput, ResourceBody};

use super::{n_bytes, warnings};
use crate::filtering::BLOCKING_BYTES_MIN;
use crate::filtering::tests::filtering;

fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))
}

/// Of each part of a result, whichever tool gave it.
#[test]
fn a_credential_is_warned_of_in_any_part_of_any_result() {
    let token = token();
    let resource = Content::Resource {
        uri: "file:///x".to_owned(),
        media_type: None,
        body: ResourceBody::Text(format!("a\nb\n{token}")),
    };
    let raws = [
        (RawOutput::text(format!("one\ntwo {token}")), "(line 2)"),
        (
            RawOutput {
                content: vec![Content::Text("one\n".to_owned()), resource],
                ..RawOutput::default()
            },
            "(line 5)",
        ),
        (
            RawOutput {
                structured: Some(json!({"deep": [{"value": token}]})),
                ..RawOutput::text("nothing here")
            },
            "GitHub token",
        ),
        (
            RawOutput {
                structured: Some(json!([token, token])),
                ..RawOutput::text(token.clone())
            },
            "(line 1)",
        ),
    ];
    for (raw, expected) in raws {
        let notes = warnings(&filtering(), &raw);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains(expected), "{notes:?}");
        assert!(!notes[0].contains("ghp_a1"), "{notes:?}");
    }
    let both = RawOutput {
        structured: Some(json!({ "key": token })),
        ..RawOutput::text("password: hunter2Xq9")
    };
    let notes = warnings(&filtering(), &both);
    assert_eq!(notes.len(), 2, "another kind is another warning: {notes:?}");
    assert_eq!(
        warnings(&filtering(), &RawOutput::text("ordinary")),
        [""; 0]
    );
}

#[test]
fn only_a_long_structured_part_is_worth_a_thread() {
    let bytes_of = |structured: Value| {
        n_bytes(&RawOutput {
            structured: Some(structured),
            ..RawOutput::text("ab")
        })
    };
    assert!(bytes_of(json!({"path": "a.txt", "lines": 1, "more": null})) < 200);
    let long = "x".repeat(BLOCKING_BYTES_MIN);
    for long in [
        json!({ "text": long }),
        json!([[[long]]]),
        json!(vec![0; BLOCKING_BYTES_MIN]),
        json!(vec![json!([true]); BLOCKING_BYTES_MIN / 16]),
        json!({ long: 1 }),
    ] {
        assert!(bytes_of(long) >= BLOCKING_BYTES_MIN);
    }
}
