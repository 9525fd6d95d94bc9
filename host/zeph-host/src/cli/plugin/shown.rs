//! How capabilities, grants and texts of plugins look: to people and in JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use zeph_core::capability::Capability;
use zeph_core::grant::Lifetime;
use zeph_store::{GrantRecord, UnreadableGrant};

use crate::cli::error::CliError;
use crate::cli::{out, time};
use crate::plugins::refusal::quoted;
use crate::plugins::set::Status;
use crate::plugins::visible::{visible, visible_json, visible_line};
use crate::run::render::{BOLD, DIM, push_styled};

/// Text for people, put together line by line. Everything that is pushed is made visible.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// A line that begins at `depth` steps.
    pub(super) fn line(&mut self, depth: usize, text: &str) -> &mut Self {
        self.indent(depth);
        self.0.push_str(&visible_line(text));
        self.end()
    }

    /// A side remark.
    pub(super) fn dim(&mut self, depth: usize, text: &str) -> &mut Self {
        self.indent(depth);
        push_styled(&mut self.0, DIM, &visible_line(text));
        self.end()
    }

    /// An empty line and a head.
    pub(super) fn head(&mut self, text: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        push_styled(&mut self.0, BOLD, &visible_line(text));
        self.end()
    }

    /// A name and what follows on its line.
    pub(super) fn name(&mut self, depth: usize, name: &str, rest: &str) -> &mut Self {
        self.indent(depth);
        push_styled(&mut self.0, BOLD, &visible_line(name));
        if !rest.is_empty() {
            push_styled(&mut self.0, DIM, &format!(" · {}", visible_line(rest)));
        }
        self.end()
    }

    /// A label and its value; nothing when there is none.
    pub(super) fn field(&mut self, label: &str, value: Option<&str>) -> &mut Self {
        let Some(value) = value else {
            return self;
        };
        push_styled(&mut self.0, DIM, &format!("{label:<12}"));
        self.0.push_str(&visible_line(value));
        self.end()
    }

    /// Several lines of a stranger.
    pub(super) fn text(&mut self, depth: usize, text: &str) -> &mut Self {
        for line in visible(text.trim()).lines() {
            self.indent(depth);
            self.0.push_str(line.trim_end());
            self.end();
        }
        self
    }

    /// What is shown already and has its colours.
    pub(super) fn push(&mut self, shown: &str) -> &mut Self {
        self.0.push_str(shown);
        self
    }

    /// Writes it to standard output.
    pub(super) fn print(&self) -> Result<(), CliError> {
        out::styled(&self.0)
    }

    /// Writes it to standard error, before a question.
    pub(super) fn print_to_stderr(&self) {
        out::stderr(&self.0);
    }

    fn indent(&mut self, depth: usize) {
        self.0.extend(std::iter::repeat_n("  ", depth));
    }

    fn end(&mut self) -> &mut Self {
        self.0.truncate(self.0.trim_end_matches(' ').len());
        self.0.push('\n');
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
