//! What the operator makes of the tools of a server: names, descriptions, which arguments models see, and what those may be.
//!
//! Pure. In: what the server offers, and a call as the model made it. Out: what models see, and the arguments as the server gets them, or
//! a refusal that names the key. Everything else (rules, pins, records) refers to the server's own names.

mod value;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use zeph_config::{ArgumentRule, ToolChoice};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};

use self::value::ValueRule;

/// Keywords of a schema that may mention arguments besides `properties` and `required`.
const CONDITIONS: [&str; 11] = [
    "allOf",
    "anyOf",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "then",
];

/// Most characters of a name in a message.
const NAME_CHARS_MAX: usize = 80;

/// The choices for the tools of one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choices<'c> {
    server: &'c str,
    tools: &'c BTreeMap<String, ToolChoice>,
}

/// A tool as models see it, but for its name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownTool {
    /// The operator's description, or else the server's.
    pub(crate) description: String,
    /// The schema without the arguments that have a fixed value.
    pub(crate) schema: Value,
}

/// Why a tool is not offered, or a call is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChoiceError {
    /// A rule is for an argument that the tool does not have, so it would not do what its author expects.
    #[error(
        "the tool has no argument `{argument}`, which `{key}` is about; correct the name, or remove the rule"
    )]
    NoArgument { argument: String, key: String },
    /// The call gives an argument that the tool does not have.
    #[error(
        "`{argument}` is not an argument of the tool, and its arguments are restricted by `{key}`"
    )]
    Unknown { argument: String, key: String },
    /// The call omits an argument that only certain values are allowed for.
    #[error("`{argument}` has to be given: `{key}` restricts it")]
    Missing { argument: String, key: String },
    /// The call gives another value than the one that is fixed.
    #[error("`{argument}` has a fixed value, set by `{key}`; omit it")]
    Fixed { argument: String, key: String },
    /// The value is not allowed.
    #[error("this value of `{argument}` is not allowed by `{key}`")]
    Value { argument: String, key: String },
}

impl ChoiceError {
    /// The failure of a call.
    pub(crate) fn failure(&self) -> ToolFailure {
        let (category, phase) = match self {
            Self::NoArgument { .. } | Self::Fixed { .. } | Self::Value { .. } => {
                (ErrorCategory::PolicyBlocked, ErrorPhase::Setup)
            }
            Self::Unknown { .. } | Self::Missing { .. } => {
                (ErrorCategory::InvalidParameters, ErrorPhase::ParamHandling)
            }
        };
        ToolFailure::new(category, phase, self.to_string())
    }
}

impl<'c> Choices<'c> {
    /// The choices `tools` for `server`.
    pub(crate) fn new(server: &'c str, tools: &'c BTreeMap<String, ToolChoice>) -> Self {
        Self { server, tools }
    }

    /// Settings of tools that are not among `offered`, as keys: most likely misspelt.
    pub(crate) fn of_nothing(&self, offered: &[&str]) -> Vec<String> {
        let of_nothing = self
            .tools
            .keys()
            .filter(|tool| !offered.contains(&tool.as_str()));
        of_nothing.map(|tool| self.key(tool)).collect()
    }

    /// What models see of the server's `tool`.
    ///
    /// Errors: `NoArgument`; then the tool must not be offered.
    pub(crate) fn shown(
        &self,
        tool: &str,
        description: &str,
        schema: &Value,
    ) -> Result<ShownTool, ChoiceError> {
        let Some(choice) = self.tools.get(tool) else {
            return Ok(ShownTool {
                description: description.to_owned(),
                schema: schema.clone(),
            });
        };
        for argument in choice.arguments.keys() {
            if property(schema, argument).is_none() {
                return Err(ChoiceError::NoArgument {
                    argument: name(argument),
                    key: self.argument_key(tool, argument),
                });
            }
        }
        let own = choice.description.as_deref();
        Ok(ShownTool {
            description: own.unwrap_or(description).to_owned(),
            schema: shown_schema(schema, &choice.arguments),
        })
    }

