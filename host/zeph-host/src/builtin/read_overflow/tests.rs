//! Paging through and searching in a stored text.

use proptest::prelude::*;

use super::{ReadOverflowArguments, matching, page, parse_id, schema};
use crate::overflow::{PAGE_CHARS_MIN, page_chars};

fn arguments(offset: usize, limit: Option<usize>, start_char: usize) -> ReadOverflowArguments {
    ReadOverflowArguments {
        id: String::new(),
        offset,
        limit,
        pattern: None,
        start_char,
    }
}

fn text_of(output: zeph_core::output::RawOutput) -> String {
    output.to_text()
}

#[test]
fn pages() {
    let text = "a\nb\nc\nd\n";
    let table = [
        (arguments(0, None, 0), "a\nb\nc\nd\n"),
        (
            arguments(1, Some(2), 0),
            "b\nc\n[1 more line: continue with offset=3]",
        ),
        (arguments(3, None, 0), "d\n"),
    ];
    for (arguments, expect) in table {
        assert_eq!(text_of(page(text, &arguments, 1000).unwrap()), expect);
    }
    for open in ["", "a", "a\n\nb"] {
        let read = page(open, &arguments(0, None, 0), 1000).unwrap();
        assert_eq!(text_of(read), open);
    }
    let windows = page("a\r\nb\r\n", &arguments(0, None, 0), 1000).unwrap();
    assert_eq!(text_of(windows), "a\r\nb\r\n");
    let failure = page(text, &arguments(4, None, 0), 1000).unwrap_err();
    assert_eq!(failure.message, "`offset` is 4, but the text has 4 lines");
}

/// All pages of a text, as a model reads them that follows each hint.
fn read_in_pages(text: &str, chars_max: usize) -> String {
    let mut read = String::new();
    let (mut offset, mut start_char) = (0, 0);
    loop {
        let shown = text_of(page(text, &arguments(offset, None, start_char), chars_max).unwrap());
        let (body, hint) = match shown.rsplit_once('[') {
            Some((body, hint)) => (body.to_owned(), hint.to_owned()),
            None => (shown, String::new()),
        };
        let number = |key: &str| -> Option<usize> {
            let (_, rest) = hint.split_once(key)?;
            rest.split([',', ']']).next()?.parse().ok()
        };
        let Some(next) = number("offset=") else {
            return read + &body;
        };
        let next_char = number("start_char=").unwrap_or(0);
        assert!((next, next_char) > (offset, start_char), "{hint}");
        (offset, start_char) = (next, next_char);
        // What is cut inside a line gets an end for the hint alone.
        read.push_str(match start_char {
            0 => &body,
            _ => body.strip_suffix('\n').unwrap_or(&body),
        });
    }
}

#[test]
fn following_the_hints_reads_everything() {
    let text = format!("short\n{}\nlast\n", "é".repeat(950));
    assert_eq!(read_in_pages(&text, 100), text);
}

#[test]
fn a_page_with_its_notice_has_room_whatever_the_threshold_is() {
    let text = format!("{}\n{}", "é".repeat(20_000), "line\n".repeat(4_000));
    for threshold in [1, 250, 500, 5_000] {
        for offset in [0, 1] {
            let arguments = arguments(offset, None, 0);
            let shown = page(&text, &arguments, page_chars(threshold)).unwrap();
            let shown = text_of(shown);
            let room = threshold.max(PAGE_CHARS_MIN);
            assert!(shown.chars().count() <= room, "{threshold}: {shown}");
            assert!(shown.contains("continue with offset="), "{threshold}");
        }
    }
}

proptest! {
    /// Lines of a whole number of pages, one character less or more, and any others.
    #[test]
    fn pages_give_every_byte_exactly_once(
        chars_max in 3..9_usize,
        lines in prop::collection::vec((0..4_usize, 0..3_usize, prop::sample::select(vec!["", "\r", "\r\r"])), 1..6),
    ) {
        let line = |(n_pages, n_more, end): &(usize, usize, &str)| {
            let n_chars = (n_pages * chars_max + n_more).saturating_sub(1);
            let chars = "aé".chars().cycle().take(n_chars).collect::<String>();
            format!("{chars}{end}\n")
        };
        let text: String = lines.iter().map(line).collect();
        let open = text.strip_suffix('\n').unwrap_or(&text);
        prop_assert_eq!(read_in_pages(open, chars_max), open);
        prop_assert_eq!(read_in_pages(&text, chars_max), text);
    }
}

#[test]
fn searches() {
    let text = "ok 1\nerror: x\nok 2\nerror: y\n";
    let found =
        |pattern, limit| matching(text, pattern, &arguments(0, limit, 0), 1000).map(text_of);
    assert_eq!(found("^error", None).unwrap(), "1: error: x\n3: error: y\n");
    assert_eq!(
        found("^error", Some(1)).unwrap(),
        "1: error: x\n[showing 1 of 2 matching lines: continue with offset=3]"
    );
    assert_eq!(found("nothing", None).unwrap(), "No lines match: nothing");
    assert_eq!(
        found("(", None).unwrap_err().category.label(),
        "invalid_parameters"
    );
}

