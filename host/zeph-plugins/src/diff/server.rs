//! What is different between an MCP server that was accepted and what it is now.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use zeph_core::id::Digest;

use super::line::{DiffLine, DiffMark};
use super::schema::{self, SchemaChange};
use super::tool::{self, ToolChange};
use super::{Was, counts, text, warning, was};
use crate::server::{LockedServer, NamedDefinition};
use crate::visible::visible_line;

/// Everything that is different. As JSON the texts are the server's, unescaped.
#[derive(Debug, Serialize)]
pub struct ServerChanges {
    /// The digests of the definitions, when they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    definitions: Option<Was<Digest>>,
    /// What to look at twice, one sentence each.
    warnings: Vec<String>,
    /// The command line or the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    launch: Option<Was<Vec<String>>>,
    /// What is installed for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<Was<BTreeMap<String, String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Was<Option<String>>>,
    tools: Vec<ToolChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<NamedChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    templates: Vec<NamedChange>,
    /// What else the server sends with its tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<SchemaChange>,
}

/// A prompt or a resource template that is not what it was.
#[derive(Debug, Serialize)]
struct NamedChange {
    name: String,
    #[serde(skip)]
    mark: DiffMark,
    changes: Vec<SchemaChange>,
}

/// Compares what was accepted with what is there now.
///
/// Limits: about linear in the size of the definitions.
pub fn between_servers(old: &LockedServer, new: &LockedServer) -> ServerChanges {
    let (before, after) = (&old.definitions, &new.definitions);
    let mut warnings = warning::of_tools(before.tools(), after.tools());
    if before.digest() != old.digest {
        warnings.insert(0, warning::EDITED.to_owned());
    }
    ServerChanges {
        definitions: was(old.digest, new.digest),
        warnings,
        launch: was(old.launch.clone(), new.launch.clone()),
        install: was(old.install.clone(), new.install.clone()),
        instructions: was(
            before.instructions().map(str::to_owned),
            after.instructions().map(str::to_owned),
        ),
        tools: tool::changes(before.tools(), after.tools()),
        prompts: named(before.prompts(), after.prompts()),
        templates: named(before.templates(), after.templates()),
        others: schema::changes(
            Some(&Value::Object(before.others().clone())),
            Some(&Value::Object(after.others().clone())),
        ),
    }
}

fn named(old: &[NamedDefinition], new: &[NamedDefinition]) -> Vec<NamedChange> {
    let by_name = |list: &[NamedDefinition]| -> BTreeMap<String, Value> {
        let pair = |one: &NamedDefinition| (one.name.clone(), one.definition.clone());
        list.iter().map(pair).collect()
    };
    let (old, new) = (by_name(old), by_name(new));
    let added = new.keys().filter(|name| !old.contains_key(*name));
    let mut names: Vec<&String> = old.keys().chain(added).collect();
    names.sort();
    let change = |name: &&String| {
        let (before, after) = (old.get(*name), new.get(*name));
        let mark = match (before, after) {
            (None, _) => DiffMark::Added,
            (_, None) => DiffMark::Removed,
            _ => DiffMark::Changed,
        };
        (before != after).then(|| NamedChange {
            name: (*name).clone(),
            mark,
            changes: schema::changes(before, after),
        })
    };
    names.iter().filter_map(change).collect()
}

impl ServerChanges {
    /// What happened, in one line: `tools: 1 added, 2 changed; prompts: 1 removed`.
    pub fn summary(&self) -> String {
        let changed = |what: &str, is_changed: bool| is_changed.then(|| format!("{what}: changed"));
        let parts = [
            counts("warnings", &[(self.warnings.len(), "below")]),
            changed("command", self.launch.is_some()),
            changed("installed package", self.install.is_some()),
            changed("instructions", self.instructions.is_some()),
            tool::summary(&self.tools),
            summary_of("prompts", &self.prompts),
            summary_of("resource templates", &self.templates),
            changed("icons and metadata", !self.others.is_empty()),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            false => parts.join("; "),
            true => "nothing changed".to_owned(),
        }
    }

    /// The whole diff for a terminal, escaped and without colors.
    pub fn lines(&self) -> Vec<DiffLine> {
        let mut lines = vec![DiffLine::new(DiffMark::Plain, 0, self.summary())];
        let warnings = self.warnings.iter();
        lines.extend(warnings.map(|warning| DiffLine::new(DiffMark::Warning, 0, warning.clone())));
        if let Some(Was { old, new }) = &self.launch {
            push_texts(&mut lines, "command", &old.join(" "), &new.join(" "));
        }
        if let Some(Was { old, new }) = &self.install {
            push_texts(&mut lines, "installed package", &pairs(old), &pairs(new));
        }
        if let Some(Was { old, new }) = &self.instructions {
            let side = |text: &Option<String>| text.clone().unwrap_or_default();
            push_texts(&mut lines, "instructions", &side(old), &side(new));
        }
        self.tools
            .iter()
            .for_each(|change| change.push_lines(&mut lines));
        push_named(&mut lines, "prompt", &self.prompts);
        push_named(&mut lines, "resource template", &self.templates);
        schema::push_lines(&mut lines, 0, ["metadata of", "metadata"], &self.others);
        if let Some(Was { old, new }) = &self.definitions {
            push_texts(
                &mut lines,
                "definitions",
                &old.to_string(),
                &new.to_string(),
            );
        }
        lines
    }
}

fn summary_of(what: &str, changes: &[NamedChange]) -> Option<String> {
    let n = |mark| changes.iter().filter(|one| one.mark == mark).count();
    counts(
        what,
        &[
            (n(DiffMark::Added), "added"),
            (n(DiffMark::Changed), "changed"),
            (n(DiffMark::Removed), "removed"),
        ],
    )
}

fn push_texts(lines: &mut Vec<DiffLine>, what: &str, old: &str, new: &str) {
    lines.push(DiffLine::new(DiffMark::Changed, 0, what.to_owned()));
    text::push_lines(lines, 1, old, new);
}

fn push_named(lines: &mut Vec<DiffLine>, what: &str, changes: &[NamedChange]) {
    for NamedChange {
        name,
        mark,
        changes,
    } in changes
    {
        let head = format!("{what} `{}`", visible_line(name));
        lines.push(DiffLine::new(*mark, 0, head));
        if *mark != DiffMark::Removed {
            schema::push_lines(lines, 1, ["field", "definition"], changes);
        }
    }
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    let pairs = map.iter().map(|(key, value)| format!("{key}: {value}"));
    pairs.collect::<Vec<_>>().join("\n")
}
