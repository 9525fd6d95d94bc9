//! `[tools.filters]`: where the rules stand, and which may be used.

use crate::config::{RuleFile, RuleFileTrust};

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
    assert_eq!(file.trust, RuleFileTrust::BesideTheConfiguration);
    assert_eq!(file.read(), Ok(None), "it need not exist");
}

#[test]
fn a_file_elsewhere_needs_its_digest() {
    let digest = "ab".repeat(32);
    let elsewhere = "[tools.filters]\nfilters_path = \"~/shared.toml\"\n";
    let world = World::new().user(elsewhere);
    let file = rule_file(&world);
    assert_eq!(file.trust, RuleFileTrust::Sha256(String::new()));
    assert!(file.read().is_err(), "a named file has to exist");
    let upper = digest.to_uppercase();
    let world = World::new().user(format!("{elsewhere}trusted_sha256 = \"{upper}\"\n"));
    assert_eq!(rule_file(&world).trust, RuleFileTrust::Sha256(digest));
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
