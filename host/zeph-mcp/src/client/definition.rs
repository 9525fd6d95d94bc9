//! What a server offers, as the host uses it: within bounds, and without characters that deceive.

use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool as McpTool};
use serde::Serialize;
use serde_json::{Map, Value};
use zeph_core::argument::Parameters;
use zeph_core::failure::one_line;
use zeph_core::text::plain_line;
use zeph_core::tool::Annotations;

use super::cleaning::{is_name, schema, text, title};

/// Most of what a server may offer. What is beyond is omitted, and [`Definitions::notes`] says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionLimits {
    /// Tools, prompts, resources and templates: so many of each.
    pub n_each: usize,
    /// Pages of one list.
    pub n_pages: usize,
    /// Bytes of all definitions of one list.
    pub list_bytes: usize,
    /// Bytes of one definition.
    pub definition_bytes: usize,
    /// Bytes of a description of a tool, a prompt or a resource; a longer one is cut.
    pub description_bytes: usize,
    /// Bytes of a title or a description inside a schema; a longer one is cut.
    pub schema_text_bytes: usize,
    /// Bytes of the server's instructions; longer ones are cut.
    pub instructions_bytes: usize,
}

impl Default for DefinitionLimits {
    fn default() -> Self {
        Self {
            n_each: 1_000,
            n_pages: 100,
            list_bytes: 8 << 20,
            definition_bytes: 128 * 1024,
            // What tools in use have fits, several times over.
            description_bytes: 16 * 1024,
            schema_text_bytes: 4 * 1024,
            instructions_bytes: 16 * 1024,
        }
    }
}

/// All that a server offers.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// In the order of the server; names are unique.
    pub tools: Vec<ToolDefinition>,
    /// In the order of the server; names are unique. Cleaned.
    pub prompts: Vec<Listed<Prompt>>,
    /// In the order of the server; URIs are unique. Cleaned.
    pub resources: Vec<Listed<Resource>>,
    /// In the order of the server; URI templates are unique. Cleaned.
    pub templates: Vec<Listed<ResourceTemplate>>,
    /// What was omitted or cut and why, one sentence each; a bounded number.
    pub notes: Vec<String>,
}

/// A definition in its two forms.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T> {
    /// To show and to pass on: cleaned of deceptive characters and bounded, without icons.
    pub shown: T,
    /// As the server sent it, for pins: any change of the server's is a change of this.
    pub sent: Value,
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// The server's name for it, which calls take. 1 to 256 bytes without deceptive characters.
    pub name: String,
    /// A short human title, on one line.
    pub title: Option<String>,
    /// What it does, cleaned and bounded. Empty when the server says nothing.
    pub description: String,
    /// The arguments, descriptions cleaned and bounded.
    pub parameters: Parameters,
    /// JSON Schema of the structured part of a result. Results that disagree lose that part.
    pub output: Option<Value>,
    /// What the server promises. A hint of a stranger: no decision rests on it.
    pub annotations: Annotations,
    /// The two forms of the protocol, to pass on and to pin.
    pub listed: Listed<McpTool>,
}

impl Definitions {
    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A kind of definition: how it is told from others, bounded and cleaned.
pub(super) trait Definition: Serialize + Sized {
    /// What the host keeps of it.
    type Kept;

    /// What one is called in notes.
    const NOUN: &'static str;

    /// What tells two of one server apart.
    fn identity(&self) -> &str;

    /// The cleaned definition, and how many texts were cut.
    ///
    /// Errors: why it is omitted.
    fn kept(
        self,
        sent: Value,
        limits: &DefinitionLimits,
        n_cut: &mut usize,
    ) -> Result<Self::Kept, String>;
}

impl Definition for McpTool {
    type Kept = ToolDefinition;
    const NOUN: &'static str = "tool";

    fn identity(&self) -> &str {
        &self.name
    }

