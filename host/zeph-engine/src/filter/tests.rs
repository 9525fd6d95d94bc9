//! Guests that answer, lie, loop, flood, trap, allocate and remember, through the border.

mod guest;

use zeph_core::id::PluginId;

use self::guest::{Guest, HONEST, component, session_apply};
use super::{FilterAnswer, FilterConfidence, FilterFailure, FilterPiece, FilterSession};
use crate::inspect::{ComponentKind, inspect};
use crate::{EngineOptions, LoadError, Plugin};

/// An answer that keeps `first` to `first + count`.
fn kept(first: usize, count: usize) -> FilterAnswer {
    FilterAnswer {
        pieces: vec![FilterPiece::Keep(first..first + count)],
        confidence: FilterConfidence::Full,
        told: Vec::new(),
    }
}

/// What an apply of this body comes to.
fn answer(apply: &str) -> Result<FilterAnswer, FilterFailure> {
    let guest = Guest::new(apply);
    let mut session = guest.session();
    guest.apply(&mut session)
}

#[test]
fn a_strategy_selects_lines() {
    assert_eq!(answer(HONEST), Ok(kept(0, 1)));
}

#[test]
fn its_component_is_recognised() {
    let inspection = inspect(&component("", HONEST)).unwrap();
    assert!(inspection.is_usable(), "{:?}", inspection.problems);
    let version = "0.1.0".to_owned();
    assert_eq!(inspection.kind, ComponentKind::FilterPlugin { version });
    let guest = Guest::new(HONEST);
    assert_eq!(guest.plugin.tools().len(), 0);
    let names: Vec<_> = guest
        .plugin
        .strategies()
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["s"]);
}

/// The failure begins so.
#[track_caller]
fn check_failure(apply: &str, expected: &str) {
    let failure = answer(apply).unwrap_err().to_string();
    assert!(failure.starts_with(expected), "{failure}");
    assert!(
        failure.chars().all(|c| !c.is_control()) && failure.len() < 1_000,
        "{failure}"
    );
}

#[test]
fn what_a_guest_does_wrong_is_told() {
    // Lines beyond all numbers.
    check_failure(
        "(call $keep (i32.const -1) (i32.const 2))",
        "it broke its contract: it kept 2 lines from line 4294967295 on",
    );
    check_failure("unreachable", "it crashed");
    check_failure("(loop $l (br $l)) unreachable", "it took longer than ");
    // Pages for ever.
    check_failure(
        "(loop $l (drop (memory.grow (i32.const 64))) (br $l)) unreachable",
        "it wanted more than 256 MiB of memory",
    );
    // Five million pieces, all of them there.
    check_failure(
        "(drop (memory.grow (i32.const 1000)))
         (i32.store (i32.const 2048) (i32.const 4096)) (i32.store (i32.const 2052) (i32.const 5000000))
         (i32.const 2048)",
        "it wanted more than 32 MiB for its answer",
    );
    // A list that ends outside of memory.
    check_failure(
        "(i32.store (i32.const 2048) (i32.const 4096)) (i32.store (i32.const 2052) (i32.const 500000))
         (i32.const 2048)",
        "it broke its contract: ",
    );
    // A confidence that is none.
    check_failure(
        "(i32.store8 (i32.const 2056) (i32.const 9)) (i32.const 2048)",
        "it broke its contract: ",
    );
    // A note that is no text.
    check_failure(
        "(call $note (i32.const 1024) (i32.const 4))",
        "it broke its contract: ",
    );
}

#[test]
fn overlapping_ranges_reach_the_reader_as_they_are() {
    let twice = "(drop (call $keep (i32.const 0) (i32.const 2)))
        (i32.store (i32.const 2076) (i32.const 0)) (i32.store (i32.const 2080) (i32.const 1))
        (i32.store (i32.const 2084) (i32.const 7)) (i32.store (i32.const 2052) (i32.const 2))
        (i32.const 2048)";
    let pieces = vec![FilterPiece::Keep(0..2), FilterPiece::Keep(1..8)];
    assert_eq!(answer(twice).unwrap().pieces, pieces);
}

#[test]
fn state_ends_with_the_session() {
    let count = "(global.set $n (i32.add (global.get $n) (i32.const 1)))
        (call $keep (i32.const 0) (global.get $n))";
    let guest = Guest::new(count);
    let mut one = guest.session();
    assert_eq!(guest.apply(&mut one), Ok(kept(0, 1)));
    assert_eq!(guest.apply(&mut one), Ok(kept(0, 2)));
    let mut other = guest.session();
    assert_eq!(guest.apply(&mut other), Ok(kept(0, 1)));
    one.clear();
    assert_eq!(guest.apply(&mut one), Ok(kept(0, 1)));
}

#[test]
fn an_instance_that_failed_is_made_anew_and_left_alone_after_three_times() {
    let second_fails = "(global.set $n (i32.add (global.get $n) (i32.const 1)))
        (if (i32.eq (global.get $n) (i32.const 2)) (then unreachable))
        (call $keep (i32.const 0) (global.get $n))";
    let guest = Guest::new(second_fails);
    let mut session = guest.session();
    for _ in 0..3 {
        assert_eq!(guest.apply(&mut session), Ok(kept(0, 1)));
        let crashed = guest.apply(&mut session).unwrap_err();
        assert!(matches!(crashed, FilterFailure::Crashed(_)), "{crashed}");
    }
    assert_eq!(guest.apply(&mut session), Err(FilterFailure::Off));
    // Another strategy of the component did nothing wrong.
    let another = session_apply(&guest, &mut session, (&guest.plugin, "t"), "", "a\nb\n");
    assert_eq!(another, Ok(kept(0, 1)));
    let mut other = guest.session();
    assert_eq!(guest.apply(&mut other), Ok(kept(0, 1)));
}

