//! The built-in layer, the schema and the table of project rules agree on the keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::environment::variable_of;
use crate::file::{self, LayerSource};
use crate::keys::Keys;
use crate::known;
use crate::project::Rule;
use crate::raw::RawPolicyFile;
use crate::{SCHEMA, StoreLocation};
use zeph_core::capability::FsRights;

use super::World;
use super::made::{DEFAULTS, schema, shape};

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
    assert_eq!(config.agent.retention, Duration::from_hours(24 * 90));
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
    let keys: BTreeSet<String> = known.leaves.iter().map(|key| key.name.to_owned()).collect();
    // What a plugin or a tool has by default is no key of its own.
    let is_of_map = |key: &String| {
        let mut maps = known.maps.iter();
        maps.any(|map| key.starts_with(&format!("{}.", map.name)))
    };
    let world = World::new();
    let loaded = world.load().unwrap();
    let defaults: BTreeSet<String> = loaded
        .origins
        .into_iter()
        .map(|setting| setting.key)
        .filter(|key| !is_of_map(key))
        .collect();
    let declared = known.leaves.iter().chain(known.maps);
    let unruled: Vec<_> = declared
        .filter(|key| Rule::declared(key.project) == Rule::declared(""))
        .collect();
    let variables: BTreeSet<String> = keys.iter().map(|key| variable_of(key)).collect();
    assert_eq!(defaults, keys, "config/default.toml has every key");
    assert!(unruled.is_empty(), "keys without `x-project`: {unruled:?}");
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

/// A file made from the keys is as it would be made now. `ZEPH_BLESS=1` writes it.
fn is_made_from_the_keys(name: &str, current: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../config")
        .join(name);
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    let current = current(&published);
    #[expect(
        clippy::disallowed_methods,
        reason = "asks the person who runs the tests"
    )]
    let bless = std::env::var_os("ZEPH_BLESS").is_some();
    if bless {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(
        bless || published == current,
        "config/{name} is out of date; write it anew with: ZEPH_BLESS=1 cargo xtask test -E 'package(zeph-config)'"
    );
}

#[test]
fn the_published_schema_is_the_one_of_this_version() {
    is_made_from_the_keys("schema.json", |_| {
        serde_json::to_string_pretty(&schema()).unwrap() + "\n"
    });
}

/// What the program holds was made when it was built; the loader would read the same from the file.
#[test]
fn the_built_in_layer_is_what_the_file_of_defaults_says() {
    let source = LayerSource::User("default.toml".into());
    let (read, problems) = file::parse(DEFAULTS, &source, &Keys::known());
    assert!(problems.is_empty(), "{problems:?}");
    let read = read
        .into_iter()
        .map(|said| (said.key, (said.value, said.origin.line())));
    let built_in = known::DEFAULTS
        .iter()
        .map(|said| (said.key.to_owned(), (said.value.to_value(), said.line)));
    assert_eq!(
        read.collect::<BTreeMap<_, _>>(),
        built_in.collect::<BTreeMap<_, _>>()
    );
}

#[test]
fn a_file_of_rules_takes_what_the_rules_of_a_configuration_take() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let mut rules =
        schema["properties"]["tools"]["properties"]["policy"]["properties"]["rules"].clone();
    let of_file = shape::<RawPolicyFile>()["properties"]["rules"].clone();
    for own in ["default", "description", "x-project"] {
        rules.as_object_mut().unwrap().remove(own);
    }
    let mut of_file = of_file;
    for own in ["default", "description"] {
        of_file.as_object_mut().unwrap().remove(own);
    }
    assert_eq!(rules, of_file);
}

#[test]
fn the_guide_says_what_a_project_file_may_do_with_every_key() {
    let head = "| key | a project file may |\n|---|---|\n";
    is_made_from_the_keys("README.md", |guide| {
        let (before, rest) = guide.split_once(head).expect("the guide has the table");
        let after = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
        format!("{before}{head}{}{after}", table())
    });
}

/// One row for each thing a project file may do, with its keys.
fn table() -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let keys = Keys::known();
    let mut declared: Vec<_> = keys.leaves.iter().chain(keys.maps).collect();
    declared.sort_by_key(|key| key.name);
    for key in declared {
        let told = Rule::declared(key.project).told();
        let key = format!("`{}`", key.name);
        match rows.iter_mut().find(|(known, _)| *known == told) {
            Some((_, keys)) => keys.push(key),
            None => rows.push((told, vec![key])),
        }
    }
    // What it may not change at all comes last.
    rows.sort_by_key(|(told, _)| told.starts_with("nothing"));
    let rows = rows
        .iter()
        .map(|(told, keys)| format!("| {} | {told} |\n", keys.join(", ")));
    rows.collect()
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
