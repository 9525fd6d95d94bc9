use proptest::prelude::*;

use super::{LineRequest, decode};
use crate::run::jsonl::lines::InputLines;

/// One line on what was read.
fn shown(line: &[u8]) -> String {
    match decode(line) {
        Ok(LineRequest::Cancel(id)) => format!("cancel {}", id.raw()),
        Ok(LineRequest::Begin(begun)) => {
            let turn = begun
                .turn
                .map(|turn| format!("turn {} {:?}", turn.name, turn.goal_id));
            let caller = begun.caller_id.map(|caller| format!("caller {caller}"));
            let both: Vec<String> = turn.into_iter().chain(caller).collect();
            both.join(", ")
        }
        Ok(LineRequest::Call(call)) => {
            let id = call.id.map_or("-".to_owned(), |id| id.raw().to_string());
            let turn = call
                .turn
                .map_or(String::new(), |turn| format!("@{} ", turn.name));
            let caller = call
                .caller_id
                .map_or(String::new(), |caller| format!("<{caller}> "));
            let notes = call.notes.join("; ");
            format!(
                "{id} {turn}{caller}{} {} {notes}",
                call.tool, call.arguments
            )
            .trim_end()
            .to_owned()
        }
        Err(invalid) => {
            let id = invalid.id.map_or("-".to_owned(), |id| id.raw().to_string());
            format!("{id} ! {}", invalid.message)
        }
    }
}

