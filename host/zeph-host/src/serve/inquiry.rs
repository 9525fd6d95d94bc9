//! The questions of a tool as forms of a client, and the answers as the tool gets them. Pure.
//!
//! A form knows fewer kinds of fields than a question: a choice among numbers becomes one among words, and the answer is turned back.
//! What a form leaves open is checked against the question's own schema.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::inquiry::{Choice, GivenAnswer, UserAction, UserQuestion, choices};

/// The formats of text a form knows.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The form of one question of `tool`. `problem`: what was wrong with an earlier answer.
///
/// Errors: `policy_blocked` for a secret, which no form may ask for; `permanent_failure` for what no form can show.
pub(super) fn form(
    tool: &str,
    question: &UserQuestion,
    problem: Option<&str>,
) -> Result<ElicitRequestParams, ToolFailure> {
    if let Some(field) = question.secret_field() {
        return Err(failure(
            ErrorCategory::PolicyBlocked,
            format!(
                "`{tool}` asks the user for a secret (`{field}` of `{}`), and a client's form must not be used for one: grant it as \
                 an environment variable (`zeph-host plugin grant`), or make the call with `zeph-host call`",
                question.id()
            ),
        ));
    }
    let schema = schema(question).and_then(|schema| {
        serde_json::from_value(schema).map_err(|error| format!("it is no form: {error}"))
    });
    let requested_schema = schema.map_err(|problem| {
        failure(
            ErrorCategory::PermanentFailure,
            format!(
                "`{tool}` asks the user what no form can show (`{}`): {problem}",
                question.id()
            ),
        )
    })?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(tool, question, problem),
        requested_schema,
    })
}

/// Ours, and then the words of the plugin, each line of them told from ours.
fn message(tool: &str, question: &UserQuestion, problem: Option<&str>) -> String {
    let mut message = String::new();
    if let Some(problem) = problem {
        message.push_str(&format!("The answer does not fit: {problem}\n"));
    }
    message.push_str(&format!("The tool `{tool}` asks, in its own words:\n"));
    for line in question.message().lines() {
        message.push_str(&format!("\n> {line}"));
    }
    message
}

fn schema(question: &UserQuestion) -> Result<Value, String> {
    let schema = question.schema().schema();
    let mut fields = Map::new();
    for (name, property) in properties(question) {
        let field = field(property).map_err(|problem| format!("the field `{name}` {problem}"))?;
        fields.insert(name.clone(), field);
    }
    let required = schema.get("required").cloned();
    Ok(json!({
        "type": "object",
        "properties": fields,
        "required": required.unwrap_or_else(|| json!([])),
    }))
}

fn properties(question: &UserQuestion) -> impl Iterator<Item = (&String, &Value)> {
    let properties = question.schema().schema().get("properties");
    let properties = properties.and_then(Value::as_object);
    properties.into_iter().flatten()
}

/// A field in the few words a form has.
fn field(property: &Value) -> Result<Value, String> {
    let kind = property.get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default();
    let mut field = copied(property, &["title", "description"]);
    let choices = words(property)?;
    let others = match kind {
        "array" => list(property, &choices),
        _ if !choices.is_empty() => choice(property, &choices),
        "string" => text(property),
        "integer" => whole(property),
        "number" => copied(property, &["minimum", "maximum", "default"]),
        "boolean" => copied(property, &["default"]),
        _ => return Err("is of a type no form has".to_owned()),
    };
    let kind = match (kind, choices.is_empty()) {
        ("array", _) | (_, true) => kind,
        (_, false) => "string",
    };
    field.insert("type".to_owned(), kind.into());
    field.extend(others);
    Ok(Value::Object(field))
}

/// One of several words, in the way the question offers them.
fn choice(property: &Value, choices: &[Word]) -> Map<String, Value> {
    let default = property.get("default").map(word);
    let default = default.filter(|default| choices.iter().any(|choice| choice.word == *default));
    let words: Vec<&str> = choices.iter().map(|choice| choice.word.as_str()).collect();
    let mut field = match property.get("enumNames") {
        Some(names) => Map::from_iter([
            ("enum".to_owned(), json!(words)),
            ("enumNames".to_owned(), names.clone()),
        ]),
        None => offered(choices, "oneOf"),
    };
    field.extend(default.map(|default| ("default".to_owned(), default.into())));
    field
}

