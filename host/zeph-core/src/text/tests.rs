//! What is left of hostile text.

use super::{counted, is_deceptive, plain_line, plain_text};

#[test]
fn lines() {
    let table = [
        ("plain", 20, "plain"),
        ("  two\nlines\t here ", 20, "two lines here"),
        ("a\u{1b}[31mred\u{7}", 20, "a[31mred"),
        ("user\u{202e}fdp.exe", 20, "userfdp.exe"),
        ("in\u{200b}vis\u{2060}ible\u{e0041}", 20, "invisible"),
        ("a\u{2028}b\u{85}c", 20, "a b c"),
        ("abcdef", 3, "abc…"),
        ("ab cd", 3, "ab …"),
        ("äöü€", 4, "äöü€"),
        ("", 3, ""),
        ("\u{200b}\u{1b}", 3, ""),
        ("日本語 テスト", 20, "日本語 テスト"),
    ];
    for (text, chars_max, expected) in table {
        assert_eq!(plain_line(text, chars_max), expected, "{text:?}");
    }
}

#[test]
fn texts_keep_their_lines() {
    let table = [
        ("one\n\ttwo\r\nthree\n", "one\n\ttwo\nthree"),
        ("a\u{0}b\u{9b}c\u{feff}", "abc"),
        ("hidden\u{e0068}\u{e0069}", "hidden"),
    ];
    for (text, expected) in table {
        assert_eq!(plain_text(text), expected, "{text:?}");
    }
}

#[test]
fn nothing_visible_is_deceptive() {
    let visible = "aZ09 _-.,äßçñ漢字かなحرفתו्ด🦀€→…“”\u{a0}";
    for character in visible.chars() {
        assert!(!is_deceptive(character), "{character:?}");
    }
}

#[test]
fn one_of_a_thing_is_not_plural() {
    for (n, expect) in [(0, "0 lines"), (1, "1 line"), (2, "2 lines")] {
        assert_eq!(counted(n, "line", "lines"), expect);
    }
    assert_eq!(counted(1_usize, "entry", "entries"), "1 entry");
}
