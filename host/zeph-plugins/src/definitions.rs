//! The definitions of a plugin, which models and operators see, and their digest.
//!
//! The digest is one half of a pin: when it changes, what was accepted is no longer what is there. It covers what the author
//! says, not the names the host offers the tools by, which depend on the other plugins.

use serde_json::{Value, json};
use zeph_core::id::{Digest, ToolName};
use zeph_core::manifest::Want;
use zeph_core::tool::{Annotations, Tool, ToolKind};

use crate::set::{ManifestBy, VettedPlugin};

/// Most bytes of the canonical form. It is more than any model could be shown, and small enough that no plugin can fill
/// the lock file of all.
pub(crate) const DEFINITIONS_BYTES_MAX: usize = 512 * 1024;

/// Version of the canonical form, part of what is hashed.
const FORM: u32 = 1;

/// What a plugin wants, in the author's order, and its tools, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    wants: Vec<Want>,
    tools: Vec<Tool>,
}

/// Definitions that cannot be accepted. The text is for the author and the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadDefinitions {
    /// Too much text.
    #[error(
        "its tools and requests have {n_bytes} bytes of definitions; the limit is {DEFINITIONS_BYTES_MAX}"
    )]
    TooLong {
        /// Bytes of the canonical form.
        n_bytes: usize,
    },
    /// One name twice.
    #[error("it has two tools named `{0}`")]
    Duplicate(ToolName),
}

impl Definitions {
    /// Takes what a manifest wants and the tools under the plugin's own names.
    ///
    /// Errors: [`BadDefinitions`]; such a plugin cannot be pinned.
    pub(crate) fn new(wants: Vec<Want>, tools: Vec<Tool>) -> Result<Self, BadDefinitions> {
        let definitions = Self::recorded(wants, tools)?;
        let n_bytes = definitions.canonical().len();
        if n_bytes > DEFINITIONS_BYTES_MAX {
            return Err(BadDefinitions::TooLong { n_bytes });
        }
        Ok(definitions)
    }

    /// Like [`Definitions::new`] for what was accepted before: its length was looked at then, and every start reads it.
    pub(super) fn recorded(wants: Vec<Want>, mut tools: Vec<Tool>) -> Result<Self, BadDefinitions> {
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some(pair) = tools.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(BadDefinitions::Duplicate(pair[0].name.clone()));
        }
        Ok(Self { wants, tools })
    }

    /// What it wants, in the author's order.
    pub fn wants(&self) -> &[Want] {
        &self.wants
    }

    /// The tools, sorted by name.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The SHA-256 of the canonical form.
    ///
    /// Shape: `{"form":1,"tools":[…],"wants":[…]}` as JSON without spaces, the keys of every object in the order of their
    ///        bytes, tools by name, requests in the author's order, absent titles and output schemas omitted.
    pub fn digest(&self) -> Digest {
        zeph_engine::digest(self.canonical().as_bytes())
    }

    fn canonical(&self) -> String {
        let wants = serde_json::to_value(&self.wants).expect("bug: a wish is plain data");
        let tools: Vec<_> = self.tools.iter().map(canonical_tool).collect();
        canonical_json(&json!({ "form": FORM, "tools": tools, "wants": wants }))
    }
}

/// The SHA-256 of what a plugin's author requests: canonical JSON of the list, or of `null` where the author wrote no manifest.
///
/// Shape: `good` is as its author made it, without requests of the operator.
pub(crate) fn manifest_digest(good: &VettedPlugin) -> Digest {
    let requests = match good.manifest_by {
        ManifestBy::Nobody => Value::Null,
        ManifestBy::Author | ManifestBy::Operator => json!(good.manifest.wants),
    };
    zeph_engine::digest(canonical_json(&requests).as_bytes())
}

/// A tool as it is hashed. Taken apart here, so that a new field cannot be forgotten.
pub(crate) fn canonical_tool(tool: &Tool) -> Value {
    let Tool {
        name,
        title,
        description,
        parameters,
        output,
        kind,
        annotations,
        backend: _,
    } = tool;
    let mut value = json!({
        "name": name.as_str(),
        "description": description,
        "parameters": parameters.schema(),
        "kind": kind_label(*kind),
        "annotations": annotations,
    });
    if let Some(title) = title {
        value["title"] = json!(title);
    }
    if let Some(output) = output {
        value["output"] = Value::clone(output);
    }
    value
}

/// What a tool promises and what it does not, by name.
pub(super) fn promises(annotations: Annotations) -> [(&'static str, bool); 4] {
    let Annotations {
        read_only,
        destructive,
        idempotent,
        open_world,
    } = annotations;
    [
        ("read_only", read_only),
        ("destructive", destructive),
        ("idempotent", idempotent),
        ("open_world", open_world),
    ]
}

/// The name of a kind, as in JSON.
pub(super) fn kind_label(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Fetch => "fetch",
        ToolKind::Think => "think",
        ToolKind::Other => "other",
    }
}

/// JSON without spaces whose text depends on the value alone: the keys of every object in the order of their bytes.
pub(super) fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    push_canonical(&mut text, value);
    text
}

fn push_canonical(text: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (idx, item) in items.iter().enumerate() {
                push_comma(text, idx);
                push_canonical(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_bytes());
            text.push('{');
            for (idx, (key, member)) in members.into_iter().enumerate() {
                push_comma(text, idx);
                push_canonical(text, &Value::String(key.clone()));
                text.push(':');
                push_canonical(text, member);
            }
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

fn push_comma(text: &mut String, idx: usize) {
    if idx > 0 {
        text.push(',');
    }
}

#[cfg(test)]
pub(super) mod tests;