/// Several of several words.
fn list(property: &Value, choices: &[Word]) -> Map<String, Value> {
    let mut items = offered(choices, "anyOf");
    if items.contains_key("enum") {
        items.insert("type".to_owned(), "string".into());
    }
    let mut field = copied(property, &["minItems", "maxItems", "default"]);
    field.insert("items".to_owned(), Value::Object(items));
    field
}

/// Words alone, or below `titled` with the names they have.
fn offered(choices: &[Word], titled: &str) -> Map<String, Value> {
    let titles: Option<Vec<Value>> = choices
        .iter()
        .map(|Word { word, title, .. }| Some(json!({ "const": word, "title": title.as_ref()? })))
        .collect();
    let (key, value) = match titles {
        Some(titles) => (titled, Value::Array(titles)),
        None => {
            let words = choices.iter().map(|choice| choice.word.as_str());
            ("enum", json!(words.collect::<Vec<_>>()))
        }
    };
    Map::from_iter([(key.to_owned(), value)])
}

fn copied(property: &Value, keys: &[&str]) -> Map<String, Value> {
    let value = |key: &&str| Some(((*key).to_owned(), property.get(*key)?.clone()));
    keys.iter().filter_map(value).collect()
}

fn text(property: &Value) -> Map<String, Value> {
    let mut field = copied(property, &["minLength", "maxLength", "default"]);
    let format = property.get("format").and_then(Value::as_str);
    if let Some(format) = format.filter(|format| FORMATS.contains(format)) {
        field.insert("format".to_owned(), format.into());
    }
    field
}

/// The bounds of a whole number, both included.
fn whole(property: &Value) -> Map<String, Value> {
    let bound = |key: &str| property.get(key).and_then(Value::as_i64);
    let above = bound("exclusiveMinimum").and_then(|bound| bound.checked_add(1));
    let below = bound("exclusiveMaximum").and_then(|bound| bound.checked_sub(1));
    let minimum = bound("minimum").into_iter().chain(above).max();
    let maximum = bound("maximum").into_iter().chain(below).min();
    let bounds = [
        ("minimum", minimum),
        ("maximum", maximum),
        ("default", bound("default")),
    ];
    let given = bounds
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?.into())));
    given.collect()
}

/// A value that may be chosen, as a form has it.
struct Word {
    word: String,
    title: Option<String>,
    value: Value,
}

/// What may be chosen; empty when anything may.
fn words(property: &Value) -> Result<Vec<Word>, String> {
    let is_word = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    let choice = |Choice { value, title }: Choice| {
        is_word(&value).then(|| Word {
            word: word(&value),
            title,
            value,
        })
    };
    let choices: Option<Vec<Word>> = choices(property).into_iter().map(choice).collect();
    choices
        .ok_or_else(|| "offers a choice among what is neither text, number nor boolean".to_owned())
}

/// How a choice stands in a form.
fn word(choice: &Value) -> String {
    match choice {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What the person answered to `question`.
///
/// Errors: what is wrong with it, for the person who is asked again.
pub(super) fn answer(question: &UserQuestion, given: &ElicitResult) -> Result<GivenAnswer, String> {
    let action = match given.action {
        ElicitationAction::Accept => UserAction::Accept,
        ElicitationAction::Decline => UserAction::Decline,
        _ => UserAction::Cancel,
    };
    let content = match action {
        UserAction::Accept => Some(content(question, given.content.as_ref())),
        UserAction::Decline | UserAction::Cancel => None,
    };
    if let Some(content) = content.clone() {
        let accepted = question.accept(content);
        accepted.map_err(|failure| failure.message)?;
    }
    Ok(GivenAnswer {
        id: question.id().to_owned(),
        action,
        content,
    })
}

/// The content with its choices turned back into what they stand for.
fn content(question: &UserQuestion, given: Option<&Value>) -> Value {
    let mut content = match given {
        None | Some(Value::Null) => json!({}),
        Some(given) => given.clone(),
    };
    for (name, property) in properties(question) {
        let Some(chosen) = content.get_mut(name) else {
            continue;
        };
        let choices = words(property).unwrap_or_default();
        let meant = |choice: &Word| chosen.as_str() == Some(choice.word.as_str());
        if let Some(choice) = choices.into_iter().find(meant) {
            *chosen = choice.value;
        }
    }
    content
}

fn failure(category: ErrorCategory, message: String) -> ToolFailure {
    ToolFailure::new(category, ErrorPhase::ResultInterpretation, message)
}

#[cfg(test)]
mod tests;
