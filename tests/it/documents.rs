//! What the guide of the host says of the repository is true: its crates and its commands. `workspace` looks at `ARCHITECTURE.md`.
//! What the comments in the sources say is complete: how each function can fail.

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
fn the_configurations_of_the_guide_load() {
    let product = Product::new();
    let blocks = GUIDE.split("```toml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").unwrap().0);
    let mut n_blocks = 0;
    for block in blocks {
        let file = product.home.join("guide.toml");
        std::fs::write(&file, block).unwrap();
        let ran = product.run(&["--config", file.to_str().unwrap(), "config", "check"]);
        assert_eq!(ran.code, Some(0), "{block}\n{}", ran.stderr);
        n_blocks += 1;
    }
    assert!(n_blocks >= 3, "{n_blocks} examples");
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

/// The sources below `folder` but for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap();
        match (path.is_dir(), path.extension()) {
            _ if name == "tests" => {}
            (true, _) => sources(&path, found),
            (false, Some(ending)) if ending == "rs" => found.push(path),
            (false, _) => {}
        }
    }
}

/// Whether the function whose declaration begins at the first of `lines` returns a `Result`.
fn can_fail(lines: &[&str]) -> bool {
    let is_last = |line: &&str| line.ends_with('{') || line.ends_with(';');
    let n_lines = lines.iter().take_while(|line| !is_last(line)).count() + 1;
    let declaration = lines[..n_lines.min(lines.len())].join(" ");
    // What bounds of parameters return is another matter.
    let declaration = declaration.split(" where").next().unwrap();
    let returned = declaration
        .rsplit_once("->")
        .map_or("", |(_, returned)| returned);
    let outer = returned.split_once('<').map_or("", |(outer, _)| outer);
    outer.rsplit("::").next().unwrap().trim() == "Result"
}

#[test]
fn every_public_function_that_can_fail_says_how() {
    let mut files = Vec::new();
    for place in ["host", "plugins", "filters"] {
        for package in std::fs::read_dir(root().join(place)).unwrap() {
            let sources_of = package.unwrap().path().join("src");
            if sources_of.is_dir() {
                sources(&sources_of, &mut files);
            }
        }
    }
    assert!(files.len() > 300, "{}", files.len());
    let starts = [
        "pub fn ",
        "pub async fn ",
        "pub const fn ",
        "pub unsafe fn ",
    ];
    let mut silent = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (idx, line) in lines.iter().enumerate() {
            let is_public = starts
                .iter()
                .any(|start| line.trim_start().starts_with(start));
            let above = lines[..idx].iter().rev().map(|line| line.trim_start());
            let mut above =
                above.take_while(|line| !line.is_empty() && !line.ends_with(['{', '}']));
            if is_public
                && can_fail(&lines[idx..])
                && !above.any(|line| line.starts_with("/// Errors:"))
            {
                silent.push(format!("{}:{}", file.display(), idx + 1));
            }
        }
    }
    assert_eq!(silent, [""; 0], "`/// Errors:` is missing");
}