    fn kept(
        mut self,
        sent: Value,
        limits: &DefinitionLimits,
        n_cut: &mut usize,
    ) -> Result<ToolDefinition, String> {
        let description = self.description.as_deref().unwrap_or_default();
        let description = text(description, limits.description_bytes, n_cut);
        let hints = self.annotations.as_ref();
        let hinted = hints.and_then(|hints| hints.title.as_deref());
        let own_title = title(self.title.as_deref().or(hinted));
        let annotations = annotations(&self);
        let input = input_schema(&self.input_schema, limits, n_cut)?;
        let parameters = Parameters::new(Value::Object(input.clone()))
            .and_then(|parameters| parameters.check().map(|()| parameters))
            .map_err(|problem| problem.to_string())?;
        // An output schema that cannot be used is worth less than the tool.
        let output = self.output_schema.as_deref().and_then(|output| {
            let clean = schema(output, limits.schema_text_bytes, n_cut).ok()?;
            let usable = Parameters::new(Value::Object(clean.clone())).ok()?;
            usable.check().ok().map(|()| clean)
        });
        self.description = (!description.is_empty()).then(|| description.clone().into());
        self.title.clone_from(&own_title);
        self.input_schema = Arc::new(input);
        self.output_schema = output.clone().map(Arc::new);
        self.icons = None;
        if let Some(hints) = &mut self.annotations {
            hints.title = title(hints.title.as_deref());
        }
        Ok(ToolDefinition {
            name: self.name.to_string(),
            title: own_title,
            description,
            parameters,
            output: output.map(Value::Object),
            annotations,
            listed: Listed { shown: self, sent },
        })
    }
}

/// The schema of the arguments. Servers forget to say that it is one of objects.
fn input_schema(
    sent: &Map<String, Value>,
    limits: &DefinitionLimits,
    n_cut: &mut usize,
) -> Result<Map<String, Value>, String> {
    let mut input = schema(sent, limits.schema_text_bytes, n_cut)?;
    input
        .entry("type")
        .or_insert_with(|| Value::String("object".to_owned()));
    Ok(input)
}

/// The defaults are those of the protocol: what a server does not promise, it does not do.
fn annotations(tool: &McpTool) -> Annotations {
    let hints = tool.annotations.as_ref();
    let hint = |pick: fn(&rmcp::model::ToolAnnotations) -> Option<bool>, default: bool| {
        hints.and_then(pick).unwrap_or(default)
    };
    let read_only = hint(|hints| hints.read_only_hint, false);
    Annotations {
        read_only,
        destructive: !read_only && hint(|hints| hints.destructive_hint, true),
        idempotent: hint(|hints| hints.idempotent_hint, false),
        open_world: hint(|hints| hints.open_world_hint, true),
    }
}

impl Definition for Prompt {
    type Kept = Listed<Self>;
    const NOUN: &'static str = "prompt";

    fn identity(&self) -> &str {
        &self.name
    }

    fn kept(
        mut self,
        sent: Value,
        limits: &DefinitionLimits,
        n_cut: &mut usize,
    ) -> Result<Listed<Self>, String> {
        self.title = title(self.title.as_deref());
        described(&mut self.description, limits, n_cut);
        self.icons = None;
        for argument in self.arguments.iter_mut().flatten() {
            if !is_name(&argument.name) {
                return Err("the name of an argument holds invisible characters".to_owned());
            }
            argument.title = title(argument.title.as_deref());
            described(&mut argument.description, limits, n_cut);
        }
        Ok(Listed { shown: self, sent })
    }
}

impl Definition for Resource {
    type Kept = Listed<Self>;
    const NOUN: &'static str = "resource";

    fn identity(&self) -> &str {
        &self.uri
    }

    fn kept(
        mut self,
        sent: Value,
        limits: &DefinitionLimits,
        n_cut: &mut usize,
    ) -> Result<Listed<Self>, String> {
        self.name = plain_line(&self.name, 256);
        self.title = title(self.title.as_deref());
        described(&mut self.description, limits, n_cut);
        self.icons = None;
        Ok(Listed { shown: self, sent })
    }
}

impl Definition for ResourceTemplate {
    type Kept = Listed<Self>;
    const NOUN: &'static str = "resource template";

    fn identity(&self) -> &str {
        &self.uri_template
    }

    fn kept(
        mut self,
        sent: Value,
        limits: &DefinitionLimits,
        n_cut: &mut usize,
    ) -> Result<Listed<Self>, String> {
        self.name = plain_line(&self.name, 256);
        self.title = title(self.title.as_deref());
        described(&mut self.description, limits, n_cut);
        self.icons = None;
        Ok(Listed { shown: self, sent })
    }
}

fn described(description: &mut Option<String>, limits: &DefinitionLimits, n_cut: &mut usize) {
    if let Some(words) = description {
        *words = text(words, limits.description_bytes, n_cut);
    }
}

/// Collects the definitions of one list.
pub(super) struct Collector<'a, D: Definition> {
    limits: &'a DefinitionLimits,
    kept: Vec<D::Kept>,
    known: std::collections::HashSet<String>,
    n_bytes: usize,
    n_beyond: usize,
    n_cut: usize,
    /// Whose texts were cut, on one line each; the first ones.
    cut: Vec<String>,
    n_cut_definitions: usize,
    notes: Vec<String>,
}

