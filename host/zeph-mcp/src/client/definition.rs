//! What a server offers, as the host uses it: within bounds, and without characters that deceive.

use std::sync::Arc;

use rmcp::model::{MetaObject, Prompt, Resource, ResourceTemplate, Tool as McpTool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zeph_core::argument::Parameters;
use zeph_core::text::plain_line;
use zeph_core::tool::Annotations;

use super::cleaning::{illustration, is_name, schema, text, title};
use super::message::TASK_KEY;
use crate::result::OVERFLOW_SCHEME;

mod collector;

pub(super) use self::collector::Collector;

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
    /// As the server sent it, but for secrets, for pins: any change of the server's is a change of this.
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
    /// Whether the server runs it as a task alone, which the host does not ask for.
    pub needs_task: bool,
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
pub(super) trait Definition: Serialize + DeserializeOwned {
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
        mut sent: Value,
        limits: &DefinitionLimits,
        n_cut: &mut usize,
    ) -> Result<ToolDefinition, String> {
        let needs_task = take_task_mark(&mut self, &mut sent);
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
        extra(&mut self.meta);
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
            needs_task,
            listed: Listed { shown: self, sent },
        })
    }
}

/// Whether the tool is marked by [`TASK_KEY`]. The mark is removed: the server did not send it.
fn take_task_mark(tool: &mut McpTool, sent: &mut Value) -> bool {
    let Some(MetaObject(meta)) = &mut tool.meta else {
        return false;
    };
    let is_marked = meta.remove(TASK_KEY).is_some();
    if is_marked && meta.is_empty() {
        tool.meta = None;
    }
    if is_marked && let Value::Object(sent) = sent {
        match sent.get_mut("_meta") {
            Some(Value::Object(meta)) if meta.len() > 1 => drop(meta.remove(TASK_KEY)),
            _ => drop(sent.remove("_meta")),
        }
    }
    is_marked
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
        extra(&mut self.meta);
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
        not_of_the_host(&self.uri)?;
        self.name = plain_line(&self.name, 256);
        self.title = title(self.title.as_deref());
        self.mime_type = title(self.mime_type.as_deref());
        described(&mut self.description, limits, n_cut);
        self.icons = None;
        extra(&mut self.meta);
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
        not_of_the_host(&self.uri_template)?;
        self.name = plain_line(&self.name, 256);
        self.title = title(self.title.as_deref());
        self.mime_type = title(self.mime_type.as_deref());
        described(&mut self.description, limits, n_cut);
        self.icons = None;
        extra(&mut self.meta);
        Ok(Listed { shown: self, sent })
    }
}

fn described(description: &mut Option<String>, limits: &DefinitionLimits, n_cut: &mut usize) {
    if let Some(words) = description {
        *words = text(words, limits.description_bytes, n_cut);
    }
}

/// What a definition carries for programs: clients show some of it.
fn extra(meta: &mut Option<MetaObject>) {
    if let Some(MetaObject(meta)) = meta {
        let mut values = Value::Object(std::mem::take(meta));
        illustration(&mut values);
        if let Value::Object(values) = values {
            *meta = values;
        }
    }
}

/// Errors: an address that is read from the host would not be read from the server.
fn not_of_the_host(uri: &str) -> Result<(), String> {
    match uri.starts_with(OVERFLOW_SCHEME) {
        true => Err(format!("`{OVERFLOW_SCHEME}` begins addresses of the host")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
