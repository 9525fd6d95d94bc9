use std::borrow::Cow;

use proptest::prelude::*;

use super::{Changes, Returns, Writer, clean_of, clean_whole, drawn, folded};

fn clean(text: &str) -> String {
    super::clean(text.as_bytes()).text.into_owned()
}

fn check(raw: &str, expect: &str) {
    assert_eq!(clean(raw), expect, "{raw:?}");
    assert_eq!(clean(expect), expect, "a second time: {raw:?}");
}

/// As above, of an output that is long enough for its progress to be folded.
fn check_folded(raw: &str, expect: &str) {
    let text = drawn(
        raw.as_bytes(),
        Returns::Overwrite(Writer::Command),
        Changes::default(),
    )
    .text;
    assert_eq!(text, expect, "{raw:?}");
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
    check("a\u{7}\u{7f}b", "ab");
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
    check_folded("10%\r50%\r100%\n", "100%\n");
    check_folded("10%\u{1b}[2K\u{1b}[1Gdone\n", "done\n");
    check_folded("text\u{1b}[2K\n", "text\n");
    check_folded("1%\rerror: disk full\r2%\n", "error: disk full\n2%\n");
    check_folded("[1/20] a.c\r[ 2 / 20 ] b.c\rdone\n", "done\n");
    check_folded("⠋ at work\r⠙ at work\n|\r/\rready\n", "⠙ at work\nready\n");
    check_folded(
        "10 MB at 1 MB/s\r   \r20 MB at 3 MB/s\n",
        "20 MB at 3 MB/s\n",
    );
    check("a\n\n\n \nb\n\n\n", "a\n\n\n \nb\n\n\n");
    check("a\r\n\r\n\r\nb", "a\n\n\nb");
    check("\n\n\n", "\n\n\n");
    check("", "");
    assert_eq!(folded("a\n\n\n \n\t\nb\n\n\n"), "a\n\nb\n\n");
    assert_eq!(folded("\n\n\n"), "\n");
}

/// Records of a file, names that a NUL ends, and whatever else was overwritten without being progress.
#[test]
fn what_is_no_progress_is_lines() {
    for (raw, expect) in [
        ("id,name\r1,Ada\r\r2,Eve\r", "id,name\n1,Ada\n\n2,Eve\n"),
        ("10%\r100%", "10%\n100%"),
        ("head\n1,Ada\r2,Eve\n", "head\n1,Ada\n2,Eve\n"),
        ("1,2\r3,4\n", "1,2\n3,4\n"),
        ("src/a.rs\0b\0\0c d.rs\0", "src/a.rs\nb\n\nc d.rs\n"),
        ("a\0b\0", "a\nb\n"),
        // Too little to be gained.
        ("10%\r50%\r   \r100%\n", "10%\n50%\n100%\n"),
    ] {
        check(raw, expect);
        assert!(!super::clean(raw.as_bytes()).is_lossy(), "{raw:?}");
        assert!(!super::clean(raw.as_bytes()).has_same_lines, "{raw:?}");
    }
    check("h\0e\0l\0l\0o\0\r\0\n\0y\0o\0u\0", "hello\nyou");
    check("\0h\0e\0y", "hey");
}

/// Of a table each row counts, however alike they are.
#[test]
fn rows_of_a_file_are_no_progress() {
    let rows = |end: &str| -> String { (0..60).map(|n| format!("item,{n}{end}")).collect() };
    let raw = format!("name,n\n{}", rows("\r"));
    let of_file = clean_of(raw.as_bytes(), Writer::File);
    assert_eq!(
        of_file.text.trim_end(),
        format!("name,n\n{}", rows("\n")).trim_end()
    );
    assert!(!of_file.is_lossy());
    assert!(super::clean(raw.as_bytes()).is_lossy());
    // A log of a download has progress all the same.
    let raw: String = (0..100).map(|n| format!("x {n}%\r")).collect();
    let raw = raw + "done\nend\n";
    assert_eq!(clean_of(raw.as_bytes(), Writer::File).text, "done\nend\n");
}

/// Where what is erased is not worth saying, control sequences go all the same.
#[test]
fn the_whole_is_clean_and_keeps_what_was_erased() {
    for (raw, expect) in [
        (
            "\u{1b}]0;pwned\u{7}\u{1b}[31mred\u{1b}[0m ab\u{8}X\u{1b}[2J\n",
            "red abX\n",
        ),
        ("a\0b\0c\0", "a\nb\nc\n"),
        ("12\u{8}\u{8}34", "1234"),
        ("B\u{8}B_\u{8}U |\u{8}/\u{8}-", "BU -"),
        ("10%\r50%\r100%\r\nend\r\n", "10%\n50%\n100%\nend\n"),
        ("10%\r100%", "10%\n100%"),
        ("plain\n", "plain\n"),
    ] {
        let whole = clean_whole(raw.as_bytes());
        assert_eq!(whole.text, expect, "{raw:?}");
        assert!(!whole.is_lossy(), "{raw:?}");
        assert_eq!(clean(expect), expect, "a second time: {raw:?}");
    }
}

#[test]
fn what_is_gone_is_counted() {
    let progress = |n: usize| (0..n).map(|n| format!("{n}% of it\r")).collect::<String>();
    for (raw, n_overwritten, n_erased) in [
        (progress(100) + "done\n", 100, 0),
        ("1234\u{8}5\n".to_owned(), 0, 1),
        ("12\u{8}\u{8}34".to_owned(), 0, 2),
        ("a\0b\0c\0".to_owned(), 0, 3),
        // Bold, underlined, a turning bar.
        (
            "B\u{8}B_\u{8}U |\u{8}/\u{8}-\u{8}\\\u{8} \u{8}".to_owned(),
            0,
            0,
        ),
        ("\u{1b}[1mbold\u{1b}[0m\r\n".to_owned(), 0, 0),
    ] {
        let clean = super::clean(raw.as_bytes());
        assert_eq!(
            (clean.n_overwritten, clean.n_erased),
            (n_overwritten, n_erased),
            "{raw:?}"
        );
        assert_eq!(clean.is_lossy(), n_overwritten + n_erased > 0, "{raw:?}");
        assert!(clean.has_same_lines, "{raw:?}");
    }
}

#[test]
fn clean_text_is_borrowed() {
    assert!(matches!(super::clean(b"a\n\nb\n").text, Cow::Borrowed(_)));
}

/// A long output is worked on in pieces.
#[test]
fn what_stands_where_a_long_output_is_taken_apart_is_cleaned_as_elsewhere() {
    let unit = "\u{1b}[1ma\u{1b}[0m\u{8}b\n\n\n10%\r20%\r\n\u{1b}]0;x\n\u{9b}31mé\u{85}\n \n";
    let once = drawn(
        unit.as_bytes(),
        Returns::Overwrite(Writer::Command),
        Changes::default(),
    )
    .text;
    for n in [2_000, 20_000] {
        assert!(unit.len() * n > 65_536);
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
