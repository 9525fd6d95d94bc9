//! `tools.tafc`, `tools.schema_filter`, `tools.dependencies`, `tools.adversarial_policy`: what the program works with.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::World;

const PROVIDER: &str = "[[llm.providers]]\nname = \"fast\"\ntype = \"ollama\"\nmodel = \"m\"\n";

#[test]
fn nothing_is_shaped_or_judged_by_default() {
    let config = World::new().user(PROVIDER).config();
    assert_eq!(config.shaping, crate::ShapingSettings::default());
    assert_eq!(config.judge, None);
}

#[test]
fn a_threshold_is_a_number_from_0_to_1_whatever_is_written() {
    for (written, used) in [
        ("0.3", 0.3),
        ("7", 1.0),
        ("-2.5", 0.0),
        ("nan", 0.6),
        ("inf", 0.6),
        ("-inf", 0.6),
    ] {
        let text = format!("[tools.tafc]\nenabled = true\ncomplexity_threshold = {written}\n");
        let config = World::new().user(text).config();
        assert_eq!(config.shaping.tafc_threshold, Some(used), "{written}");
    }
}

#[test]
fn a_filter_chooses_without_limit_when_its_number_is_0() {
    let config = |top_k: u32| {
        let text = format!("[tools.schema_filter]\nenabled = true\ntop_k = {top_k}\n");
        World::new().user(text).config().shaping.filter.unwrap()
    };
    assert_eq!(config(0).top_k, None);
    assert_eq!(config(3).top_k, NonZeroUsize::new(3));
    assert!(config(3).always_on.contains(&"bash".to_owned()));
}

#[test]
fn an_order_without_a_cycle_is_kept() {
    let text = "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.a]\nrequires = [\"b\", \"c\"]\n\
                [tools.dependencies.rules.b]\nrequires = [\"c\"]\nprefers = [\"a\"]\n";
    let settings = World::new()
        .user(text)
        .config()
        .shaping
        .dependencies
        .unwrap();
    assert_eq!(settings.rules["a"].requires, ["b", "c"]);
    assert_eq!(settings.rules["b"].prefers, ["a"]);
}

#[test]
fn a_long_cycle_is_told_once_where_it_begins() {
    let text = "[tools.dependencies.rules.a]\nrequires = [\"b\"]\n[tools.dependencies.rules.b]\nrequires = [\"c\"]\n\
                [tools.dependencies.rules.c]\nrequires = [\"a\"]\n[tools.dependencies.rules.d]\nrequires = [\"a\"]\n";
    let errors = World::new().user(text).errors();
    assert!(errors.contains("a needs b needs c needs a"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_judge_has_policies_of_a_file_or_the_built_in_ones() {
    let judge = |more: &str| {
        let text = format!(
            "{PROVIDER}[tools.adversarial_policy]\nprovider = \"fast\"\ntimeout_ms = 250\n{more}"
        );
        World::new().directory("home/src").user(text)
    };
    let settings = judge("").config().judge.unwrap();
    assert!(settings.policies.len() > 3 && settings.policy_file.is_none());
    assert_eq!(settings.timeout, Duration::from_millis(250));
    assert!(settings.block_on_reject && !settings.fail_open);
    let world = judge("policy_file = \"~/src/policies.txt\"\n");
    let file = world.root().join("home/src/policies.txt");
    std::fs::write(&file, "# comment\n\n  Deny this.  \nAllow that.\n").unwrap();
    let config = world.config();
    assert_eq!(
        config.judge.unwrap().policies,
        ["Deny this.", "Allow that."]
    );
    let file = file.canonicalize().unwrap();
    assert!(
        config.sandbox.protect.contains(&file),
        "no command changes it"
    );
    std::fs::write(&file, "# comment\n").unwrap();
    assert!(world.errors().contains("has no policy"));
    assert!(judge("enabled = false").config().judge.is_none());
    let without =
        World::new().user("[tools.adversarial_policy]\nenabled = true\nprovider = \"\"\n");
    assert_eq!(without.config().judge, None);
}

#[test]
fn embeddings_need_a_provider_that_has_them() {
    let embedding = |more: &str| World::new().user(format!("{PROVIDER}[agent.embedding]\n{more}"));
    assert_eq!(embedding("").config().agent.embedding, None);
    let settings = embedding("provider = \"fast\"\nmodel = \" vectors-1 \"\n");
    let settings = settings.config().agent.embedding.unwrap();
    assert_eq!(settings.model, "vectors-1");
    assert_eq!(settings.timeout, Duration::from_secs(5));
    for (more, expected) in [
        ("model = \"vectors-1\"\n", "no provider is named"),
        ("provider = \"fast\"\n", "it is empty; name the model"),
        ("provider = \"other\"\nmodel = \"m\"\n", "they are: fast"),
    ] {
        let errors = embedding(more).errors();
        assert!(errors.contains(expected), "{more}: {errors}");
    }
}

#[test]
fn a_relative_file_of_policies_is_beside_the_file_that_names_it() {
    let world = World::new().user(format!(
        "{PROVIDER}[tools.adversarial_policy]\nprovider = \"fast\"\npolicy_file = \"policies.txt\"\n"
    ));
    std::fs::write(world.repo().join("policies.txt"), "Allow everything.\n").unwrap();
    assert!(
        world.errors().contains("cannot be read"),
        "the working directory does not count"
    );
    let file = world.user_file().with_file_name("policies.txt");
    std::fs::write(&file, "Deny this.\n").unwrap();
    assert_eq!(world.config().judge.unwrap().policies, ["Deny this."]);
}

#[test]
fn strategies_that_the_operator_names_are_told_from_those_of_the_program() {
    assert!(World::new().config().compression.named.is_empty());
    let world = World::new()
        .user("[tools.compression.strategies]\ngrep = \"none\"\n")
        .set("tools.compression.strategies.mine=moderate");
    assert_eq!(world.config().compression.named, ["grep", "mine"]);
}
