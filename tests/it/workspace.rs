//! The workspace itself: what its manifests promise.

use std::collections::BTreeSet;
use std::process::Command;

/// Third-party crates with their version and features, as cargo would build them for this selection of packages.
fn third_party(selection: &[&str]) -> BTreeSet<String> {
    #[expect(clippy::disallowed_methods, reason = "the test asks cargo")]
    let output = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args([
            "tree",
            "--offline",
            "--prefix",
            "none",
            "--format",
            "{p} [{f}]",
        ])
        .args(selection)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listing = String::from_utf8(output.stdout).unwrap();
    listing
        .lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.contains(" (/"))
        .collect()
}

#[test]
fn one_set_of_features_for_all_builds() {
    let product = third_party(&["--package", "zeph-host", "--edges", "normal"]);
    let everything = third_party(&["--workspace", "--edges", "normal,build,dev"]);
    let twice: Vec<_> = product.difference(&everything).collect();
    assert!(
        twice.is_empty(),
        "`cargo xtask run` and `cargo xtask test` compile these with different features: {twice:#?}"
    );
}

#[test]
fn the_crate_of_the_repositorys_commands_is_light() {
    let xtask = third_party(&["--package", "xtask"]);
    assert!(xtask.len() <= 3, "`cargo xtask run` waits for {xtask:#?}");
}
