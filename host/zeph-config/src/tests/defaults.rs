//! The built-in layer, the schema and the table of project rules agree on the keys.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::environment::variable_of;
use crate::file::DEFAULTS;
use crate::keys::Keys;
use crate::{StoreLocation, project, schema};
use zeph_core::capability::FsRights;

use super::World;

#[test]
fn without_any_file_the_working_directory_is_granted() {
    let world = World::new();
    let config = world.config();
    assert!(config.tools_enabled);
    let roots = &config.file.roots;
    assert_eq!(roots.len(), 1);
    assert_eq!(roots[0].path, world.repo());
    assert_eq!(roots[0].rights, FsRights::ALL);
    assert_eq!(config.limits.wall_clock, Duration::from_secs(30));
    assert_eq!(config.limits.memory_bytes, 256 * 1024 * 1024);
    assert_eq!(config.overflow.threshold_chars, 50_000);
    assert_eq!(
        config.overflow.retention,
        Duration::from_secs(7 * 24 * 60 * 60)
    );
    assert_eq!(config.overflow.max_bytes, 10 * 1024 * 1024);
    assert_eq!(config.run.jobs.get(), 4, "one for each processor");
    assert_eq!(config.engine.guest_threads.get(), 16);
}

#[test]
fn files_of_the_host_have_their_usual_places() {
    let world = World::new();
    let config = world.config();
    let home = world.home();
    assert_eq!(
        config.store,
        StoreLocation::File(home.join(".local/share/zeph-host/zeph.db"))
    );
    assert_eq!(
        config.audit.file,
        Some(home.join(".local/state/zeph-host/audit.jsonl"))
    );
    assert_eq!(config.engine.cache_dir, Some(home.join(".cache/zeph-host")));
}

#[test]
fn the_guest_limit_is_reached_before_the_clock() {
    let config = World::new().config();
    assert!(config.limits.cpu < config.limits.wall_clock);
    assert!(config.limits.output_bytes > config.overflow.max_bytes);
}

#[test]
fn every_key_has_a_default_a_rule_and_a_variable_of_its_own() {
    let known = Keys::known();
    let keys: BTreeSet<String> = known.leaves.keys().cloned().collect();
    let mut to_rule = keys.clone();
    // What a plugin or a tool has by default is no key of its own.
    let is_of_map = |key: &String| {
        let mut maps = known.maps.keys();
        maps.any(|map| key.starts_with(&format!("{map}.")))
    };
    let world = World::new();
    let loaded = world.load().unwrap();
    let defaults: BTreeSet<String> = loaded
        .origins
        .into_iter()
        .map(|setting| setting.key)
        .filter(|key| !is_of_map(key))
        .collect();
    to_rule.extend(known.maps.into_keys());
    let ruled: Vec<String> = project::RULES
        .iter()
        .map(|(key, _)| (*key).to_owned())
        .collect();
    let variables: BTreeSet<String> = keys.iter().map(|key| variable_of(key)).collect();
    assert_eq!(defaults, keys, "config/default.toml has every key");
    assert_eq!(ruled.len(), to_rule.len(), "one rule for each key");
    assert_eq!(BTreeSet::from_iter(ruled), to_rule, "RULES has every key");
    assert_eq!(variables.len(), keys.len(), "no two keys share a variable");
}

#[test]
fn every_default_has_its_reason_beside_it() {
    let mut commented = false;
    for line in DEFAULTS.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(commented, "no comment above: {line}");
        }
        commented = line.starts_with('#');
    }
}

#[test]
fn the_guide_says_what_a_project_file_may_do_with_every_key() {
    let guide = include_str!("../../../../config/README.md");
    for (key, _) in project::RULES {
        assert!(
            guide.contains(&format!("`{key}`")),
            "config/README.md does not mention `{key}`"
        );
    }
}

#[test]
fn the_published_schema_is_the_one_of_this_version() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/schema.json");
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    #[expect(
        clippy::disallowed_methods,
        reason = "asks the person who runs the tests"
    )]
    if std::env::var_os("ZEPH_BLESS").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        published == current,
        "config/schema.json is out of date; run the tests once with ZEPH_BLESS=1 to write it anew"
    );
}

#[test]
fn the_schema_tells_editors_type_range_default_and_meaning() {
    let schema = schema();
    let leaf = &schema["properties"]["limits"]["properties"]["wall_clock_secs"];
    assert_eq!(leaf["type"], "integer");
    assert_eq!(leaf["minimum"], 1);
    assert_eq!(leaf["maximum"], 86_400);
    assert_eq!(leaf["default"], 30);
    assert!(leaf["description"].as_str().unwrap().contains("Seconds"));
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema.get("required").is_none());
}
