//! Puts the questions of a tool to the person at the terminal, one field after the other.
//!
//! Everything shown is the words of a plugin: it is told apart from ours, and no character of it can steer the terminal.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{Prompt, PromptEditMode, PromptHistorySearch, Signal};
use serde_json::{Map, Value};
use zeph_core::inquiry::{
    Choice, GivenAnswer, GivenAnswers, UserAction, UserQuestion, choices, is_list,
};

use super::interrupt::{Interruption, Interrupts};
use super::line_input::LineInput;
use super::render::{BOLD, DIM, RED, escape};
use crate::questions::SealedInquiry;

/// Puts every question and waits for the answers, or for a signal: then the rest is cancelled, and the signal comes with the answers.
///
/// Errors: when the terminal cannot be used.
pub(crate) async fn put(
    tool: &str,
    asked: &SealedInquiry,
    interrupts: &mut Interrupts,
) -> io::Result<(GivenAnswers, Option<Interruption>)> {
    let breaks = Arc::new(AtomicBool::new(false));
    let (of_editor, tool, asked) = (Arc::clone(&breaks), tool.to_owned(), asked.clone());
    let mut reading = tokio::task::spawn_blocking(move || read(&tool, &asked, of_editor));
    let mut interruption = None;
    loop {
        tokio::select! {
            answers = &mut reading => {
                let (answers, is_lost) = answers.map_err(io::Error::other)??;
                let lost = is_lost.then_some(Interruption::HangUp);
                return Ok((answers, interruption.or(lost)));
            }
            // It may come before the editor takes Ctrl-C for itself.
            signal = interrupts.next() => {
                interruption = Some(signal);
                breaks.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Puts every question. Blocks until there are answers, or `breaks` is set. Says whether the terminal was lost, which cancels the rest.
fn read(
    tool: &str,
    asked: &SealedInquiry,
    breaks: Arc<AtomicBool>,
) -> io::Result<(GivenAnswers, bool)> {
    let mut terminal = Terminal {
        input: LineInput::of_answers(breaks)?,
    };
    terminal.say(&format!(
        "{BOLD}`{}` asks:{BOLD:#} {DIM}(Ctrl-D declines, Ctrl-C cancels){DIM:#}\n",
        escape(tool)
    ));
    let mut answers = Vec::new();
    let mut is_cancelled = false;
    for question in asked.inquiry.questions() {
        let (action, content) = match is_cancelled {
            true => (UserAction::Cancel, None),
            false => match terminal.ask(question) {
                Err(_) if terminal.input.is_lost() => (UserAction::Cancel, None),
                asked => asked?,
            },
        };
        is_cancelled = action == UserAction::Cancel;
        answers.push(GivenAnswer {
            id: question.id().to_owned(),
            action,
            content,
        });
    }
    let given = GivenAnswers {
        state: asked.state.clone(),
        answers,
    };
    Ok((given, terminal.input.is_lost()))
}

/// The terminal while questions stand on it.
struct Terminal {
    input: LineInput,
}

/// What a person does with a field.
enum FieldAction {
    Typed(String),
    Left(UserAction),
}

impl Terminal {
    fn say(&mut self, text: &str) {
        super::repl::say(text);
    }

    /// Asks until the answer fits, or the person does not want to answer.
    fn ask(&mut self, question: &UserQuestion) -> io::Result<(UserAction, Option<Value>)> {
        self.say(&format!("{}\n", escape(question.message())));
        self.input.discard()?;
        loop {
            let content = match self.form(question)? {
                Ok(content) => content,
                Err(action) => return Ok((action, None)),
            };
            match question.accept(content.clone()) {
                Ok(_) => return Ok((UserAction::Accept, Some(content))),
                Err(failure) => self.wrong(&failure.message),
            }
        }
    }

    /// All fields of one answer; or what the person does instead.
    fn form(&mut self, question: &UserQuestion) -> io::Result<Result<Value, UserAction>> {
        let mut content = Map::new();
        for field in fields(question) {
            loop {
                let line = match self.read(&field)? {
                    FieldAction::Typed(line) => line,
                    FieldAction::Left(action) => return Ok(Err(action)),
                };
                match field.value(line.trim()) {
                    Ok(value) => {
                        content.extend(value.map(|value| (field.name.to_owned(), value)));
                        break;
                    }
                    Err(problem) => self.wrong(&problem),
                }
            }
        }
        Ok(Ok(Value::Object(content)))
    }

    fn read(&mut self, field: &Field<'_>) -> io::Result<FieldAction> {
        let prompt = FieldLabel(escape(&field.label()));
        Ok(match self.input.read(&prompt)? {
            Signal::Success(line) => FieldAction::Typed(line),
            Signal::CtrlD => FieldAction::Left(UserAction::Decline),
            _ => FieldAction::Left(UserAction::Cancel),
        })
    }

    fn wrong(&mut self, problem: &str) {
        self.say(&format!("{RED}?{RED:#} {}\n", escape(problem)));
    }
}

/// One field of an answer.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

/// The fields of an answer, those it must have first.
fn fields(question: &UserQuestion) -> Vec<Field<'_>> {
    let schema = question.schema().schema();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        let mut names = required.into_iter().flatten();
        names.any(|required| required == name)
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let mut fields: Vec<Field<'_>> = properties
        .map(|(name, schema)| Field {
            name,
            schema,
            is_required: is_required(name),
        })
        .collect();
    fields.sort_by_key(|field| !field.is_required);
    fields
}

impl Field<'_> {
    /// What stands before the cursor: name, meaning, choices and default.
    fn label(&self) -> String {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str);
        let name = text("title").unwrap_or(self.name);
        let mut label = name.to_owned();
        if let Some(description) = text("description") {
            label.push_str(&format!(" – {description}"));
        }
        let offered: Vec<String> = choices(self.schema).iter().map(titled).collect();
        let taken = match text("type") {
            Some("array") => format!("some of {}, with commas", offered.join("|")),
            _ if !offered.is_empty() => offered.join("|"),
            Some("boolean") => "yes|no".to_owned(),
            Some("string") => String::new(),
            kind => kind.unwrap_or_default().to_owned(),
        };
        if !taken.is_empty() {
            label.push_str(&format!(" ({taken})"));
        }
        match self.schema.get("default") {
            Some(default) => label.push_str(&format!(" [{}]", shown(default))),
            None if !self.is_required => label.push_str(" [none]"),
            None => {}
        }
        label
    }

    /// What a word of a line picks among the values it offers.
    ///
    /// Errors: one line for the person.
    fn picked(&self, word: &str) -> Result<Value, String> {
        let choices = choices(self.schema);
        let is_meant = |choice: &&Choice| {
            shown(&choice.value) == word || choice.title.as_deref() == Some(word)
        };
        match choices.iter().find(is_meant) {
            Some(choice) => Ok(choice.value.clone()),
            None => {
                let all: Vec<String> = choices.iter().map(|choice| shown(&choice.value)).collect();
                Err(format!("it has to be one of: {}", all.join(", ")))
            }
        }
    }

    /// What a line stands for; none when the field is to be left out.
    ///
    /// Errors: one line for the person.
    fn value(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match self.schema.get("default") {
                Some(default) => Ok(Some(default.clone())),
                None if self.is_required => Err("it has to be answered".to_owned()),
                None => Ok(None),
            };
        }
        if is_list(self.schema) {
            let picked = line.split(',').map(|word| self.picked(word.trim()));
            return picked
                .collect::<Result<Vec<_>, _>>()
                .map(|all| Some(all.into()));
        }
        if !choices(self.schema).is_empty() {
            return self.picked(line).map(Some);
        }
        let kind = self.schema.get("type").and_then(Value::as_str);
        let value = match (kind, line.to_ascii_lowercase().as_str()) {
            (Some("boolean"), "y" | "yes" | "true") => Value::Bool(true),
            (Some("boolean"), "n" | "no" | "false") => Value::Bool(false),
            (Some("boolean"), _) => return Err("it has to be `yes` or `no`".to_owned()),
            (Some("number" | "integer"), _) => serde_json::from_str::<serde_json::Number>(line)
                .map(Value::Number)
                .map_err(|_| "it has to be a number".to_owned())?,
            _ => Value::String(line.to_owned()),
        };
        Ok(Some(value))
    }
}

/// A value that is offered, with its name.
fn titled(choice: &Choice) -> String {
    let value = shown(&choice.value);
    match &choice.title {
        Some(title) => format!("{value}: {title}"),
        None => value,
    }
}

/// A value as a person types it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The prompt of a field.
struct FieldLabel(String);

impl Prompt for FieldLabel {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(": ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_history_search_indicator(&self, _search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}

#[cfg(test)]
mod tests;