    /// The arguments that the server's `tool` gets for a call with `given`. `schema` is the server's own.
    ///
    /// Errors: [`ChoiceError`], which names the key. Without rules for the tool, the arguments are as they were given.
    pub(crate) fn sent(
        &self,
        tool: &str,
        schema: &Value,
        given: Map<String, Value>,
    ) -> Result<Map<String, Value>, ChoiceError> {
        let rules = self.tools.get(tool).map(|choice| &choice.arguments);
        let Some(rules) = rules.filter(|rules| !rules.is_empty()) else {
            return Ok(given);
        };
        let unknown = given
            .keys()
            .find(|argument| property(schema, argument).is_none());
        if let Some(argument) = unknown {
            return Err(ChoiceError::Unknown {
                argument: name(argument),
                key: format!("{}.arguments", self.key(tool)),
            });
        }
        let mut sent = given;
        for (argument, rule) in rules {
            let key = self.argument_key(tool, argument);
            match &rule.fixed {
                Some(fixed) => fix(&mut sent, argument, fixed, &key)?,
                None => check(sent.get(argument), argument, rule, &key)?,
            }
        }
        Ok(sent)
    }

    fn key(&self, tool: &str) -> String {
        format!("mcp.servers.{}.tools.{}", self.server, segment(tool))
    }

    fn argument_key(&self, tool: &str, argument: &str) -> String {
        format!("{}.arguments.{}", self.key(tool), segment(argument))
    }
}

/// Sets the value that models do not choose.
fn fix(
    sent: &mut Map<String, Value>,
    argument: &str,
    fixed: &Value,
    key: &str,
) -> Result<(), ChoiceError> {
    match sent.insert(argument.to_owned(), fixed.clone()) {
        Some(given) if given != *fixed => Err(ChoiceError::Fixed {
            argument: name(argument),
            key: format!("{key}.fixed"),
        }),
        _ => Ok(()),
    }
}

/// What the server would use instead of a value that is not given was not looked at: where values are listed, one has to be given.
fn check(
    given: Option<&Value>,
    argument: &str,
    rule: &ArgumentRule,
    key: &str,
) -> Result<(), ChoiceError> {
    let rules = ValueRule::new(&rule.allow, &rule.deny);
    match given.filter(|value| !value.is_null()) {
        None if rule.allow.is_empty() => Ok(()),
        None => Err(ChoiceError::Missing {
            argument: name(argument),
            key: format!("{key}.allow"),
        }),
        Some(value) => rules.check(value).map_err(|list| ChoiceError::Value {
            argument: name(argument),
            key: format!("{key}.{list}"),
        }),
    }
}

/// The schema without fixed arguments; those with listed values are required. What else mentions a fixed argument is left to the server.
fn shown_schema(schema: &Value, rules: &BTreeMap<String, ArgumentRule>) -> Value {
    let mut schema = schema.clone();
    let Some(fields) = schema.as_object_mut() else {
        return schema;
    };
    let is_fixed = |name: &str| rules.get(name).is_some_and(|rule| rule.fixed.is_some());
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.retain(|name, _| !is_fixed(name));
    }
    let listed = rules
        .iter()
        .filter(|(_, rule)| !rule.allow.is_empty() && rule.fixed.is_none());
    let mut required: Vec<Value> = listed.map(|(name, _)| Value::from(name.as_str())).collect();
    if let Some(Value::Array(own)) = fields.get("required") {
        let others = own
            .iter()
            .filter(|name| !name.as_str().is_some_and(is_fixed));
        let others: Vec<Value> = others
            .filter(|name| !required.contains(name))
            .cloned()
            .collect();
        required.extend(others);
    }
    match required.is_empty() {
        true => drop(fields.remove("required")),
        false => drop(fields.insert("required".to_owned(), required.into())),
    }
    for keyword in CONDITIONS {
        let is_affected = fields.get(keyword).is_some_and(|condition| {
            let fixed = rules.iter().filter(|(_, rule)| rule.fixed.is_some());
            fixed.into_iter().any(|(name, _)| mentions(condition, name))
        });
        if is_affected {
            fields.remove(keyword);
        }
    }
    schema
}

/// Whether a name or a text of `value` is `name`. Depth is bounded by the parser's.
fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, field)| key == name || mentions(field, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get("properties")?.as_object()?.get(name)
}

/// A part of a key, quoted where TOML asks for it.
fn segment(text: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match !text.is_empty() && text.bytes().all(is_bare) {
        true => name(text),
        false => format!("\"{}\"", name(text)),
    }
}

fn name(text: &str) -> String {
    one_line(text, NAME_CHARS_MAX)
}

#[cfg(test)]
mod tests;
