//! How capabilities, grants and texts of plugins look: to people and in JSON.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use clap::builder::styling::Style;
use serde_json::{Map, Value, json};
use zeph_core::capability::Capability;
use zeph_core::grant::Lifetime;
use zeph_store::{GrantRecord, UnreadableGrant};

use crate::cli::error::CliError;
use crate::cli::{out, time};
use crate::plugins::diff::{Line, Mark};
use crate::plugins::refusal::quoted;
use crate::plugins::set::Status;
use crate::plugins::visible::{visible, visible_json, visible_line};
use crate::run::render::{BOLD, DIM, push_styled};

/// Text for people, put together line by line. Everything that is pushed is made visible, and wrapped here: a terminal would go on
/// at its left edge, where a text made for it could pass for a line of ours.
#[derive(Debug)]
pub(super) struct Page {
    shown: String,
    /// Columns of a line.
    width: usize,
}

impl Page {
    /// For standard output.
    pub(super) fn new() -> Self {
        Self::of_width(out::width())
    }

    /// For standard error, before a question.
    pub(super) fn for_stderr() -> Self {
        Self::of_width(out::width_of(io::stderr()))
    }

    fn of_width(width: Option<usize>) -> Self {
        Self {
            shown: String::new(),
            width: width.unwrap_or(usize::MAX),
        }
    }

    /// A line that begins at `depth` steps.
    pub(super) fn line(&mut self, depth: usize, text: &str) -> &mut Self {
        self.wrap(depth, Style::new(), &visible_line(text))
    }

    /// A side remark.
    pub(super) fn dim(&mut self, depth: usize, text: &str) -> &mut Self {
        self.wrap(depth, DIM, &visible_line(text))
    }

    /// A name to type, and what follows on its line.
    pub(super) fn name(&mut self, depth: usize, name: &str, rest: &str) -> &mut Self {
        let dot = if rest.is_empty() { "" } else { " · " };
        self.wrap(depth, BOLD, &visible_line(&format!("{name}{dot}{rest}")))
    }

    /// An empty line and a head.
    pub(super) fn head(&mut self, text: &str) -> &mut Self {
        if !self.shown.is_empty() {
            self.shown.push('\n');
        }
        self.name(0, text, "")
    }

    /// A label and its value; nothing when there is none.
    pub(super) fn field(&mut self, label: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.line(0, &format!("{label:<12}{value}")),
            None => self,
        }
    }

    /// Several lines of a stranger.
    pub(super) fn text(&mut self, depth: usize, text: &str) -> &mut Self {
        for line in visible(text.trim()).lines() {
            self.wrap(depth, Style::new(), &visible_line(line));
        }
        self
    }

    /// What is shown already and has its colours.
    pub(super) fn push(&mut self, shown: &str) -> &mut Self {
        self.shown.push_str(shown);
        self
    }

    /// Writes it to standard output.
    pub(super) fn print(&self) -> Result<(), CliError> {
        out::styled(&self.shown)
    }

    /// Writes it to standard error.
    pub(super) fn print_to_stderr(&self) {
        out::stderr(&self.shown);
    }

    fn wrap(&mut self, depth: usize, style: Style, text: &str) -> &mut Self {
        let line = Line {
            mark: Mark::Plain,
            depth,
            text: text.trim_end().to_owned(),
        };
        for line in line.wrapped(self.width) {
            push_styled(&mut self.shown, style, &line);
            self.shown.push('\n');
        }
        self
    }
}

/// Prints JSON in which hidden characters of a stranger's texts can be seen.
pub(super) fn print_json(value: &Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::internal("the answer is no JSON").because(error))?;
    out::data(&(visible_json(&text) + "\n"))
}

/// How a plugin stands, in the words of the listing.
pub(super) fn status(status: &Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Loading => "loading…",
        Status::Changed => "changed: approve",
        Status::Disabled => "off",
        Status::Quarantined(_) => "quarantined",
    }
}

/// The status, and the reason when there is one, as members of an object.
pub(super) fn status_json(status: &Status) -> Map<String, Value> {
    members(json!(status))
}

/// `always`, `once`, `until 2026-12-31T23:59:59Z`.
pub(super) fn lifetime(lifetime: Lifetime) -> String {
    match lifetime {
        Lifetime::Until { at_ms } => format!("until {}", time::shown(at_ms)),
        other => other.to_string(),
    }
}

/// A grant on one line: its number, what, how long.
pub(super) fn grant(grant: &GrantRecord) -> String {
    format!(
        "{}: {} ({})",
        grant.id,
        grant.capability,
        lifetime(grant.lifetime)
    )
}

/// `{"id", "kind", …, "lifetime", "granted_at"}`, with `until` or `conversation` where the lifetime has one.
pub(super) fn grant_json(grant: &GrantRecord) -> Value {
    let mut members = members(json!(grant.capability));
    members.insert("id".to_owned(), json!(grant.id));
    let (label, detail) = match grant.lifetime {
        Lifetime::Once => ("once", None),
        Lifetime::Always => ("always", None),
        Lifetime::Session { conversation } => {
            ("session", Some(("conversation", json!(conversation))))
        }
        Lifetime::Until { at_ms } => ("until", Some(("until", json!(time::shown(at_ms))))),
    };
    members.insert("lifetime".to_owned(), json!(label));
    members.extend(detail.map(|(key, value)| (key.to_owned(), value)));
    members.insert(
        "granted_at".to_owned(),
        json!(time::shown(grant.granted_at_ms)),
    );
    Value::Object(members)
}

/// `{"id", "problem"}`
pub(super) fn unreadable_json(row: &UnreadableGrant) -> Value {
    json!({ "id": row.id, "problem": row.problem })
}

/// Functions that are no tools: `[{"name", "reason"}]`
pub(super) fn skipped_json(skipped: &[(String, String)]) -> Value {
    let skipped = skipped.iter();
    skipped
        .map(|(name, reason)| json!({ "name": name, "reason": reason }))
        .collect()
}

/// The members of an object.
pub(super) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Capabilities in one line of text.
pub(super) fn capabilities(capabilities: &[Capability]) -> String {
    let texts: Vec<String> = capabilities.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// A path as a word for a shell.
pub(super) fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// `14.0 KiB`
pub(super) fn size(n_bytes: u64) -> String {
    const UNITS: [&str; 3] = ["KiB", "MiB", "GiB"];
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let mut size = n_bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let mut shown = String::new();
    write!(shown, "{size:.1} {}", UNITS[unit]).expect("bug: writing to a string cannot fail");
    shown
}
