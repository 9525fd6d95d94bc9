//! The table of the README, and what it is compared with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::left_out::leave_out;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/README.md");
const BEGIN: &str = "<!-- escapes: begin -->\n";
const END: &str = "<!-- escapes: end -->\n";

/// The wrapper that is tried besides ours, as its registry names it.
const SRT: &str = "@anthropic-ai/sandbox-runtime";

/// What becomes of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Succeeds,
    Stopped,
}

/// What becomes of all attacks in one way to run the server.
pub(super) struct Column {
    pub(super) title: String,
    pub(super) cells: Vec<Cell>,
}

/// The first column is without a sandbox, the second ours.
pub(super) struct Table {
    pub(super) rows: Vec<&'static str>,
    pub(super) columns: Vec<Column>,
}

impl Table {
    /// Fails unless the README has this table. It may have columns that were not tried now, and rows that were not possible here.
    #[track_caller]
    #[expect(
        clippy::disallowed_methods,
        reason = "asks the person who runs the tests"
    )]
    pub(super) fn compare(&self) {
        let readme = fs::read_to_string(README).unwrap();
        let (before, rest) = readme.split_once(BEGIN).unwrap();
        let (table, after) = rest.split_once(END).unwrap();
        if std::env::var_os("ZEPH_BLESS").is_some() {
            fs::write(
                README,
                format!("{before}{BEGIN}{}{END}{after}", self.text()),
            )
            .unwrap();
            return;
        }
        let published: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            published.len(),
            self.rows.len(),
            "ZEPH_BLESS=1 writes the table anew"
        );
        let [bare, ours, ..] = self.columns.as_slice() else {
            panic!("there are two columns at least")
        };
        for (n, row) in published.iter().enumerate() {
            let expected = format!("| {} | succeeds | {} |", self.rows[n], word(ours.cells[n]));
            let is_possible = bare.cells[n] == Cell::Succeeds;
            assert!(
                !is_possible || row.starts_with(&expected),
                "the README says {row}, and it is {expected}"
            );
        }
    }

    fn text(&self) -> String {
        let titles = self
            .columns
            .iter()
            .map(|column| format!(" {} |", column.title));
        let mut text = format!("| the server tries to |{}\n", titles.collect::<String>());
        text.push_str(&format!("|---|{}\n", "---|".repeat(self.columns.len())));
        for (n, row) in self.rows.iter().enumerate() {
            let cells = self
                .columns
                .iter()
                .map(|column| format!(" {} |", word(column.cells[n])));
            text.push_str(&format!("| {row} |{}\n", cells.collect::<String>()));
        }
        text
    }
}

fn word(cell: Cell) -> &'static str {
    match cell {
        Cell::Succeeds => "succeeds",
        Cell::Stopped => "stopped",
    }
}

/// The program of `srt` and its version, installed once below `target`.
#[expect(
    clippy::disallowed_methods,
    reason = "the registry's own client installs it"
)]
pub(super) fn srt() -> Option<(PathBuf, String)> {
    if std::env::var("ZEPH_SLOW_TESTS").is_ok_and(|value| value == "1") {
        let folder = Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/srt"));
        let program = folder.join("node_modules/.bin/srt");
        if !program.exists() {
            fs::create_dir_all(folder).unwrap();
            let mut npm = Command::new("npm");
            let installed = npm
                .args([
                    "install",
                    "--no-fund",
                    "--no-audit",
                    "--prefix",
                    folder.to_str().unwrap(),
                    SRT,
                ])
                .status();
            assert!(installed.unwrap().success(), "npm could not install {SRT}");
        }
        // It needs programs of the machine that npm does not install.
        let tried = Command::new(&program).arg("true").output().unwrap();
        if !tried.status.success() {
            let reason = String::from_utf8_lossy(&tried.stderr);
            leave_out(&format!("`srt`, which does not start: {}", reason.trim()));
            return None;
        }
        let about =
            fs::read_to_string(folder.join(format!("node_modules/{SRT}/package.json"))).unwrap();
        let about: Value = serde_json::from_str(&about).unwrap();
        return Some((program, about["version"].as_str().unwrap().to_owned()));
    }
    leave_out("other wrappers are tried when ZEPH_SLOW_TESTS=1");
    None
}