#[test]
fn options_are_taken_once_and_wrong_ones_harm_nobody() {
    let count = "(call $keep (i32.const 0) (global.get $made))";
    let guest = Guest::new(count);
    let mut session = guest.session();
    for _ in 0..5 {
        let refused = guest.apply_with(&mut session, "bad", "");
        let words = "no [31mthanks".to_owned();
        assert_eq!(refused, Err(FilterFailure::Options(words)));
    }
    // Asked once, then known.
    assert_eq!(guest.apply(&mut session), Ok(kept(0, 2)));
    assert_eq!(guest.apply(&mut session), Ok(kept(0, 2)));
    assert_eq!(guest.apply_with(&mut session, "{}", ""), Ok(kept(0, 3)));
}

#[test]
fn a_long_output_is_not_handed_over() {
    let guest = Guest::new(HONEST);
    let mut session = guest.session();
    let text = "a\n".repeat(super::FILTER_TEXT_BYTES_MAX / 2);
    assert_eq!(guest.apply_with(&mut session, "", &text), Ok(kept(0, 1)));
    let longer = format!("{text}\n");
    let n_bytes = longer.len();
    let refused = guest.apply_with(&mut session, "", &longer);
    assert_eq!(refused, Err(FilterFailure::TooLong { n_bytes }));
}

/// Time, randomness and the environment are the same everywhere: the answer is too.
#[test]
fn nothing_outside_differs() {
    let probes = "(drop (call $keep (i32.wrap_i64 (call $now)) (i32.const 1)))
        (i32.store (i32.const 2048) (i32.const 2060)) (i32.store (i32.const 2068) (i32.wrap_i64 (call $random)))
        (i32.const 2048)";
    let imports = "(import \"wasi:clocks/monotonic-clock@0.2.0\" \"now\" (func $now (result i64)))
        (import \"wasi:random/random@0.2.0\" \"get-random-u64\" (func $random (result i64)))";
    let answers = [0, 1].map(|_| {
        let guest = Guest::of(&component(imports, probes));
        let mut session = guest.session();
        guest.apply(&mut session).unwrap()
    });
    assert_eq!(answers[0], answers[1]);
    let FilterPiece::Keep(range) = &answers[0].pieces[0] else {
        panic!("{answers:?}");
    };
    assert_eq!(range.start, 0, "a clock that stands still");
}

#[test]
fn many_sessions_are_served_even_when_no_place_is_left() {
    let guest = Guest::new(HONEST);
    let mut sessions: Vec<FilterSession> = (0..40).map(|_| guest.session()).collect();
    for session in &mut sessions {
        assert_eq!(guest.apply(session), Ok(kept(0, 1)));
    }
    for session in &mut sessions {
        assert_eq!(guest.apply(session), Ok(kept(0, 1)));
    }
}

#[test]
fn a_component_of_tools_offers_no_strategies() {
    let guest = Guest::new(HONEST);
    let tools = wat::parse_str(
        r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f"))) (export "f" (func $f)))"#,
    );
    let plugin = guest.load("plain", &tools.unwrap()).unwrap();
    let mut session = guest.session();
    let refused = session_apply(&guest, &mut session, (&plugin, "s"), "", "a\n");
    let reason = "it offers no strategies".to_owned();
    assert_eq!(refused, Err(FilterFailure::NotLoaded(reason)));
}

#[test]
fn a_bad_list_keeps_a_component_out() {
    #[track_caller]
    fn check(name: &str, options: &str, expected: &str) {
        let guest = Guest::new(HONEST);
        let bytes = guest::listing(name, options);
        match guest.load("bad", &bytes) {
            Err(LoadError::Strategies { reason, .. }) => {
                assert!(reason.starts_with(expected), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    check("", "{}", "`` is not a valid strategy name: 1 to 48");
    check("Big", "{}", "`Big` is not a valid strategy name");
    check(
        "s",
        "[]",
        "`s`: the schema of its options is not a JSON object",
    );
}

#[test]
fn a_recalled_component_is_loaded_when_it_is_needed() {
    let guest = Guest::new(HONEST);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), component("", HONEST)).unwrap();
    let recalled = Plugin::recall_filter(
        &guest.engine,
        PluginId("later".to_owned()),
        guest.plugin.digest(),
        file.path().to_owned(),
        guest.plugin.strategies().to_vec(),
    );
    let mut session = guest.session();
    let answer = session_apply(&guest, &mut session, (&recalled, "s"), "", "a\n");
    assert_eq!(answer, Ok(kept(0, 1)));
}

/// Without a pool as well: a one-shot command takes none.
#[test]
fn without_a_pool() {
    let guest = Guest::with_engine(
        &EngineOptions {
            guest_threads: 1,
            pooled: false,
            cache_dir: None,
            on_compile: None,
        },
        &component("", HONEST),
    );
    let mut session = guest.session();
    assert_eq!(guest.apply(&mut session), Ok(kept(0, 1)));
}
