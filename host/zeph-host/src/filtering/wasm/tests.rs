//! The nine in their component answer as the same code does here, on recorded outputs, for the rules in use.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use zeph_engine::{Engine, EngineOptions};
use zeph_filter::{BUILTIN, Confidence, Filters, Foreign, Input, Lines, STRATEGIES};
use zeph_plugins::set::PluginSet;

use super::Components;

/// Longest recorded output that is tried with every rule, in bytes: a test has to end.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

fn components() -> Components {
    let engine = Engine::new(&EngineOptions {
        guest_threads: 2,
        pooled: false,
        cache_dir: Some(std::env::temp_dir().join("zeph-host-tests")),
        on_compile: None,
    });
    Components::new(&engine.unwrap(), "zeph-host")
}

/// Runs `work` as a host does.
fn with<T: Send + 'static>(
    components: &Components,
    work: impl FnOnce(&dyn Foreign) -> T + Send + 'static,
) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let set = Arc::new(PluginSet::default());
    runtime.block_on(components.warm());
    let strategies = components.strategies(&components.session(), set);
    let worked = runtime.block_on(components.on_thread(move || work(&*strategies)));
    worked.expect("it does not panic")
}

/// Every recorded output below a folder.
fn outputs(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            outputs(&path, found);
        } else if path
            .parent()
            .unwrap()
            .extension()
            .is_some_and(|kind| kind == "cases")
            && path.metadata().unwrap().len() <= OUTPUT_BYTES_MAX
        {
            found.push(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

#[test]
fn the_nine_answer_there_as_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filters/rules");
    let mut texts = vec![String::new(), "error: é\nwarning: 世界\n".repeat(200)];
    outputs(&folder, &mut texts);
    assert!(texts.len() > 30, "{} recorded outputs", texts.len());
    let (n_tried, n_shortened) = with(&components(), move |foreign| {
        let (filters, _) = Filters::load(BUILTIN, None);
        let (mut n_tried, mut n_shortened) = (0, 0);
        for rule in filters.rules() {
            let name = rule.strategy();
            let definition = STRATEGIES.iter().find(|known| known.name == name).unwrap();
            let native = (definition.create)(rule.options()).unwrap();
            for (text_idx, text) in texts.iter().enumerate() {
                let exit_code = [Some(0), Some(101), None][text_idx % 3];
                let lines = Lines::of(text);
                let input = Input {
                    command: "cargo test",
                    exit_code,
                    lines: &lines,
                };
                let here = native.apply(&input);
                let there = foreign.standard(&name, rule.options(), &input);
                assert_eq!(there, Some(Ok(here.clone())), "rule `{}`", rule.name);
                n_tried += 1;
                n_shortened += usize::from(here.confidence != Confidence::Fallback);
            }
        }
        (n_tried, n_shortened)
    });
    assert!(
        n_tried > 1_000 && n_shortened > 100,
        "{n_tried} {n_shortened}"
    );
}

#[test]
fn wrong_options_are_told_in_the_words_of_the_strategy() {
    let refused = with(&components(), |foreign| {
        let lines = Lines::of("a");
        let input = Input {
            command: "make",
            exit_code: Some(0),
            lines: &lines,
        };
        foreign.standard("dedup", r#"{"colour": 1}"#, &input)
    });
    let reason = refused.unwrap().unwrap_err();
    assert!(
        reason.contains("does not take its options: unknown field `colour`"),
        "{reason}"
    );
}

#[test]
fn an_unknown_strategy_is_told() {
    let refused = with(&components(), |foreign| {
        let lines = Lines::of("");
        let input = Input {
            command: "make",
            exit_code: Some(0),
            lines: &lines,
        };
        foreign.apply("mine", "{}", &input)
    });
    let reason = "no active plugin offers a strategy `mine`".to_owned();
    assert_eq!(refused, Err(reason));
}
