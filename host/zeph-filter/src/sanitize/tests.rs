use std::borrow::Cow;

use proptest::prelude::*;

fn clean(text: &str) -> String {
    super::clean(text.as_bytes()).text.into_owned()
}

fn check(raw: &str, expect: &str) {
    assert_eq!(clean(raw), expect, "{raw:?}");
    assert_eq!(clean(expect), expect, "a second time: {raw:?}");
}

#[test]
fn control_sequences_go() {
    check("\u{1b}[31mred\u{1b}[0m", "red");
    check("\u{1b}[38;2;1;2;3mred\u{1b}[m", "red");
    check("\u{1b}[38:5:196mred", "red");
    check("\u{9b}31mred\u{9b}0m", "red");
    check("\u{1b}[?25lhidden\u{1b}[?25h\u{1b}[?2026h", "hidden");
    check("\u{1b}[>4;2mx\u{1b}[ q", "x");
    check("\u{1b}(Bx\u{1b}=\u{1b}cy", "xy");
    check("a\u{0}\u{7}\u{7f}b", "ab");
    check("N\u{8}NA\u{8}A", "NA");
    check("\u{8}\u{8}a\n\u{8}b", "a\nb");
    check("caf\u{e9} 5° \u{fffd}", "caf\u{e9} 5° \u{fffd}");
}

#[test]
fn strings_and_hyperlinks_go() {
    check(
        "\u{1b}]8;;https://x.y\u{1b}\\text\u{1b}]8;;\u{1b}\\",
        "text",
    );
    check("\u{1b}]8;id=1;file:///a\u{7}text\u{1b}]8;;\u{7}", "text");
    check("\u{1b}]0;title\u{7}x", "x");
    check("\u{1b}Pq#0;2;0\u{1b}\\x\u{1b}_a\u{1b}\\y", "xy");
    check("\u{9d}0;t\u{9c}x", "x");
}

#[test]
fn what_is_cut_off_hides_nothing() {
    check("\u{1b}]0;title error: lost", "0;title error: lost");
    check("\u{1b}]0;a\nerror: b\u{7}", "0;a\nerror: b");
    check("\u{1b}Pabc\u{1b}[31mx", "abcx");
    check("x\u{1b}[31", "x31");
    check("x\u{1b}", "x");
    check("\u{1b}[12\nerror: x", "12\nerror: x");
    check("\u{1b}[é", "é");
}

#[test]
fn progress_is_folded_and_line_ends_are_kept() {
    check("a\r\nb\r\n", "a\nb\n");
    check("a\r\r\nb", "a\nb");
    check("10%\r50%\r100%\n", "100%\n");
    check("10%\r100%\r", "100%");
    check("10%\u{1b}[2K\u{1b}[1Gdone\n", "done\n");
    check("text\u{1b}[2K\n", "text\n");
    check("1%\rerror: disk full\r2%\n", "error: disk full\n2%\n");
    check("a\n\n\n \n\t\nb\n\n\n", "a\n\nb\n\n");
    check("a\r\n\r\n\r\nb", "a\n\nb");
    check("\n\n\n", "\n");
    check("", "");
}

#[test]
fn clean_text_is_borrowed() {
    assert!(matches!(super::clean(b"a\n\nb\n").text, Cow::Borrowed(_)));
}

/// A long output is worked on in pieces.
#[test]
fn what_stands_where_a_long_output_is_taken_apart_is_cleaned_as_elsewhere() {
    let unit = "\u{1b}[1ma\u{1b}[0m\u{8}b\n\n\n10%\r20%\r\n\u{1b}]0;x\n\u{9b}31mé\u{85}\n \n";
    let once = clean(unit);
    for n in [1, 2_000, 20_000] {
        assert!(n == 1 || unit.len() * n > 65_536);
        assert_eq!(clean(&unit.repeat(n)), once.repeat(n), "{n}");
        let shifted = format!("{}\n{}", "x".repeat(n), unit.repeat(n));
        assert_eq!(
            clean(&shifted),
            format!("{}\n{}", "x".repeat(n), once.repeat(n))
        );
    }
}

#[test]
fn hostile_sequences_take_linear_time() {
    for unit in [
        "\u{1b}]",
        "\u{9d}",
        "\u{1b}[1;",
        "\u{9b}",
        "\u{1b}P\u{9d}",
        "a\r",
        "\u{8}",
        "\r\n\r",
    ] {
        let text = unit.repeat(300_000);
        assert!(clean(&text).len() <= text.len());
    }
}

proptest! {
    #[test]
    fn anything_is_cleaned_once_and_for_all(text in r"(\x1b|\x9b|\x9d|\x9c|\[|\]|\\|[0-9;?]|[a-zA-Z]|\r|\n|\x08|\x07| |é|error: ){0,60}") {
        let once = clean(&text);
        prop_assert!(once.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        prop_assert_eq!(clean(&once), once);
    }
}