#[test]
fn good_lines() {
    let table = [
        (
            r#"{"id":1,"tool":"read","params":{"path":"a"}}"#,
            r#"1 read {"path":"a"}"#,
        ),
        (
            r#"{"id":"x","tool":"read","arguments":{}}"#,
            r#""x" read {}"#,
        ),
        (r#"{"tool":"read"}"#, "- read null"),
        (" {\"tool\":\"read\"} \r", "- read null"),
        (
            r#"{"id":null,"tool":"read","params":"{}"}"#,
            r#"null read "{}""#,
        ),
        // Given back letter by letter, whatever a parser would make of it.
        (
            r#"{"id":12345678901234567890123,"tool":"t"}"#,
            "12345678901234567890123 t null",
        ),
        (r#"{"id":1.50,"tool":"t"}"#, "1.50 t null"),
        (
            r#"{"id":{"b":1,"a":[2]},"tool":"t"}"#,
            r#"{"b":1,"a":[2]} t null"#,
        ),
        (r#"{"tool":"t","turn":"7"}"#, "- @7 t null"),
        (r#"{"tool":"t","turn":null}"#, "- t null"),
        (r#"{"turn":"8","goal_id":"g"}"#, r#"turn 8 Some("g")"#),
        (r#"{"tool":"t","caller_id":"ann"}"#, "- <ann> t null"),
        (r#"{"tool":"t","caller_id":null}"#, "- t null"),
        (r#"{"caller_id":"ann"}"#, "caller ann"),
        (
            r#"{"turn":"8","caller_id":"ann"}"#,
            "turn 8 None, caller ann",
        ),
        (r#"{"cancel":7}"#, "cancel 7"),
        (r#"{"cancel":null}"#, "cancel null"),
        (
            r#"{"id":1,"tool":"t","parms":{},"x":1}"#,
            "1 t null ignored the unknown key `parms` (did you mean `params`?); ignored the unknown key `x`",
        ),
    ];
    for (line, expect) in table {
        assert_eq!(shown(line.as_bytes()), expect, "{line}");
    }
}

#[test]
fn bad_lines_say_what_and_where() {
    let example = super::EXAMPLE;
    let name = "must be a string of 1 to 128 characters, none of them a control character";
    let bad_turn = format!("- ! `turn` {name}");
    let bad_caller = format!("- ! `caller_id` {name}");
    let no_tool = format!("9 ! `tool` is missing; write {example}");
    let table: [(&[u8], &str); 19] = [
        (b"hello", "OBJECT"),
        (b"{\"tool\":\"t\",\"turn\":7}", &bad_turn),
        (b"{\"tool\":\"t\",\"caller_id\":7}", &bad_caller),
        // A call that forgot its tool wants an answer.
        (b"{\"id\":9,\"caller_id\":\"ann\"}", &no_tool),
        (b"{\"tool\":\"t\",\"turn\":\"a\\nb\"}", &bad_turn),
        (
            b"{\"tool\":\"t\",\"goal_id\":\"g\"}",
            "- ! `goal_id` and `skill_name` belong to a turn: name it with `turn`",
        ),
        (
            b"{\"id\":3,\"tool\":\"read\",}",
            "3 ! not JSON at column 23: trailing comma",
        ),
        (
            b"{\"id\":3,\"tool\":\"read\"",
            "3 ! not JSON at column 21: EOF while parsing an object",
        ),
        (
            "{\"id\":\"äöü\",!".as_bytes(),
            "\"äöü\" ! not JSON at column 13: key must be a string",
        ),
        (
            b"{\"tool\":\"a\"} {}",
            "- ! not JSON at column 14: trailing characters",
        ),
        (b"\"a\xFFb\"", "- ! the line is not UTF-8 at column 3"),
        (b"{\"tool\":5}", "- ! `tool` must be a string, not 5"),
        (
            b"{\"id\":9,\"tool\":{\"a\":1}}",
            "9 ! `tool` must be a string, not {\"a\":1}",
        ),
        (
            b"{\"tool\":\"a\",\"tool\":\"b\"}",
            "- ! column 23: the key `tool` occurs twice",
        ),
        (
            b"{\"tool\":\"a\",\"params\":{},\"arguments\":{}}",
            "- ! `params` and `arguments` are the same thing; give one",
        ),
        (
            b"{\"cancel\":1,\"tool\":\"a\"}",
            "- ! a line is a call (`tool`) or a cancel (`cancel`), not both",
        ),
        (
            b"{\"tool\":\"a\",\"params\":[1e999]}",
            "- ! `params`: number out of range",
        ),
        (b"{\"id\":1}", "MISSING"),
        (b"[1]", "OBJECT"),
    ];
    for (line, expect) in table {
        let expect = match expect {
            "MISSING" => format!("1 ! `tool` is missing; write {example}"),
            "OBJECT" => format!("- ! not a JSON object; write {example}"),
            other => other.to_owned(),
        };
        assert_eq!(shown(line), expect, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn deep_nesting_is_an_answer() {
    let deep = format!(
        "{{\"id\":1,\"tool\":\"t\",\"params\":{}}}",
        "[".repeat(100_000)
    );
    assert!(shown(deep.as_bytes()).contains("not JSON"));
    let balanced = format!(
        "{{\"id\":1,\"tool\":\"t\",\"params\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(
        shown(balanced.as_bytes()),
        "1 ! `params`: recursion limit exceeded"
    );
}

#[test]
fn ids_are_compared_by_value() {
    let id = |text: &str| match decode(format!("{{\"cancel\":{text}}}").as_bytes()) {
        Ok(LineRequest::Cancel(id)) => id,
        other => panic!("{other:?}"),
    };
    for (a, b, same) in [
        ("1", "1", true),
        ("\"a\"", "\"\\u0061\"", true),
        ("{\"a\":1,\"b\":2}", "{ \"b\": 2, \"a\": 1 }", true),
        ("1", "\"1\"", false),
        ("null", "\"null\"", false),
    ] {
        assert_eq!(id(a).is_same(&id(b)), same, "{a} {b}");
    }
}

proptest! {
    /// Whatever comes in: one result for each line that is not blank, and no panic.
    #[test]
    fn any_bytes_give_one_result_per_line(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut lines = InputLines::new(1 << 20);
        let pieces = bytes.split_inclusive(|byte| *byte == b'\n');
        let mut found: Vec<_> = pieces.filter_map(|piece| lines.push(piece).1).collect();
        found.extend(lines.end());
        let n_results = found.len();
        for line in found {
            drop(decode(&line.content.unwrap()));
        }
        let body = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let n_lines = body
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .count();
        prop_assert_eq!(n_results, n_lines);
    }

    /// Text that is nearly a request never panics either, and its messages stay on one line.
    #[test]
    fn near_requests_give_one_line_messages(
        text in r#"(\{|\[|")?("(id|tool|params|cancel)":)?("[a-zé\\n]*"|[0-9.e-]{1,5}|\{|null),?("tool": ?"?r)?[}\]"]{0,3}"#,
    ) {
        if let Err(invalid) = decode(text.as_bytes()) {
            prop_assert!(!invalid.message.contains('\n'));
            prop_assert!(!invalid.message.is_empty());
        }
    }
}
