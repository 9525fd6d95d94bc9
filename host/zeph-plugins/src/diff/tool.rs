//! What is different in the tools of a plugin.

use serde::Serialize;
use serde_json::{Value, json};
use zeph_core::id::ToolName;
use zeph_core::tool::{Annotations, Tool, ToolKind};

use super::line::{DiffLine, DiffMark};
use super::schema::{self, SchemaChange};
use super::{Was, text, was};
use crate::definitions::{kind_label, promises};
use crate::server::own_name;

/// A tool that is not what it was.
#[derive(Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(super) enum ToolChange {
    /// It was not there before.
    Added { tool: Tool },
    /// It says something else about itself.
    Changed {
        name: ToolName,
        #[serde(flatten)]
        differences: Differences,
    },
    /// It is not there any more.
    Removed { tool: Tool },
}

/// How a tool differs; what is the same is omitted.
#[derive(Debug, Serialize)]
pub(super) struct Differences {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Was<Option<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Was<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Was<ToolKind>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Was<Annotations>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<SchemaChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    output: Vec<SchemaChange>,
}

/// What is different, by name. Both lists are sorted by name.
pub(super) fn changes(old: &[Tool], new: &[Tool]) -> Vec<ToolChange> {
    let changed = new.iter().filter_map(|tool| match counterpart(old, tool) {
        None => Some(ToolChange::Added { tool: tool.clone() }),
        Some(before) => {
            let differences = differences(before, tool);
            let name = tool.name.clone();
            (!differences.is_empty()).then_some(ToolChange::Changed { name, differences })
        }
    });
    let is_gone = |tool: &&Tool| counterpart(new, tool).is_none();
    let gone = old.iter().filter(is_gone);
    let removed = gone.map(|tool| ToolChange::Removed { tool: tool.clone() });
    let mut changes: Vec<_> = changed.chain(removed).collect();
    changes.sort_by(|one, other| one.name().cmp(other.name()));
    changes
}

/// What `tool` is in the other list, which is sorted by name: tools of one server can have one name, but not for the server.
pub(super) fn counterpart<'a>(tools: &'a [Tool], tool: &Tool) -> Option<&'a Tool> {
    let first = tools.partition_point(|other| other.name < tool.name);
    let others = tools.get(first..).unwrap_or_default().iter();
    let mut named = others.take_while(|other| other.name == tool.name);
    named.find(|other| own_name(other) == own_name(tool))
}

/// `tools: 1 added, 2 changed`; nothing when none changed.
pub(super) fn summary(changes: &[ToolChange]) -> Option<String> {
    let count =
        |is_it: fn(&ToolChange) -> bool| changes.iter().filter(|change| is_it(change)).count();
    super::counts(
        "tools",
        &[
            (
                count(|change| matches!(change, ToolChange::Added { .. })),
                "added",
            ),
            (
                count(|change| matches!(change, ToolChange::Changed { .. })),
                "changed",
            ),
            (
                count(|change| matches!(change, ToolChange::Removed { .. })),
                "removed",
            ),
        ],
    )
}

/// Taken apart here, so that a new field cannot be forgotten. The backend is the host's word, not the author's.
fn differences(old: &Tool, new: &Tool) -> Differences {
    let Tool {
        name: _,
        title,
        description,
        parameters,
        output,
        kind,
        annotations,
        backend: _,
    } = new;
    Differences {
        title: was(old.title.clone(), title.clone()),
        description: was(old.description.clone(), description.clone()),
        kind: was(old.kind, *kind),
        annotations: was(old.annotations, *annotations),
        parameters: schema::changes(Some(old.parameters.schema()), Some(parameters.schema())),
        output: schema::changes(old.output.as_deref(), output.as_deref()),
    }
}

/// How a new tool differs from one that says nothing: all it says.
fn all_of(tool: &Tool) -> Differences {
    let schema = tool.parameters.schema();
    // Each parameter gets its own line then.
    let nothing = match schema.get("properties").is_some_and(Value::is_object) {
        true => json!({ "type": "object", "properties": {} }),
        false => json!({ "type": "object" }),
    };
    Differences {
        title: was(None, tool.title.clone()),
        description: was(String::new(), tool.description.clone()),
        kind: None,
        annotations: was(Annotations::default(), tool.annotations),
        parameters: schema::changes(Some(&nothing), Some(schema)),
        output: schema::changes(None, tool.output.as_deref()),
    }
}

impl ToolChange {
    fn name(&self) -> &ToolName {
        match self {
            Self::Added { tool } | Self::Removed { tool } => &tool.name,
            Self::Changed { name, .. } => name,
        }
    }

    pub(super) fn push_lines(&self, lines: &mut Vec<DiffLine>) {
        match self {
            Self::Added { tool } => {
                let head = format!("tool `{}` ({})", tool.name, kind_label(tool.kind));
                lines.push(DiffLine::new(DiffMark::Added, 0, head));
                all_of(tool).push_lines(lines);
            }
            Self::Changed { name, differences } => {
                lines.push(DiffLine::new(
                    DiffMark::Changed,
                    0,
                    format!("tool `{name}`"),
                ));
                differences.push_lines(lines);
            }
            Self::Removed { tool } => {
                lines.push(DiffLine::new(
                    DiffMark::Removed,
                    0,
                    format!("tool `{}`", tool.name),
                ));
            }
        }
    }
}

impl Differences {
    fn is_empty(&self) -> bool {
        let Self {
            title,
            description,
            kind,
            annotations,
            parameters,
            output,
        } = self;
        title.is_none()
            && description.is_none()
            && kind.is_none()
            && annotations.is_none()
            && parameters.is_empty()
            && output.is_empty()
    }

    fn push_lines(&self, lines: &mut Vec<DiffLine>) {
        if let Some(Was { old, new }) = &self.title {
            lines.push(DiffLine::new(DiffMark::Changed, 1, "title".to_owned()));
            let side = |title: &Option<String>| title.clone().unwrap_or_default();
            text::push_lines(lines, 2, &side(old), &side(new));
        }
        if let Some(Was { old, new }) = &self.description {
            lines.push(DiffLine::new(
                DiffMark::Changed,
                1,
                "description".to_owned(),
            ));
            text::push_lines(lines, 2, old, new);
        }
        if let Some(Was { old, new }) = self.kind.as_ref() {
            let (old, new) = (kind_label(*old), kind_label(*new));
            lines.push(DiffLine::new(
                DiffMark::Changed,
                1,
                format!("kind: {old} → {new}"),
            ));
        }
        if let Some(Was { old, new }) = self.annotations.as_ref() {
            for ((name, old), (_, new)) in promises(*old).into_iter().zip(promises(*new)) {
                let mark = if new {
                    DiffMark::Added
                } else {
                    DiffMark::Removed
                };
                if old != new {
                    lines.push(DiffLine::new(mark, 1, format!("declares `{name}`")));
                }
            }
        }
        schema::push_lines(lines, 1, ["parameter", "parameters"], &self.parameters);
        schema::push_lines(lines, 1, ["result field", "result"], &self.output);
    }
}
