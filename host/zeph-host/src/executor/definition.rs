//! A tool as data: what a model is shown of it, and what decides whether its calls ask.

use serde::Serialize;
use serde_json::Value;
use zeph_core::argument::Parameters;
use zeph_core::failure;
use zeph_core::id::ToolName;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

/// A tool that an executor offers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// `[A-Za-z0-9_-]`, at most 64 characters.
    pub name: String,
    /// A short title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does and when to use it, written for a model.
    pub description: String,
    /// JSON Schema of its arguments: an object.
    pub parameters: Value,
    /// JSON Schema of the structured part of a success, if every success has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What kind of work it does, for user interfaces.
    pub kind: ToolKind,
    /// What it promises. Of a backend the host believes it: it is part of the program.
    pub annotations: Annotations,
}

/// A definition that no host can offer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool `{tool}` cannot be offered: {problem}")]
pub struct BadDefinition {
    /// Its name, as given.
    pub tool: String,
    /// What is wrong, in one line.
    pub problem: String,
}

impl ToolDefinition {
    /// A tool that promises nothing: in a host its calls ask, until a rule allows them.
    ///
    /// Shape: `parameters` is a JSON Schema of an object. Name and schema are checked when a host is built with it.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            parameters,
            output: None,
            kind: ToolKind::Other,
            annotations: Annotations::default(),
        }
    }

    /// The same with the promise to change nothing outside the call, so that it runs without asking.
    #[must_use]
    pub fn reading_only(mut self) -> Self {
        self.annotations.read_only = true;
        self.annotations.idempotent = true;
        self
    }

    /// The same as a tool of this kind.
    #[must_use]
    pub fn of_kind(self, kind: ToolKind) -> Self {
        Self { kind, ..self }
    }

    /// The tool of the host that it describes.
    ///
    /// Errors: [`BadDefinition`] for a name or a schema that no tool may have.
    pub(crate) fn to_tool(&self) -> Result<Tool, BadDefinition> {
        let bad = |problem: String| BadDefinition {
            tool: failure::one_line(&self.name, 80),
            problem,
        };
        let name = ToolName::new(self.name.clone()).map_err(|error| bad(error.to_string()))?;
        let parameters = Parameters::new(self.parameters.clone());
        let parameters = parameters.map_err(|error| bad(failure::chain(&error, 300)))?;
        let checked = parameters.check();
        checked.map_err(|error| bad(failure::chain(&error, 300)))?;
        Ok(Tool {
            name,
            title: self.title.clone(),
            description: self.description.clone(),
            parameters,
            output: self.output.clone().map(Schema::from),
            kind: self.kind,
            annotations: self.annotations,
            backend: Backend::Builtin,
        })
    }
}

impl From<&Tool> for ToolDefinition {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.schema().clone(),
            output: tool.output.as_deref().cloned(),
            kind: tool.kind,
            annotations: tool.annotations,
        }
    }
}
