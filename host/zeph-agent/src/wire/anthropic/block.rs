//! A block of an answer while it arrives.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::draft::{Draft, id_or_made, raw};
use crate::message::{Arguments, ItemView, ToolCall};

/// A block with every field as it came.
pub(super) type Fields = BTreeMap<String, Box<RawValue>>;

/// A block that is not complete.
#[derive(Debug)]
pub(super) struct OpenBlock {
    fields: Fields,
    kind: BlockKind,
    /// `text`, `thinking`, or the text of `input`.
    text: String,
    pub(super) is_complete: bool,
}

#[derive(Debug, Clone)]
enum BlockKind {
    Text,
    Thinking,
    Call { id: String, name: String },
    Other,
}

impl OpenBlock {
    pub(super) fn new(fields: Fields) -> Self {
        let word = |name: &str| -> Option<String> {
            let value = fields.get(name)?;
            serde_json::from_str(value.get()).ok()
        };
        let (kind, text) = match word("type").as_deref() {
            Some("text") => (BlockKind::Text, word("text")),
            Some("thinking") => (BlockKind::Thinking, word("thinking")),
            Some("tool_use") => {
                let kind = BlockKind::Call {
                    id: id_or_made(word("id").as_deref()),
                    name: word("name").unwrap_or_default(),
                };
                // A stream begins with `{}` and sends the text afterwards.
                let input = fields.get("input").map(|input| input.get().to_owned());
                (kind, input.filter(|input| input != "{}"))
            }
            _ => (BlockKind::Other, None),
        };
        Self {
            fields,
            kind,
            text: text.unwrap_or_default(),
            is_complete: false,
        }
    }

    pub(super) fn announce(&self, draft: &mut Draft) {
        match &self.kind {
            BlockKind::Text => draft.text(&self.text),
            BlockKind::Thinking => draft.thinking(&self.text),
            BlockKind::Call { id, name } => {
                draft.call_started(id, name);
                draft.call_arguments(id, &self.text);
            }
            BlockKind::Other => {}
        }
    }

    /// Takes a piece.
    pub(super) fn grow(&mut self, delta: &Value, draft: &mut Draft) {
        let piece = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match (piece("type"), &self.kind) {
            ("text_delta", BlockKind::Text) => {
                draft.text(piece("text"));
                self.text.push_str(piece("text"));
            }
            ("thinking_delta", BlockKind::Thinking) => {
                draft.thinking(piece("thinking"));
                self.text.push_str(piece("thinking"));
            }
            ("input_json_delta", BlockKind::Call { id, .. }) => {
                draft.call_arguments(id, piece("partial_json"));
                self.text.push_str(piece("partial_json"));
            }
            ("signature_delta", _) => self.set("signature", piece("signature")),
            ("citations_delta", _) => self.cite(delta.get("citation")),
            _ => {}
        }
    }

    /// Puts the complete block into the draft. The API refuses empty texts, its own among them, and thoughts whose signature did not
    /// come because the answer `was_cut_short`.
    pub(super) fn close(mut self, was_cut_short: bool, draft: &mut Draft) {
        let text = std::mem::take(&mut self.text);
        let view = match self.kind.clone() {
            BlockKind::Text if text.trim().is_empty() => return,
            BlockKind::Text => {
                self.set("text", text.as_str());
                ItemView::Text(text)
            }
            BlockKind::Thinking => {
                if was_cut_short && !self.is_signed() {
                    return draft.push(ItemView::Thinking(text), None);
                }
                self.set("thinking", text.as_str());
                ItemView::Thinking(text)
            }
            BlockKind::Call { id, name } => {
                self.set("id", id.as_str());
                let arguments = Arguments::read(&text);
                self.set_input(&text, &arguments);
                ItemView::Call(ToolCall {
                    id,
                    name,
                    arguments,
                })
            }
            BlockKind::Other => ItemView::Opaque,
        };
        draft.push(view, raw(&self.fields));
    }

    fn is_signed(&self) -> bool {
        let signature = self.fields.get("signature");
        signature.is_some_and(|signature| !matches!(signature.get(), "\"\"" | "null"))
    }

    fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if let Some(value) = raw(value) {
            self.fields.insert(name.to_owned(), value);
        }
    }

    fn cite(&mut self, citation: Option<&Value>) {
        let cited = self.fields.get("citations");
        let cited = cited.and_then(|cited| serde_json::from_str(cited.get()).ok());
        let mut cited: Vec<Value> = cited.unwrap_or_default();
        cited.extend(citation.cloned());
        self.set("citations", &cited);
    }

    /// The text that came, to the byte, when it is an object.
    fn set_input(&mut self, text: &str, arguments: &Arguments) {
        let input = match arguments {
            Arguments::Object(_) if !text.trim().is_empty() => text.trim().to_owned(),
            Arguments::Object(_) | Arguments::Malformed { .. } => "{}".to_owned(),
        };
        if let Ok(input) = RawValue::from_string(input) {
            self.fields.insert("input".to_owned(), input);
        }
    }
}
