//! Filter strategies of plugins: dropped into the folder, pinned, listed, named by a rule, bounded; and the templates for authors.

mod alone;
mod guests;
mod hostile;

use std::fs;
use std::time::Duration;

use serde_json::Value;
use zeph_core::id::PluginId;
use zeph_core::limit::CallLimits;
use zeph_engine::{
    ComponentBytes, ComponentKind, Engine, EngineOptions, FILTER_LIMITS, FilterAnswer,
    FilterConfidence, FilterFailure, FilterInput, FilterPiece, FilterSession, Plugin, inspect,
};

use self::guests::{NOISE, with_rules};
use crate::filters::fed;
use crate::product::Product;
use crate::running::Running;
use crate::toolchain::{FILTERS, built, name, tested};

/// A component of strategies that nobody knows: the program's own, from a stranger's hand.
fn stranger() -> Vec<u8> {
    zeph_bundle::standard()
}

fn json(product: &Product, words: &[&str]) -> Value {
    let ran = product.plugin(words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_component_of_strategies_is_a_plugin_without_tools() {
    let product = Product::new();
    product.drop_in("mine", &stranger());
    let listed = json(&product, &["list", "--json"]);
    let mine = &listed[0];
    assert_eq!(mine["status"], "active", "{mine}");
    assert_eq!(mine["tools"], Value::Array(Vec::new()));
    let names: Vec<&str> = mine["strategies"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(names.len(), 9);
    assert!(names.contains(&"mine/dedup"), "{names:?}");
    // Known from now on, without being run again.
    assert_eq!(json(&product, &["list", "--json"]), listed);
    let table = product.plugin(&["list"]).stdout;
    assert!(table.contains("wasm:mine/dedup"), "{table}");
    let page = product.plugin(&["info", "mine"]).stdout;
    assert!(
        page.contains("filter strategies (zeph:filter 0.1.0)"),
        "{page}"
    );
    let lock = fs::read_to_string(product.plugins().parent().unwrap().join("zeph.lock")).unwrap();
    assert!(lock.contains("mine"), "{lock}");
}

/// Whatever else is installed, switched off or taken away: `wasm:PLUGIN/STRATEGY` is this strategy or none.
#[test]
fn a_strategy_named_with_its_plugin_is_that_one() {
    let product = Product::new();
    product.drop_in("first", &stranger());
    product.plugin(&["list"]);
    product.drop_in("a_second", &stranger());
    let listed = json(&product, &["list", "--json"]);
    for name in ["first/dedup", "a_second/dedup"] {
        assert!(
            listed.to_string().contains(&format!("\"{name}\"")),
            "{listed}"
        );
    }
    let why = |strategy: &str| {
        let rule = format!(
            "[[rules]]\nname = \"mine\"\nmatch = {{ exact = \"sh x.sh\" }}\nstrategy = {{ type = \"wasm:{strategy}\" }}\n"
        );
        with_rules(&product, &rule);
        let verified = product.run(&["filters", "verify"]);
        let told = product.run(&["filters", "why", "--", "sh x.sh"]).stdout;
        assert_eq!(
            verified.code == Some(0),
            told.contains("rule `mine` acts"),
            "{told}"
        );
        assert_eq!(told.matches("rule `mine`").count(), 1, "{told}");
        told
    };
    assert!(why("first/dedup").contains("rule `mine` acts"));
    let told = why("dedup");
    assert!(
        told.contains("rule `mine` cannot act: several plugins have a strategy `dedup`")
            && told.contains("`wasm:first/dedup`"),
        "{told}"
    );
    product.plugin(&["disable", "first"]);
    let told = why("first/dedup");
    assert!(told.contains("`zeph-host plugin enable first`"), "{told}");
    assert!(why("dedup").contains("several plugins"));
    assert!(why("a_second/dedup").contains("rule `mine` acts"));
}

/// A rule that cannot work fails the checks of its file without any test in it, and leaves its commands to the built-in rules.
#[test]
fn a_rule_that_cannot_work_is_as_good_as_absent() {
    let product = Product::new();
    product.drop_in("mine", &stranger());
    product.plugin(&["list"]);
    let log = "test a_rather_long_name_of_a_test ... ok\n".repeat(50)
        + "\ntest result: ok. 50 passed; 0 failed\n";
    for (name, strategy) in [
        ("mine", "{ type = \"wasm:nobodys/none\" }"),
        ("cargo-test", "{ type = \"wasm:nobodys/none\" }"),
        ("mine", "{ type = \"wasm:mine/dedup\", colour = 1 }"),
    ] {
        let rule = format!(
            "[[rules]]\nname = \"{name}\"\nmatch = {{ prefix = \"cargo test\" }}\nstrategy = {strategy}\n"
        );
        product.file("rules.toml", &rule);
        with_rules(&product, &rule);
        for words in [
            vec!["filters", "verify"],
            vec!["filters", "test", "rules.toml"],
        ] {
            let ran = product.run(&words);
            assert_eq!(ran.code, Some(1), "{name} {strategy}: {}", ran.stdout);
            assert!(
                ran.stdout.contains(&format!("rule `{name}` is not used: ")),
                "{}",
                ran.stdout
            );
        }
        let ran = fed(
            &product,
            &["filter", "--as", "cargo test", "--exit-code", "0"],
            &log,
        );
        assert!(
            ran.stdout.len() < 300,
            "{name} {strategy}: {} {}",
            ran.stdout,
            ran.stderr
        );
        assert!(
            ran.stderr.contains(&format!("rule `{name}`: ")),
            "{}",
            ran.stderr
        );
    }
}

/// A script whose output the rule of `strategy` is for, run by the tool `bash`; the answer's text, and what is noted.
fn noise(product: &Product, strategy: &str) -> String {
    let rule = format!(
        "[[rules]]\nname = \"mine\"\nmatch = {{ exact = \"sh noise.sh\" }}\nstrategy = {strategy}\n"
    );
    with_rules(product, &rule);
    product.file("noise.sh", NOISE);
    let mut host = Running::start(product, &["--allow", "*"]);
    host.ready();
    let answer = host.call("bash", &serde_json::json!({"command": "sh noise.sh"}));
    format!("{}\n{}", answer["text"].as_str().unwrap(), answer["notes"])
}

#[test]
fn a_rule_puts_a_strategy_of_a_plugin_to_work() {
    let product = Product::new();
    product.drop_in("mine", &stranger());
    // Known, it is active from the first call on.
    product.plugin(&["list"]);
    let strategy = "{ type = \"wasm:strip_noise\", patterns = [\"^compiling\"] }";
    let text = noise(&product, strategy);
    assert!(text.contains("[zeph] 300 lines omitted"), "{text}");
    assert!(!text.contains("compiling part 150"), "{text}");
    assert!(text.contains("error: it broke"), "{text}");
    assert!(text.contains("lines -> "), "{text}");
}

#[test]
fn a_strategy_that_is_not_there_changes_nothing_but_a_note() {
    let product = Product::new();
    let text = noise(&product, "{ type = \"wasm:nobodys\" }");
    assert!(text.contains("compiling part 150"), "{text}");
    assert!(
        text.contains("no active plugin offers a strategy `nobodys`"),
        "{text}"
    );
}

/// What a template's strategy answers, as a host asks it.
struct Templates {
    engine: Engine,
    plugin: Plugin,
}

impl Templates {
    async fn load(language: &str, component: &ComponentBytes) -> Self {
        let engine = Engine::new(&EngineOptions {
            guest_threads: 1,
            pooled: true,
            cache_dir: Some(std::env::temp_dir().join("zeph-host-tests")),
            on_compile: None,
        })
        .unwrap();
        let id = PluginId(name(language));
        let limits = CallLimits {
            wall_clock: Duration::from_secs(60),
            cpu: Duration::from_secs(60),
            ..FILTER_LIMITS
        };
        let plugin = Plugin::load(&engine, id, component.clone(), limits).await;
        Self {
            plugin: plugin.unwrap(),
            engine,
        }
    }

    async fn apply(&self, options: &str, text: &str) -> Result<FilterAnswer, FilterFailure> {
        let plugin = self.plugin.clone();
        let mut session = FilterSession::new(&self.engine);
        let (options, text) = (options.to_owned(), text.to_owned());
        let work = move || {
            let input = FilterInput {
                command: "make",
                exit_code: Some(0),
                text: &text,
            };
            let first = session.apply(&plugin, "leave_out", &options, &input);
            let second = session.apply(&plugin, "leave_out", &options, &input);
            assert_eq!(first, second, "warm and cold answer alike");
            first
        };
        self.engine.on_guest_thread(work).await.unwrap()
    }
}

async fn check(language: &str) {
    let Some(path) = built(language) else { return };
    let component = ComponentBytes::read(&path).unwrap();
    let inspection = inspect(&component).unwrap();
    assert!(inspection.is_usable(), "{:?}", inspection.problems);
    let version = "0.1.0".to_owned();
    assert_eq!(inspection.kind, ComponentKind::FilterPlugin { version });
    let metadata = &inspection.metadata;
    assert_eq!(metadata.version.as_deref(), Some("0.1.0"));
    let description = "Leaves out lines of command output.";
    assert_eq!(metadata.description.as_deref(), Some(description));
    assert_eq!(metadata.licenses.as_deref(), Some("MIT"));
    let template = Templates::load(language, &component).await;
    let names: Vec<_> = template
        .plugin
        .strategies()
        .iter()
        .map(|one| &one.name)
        .collect();
    assert_eq!(names, ["leave_out"]);

    let options = r#"{"begins": ["CC "]}"#;
    let text = "CC a.o\nw\u{e4}rning: x\nwarning: y\nCC b.o\ndone\n";
    let expected = FilterAnswer {
        pieces: vec![
            FilterPiece::Keep(1..3),
            FilterPiece::Keep(4..5),
            FilterPiece::Note("2 lines omitted".to_owned()),
        ],
        confidence: FilterConfidence::Full,
        told: Vec::new(),
    };
    assert_eq!(template.apply(options, text).await, Ok(expected));
    let unknown = template.apply(options, "done\n").await.unwrap();
    assert_eq!(unknown.confidence, FilterConfidence::Fallback);
    let refused = template.apply("{}", text).await.unwrap_err();
    let FilterFailure::Options(words) = &refused else {
        panic!("{refused}")
    };
    assert!(words.contains("begins"), "{words}");
}

#[tokio::test]
async fn the_template_in_rust() {
    check(FILTERS[0]).await;
}

#[tokio::test]
async fn the_template_in_javascript() {
    check(FILTERS[1]).await;
}

#[tokio::test]
async fn the_template_in_python() {
    check(FILTERS[2]).await;
}

#[test]
fn the_tests_of_the_templates_pass() {
    for language in FILTERS {
        if !tested(language) {
            return;
        }
    }
}
