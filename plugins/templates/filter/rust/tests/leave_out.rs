//! Tests the strategies natively.

use ::RUST_NAME::{Selection, Strategy, leave_out};

fn strategy(options: &str) -> Result<Strategy, String> {
    (leave_out::KIND.create)(options)
}

#[test]
fn leaves_out_what_begins_so() {
    let strategy = strategy(r#"{"begins": ["CC "]}"#).unwrap();
    let expected = Selection {
        kept: vec![1..3, 4..5],
        notes: vec!["2 lines omitted".to_owned()],
        is_known: true,
    };
    assert_eq!(
        strategy("CC a.o\nwarning: x\nwarning: y\nCC b.o\ndone\n"),
        expected
    );
}

#[test]
fn does_not_know_an_output_without_such_lines() {
    let strategy = strategy(r#"{"begins": ["CC "]}"#).unwrap();
    assert!(!strategy("done\n").is_known);
}

#[test]
fn says_what_is_wrong_with_its_options() {
    for (options, problem) in [
        (r#"{}"#, "missing field `begins`"),
        (r#"{"begins": []}"#, "`begins` is a list of words"),
        (
            r#"{"begins": ["a"], "colour": 1}"#,
            "unknown field `colour`",
        ),
    ] {
        let Err(said) = strategy(options) else {
            panic!("`{options}` is taken")
        };
        assert!(said.starts_with(problem), "{said}");
    }
}
