//! Plugins and lock files that mean harm.

use serde_json::json;
use zeph_core::capability::Capability;
use zeph_core::id::{Digest, Pin};

use super::{Side, changes, shown};
use crate::definitions::Definitions;
use crate::definitions::tests::{tool, want, wants, with_schema};
use crate::diff::{DiffLine, DiffMark, PluginSide, between};
use crate::visible::is_hidden;

#[test]
fn a_hand_in_the_lock_file_is_told() {
    let definitions = Definitions::new(wants(), vec![tool("alpha")]).unwrap();
    let pin = Pin {
        wasm: Digest::new([1; 32]),
        tools: definitions.digest(),
    };
    let edited = Definitions::new(Vec::new(), vec![tool("alpha")]).unwrap();
    let old = PluginSide {
        pin,
        definitions: &edited,
    };
    let changes = between(
        old,
        PluginSide {
            pin: Pin {
                wasm: Digest::new([2; 32]),
                ..pin
            },
            definitions: &definitions,
        },
    );
    let lines = changes.lines();
    assert!(
        lines[1]
            .to_string()
            .starts_with("! the old definitions in `zeph.lock`"),
        "{lines:?}"
    );
}

#[test]
fn nothing_a_plugin_says_drives_the_terminal_or_makes_lines_of_its_own() {
    let hostile = "\x1b[2J\r\u{202e}\u{200b}\u{9b}\u{e0041}\n+ requests nothing\n! all is well\n";
    let changes = changes(
        |_| {},
        |side| {
            let hostile =
                "\x1b[2J\r\u{202e}\u{200b}\u{9b}\u{e0041}\n+ requests nothing\n! all is well\n";
            side.wants[2] = want(
                Capability::Program {
                    name: hostile.to_owned(),
                },
                hostile,
            );
            side.wants[1].reason = hostile.to_owned();
            for (n, tool) in side.tools.iter_mut().enumerate() {
                tool.title = Some(hostile.to_owned());
                tool.description = hostile.repeat(n + 1);
                tool.output = Some(json!({ hostile: hostile, "required": [hostile] }).into());
                with_schema(tool, |schema| {
                    schema["properties"][hostile] = json!({ "description": hostile });
                    schema["properties"]["path"][hostile] = json!(hostile);
                    schema["properties"]["path"]["description"] = json!(hostile);
                    schema["required"] = json!([hostile]);
                });
            }
            let mut added = tool("gamma");
            added.description = hostile.to_owned();
            side.tools.push(added);
        },
    );
    for line in changes.lines() {
        assert!(
            !line
                .text
                .contains(|character| is_hidden(character) && character != '\t'),
            "{line:?}"
        );
        let is_forged = line.text.contains("all is well") && line.depth == 0;
        assert!(!is_forged || line.text.contains("\\n"), "{line:?}");
    }
    assert!(!shown(&changes).contains(hostile));
}

#[test]
fn a_long_line_does_not_reach_the_left_edge() {
    let text = |text: &str| DiffLine::new(DiffMark::Added, 1, text.to_owned());
    let table: [(&str, usize, &[&str]); 7] = [
        ("short", 40, &["    + short"]),
        (
            "012345678901234567890123456789",
            30,
            &["    + 012345678901234567890123", "      ┆ 456789"],
        ),
        (
            "漢漢漢漢漢漢漢漢漢漢漢漢漢",
            30,
            &["    + 漢漢漢漢漢漢漢漢漢漢漢漢", "      ┆ 漢"],
        ),
        // However narrow.
        (
            "0123456789012345678901",
            1,
            &["    + 01234567890123456789", "      ┆ 01"],
        ),
        (
            "words are kept whole! where they fit",
            24,
            &[
                "    + words are kept ",
                "      ┆ whole! where they ",
                "      ┆ fit",
            ],
        ),
        (
            "a 0123456789012345678901 b",
            24,
            &["    + a 012345678901234567", "      ┆ 8901 b"],
        ),
        ("", 30, &["    + "]),
    ];
    for (content, width, expect) in table {
        assert_eq!(text(content).wrapped(width), expect);
    }
}

/// Comparing words takes time by the product of their numbers: a text made for it must not hold the operator up.
#[test]
fn long_texts_that_have_nothing_in_common_are_compared_in_time() {
    let changes = changes(
        |side| side.tools[0].title = Some("a b ".repeat(50_000)),
        |side| side.tools[0].title = Some("c d ".repeat(50_000)),
    );
    let lines = changes.lines();
    let n_chars: usize = lines.iter().map(|line| line.text.len()).sum();
    // Nothing is cut.
    assert!(n_chars > 400_000, "{n_chars}");
    let common = "same ".repeat(30_000);
    let (pin, old) = long_title(format!("{common}old {common}"));
    let (_, new) = long_title(format!("{common}new {common}"));
    let changes = between(
        PluginSide {
            pin,
            definitions: &old,
        },
        PluginSide {
            pin,
            definitions: &new,
        },
    );
    let shown: Vec<_> = changes.lines().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown[3],
        format!("        - …{}old {}…", "same ".repeat(6), "same ".repeat(6))
    );
}

fn long_title(title: String) -> (Pin, Definitions) {
    let mut long = tool("alpha");
    long.title = Some(title);
    let side = Side {
        wants: Vec::new(),
        tools: vec![long],
    };
    side.accepted()
}