/// Most definitions that a note names.
const NAMED_MAX: usize = 5;

/// Most notes about one list, so that a server cannot fill a screen with them.
const NOTES_MAX: usize = 8;

/// Most characters of an identity: a resource's URI is the longest.
const IDENTITY_CHARS_MAX: usize = 2_048;

impl<'a, D: Definition> Collector<'a, D> {
    pub(super) fn new(limits: &'a DefinitionLimits) -> Self {
        Self {
            limits,
            kept: Vec::new(),
            known: std::collections::HashSet::new(),
            n_bytes: 0,
            n_beyond: 0,
            n_cut: 0,
            cut: Vec::new(),
            n_cut_definitions: 0,
            notes: Vec::new(),
        }
    }

    /// Whether nothing more is kept.
    pub(super) fn is_full(&self) -> bool {
        self.n_beyond > 0
    }

    /// Takes one definition, or notes why not.
    pub(super) fn take(&mut self, definition: D) {
        let sent = serde_json::to_value(&definition).unwrap_or(serde_json::Value::Null);
        let n_bytes = sent.to_string().len();
        let has_room = self.kept.len() < self.limits.n_each
            && self.n_bytes + n_bytes <= self.limits.list_bytes;
        if !has_room {
            self.n_beyond += 1;
            return;
        }
        let identity = definition.identity().to_owned();
        let n_cut = self.n_cut;
        match self.checked(definition, sent, n_bytes) {
            Ok(kept) => {
                if self.n_cut > n_cut {
                    self.note_cut(&identity);
                }
                self.n_bytes += n_bytes;
                self.known.insert(identity);
                self.kept.push(kept);
            }
            Err(why) => {
                let (noun, name) = (D::NOUN, plain_line(&identity, 64));
                self.note(format!("{noun} `{name}` is omitted: {why}"));
            }
        }
    }

    fn checked(&mut self, definition: D, sent: Value, n_bytes: usize) -> Result<D::Kept, String> {
        let identity = definition.identity();
        let max = self.limits.definition_bytes;
        let is_sound = !identity.is_empty()
            && identity.len() <= IDENTITY_CHARS_MAX
            && !identity.contains(zeph_core::text::is_deceptive);
        if !is_sound || (D::NOUN == "tool" && !is_name(identity)) {
            return Err("its name is empty, too long or holds invisible characters".to_owned());
        }
        if self.known.contains(identity) {
            return Err("there is another one of that name".to_owned());
        }
        if n_bytes > max {
            return Err(format!(
                "its definition has {n_bytes} bytes; the limit is {max}"
            ));
        }
        definition.kept(sent, self.limits, &mut self.n_cut)
    }

    fn note_cut(&mut self, identity: &str) {
        self.n_cut_definitions += 1;
        if self.cut.len() < NAMED_MAX {
            self.cut.push(format!("`{}`", plain_line(identity, 64)));
        }
    }

    pub(super) fn note(&mut self, note: String) {
        match self.notes.len() {
            0..NOTES_MAX => self.notes.push(one_line(&note, 300)),
            NOTES_MAX => self
                .notes
                .push(format!("more notes about {}s are not shown", D::NOUN)),
            _ => {}
        }
    }

    /// What was kept; the notes are added to `notes`.
    pub(super) fn finish(mut self, notes: &mut Vec<String>) -> Vec<D::Kept> {
        let noun = D::NOUN;
        if self.n_cut_definitions > 0 {
            let (max, inner_max) = (self.limits.description_bytes, self.limits.schema_text_bytes);
            let n_more = self.n_cut_definitions - self.cut.len();
            let more = match n_more {
                0 => String::new(),
                n_more => format!(" and {n_more} more"),
            };
            let note = format!(
                "{noun}s whose texts were cut: {}{more}; the limit is {max} bytes for a description and {inner_max} for one inside a schema",
                self.cut.join(", ")
            );
            self.notes.push(note);
        }
        if self.n_beyond > 0 {
            let (max, bytes) = (self.limits.n_each, self.limits.list_bytes);
            let note = format!(
                "the server offers more than {max} {noun}s or {bytes} bytes of them; the rest is omitted"
            );
            self.notes.push(note);
        }
        notes.append(&mut self.notes);
        self.kept
    }
}

#[cfg(test)]
mod tests;
