//! `[tools.filters]`: where the rules stand, and which may be used.

use crate::{RuleFile, RuleFileTrust};

use super::World;

fn rule_file(world: &World) -> RuleFile {
    world.config().filters.rule_file.unwrap()
}

#[test]
fn rules_stand_beside_the_configuration_file() {
    let world = World::new();
    let file = rule_file(&world);
    assert_eq!(
        file.path,
        world.home().join(".config/zeph-host/filters.toml")
    );
    assert!(!file.is_named);
    assert_eq!(file.trust, RuleFileTrust::Operator);
    assert_eq!(file.read(), Ok(None), "it need not exist");
}

fn named(path: &str, more: &str) -> String {
    format!("[tools.filters]\nfilters_path = \"{path}\"\n{more}")
}

#[test]
fn a_file_that_the_operator_names_is_the_operators() {
    let world = World::new().user(named("~/shared.toml", ""));
    let file = rule_file(&world);
    assert_eq!(file.trust, RuleFileTrust::Operator);
    assert!(file.read().is_err(), "a named file has to exist");
    for name in ["/srv/shared.toml", "~/../shared.toml"] {
        let world = World::new().user(named(name, ""));
        assert_eq!(rule_file(&world).trust, RuleFileTrust::Operator, "{name}");
    }
    let typed = World::new().set("tools.filters.filters_path=./mine.toml");
    assert_eq!(rule_file(&typed).trust, RuleFileTrust::Operator);
}

/// Such a path names another file in every repository.
#[test]
fn a_file_below_the_working_directory_needs_its_digest() {
    let nothing = RuleFileTrust::Sha256(String::new());
    for name in ["rules.toml", "./rules.toml", "../rules.toml"] {
        let world = World::new().user(named(name, ""));
        assert_eq!(rule_file(&world).trust, nothing, "{name}");
        let world = World::new().env("ZEPH_TOOLS_FILTERS_FILTERS_PATH", name);
        assert_eq!(rule_file(&world).trust, nothing, "{name}");
    }
    let project = World::new().project(named("/srv/shared.toml", ""));
    assert!(project.errors().contains("a project file may not set this"));
}

#[test]
fn a_digest_that_was_given_counts() {
    let digest = "ab".repeat(32);
    let upper = format!("trusted_sha256 = \"{}\"\n", digest.to_uppercase());
    for name in ["~/shared.toml", "./rules.toml"] {
        let world = World::new().user(named(name, &upper));
        let trust = rule_file(&world).trust;
        assert_eq!(trust, RuleFileTrust::Sha256(digest.clone()), "{name}");
    }
}

#[test]
fn tools_do_not_reach_the_rules() {
    let world = World::new().user("[tools.filters]\nfilters_path = \"./rules/filters.toml\"\n");
    let config = world.config();
    let path = world.repo().join("rules/filters.toml");
    assert!(config.sandbox.hide.contains(&path));
    let glob = format!("{}*", path.display());
    assert!(config.file.deny_read.contains(&glob));
}
