//! `zeph-host selftest`, as its user sees it.

use std::fs;

use serde_json::Value;

use crate::product::{Product, Ran};

const GUIDE: &str = include_str!("../../../host/README.md");

#[test]
fn every_wall_holds_and_nothing_is_left_whatever_the_configuration_says() {
    let product = Product::new();
    let config = product.home.join(".config/zeph-host/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "[tools\n").unwrap();
    let temporary = product.home.join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = product.command(&["selftest", "--json", "--quiet"]);
    let output = command.env("TMPDIR", &temporary).output().unwrap();
    let ran = Ran::from(output);
    let walls: Value = serde_json::from_str(&ran.stdout).unwrap();
    let walls = walls.as_array().unwrap();
    let broken: Vec<_> = walls
        .iter()
        .filter(|wall| wall["verdict"] == "broken")
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // A machine that the jail cannot be tried on is none to test on.
    for wall in walls {
        let name = wall["name"].as_str().unwrap();
        assert!(
            GUIDE.contains(&format!("`{name}`")),
            "host/README.md: {name}"
        );
        assert!(wall["verdict"] == "holds", "{wall}");
        assert!(
            wall["duration_ms"].as_f64().is_some() && wall["tried"].is_string(),
            "{wall}"
        );
    }
    assert!(walls.len() > 35, "{}", walls.len());
    for folder in [&temporary, &product.work] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }
}

#[test]
fn what_guests_write_never_reaches_standard_output() {
    let product = Product::new();
    let ran = product.run(&["selftest"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("holds  log and output"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("DOES NOT HOLD"), "{}", ran.stdout);
    for text in ["MARK-OF-THE-GUEST", "a line of a flood"] {
        assert!(!ran.stdout.contains(text), "{}", ran.stdout);
    }
    assert!(ran.stderr.contains("checks hold"), "{}", ran.stderr);
}
