use proptest::prelude::*;

use super::{visible, visible_json, visible_line};

#[test]
fn what_cannot_be_seen_is_written_out() {
    let table = [
        ("plain é 漢 😀\n\tmore", "plain é 漢 😀\n\tmore"),
        ("\x1b[2J\x07\r\n", "\\u{1b}[2J\\u{7}\\r\n"),
        ("\u{9b}2J\x7f", "\\u{9b}2J\\u{7f}"),
        ("evil\u{202e}txt", "evil\\u{202e}txt"),
        ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ("tag\u{e0041}\u{e0042}", "tag\\u{e0041}\\u{e0042}"),
        ("variation\u{fe0f}\u{e0101}", "variation\\u{fe0f}\\u{e0101}"),
        (
            "soft\u{ad}hyphen\u{2028}line",
            "soft\\u{ad}hyphen\\u{2028}line",
        ),
        ("blank\u{2800}\u{3164}", "blank\\u{2800}\\u{3164}"),
    ];
    for (text, expect) in table {
        assert_eq!(visible(text), expect);
        let on_one_line = expect.replace('\n', "\\n").replace('\t', "\\t");
        assert_eq!(visible_line(text), on_one_line);
    }
}

proptest! {
    #[test]
    fn json_stays_the_same_value(text in any::<String>(), tail in "[\u{202e}\u{200b}\u{9b}\u{7f}\u{e0041}é]*") {
        let value = serde_json::json!({ "text": text, "tail": tail });
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = visible_json(&json);
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&shown).unwrap(), &value);
            let is_hidden = |character: char| super::is_hidden(character) && character != '\n';
            prop_assert!(!shown.contains(is_hidden), "{shown:?}");
        }
    }
}
