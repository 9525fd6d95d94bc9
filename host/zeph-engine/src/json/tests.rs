//! What is read, and what is too much.

use super::{MEMORY_BYTES_MAX, cost, read};

/// `[one,one,…]` of about `n_bytes` bytes.
fn list(one: &str, n_bytes: usize) -> String {
    let n = n_bytes / (one.len() + 1);
    format!("[{}]", vec![one; n].join(","))
}

#[test]
fn ordinary_results_are_read() {
    let line = r#"{"path":"src/some/module.rs","line":120,"text":"    let value = \"{[,:\";"}"#;
    for text in [
        "null".to_owned(),
        line.to_owned(),
        list(line, 4 << 20),
        list("12.5", 4 << 20),
        list("\"word\"", 4 << 20),
        format!("\"{}\"", "[{,:".repeat(4 << 20)),
        format!("\"{}\"", "\\\"[".repeat(4 << 20)),
    ] {
        read(&text).unwrap_or_else(|error| panic!("{error}: {}", &text[..60.min(text.len())]));
    }
}

#[test]
fn what_blows_up_is_refused_before_it_is_read() {
    for one in ["{\"\":0}", "[0]", "[[]]", "{\"\":{}}", "0", "\"\""] {
        let text = list(one, 16 << 20);
        let error = read(&text).expect_err(one);
        assert!(error.contains("MB of memory"), "{one}: {error}");
    }
}

#[test]
fn the_cost_is_never_less_than_what_is_held() {
    // What is held is reckoned from the sizes of the types; the allocator's own overhead is in the constants.
    for (one, held) in [
        ("{\"\":0}", 632),
        ("[0]", 128 + 32),
        ("0", 32),
        ("\"\"", 32),
    ] {
        let n = 1_000;
        let text = list(one, n * (one.len() + 1));
        assert!(cost(&text) >= n * held, "{one}: {}", cost(&text));
    }
    assert!(cost(&list("{\"\":0}", 16 << 20)) > MEMORY_BYTES_MAX);
}

#[test]
fn what_is_no_json_is_told_so() {
    for text in ["", "{", "[1,", "\"", &"[".repeat(1_000), "nul", "\u{feff}1"] {
        read(text).expect_err(text);
    }
}
