use proptest::prelude::*;

use super::sections::SECTIONS_MAX;
use super::{CompressionRules, FILTERED, GoalWords, compress, sections};

const GOAL: &str = "Implement authentication middleware for the REST API";

fn rules() -> CompressionRules {
    CompressionRules {
        head_bytes: 0,
        goal_aware: false,
        relevance_threshold: 0.5,
        preserves_errors: true,
        preserved_chars_max: 4_096,
    }
}

/// Lines that have nothing to do with anything.
fn noise(n_lines: usize) -> Vec<String> {
    (0..n_lines)
        .map(|n| format!("   Compiling serde_thing_{n} v1.0.{n} (registry, cached, unchanged)"))
        .collect()
}

fn shown(text: &str, rules: &CompressionRules) -> Option<String> {
    let compressed = compress(text, "cargo build", (&GoalWords::new(GOAL), &[]), rules)?;
    Some(compressed.render(text, "overflow:1"))
}

#[test]
fn errors_and_lines_near_the_goal_stay() {
    let mut lines = noise(60);
    lines[20] = "error[E0308]: mismatched types".to_owned();
    lines[21] = "  --> src/main.rs:10:5".to_owned();
    lines[40] = "checked src/auth/authenticate.rs".to_owned();
    lines.push("Finished in 3 s".to_owned());
    let text = lines.join("\n");
    let shown = shown(&text, &rules()).unwrap();
    for kept in [&lines[0], &lines[20], &lines[21], &lines[40], &lines[60]] {
        assert!(shown.contains(kept.as_str()), "{kept}: {shown}");
    }
    assert!(!shown.contains(&lines[30]), "{shown}");
    assert!(
        shown.contains("[output filtered: 19 lines beside the goal; all of it: overflow:1]"),
        "{shown}"
    );
    assert!(shown.len() * 3 < text.len(), "{shown}");
}

#[test]
fn what_was_compressed_stays_as_it_is() {
    let text = noise(100).join("\n");
    let once = shown(&text, &rules()).unwrap();
    assert_eq!(shown(&once, &rules()), None);
    let copied = format!("{FILTERED}by hand]\n{text}");
    assert_eq!(shown(&copied, &rules()), None);
}

#[test]
fn little_is_not_worth_it() {
    assert_eq!(shown("", &rules()), None);
    assert_eq!(shown(&noise(4).join("\n"), &rules()), None);
}

#[test]
fn what_is_near_the_goal_as_a_whole_stays_whole_when_that_counts() {
    let near =
        "the middleware checks the token\nand then it goes on with something else entirely\n";
    let text = near.repeat(30);
    assert!(shown(&text, &rules()).is_some());
    let aware = CompressionRules {
        goal_aware: true,
        ..rules()
    };
    let text = noise(60).join("\n");
    assert!(shown(&text, &aware).is_some());
    let goal = GoalWords::new(GOAL);
    assert_eq!(
        compress(&text, "read src/middleware.rs", (&goal, &[]), &aware),
        None
    );
    let mut lines = noise(60);
    lines[30] = String::new();
    lines[31] = "fn authenticate() {".to_owned();
    lines[32] = "    let nothing = else_of_that_name();".to_owned();
    lines[33] = "}".to_owned();
    lines[34] = String::new();
    let text = lines.join("\n");
    assert!(!shown(&text, &rules()).unwrap().contains("let nothing"));
    assert!(shown(&text, &aware).unwrap().contains("let nothing"));
}

/// Three paragraphs of noise, one of which means what the goal does in other words.
fn paragraphs_of_noise() -> (String, String) {
    let meant = "who may sign in is checked before the handler\nand a session is opened for them";
    let noise = noise(90);
    let parts = [&noise[..30].join("\n"), meant, &noise[30..].join("\n")];
    (parts.join("\n\n"), meant.to_owned())
}

#[test]
fn a_paragraph_that_means_what_the_goal_does_stays() {
    let (text, meant) = paragraphs_of_noise();
    let sections = sections(&text).unwrap();
    assert_eq!(sections.len(), 6, "{sections:?}");
    assert!(sections.contains(&meant.as_str()));
    let goal = GoalWords::new(GOAL);
    let shown = |relevance: f64, rules: &CompressionRules| {
        let relevances = sections.iter().map(|one| match *one == meant {
            true => relevance,
            false => 0.2,
        });
        let relevances: Vec<f64> = relevances.collect();
        let compressed = compress(&text, "cargo build", (&goal, &relevances), rules);
        compressed.unwrap().render(&text, "overflow:1")
    };
    assert!(shown(0.6, &rules()).contains(&meant));
    assert!(!shown(0.4, &rules()).contains(&meant));
    assert!(!shown(f64::NAN, &rules()).contains(&meant));
    let narrow = CompressionRules {
        preserved_chars_max: 200,
        ..rules()
    };
    let shown = shown(0.6, &narrow);
    assert!(shown.contains("near it beyond"), "{shown}");
}

