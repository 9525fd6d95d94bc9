//! `zeph-host selftest`, as its user sees it.

use crate::product::Product;

const GUIDE: &str = include_str!("../../../host/README.md");

#[test]
fn every_wall_holds_on_this_machine() {
    let product = Product::new();
    let ran = product.run(&["selftest", "--json"]);
    let walls: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
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
    assert!(ran.stderr.contains("walls hold"), "{}", ran.stderr);
}

#[test]
fn it_leaves_nothing_behind_and_asks_no_configuration() {
    let product = Product::new();
    let config = product.home.join(".config/zeph-host/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[tools\n").unwrap();
    let temporary = product.home.join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = product
        .command(&["selftest", "--json", "--quiet"])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(&product.work).unwrap().count(), 0);
}
