use proptest::prelude::*;
use serde_json::json;

use super::*;

fn cleaned(value: Value) -> Result<Value, Problem> {
    let Value::Object(map) = value else {
        panic!("no object");
    };
    schema(&map, 20, &mut 0).map(Value::Object)
}

#[test]
fn a_text_loses_what_deceives_and_what_is_too_long() {
    let mut n_cut = 0;
    assert_eq!(
        text(
            " Reads\u{202e} a\u{200b} file\u{1b}[31m.\n",
            100,
            &mut n_cut
        ),
        "Reads a file[31m."
    );
    assert_eq!(n_cut, 0);
    assert_eq!(text(&"é".repeat(100), 10, &mut n_cut), "ééé…");
    assert_eq!(n_cut, 1);
    // A megabyte of invisible characters before the words.
    let hidden = "\u{e0041}".repeat(250_000) + "words";
    assert_eq!(text(&hidden, 100, &mut n_cut), "…");
    assert_eq!(n_cut, 2);
}

#[test]
fn explanations_are_cleaned_wherever_they_stand() {
    let sent = json!({
        "type": "object",
        "properties": {
            "description": { "type": "string", "description": "a\u{200b}b" },
            "items": { "type": "array", "items": { "title": "a very long title of an item" } },
        },
    });
    let clean = cleaned(sent).unwrap();
    assert_eq!(clean["properties"]["description"]["description"], "ab");
    assert_eq!(clean["properties"]["description"]["type"], "string");
    assert_eq!(
        clean["properties"]["items"]["items"]["title"],
        "a very long title…"
    );
}

#[test]
fn what_is_compared_may_not_deceive() {
    for sent in [
        json!({ "properties": { "path\u{200b}": {} } }),
        json!({ "properties": { "mode": { "enum": ["a", "a\u{2060}"] } } }),
        json!({ "required": ["pa\u{ad}th"] }),
        json!({ "const": "\u{202e}" }),
    ] {
        assert!(cleaned(sent.clone()).is_err(), "{sent}");
    }
    let plain = json!({ "enum": ["a\r\n", "\tb"], "default": "c\r\n" });
    assert_eq!(cleaned(plain.clone()), Ok(plain));
    let illustrated =
        json!({ "default": "a\u{200b}", "examples": [{ "b\u{200b}": 1, "c": "\u{202e}d" }] });
    assert_eq!(
        cleaned(illustrated),
        Ok(json!({ "default": "a", "examples": [{ "c": "d" }] }))
    );
}

#[test]
fn a_property_named_like_a_keyword_is_a_schema() {
    let sent = json!({ "properties": { "default": { "type": "string", "enum": ["\u{200b}"] } } });
    assert!(cleaned(sent).is_err());
}

#[test]
fn nothing_elsewhere_is_referred_to() {
    for place in [
        "https://example.org/schema",
        "file:///etc/passwd",
        "other.json#/a",
        "",
    ] {
        assert!(
            cleaned(json!({ "items": { "$ref": place } })).is_err(),
            "{place}"
        );
    }
    let inside = json!({ "$defs": { "a": {} }, "items": { "$ref": "#/$defs/a" } });
    assert_eq!(cleaned(inside.clone()), Ok(inside));
}

#[test]
fn depth_is_bounded() {
    let nested = |n| (0..n).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert!(cleaned(nested(DEPTH_MAX)).is_ok());
    assert!(cleaned(nested(DEPTH_MAX + 1)).is_err());
}

#[test]
fn names_are_short_and_plain() {
    for name in ["read_file", "a.b/c", "Größe", "with space"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", " a", "a\n", "a\u{200d}b", &"a".repeat(257)] {
        assert!(!is_name(name), "{name:?}");
    }
}

proptest! {
    #[test]
    fn clean_texts_are_short_and_stay_as_they_are(words in ".*", bytes_max in 4_usize..64) {
        let clean = text(&words, bytes_max, &mut 0);
        prop_assert!(clean.len() <= bytes_max);
        prop_assert!(!clean.contains(|character| character != '\n' && character != '\t' && is_deceptive(character)));
        prop_assert_eq!(text(&clean, bytes_max, &mut 0), clean.trim());
    }
}
