//! Whether the providers of models take a tool's definition. Pure.
//!
//! Each provider has a subset of JSON Schema of its own. What one of them is known to answer with an error is a problem; what one
//! of them leaves out or reads differently is advice.

use serde::Serialize;
use serde_json::{Map, Value};
use zeph_core::failure::one_line;
use zeph_core::tool::Tool;

/// Most characters of a description. Source: the function definitions of OpenAI's API refuse longer ones.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// Most characters of a parameter's name. Source: the tool definitions of Anthropic's API, `^[a-zA-Z0-9_.-]{1,64}$`.
const PARAMETER_CHARS_MAX: usize = 64;

/// How deep parameters may lie in each other. Source: OpenAI's API takes five levels in strict mode.
const DEPTH_MAX: usize = 5;

/// What every provider takes as it is meant.
const KEYWORDS: [&str; 12] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "minimum",
    "maximum",
    "default",
    "format",
    "additionalProperties",
];

/// What no provider takes at the top of the arguments. Source: Anthropic's API refuses unions there, OpenAI's all of these.
const NOT_AT_TOP: [&str; 6] = ["oneOf", "anyOf", "allOf", "not", "enum", "$ref"];

/// Most sentences about one tool.
const SENTENCES_MAX: usize = 12;

/// Characters of a name in a sentence.
const NAME_CHARS_MAX: usize = 80;

/// What there is to say about one tool, one sentence each.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Portability {
    /// What some provider refuses.
    pub problems: Vec<String>,
    /// What some provider may read differently.
    pub advice: Vec<String>,
}

/// Looks at the definition of a tool.
///
/// Limits: linear in the schema, which was bounded when the plugin was loaded.
pub(crate) fn of_tool(tool: &Tool) -> Portability {
    let mut found = Portability::default();
    let n_chars = tool.description.chars().count();
    if n_chars > DESCRIPTION_CHARS_MAX {
        found.problem(format!(
            "its description has {n_chars} characters; some providers take {DESCRIPTION_CHARS_MAX} at most"
        ));
    }
    if tool.description.trim().is_empty() {
        found.problem("it has no description, and a model cannot know what it is for".to_owned());
    }
    let schema = tool.parameters.schema();
    for keyword in NOT_AT_TOP {
        if schema.get(keyword).is_some() {
            found.problem(format!(
                "its parameters have `{keyword}` at the top, which some providers refuse"
            ));
        }
    }
    if let Value::Object(schema) = schema {
        found.look(schema, "", 1);
    }
    found
}

impl Portability {
    fn problem(&mut self, sentence: String) {
        add(&mut self.problems, sentence);
    }

    fn advise(&mut self, sentence: String) {
        add(&mut self.advice, sentence);
    }

    /// Looks at the schema of the parameter `place`, which is empty at the top.
    fn look(&mut self, schema: &Map<String, Value>, place: &str, depth: usize) {
        let whose = match place {
            "" => "its parameters".to_owned(),
            _ => format!("the parameter `{}`", one_line(place, NAME_CHARS_MAX)),
        };
        for keyword in schema.keys() {
            let at_top = place.is_empty()
                && (keyword == "$schema" || NOT_AT_TOP.contains(&keyword.as_str()));
            if !KEYWORDS.contains(&keyword.as_str()) && !at_top {
                let keyword = one_line(keyword, NAME_CHARS_MAX);
                self.advise(format!(
                    "{whose}: some providers leave out or refuse `{keyword}`"
                ));
            }
        }
        if depth == DEPTH_MAX + 1 {
            self.advise(format!(
                "{whose}: some providers take {DEPTH_MAX} levels at most"
            ));
        }
        self.look_at_type(schema, &whose);
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties {
                self.look_at_parameter(name, property, place, depth);
            }
        }
        if let Some(Value::Object(items)) = schema.get("items") {
            self.look(items, &format!("{place}[]"), depth);
        }
    }

    fn look_at_type(&mut self, schema: &Map<String, Value>, whose: &str) {
        match schema.get("type") {
            Some(Value::String(kind)) if kind == "array" && !schema.contains_key("items") => {
                self.problem(format!(
                    "{whose}: an array without `items`, which some providers refuse"
                ));
            }
            Some(Value::Array(_)) => {
                self.advise(format!(
                    "{whose}: some providers take one type, not a list of them"
                ));
            }
            _ => {}
        }
        let is_text = |values: &Vec<Value>| values.iter().all(Value::is_string);
        if let Some(Value::Array(values)) = schema.get("enum")
            && !is_text(values)
        {
            self.advise(format!(
                "{whose}: some providers take an `enum` of strings only"
            ));
        }
    }

    fn look_at_parameter(&mut self, name: &str, schema: &Value, place: &str, depth: usize) {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let is_name = (1..=PARAMETER_CHARS_MAX).contains(&name.len()) && name.bytes().all(fits);
        if !is_name {
            let shown = one_line(name, NAME_CHARS_MAX);
            self.problem(format!(
                "the parameter `{shown}`: some providers take names of 1 to {PARAMETER_CHARS_MAX} of `A-Z a-z 0-9 _ . -`"
            ));
        }
        let dot = if place.is_empty() { "" } else { "." };
        let inner = format!("{place}{dot}{name}");
        match schema {
            Value::Object(schema) => {
                if !schema.contains_key("description") && place.is_empty() {
                    let shown = one_line(name, NAME_CHARS_MAX);
                    self.advise(format!("the parameter `{shown}` has no description"));
                }
                self.look(schema, &inner, depth + 1);
            }
            // `true`: anything.
            _ => self.advise(format!(
                "the parameter `{}`: some providers want a type",
                one_line(&inner, NAME_CHARS_MAX)
            )),
        }
    }
}

fn add(sentences: &mut Vec<String>, sentence: String) {
    if sentences.len() < SENTENCES_MAX && !sentences.contains(&sentence) {
        sentences.push(sentence);
    }
}

#[cfg(test)]
mod tests;
