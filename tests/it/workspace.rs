//! The workspace itself: what its manifests promise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The rows of the table below this heading of ARCHITECTURE.md, each as its cells.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("host/ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = |row: &str| -> Vec<String> {
        let inside = row.trim().trim_matches('|');
        inside
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    rows.skip(1).map(cells).collect()
}

/// What stands between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The folders of the workspace's crates.
fn members() -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("members = [").unwrap();
    let members = members.split(']').next().unwrap();
    members
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_crate_stands_in_the_map() {
    let map = table("Map");
    let rooms: BTreeSet<&str> = map
        .iter()
        .flat_map(|row| row[..2].iter().flat_map(|cell| quoted(cell)))
        .collect();
    let is_there = |member: &String| {
        let guests = member.starts_with("tests/guests/");
        guests || rooms.contains(member.as_str())
    };
    let missing: Vec<_> = members()
        .into_iter()
        .filter(|member| !is_there(member))
        .collect();
    assert!(
        missing.is_empty(),
        "not in the map of ARCHITECTURE.md: {missing:?}"
    );
}

#[test]
fn what_the_map_names_exists() {
    for row in table("Map") {
        assert_eq!(row.len(), 3, "{row:?}");
        let rooms: Vec<PathBuf> = quoted(&row[0]).map(|room| root().join(room)).collect();
        for room in &rooms {
            assert!(room.is_dir(), "there is no {}", room.display());
        }
        for file in quoted(&row[2]) {
            let stands = |room: &PathBuf| {
                let inside = room.join(file);
                // A module of a room that is one itself stands beside its folder.
                inside.exists()
                    || room.join("src").join(file).exists()
                    || room.with_extension("rs").ends_with(file)
            };
            assert!(rooms.iter().any(stands), "{}: there is no {file}", row[0]);
        }
    }
}

#[test]
fn where_to_add_names_what_exists() {
    let known_at = |path: &str| {
        // `<tool>` stands for what is added: its folder has to exist.
        let fixed = path.split('<').next().unwrap_or(path);
        let fixed = match fixed == path {
            true => fixed,
            false => fixed.rsplit_once('/').map_or("", |(folder, _)| folder),
        };
        [root(), root().join("host")]
            .iter()
            .any(|base| base.join(fixed).exists())
    };
    let mut n_paths = 0;
    for row in table("Where to add") {
        assert_eq!(row.len(), 3, "{row:?}");
        for path in quoted(&row[1]).filter(|text| text.contains('/')) {
            n_paths += 1;
            assert!(known_at(path), "{}: there is no `{path}`", row[0]);
        }
    }
    assert!(n_paths >= 30, "{n_paths} paths");
}

/// Which crates of the workspace a crate below `host/` names among its dependencies, tests and build scripts left aside.
fn imports(crate_name: &str) -> BTreeSet<String> {
    let manifest = root().join("host").join(crate_name).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let sections = manifest
        .split("\n[")
        .filter(|section| section.starts_with("dependencies]"));
    let lines = sections.flat_map(str::lines);
    let ours = lines
        .filter_map(|line| Some(line.split_once('.')?.0))
        .filter(|name| name.starts_with("zeph-"));
    ours.map(str::to_owned).collect()
}

#[test]
fn rooms_import_whom_they_may() {
    let allowed = BTreeMap::from([
        ("zeph-core", vec!["zeph-schema"]),
        ("zeph-schema", vec![]),
        ("zeph-jail", vec![]),
        ("zeph-config", vec!["zeph-core"]),
        ("zeph-artifact", vec!["zeph-core", "zeph-egress"]),
        ("zeph-egress", vec!["zeph-core"]),
        ("zeph-engine", vec!["zeph-core"]),
        ("zeph-store", vec!["zeph-core"]),
        ("zeph-filter", vec!["zeph-core", "zeph-strategies"]),
        ("zeph-shell", vec!["zeph-core", "zeph-jail"]),
        (
            "zeph-selftest",
            vec!["zeph-core", "zeph-egress", "zeph-engine", "zeph-shell"],
        ),
        (
            "zeph-plugins",
            vec![
                "zeph-bundle",
                "zeph-config",
                "zeph-core",
                "zeph-engine",
                "zeph-store",
            ],
        ),
    ]);
    for (crate_name, allowed) in allowed {
        let found = imports(crate_name);
        let more: Vec<_> = found
            .iter()
            .filter(|name| !allowed.contains(&name.as_str()))
            .collect();
        assert!(
            more.is_empty(),
            "`{crate_name}` imports {more:?}, which ARCHITECTURE.md does not allow"
        );
    }
}

/// Lines of the longest function of the line: it is to be read at a glance.
const LINE_FN_LINES_MAX: usize = 60;

#[test]
fn the_functions_of_the_line_are_short() {
    let line = root().join("host/zeph-host/src/pipeline");
    let parts = std::fs::read_dir(&line).unwrap().flatten();
    let parts = parts.map(|part| part.path()).filter(|path| path.is_file());
    let files = parts.chain([line.with_extension("rs")]);
    let mut n_functions = 0;
    for file in files.filter(|path| !path.ends_with("tests.rs")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let inner = line.trim_start();
            let is_fn = inner.starts_with("fn ")
                || inner.starts_with("async fn ")
                || (inner.starts_with("pub") && inner.contains(" fn "));
            if !is_fn {
                continue;
            }
            // Formatted code: the function ends with the first brace that stands below its first letter.
            let end = format!("{}}}", &line[..line.len() - inner.len()]);
            let n_lines = lines[at..].iter().position(|line| *line == end);
            let n_lines = n_lines.unwrap_or_else(|| panic!("no end: {inner}")) + 1;
            assert!(
                n_lines <= LINE_FN_LINES_MAX,
                "{}: {n_lines} lines: {inner}",
                file.display()
            );
            n_functions += 1;
        }
    }
    assert!(n_functions > 20, "{n_functions} functions were found");
}
