//! A tool: what a model is told about it, and the function that runs it.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Annotations, Context, Kind, Outcome, ToolDefinition, ToolError};
use crate::{input_schema, output_schema};

type Run = Box<dyn Fn(&str, &Context) -> Result<Outcome, ToolError>>;

/// One row of a plugin's table.
pub struct Tool {
    name: &'static str,
    title: Option<&'static str>,
    description: &'static str,
    kind: Kind,
    annotations: Annotations,
    /// Called for `list-tools` only: a call does not pay for schemas.
    parameters: fn() -> Value,
    output: Option<fn() -> Value>,
    run: Run,
}

impl Tool {
    /// A tool named `name` (1 to 48 of `a-z 0-9 _ -`), run by `run` over arguments of type `A`.
    ///
    /// Until [`read_only`](Self::read_only) or [`annotations`](Self::annotations) say otherwise it promises nothing:
    /// it may change and destroy things anywhere.
    pub fn new<A, R>(
        name: &'static str,
        run: impl Fn(A, &Context) -> Result<R, ToolError> + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Into<Outcome>,
    {
        Self {
            name,
            title: None,
            description: "",
            kind: Kind::Other,
            annotations: Annotations {
                read_only: false,
                destructive: true,
                idempotent: false,
                open_world: true,
            },
            parameters: input_schema::<A>,
            output: None,
            run: Box::new(move |arguments, context| {
                let arguments = serde_json::from_str(arguments)
                    .map_err(|error| ToolError::invalid_parameters(error.to_string()))?;
                run(arguments, context).map(Into::into)
            }),
        }
    }

    /// A short title for people.
    pub fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// What it does and when to use it, written for a model.
    pub fn describe(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// What kind of work it does, for user interfaces.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// What it promises about its calls.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Promises that a call changes nothing outside itself and stays within the granted directories.
    pub fn read_only(self) -> Self {
        self.annotations(Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        })
    }

    /// Promises that the structured part of every success is a `T`.
    pub fn returns<T: JsonSchema>(mut self) -> Self {
        self.output = Some(output_schema::<T>);
        self
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.to_owned(),
            title: self.title.map(str::to_owned),
            description: self.description.to_owned(),
            parameters: (self.parameters)().to_string(),
            output: self.output.map(|schema| schema().to_string()),
            kind: self.kind,
            annotations: self.annotations,
        }
    }
}

/// The definitions of `tools`, in their order.
pub fn list(tools: &[Tool]) -> Vec<ToolDefinition> {
    tools.iter().map(Tool::definition).collect()
}

/// Runs the tool named `name`.
///
/// Errors: `invalid_parameters` when `arguments` does not fit; `permanent_failure` when there is no such tool;
///         else what the tool says.
pub fn call(
    tools: &[Tool],
    name: &str,
    arguments: &str,
    context: &Context,
) -> Result<Outcome, ToolError> {
    match tools.iter().find(|tool| tool.name == name) {
        Some(tool) => (tool.run)(arguments, context),
        None => Err(ToolError::permanent(format!(
            "this plugin has no tool `{name}`"
        ))),
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("annotations", &self.annotations)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
