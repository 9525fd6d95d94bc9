//! Keys of providers, from where they are kept to where they are sent, and to nowhere else.

use std::fs;
use std::process::Stdio;

use serde_json::json;
use zeph_agent::ProviderKind;

use super::script::{Script, calls, says};
use crate::product::{Product, Ran};

const KEY: &str = "k-7f3a91c2e8b44d0f";

const KINDS: [(ProviderKind, &str, &str); 3] = [
    (ProviderKind::Anthropic, "ANTHROPIC_API_KEY", "x-api-key"),
    (ProviderKind::OpenAi, "OPENAI_API_KEY", "authorization"),
    (ProviderKind::Gemini, "GEMINI_API_KEY", "x-goog-api-key"),
];

#[test]
fn a_provider_that_is_named_without_any_is_told_how_to_add_one() {
    let ran = Product::new().run(&["run", "--provider", "x", "hi"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no provider `x`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("[[llm.providers]]"), "{}", ran.stderr);
}

#[test]
fn a_key_comes_from_the_store_of_secrets_or_a_variable_and_is_shown_to_nobody() {
    for (kind, usual, field) in KINDS {
        let usual_named = format!("api_key_env = \"{usual}\"");
        for (source, variable) in [
            (usual_named.as_str(), Some(usual)),
            ("api_key_env = \"MY_KEY\"", Some("MY_KEY")),
            ("api_key_secret = \"MODEL\"", None),
        ] {
            let script = Script::new([
                calls(&[("read", json!({"path": "notes"}))]),
                says(&format!("it is {KEY}")),
            ]);
            let product = product(&script, kind, source);
            product.file("notes", format!("the key {KEY}\n"));
            let ran = run(&product, variable);
            assert_eq!(ran.code, Some(0), "{kind} {source}: {}", ran.stderr);
            let requests = script.heard();
            assert_eq!(requests.len(), 2);
            for request in &requests {
                let mut headers = request.headers.iter();
                let found = headers.find(|(name, _)| name.eq_ignore_ascii_case(field));
                let (_, value) = found.unwrap();
                let value = value.strip_prefix("Bearer ").unwrap_or(value);
                assert_eq!(value, KEY, "{kind} {source}");
                assert!(!request.path.contains(KEY), "{}", request.path);
            }
            // A tool that reads it does not tell the model, and the record has it nowhere.
            assert!(!requests[1].body.contains(KEY), "{}", requests[1].body);
            let audit = product.run(&["audit", "query", "--json"]).stdout;
            assert!(audit.contains("notes") && !audit.contains(KEY), "{audit}");
        }
    }
}

#[test]
fn the_usual_key_of_a_provider_is_sent_to_no_other_address() {
    for (kind, usual, _) in KINDS {
        let script = Script::new([says("hello")]);
        let product = product(&script, kind, "");
        let ran = run(&product, Some(usual));
        assert_eq!(ran.code, Some(0), "{kind}: {}", ran.stderr);
        let requests = script.heard();
        let told = format!("{:?}", requests[0]);
        assert!(requests.len() == 1 && !told.contains(KEY), "{told}");
    }
}

/// A workspace with a provider of this kind, whose key is kept as `source` says.
fn product(script: &Script, kind: ProviderKind, source: &str) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[[llm.providers]]\nname = \"mine\"\ntype = \"{kind}\"\nmodel = \"script-1\"\nbase_url = \"{}\"\n{source}\n",
        script.base_url_of(kind)
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    product.run(&["tools"]);
    if source.contains("secret") {
        let kept = product.set_secret("MODEL", KEY);
        assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    }
    product
}

fn run(product: &Product, variable: Option<&str>) -> Ran {
    let mut command = product.command(&["run", "what is it?"]);
    if let Some(variable) = variable {
        command.env(variable, KEY);
    }
    Ran::from(command.stdin(Stdio::null()).output().unwrap())
}
