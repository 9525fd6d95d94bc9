//! What the guide of the host says of the repository is true: its crates and its commands. `workspace` looks at `ARCHITECTURE.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::product::Product;

const GUIDE: &str = include_str!("../../host/README.md");

fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.parent().unwrap().to_path_buf()
}

/// The rows of the table below a heading, cell by cell.
fn rows<'t>(text: &'t str, heading: &str) -> Vec<Vec<&'t str>> {
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with("## "));
    let rows = lines.filter_map(|line| line.strip_prefix("| "));
    let cells = |row: &'t str| row.trim_end_matches(" |").split(" | ").collect();
    let rows: Vec<Vec<&str>> = rows.map(cells).skip(1).collect();
    assert!(!rows.is_empty(), "{heading}");
    rows
}

/// What stands between backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_crates_of_the_guide_are_those_of_the_repository() {
    let folders = std::fs::read_dir(root().join("host")).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let crates = folders.filter(|folder| folder.join("Cargo.toml").exists());
    let crates: BTreeSet<String> = crates
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let rows = rows(GUIDE, "Crates");
    let described = rows.iter().flat_map(|row| names(row[0]));
    let described: BTreeSet<String> = described.map(str::to_owned).collect();
    assert_eq!(described, crates);
}

#[test]
fn the_guide_names_every_command() {
    let help = Product::new().run(&["--help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let commands: Vec<&str> = commands
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(commands.len() > 10, "{help}");
    for name in commands {
        assert!(GUIDE.contains(&format!("`zeph-host {name}")), "{name}");
    }
}