#[test]
fn the_nearest_paragraphs_stay_where_there_is_no_room_for_all() {
    let part = |n: usize| format!("part {n} {}", "of something else ".repeat(30));
    let text = (0..20).map(part).collect::<Vec<_>>().join("\n\n");
    let relevances: Vec<f64> = (0..20).map(|n: u8| 0.5 + 0.02 * f64::from(n)).collect();
    let rules = CompressionRules {
        preserved_chars_max: 2_500,
        ..rules()
    };
    let goal = GoalWords::new(GOAL);
    let compressed = compress(&text, "cargo build", (&goal, &relevances), &rules);
    let shown = compressed.unwrap().render(&text, "overflow:1");
    assert!(
        shown.contains("part 18 ") && !shown.contains("part 5 "),
        "{shown}"
    );
}

#[test]
fn the_nearest_lines_stay_where_there_is_no_room_for_all() {
    let mut lines = noise(200);
    lines[150] = "the authentication middleware of the REST API".to_owned();
    let text = lines.join("\n");
    let all = CompressionRules {
        relevance_threshold: 0.0,
        preserved_chars_max: 1_000,
        ..rules()
    };
    let shown = shown(&text, &all).unwrap();
    assert!(shown.contains(&lines[150]), "{shown}");
    // Every line is near, so none is beside the goal.
    assert!(shown.contains("output filtered: 0 lines beside"), "{shown}");
}

#[test]
fn an_output_of_many_paragraphs_is_compared_by_its_words() {
    assert_eq!(
        sections(&"line\n\n".repeat(SECTIONS_MAX)).unwrap().len(),
        SECTIONS_MAX
    );
    assert_eq!(sections(&"line\n\n".repeat(SECTIONS_MAX + 1)), None);
    assert_eq!(sections(&format!("{FILTERED}by hand]\n")), None);
    assert_eq!(sections("").unwrap(), Vec::<&str>::new());
}

#[test]
fn the_beginning_stays_as_far_as_it_is_asked_for() {
    let text = noise(100).join("\n");
    let moderate = CompressionRules {
        head_bytes: 500,
        ..rules()
    };
    let shown = shown(&text, &moderate).unwrap();
    assert!(shown.contains("serde_thing_5 "), "{shown}");
    assert!(!shown.contains("serde_thing_20 "), "{shown}");
}

#[test]
fn the_room_is_bounded_and_what_finds_none_is_counted() {
    let mut lines = noise(400);
    for idx in (0..400).step_by(5) {
        lines[idx] = format!("middleware {idx} {}", "word ".repeat(30));
    }
    let text = lines.join("\n");
    let tight = CompressionRules {
        preserved_chars_max: 1_000,
        ..rules()
    };
    let shown = shown(&text, &tight).unwrap();
    assert!(shown.contains("near it beyond"), "{shown}");
    let kept: usize = shown
        .lines()
        .filter(|line| !line.starts_with(FILTERED))
        .map(str::len)
        .sum();
    assert!(kept <= 1_000, "{kept}");
}

#[test]
fn one_long_line_is_cut() {
    let text = format!("{{\"a\": \"{}\"}}", "é".repeat(20_000));
    let shown = shown(&text, &rules()).unwrap();
    assert!(
        shown.len() < 3_000 && shown.contains("more bytes of a long line"),
        "{shown}"
    );
}

#[test]
fn more_errors_than_can_be_read_are_counted() {
    let text: String = (0..1_000)
        .map(|n| format!("src/main.rs:{n}:1: error: this is wrong in its own way\n"))
        .collect();
    let shown = shown(&text, &rules()).unwrap();
    assert!(
        shown.contains("with errors beyond the first 200"),
        "{shown}"
    );
}

#[test]
fn words_are_found_in_all_their_forms() {
    let goal = GoalWords::new(GOAL);
    for near in [
        "authenticated",
        "AUTHENTICATION_KEY",
        "newMiddleware()",
        "the REST api",
        "/rest/x",
    ] {
        assert!(goal.relevance(near) >= 0.5, "{near}");
    }
    for beside in ["restart", "implement", "for the", "", "capitalise"] {
        assert!(goal.relevance(beside) < 0.5, "{beside}");
    }
    assert!(goal.relevance("rest middleware") >= 0.75);
    let named = GoalWords::new("mend `parse_config`, please");
    assert!(named.relevance("fn parse_config() {") > named.relevance("parse it"));
    assert!(GoalWords::new("do it").relevance("do it") < 0.5);
}

proptest! {
    #[test]
    fn every_error_stays_and_nothing_is_invented(
        at in 0..200_usize,
        words in prop::collection::vec("[a-z ]{0,40}|middleware|\\PC{0,30}", 200),
        aware: bool,
    ) {
        let mut lines: Vec<String> = words.into_iter().map(|line| line.replace(['\n', '\r'], " ")).collect();
        lines[at] = "src/lib.rs:3:4: error: the one that counts".to_owned();
        let text = lines.join("\n");
        let rules = CompressionRules { goal_aware: aware, ..rules() };
        if let Some(shown) = shown(&text, &rules) {
            prop_assert!(shown.contains(&lines[at]), "{}", shown);
            for line in shown.lines().filter(|line| !line.starts_with(FILTERED)) {
                prop_assert!(text.contains(line), "{}", line);
            }
            prop_assert!(shown.len() < text.len());
        }
    }
}