/// All that is found, as a model reads it that follows each hint.
fn search_in_pages(
    text: &str,
    pattern: &str,
    limit: Option<usize>,
    chars_max: usize,
) -> Vec<String> {
    let mut read = Vec::new();
    let (mut offset, mut start_char) = (0, 0);
    loop {
        let arguments = arguments(offset, limit, start_char);
        let shown = text_of(matching(text, pattern, &arguments, chars_max).unwrap());
        assert!(shown.chars().count() < chars_max + 200, "{shown}");
        let number = |key: &str| -> Option<usize> {
            let (_, rest) = shown
                .lines()
                .last()?
                .strip_prefix("[showing")?
                .split_once(key)?;
            rest.split([',', ']']).next()?.parse().ok()
        };
        let entries = shown.lines().filter(|line| !line.starts_with("[showing"));
        read.extend(entries.map(str::to_owned));
        let Some(next) = number("offset=") else {
            return read;
        };
        let next_char = number("start_char=").unwrap_or(0);
        assert!((next, next_char) > (offset, start_char), "{shown}");
        (offset, start_char) = (next, next_char);
    }
}

#[test]
fn every_match_of_a_long_line_is_shown_and_can_be_read_on() {
    let words = |n: usize| "\"é\": 1, ".repeat(n);
    let json = format!(
        "{{{}needle-1, {}needle-2, needle-3{}}}",
        words(5_000),
        words(5_000),
        words(100)
    );
    let text = format!("short\n{json}\nneedle-4\n");
    for (limit, chars_max) in [(None, 10_000), (None, 200), (Some(1), 10_000)] {
        let found = search_in_pages(&text, "needle-[0-9]", limit, chars_max);
        assert_eq!(found.len(), 3, "{found:?}");
        for (entry, needles) in
            found
                .iter()
                .zip([&["needle-1"][..], &["needle-2", "needle-3"], &["needle-4"]])
        {
            assert!(
                needles.iter().all(|needle| entry.contains(needle)),
                "{entry}"
            );
        }
        assert_eq!(found[2], "2: needle-4");
        // From the number on, the page goes on with what was shown.
        let start = found[0].strip_prefix("1, start_char=").unwrap();
        let (start, shown) = start.split_once(": ").unwrap();
        let start = start.parse().unwrap();
        let read = text_of(page(&text, &arguments(1, None, start), 1_000).unwrap());
        let head: String = shown.chars().take(40).collect();
        assert!(read.trim_start().starts_with(&head), "{head} {read}");
    }
    // What matches everywhere, and nothing.
    let everywhere = search_in_pages(&words(500), "", None, 600);
    assert_eq!(everywhere.len(), 10, "{everywhere:?}");
}

#[test]
fn what_was_shown_without_colors_is_found() {
    let text = "\u{1b}[1m\u{1b}[38;5;9merror[E0308]\u{1b}[0m\u{1b}[1m: mismatched types\u{1b}[0m\n   \u{1b}[1m--> \u{1b}[0msrc/main.rs:3:5\r\n\
        10%\rwarning: slow\nsee \u{1b}]8;;http://x/29\u{1b}\\link\u{1b}]8;;\u{1b}\\\n";
    for (pattern, found) in [
        (
            r"^error\[E0308\]: mismatched types$",
            "0: error[E0308]: mismatched types\n",
        ),
        ("--> src/main.rs:3:5$", "1: --> src/main.rs:3:5\n"),
        ("^warning: ", "2: 10% warning: slow\n"),
        ("^see link$", "3: see link\n"),
        ("38;5", "No lines match: 38;5"),
    ] {
        let shown = matching(text, pattern, &arguments(0, None, 0), 1000).unwrap();
        assert_eq!(text_of(shown), found, "{pattern}");
    }
}

#[test]
fn places_of_a_long_line_are_those_of_the_text_as_it_is_stored() {
    let words = "\u{1b}[32mé ok\u{1b}[0m, ".repeat(2_000);
    let text = format!("{words}\u{1b}[31mneedle-1\u{1b}[0m{words}needle-2\n");
    let found = search_in_pages(&text, "needle-[0-9]", Some(1), 10_000);
    assert_eq!(found.len(), 2, "{found:?}");
    for (entry, needle) in found.iter().zip(["needle-1", "needle-2"]) {
        let start = entry.strip_prefix("0, start_char=").unwrap();
        let (start, shown) = start.split_once(": ").unwrap();
        assert!(
            shown.contains(needle) && !shown.contains('\u{1b}'),
            "{shown}"
        );
        let read = page(&text, &arguments(0, None, start.parse().unwrap()), 2_500);
        assert!(text_of(read.unwrap()).contains(needle), "{start}");
    }
}

#[test]
fn ids() {
    assert!(parse_id("overflow:67e55044-10b1-426f-9247-bb680e5fe0c8").is_ok());
    assert!(parse_id(" 67e55044-10b1-426f-9247-bb680e5fe0c8 ").is_ok());
    for bad in ["", "7", "overflow:", "../../etc/passwd"] {
        assert_eq!(
            parse_id(bad).unwrap_err().message,
            "`id` must be a valid UUID",
            "{bad}"
        );
    }
}

#[test]
fn the_schema_is_plain() {
    let schema = schema();
    assert_eq!(schema["required"], serde_json::json!(["id"]));
    for (name, property) in schema["properties"].as_object().unwrap() {
        assert!(property["type"].is_string(), "{name}: {property}");
        assert!(property["description"].is_string(), "{name}: {property}");
    }
}
