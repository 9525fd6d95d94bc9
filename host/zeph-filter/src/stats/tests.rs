use super::{Stats, line};
use crate::command::tests::line as command;
use crate::{BUILTIN, Filtered, Filters, NoForeign, Output};

fn filtered(raw: &str) -> Filtered<'_> {
    let (filters, _) = Filters::load(BUILTIN, None);
    let command = command("cargo test", &[]);
    let output = Output {
        command: Some(&command),
        exit_code: Some(0),
        raw: raw.as_bytes(),
    };
    filters.apply(&output, &NoForeign)
}

fn run_of(n: usize) -> String {
    "test a_rather_long_name_of_a_test ... ok\n".repeat(n) + "test result: ok. 9 passed; 0 failed\n"
}

#[test]
fn the_line_says_lines_and_their_share() {
    let raw = run_of(99);
    assert_eq!(
        line(&filtered(&raw)).as_deref(),
        Some("[shell] 100 lines -> 2 lines, 98.0% filtered")
    );
    assert_eq!(line(&filtered("a\nb\n")), None);
}

#[test]
fn savings_are_counted_by_rule() {
    let mut stats = Stats::default();
    let raw = run_of(99);
    for _ in 0..3 {
        stats.add(&filtered(&raw));
    }
    stats.add(&filtered("small\n"));
    let unknown = "no test at all in this line\n".repeat(40);
    stats.add(&filtered(&unknown));
    let all = stats.all;
    assert_eq!(
        (all.n_outputs, all.n_full, all.n_partial, all.n_fallback),
        (3, 3, 0, 1)
    );
    assert_eq!(all.lines_before, 300 + 40);
    assert_eq!(all.tokens_saved(), (all.bytes_before - all.bytes_after) / 4);
    assert_eq!(stats.by_rule["cargo-test"].n_outputs, 3);
    assert!(!stats.by_rule["cargo-test"].is_read_back_often());
    stats.read_back(&["cargo-test".to_owned()]);
    assert!(stats.by_rule["cargo-test"].is_read_back_often());
}
