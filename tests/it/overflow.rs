//! Long results: cut for the model, kept whole for who asks.

use serde_json::{Value, json};

use crate::product::Product;
use crate::running::Running;

fn long_text() -> String {
    (0..2_000)
        .map(|n| {
            format!(
                "line {n}: naïve text that goes on and on and on until the whole of it is long\n"
            )
        })
        .collect()
}

#[test]
fn a_result_that_is_used_again_is_stored_once() {
    let product = Product::new();
    product.file("long.txt", long_text());
    let mut host = Running::start(&product, &[]);
    let grep = json!({"pattern": "line", "max_results": 2_000});
    let first = host.call("grep", &grep);
    assert!(first["overflow"].is_string(), "{first}");
    for _ in 0..2 {
        let again = host.call("grep", &grep);
        assert!(again["notes"].to_string().contains("cached "), "{again}");
        assert_eq!(again["overflow"], first["overflow"]);
    }
    let page = host.call("read_overflow", &json!({"id": first["overflow"]}));
    assert_eq!(page["status"], "ok", "{page}");
}

#[test]
fn a_long_result_is_cut_and_can_be_read_back_in_its_conversation_only() {
    let product = Product::new();
    product.file("long.txt", long_text());
    let conversation = "0192f3c0-0000-7000-8000-000000000001";
    let read = json!({"id": 1, "tool": "grep", "params": {"pattern": "line", "max_results": 2_000}})
        .to_string() + "\n";
    let answers = product.answers(&["--conversation", conversation], &read);
    let got = &answers[0];
    let text = got["text"].as_str().unwrap();
    let handle = got["overflow"]
        .as_str()
        .unwrap_or_else(|| panic!("no handle: {text}"));
    assert!(handle.starts_with("overflow:"), "{handle}");
    assert!(
        text.contains(handle) && text.contains("use read_overflow"),
        "{text}"
    );
    assert!(text.chars().count() < 51_000);
    assert!(
        text.contains("line 0:") && text.contains("line 1999:"),
        "head and tail"
    );

    let again = |conversation: &str, params: serde_json::Value| {
        let line = json!({"id": 2, "tool": "read_overflow", "params": params}).to_string() + "\n";
        product
            .answers(&["--conversation", conversation], line)
            .remove(0)
    };
    let page = again(
        conversation,
        json!({"id": handle, "offset": 1_000, "limit": 2}),
    );
    assert!(
        page["text"]
            .as_str()
            .unwrap()
            .starts_with("long.txt:1001: line 1000:"),
        "{page}"
    );
    let found = again(conversation, json!({"id": handle, "pattern": "line 1234:"}));
    assert!(
        found["text"].as_str().unwrap().contains("line 1234: naïve"),
        "{found}"
    );
    let other = again(
        "0192f3c0-0000-7000-8000-000000000002",
        json!({"id": handle}),
    );
    assert_eq!(other["status"], "failed");
    assert!(
        other["text"]
            .as_str()
            .unwrap()
            .contains("not found or expired"),
        "{other}"
    );

    let deleted = product.run(&["conversations", "delete", conversation]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    let gone = again(conversation, json!({"id": handle}));
    assert!(
        gone["text"]
            .as_str()
            .unwrap()
            .contains("not found or expired"),
        "{gone}"
    );
}

#[test]
fn what_is_too_long_to_keep_says_so() {
    let product = Product::new();
    product.file("long.txt", long_text());
    let line = json!({"id": 1, "tool": "grep", "params": {"pattern": "line", "max_results": 2_000}})
        .to_string() + "\n";
    let got = product
        .answers(&["--set", "tools.overflow.max_overflow_bytes=1000"], line)
        .remove(0);
    assert!(got["overflow"].is_null());
    assert!(
        got["text"]
            .as_str()
            .unwrap()
            .contains("tools.overflow.max_overflow_bytes"),
        "{got}"
    );
}

#[test]
fn a_page_is_whole_and_a_failed_command_keeps_its_bytes_below_a_low_threshold() {
    let product = Product::new();
    let args = ["--allow", "bash", "--set", "tools.overflow.threshold=100"];
    let mut host = Running::start(&product, &args);
    for (command, n_bytes) in [
        ("seq 1000; exit 3", 3_893),
        ("head -c 202 /dev/zero | tr '\\0' x; exit 3", 202),
    ] {
        let cut = host.call("bash", &json!({"command": command}));
        let text = cut["text"].as_str().unwrap();
        assert!(text.contains("\n[exit code 3]"), "{text}");
        assert!(text.contains(&format!("— {n_bytes} bytes")), "{text}");
        let page = host.call("read_overflow", &json!({"id": cut["overflow"]}));
        assert_eq!(page["overflow"], Value::Null, "{page}");
        let page = page["text"].as_str().unwrap();
        assert!(!page.contains("exit code"), "{page}");
        assert!(page.contains("continue with offset="), "{page}");
    }
}

#[test]
fn a_person_is_told_how_to_read_back_what_a_typed_call_cut() {
    let product = Product::new();
    let typed = [
        "--set",
        "tools.overflow.threshold=100",
        "call",
        "bash",
        "command=seq 1 5000",
    ];
    let ran = product.run(&typed);
    let said = ran
        .stderr
        .split('`')
        .find(|part| part.contains("read_overflow"));
    let said = said.unwrap_or_else(|| panic!("{}", ran.stderr));
    let again: Vec<&str> = said.split(' ').skip(1).collect();
    let whole = product.run(&again);
    assert_eq!(whole.code, Some(0), "{again:?} {}", whole.stderr);
    assert!(whole.stdout.contains("\n2500\n"), "{}", whole.stdout);

    let json = product.run(&[&typed[..3], &["-o", "json"], &typed[3..]].concat());
    let notes = json.json_lines()[0]["notes"].to_string();
    assert!(notes.contains("call --conversation "), "{notes}");
}
