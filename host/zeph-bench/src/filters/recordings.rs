//! The recorded outputs beside the built-in rules.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use zeph_core::command::{CommandLine, Segment, SimpleCommand, Wraps};
use zeph_filter::{BUILTIN, Output};

#[derive(Deserialize)]
struct RuleFile {
    #[serde(default)]
    tests: Vec<Case>,
}

#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) command: String,
    #[serde(default)]
    pub(super) exit_code: i32,
    input: Option<String>,
    input_file: Option<String>,
    #[serde(default)]
    pub(super) contains: Vec<String>,
}

/// One output of the corpus.
pub(super) struct Recording {
    pub(super) case: Case,
    pub(super) raw: Vec<u8>,
    line: CommandLine,
}

/// The recordings of each rule, in the order of the rules.
pub(super) fn recordings() -> Result<Vec<(String, Vec<Recording>)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for (name, text) in BUILTIN {
        let file: RuleFile = toml::from_str(text).with_context(|| format!("`{name}`"))?;
        let folder = root.join(name);
        let folder = folder.parent().unwrap_or(&root);
        let rule = Path::new(name).file_stem().unwrap_or_default();
        let mut of_rule = Vec::new();
        for case in file.tests {
            let raw = match (&case.input, &case.input_file) {
                (Some(input), _) => input.clone().into_bytes(),
                (None, Some(file)) => {
                    fs::read(folder.join(file)).with_context(|| format!("cannot read `{file}`"))?
                }
                (None, None) => continue,
            };
            let line = line_of(&case.command);
            of_rule.push(Recording { case, raw, line });
        }
        all.push((rule.to_string_lossy().into_owned(), of_rule));
    }
    Ok(all)
}

impl Recording {
    pub(super) fn output<'a>(&'a self, raw: &'a [u8]) -> Output<'a, 'a> {
        Output {
            command: Some(&self.line),
            exit_code: Some(self.case.exit_code),
            raw,
        }
    }
}

/// Commands of the cases are plain words, and what is behind a `|` changes nothing.
fn line_of(text: &str) -> CommandLine {
    let plain = text.split('|').next().unwrap_or_default();
    let mut words = plain.split_whitespace().map(str::to_owned);
    let command = SimpleCommand {
        name: words.next().unwrap_or_default(),
        arguments: words.filter(|word| word != "2>&1").collect(),
        is_literal: true,
        holes: Vec::new(),
        wraps: Wraps::Nothing,
    };
    CommandLine {
        text: text.to_owned(),
        commands: vec![command.clone()],
        last: Some(Segment {
            command,
            pipes: Vec::new(),
            is_one_of_several: false,
        }),
        ..CommandLine::default()
    }
}
