//! A call of an answer while it arrives.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::draft::{Draft, made_id, raw};
use crate::message::{Arguments, ToolCall};

/// A piece of a call.
#[derive(Debug, Deserialize)]
pub(super) struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    /// Whatever else a provider puts there, and wants to see again.
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<serde_json::Value>,
}

/// A call that is not complete.
#[derive(Debug)]
pub(super) struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    others: serde_json::Map<String, serde_json::Value>,
}

impl OpenCall {
    /// Adds a piece to the call it belongs to, or begins one. A piece with an id that the call of its number does not have begins one
    /// too: some number all calls alike.
    pub(super) fn take(calls: &mut Vec<Self>, delta: CallDelta, draft: &mut Draft) {
        let id = delta.id.filter(|id| !id.is_empty());
        let open = calls
            .iter()
            .rposition(|call| match (delta.index, call.index) {
                (Some(index), Some(own)) => index == own,
                _ => delta.index.is_none() && id.is_none(),
            });
        let open = open.filter(|at| id.as_ref().is_none_or(|id| *id == calls[*at].id));
        let function = delta.function.unwrap_or(FunctionDelta {
            name: None,
            arguments: None,
        });
        let name = function.name.filter(|name| !name.is_empty());
        let at = open.unwrap_or_else(|| {
            calls.push(Self {
                index: delta.index,
                id: id.unwrap_or_else(made_id),
                name: name.clone().unwrap_or_default(),
                arguments: String::new(),
                others: serde_json::Map::new(),
            });
            calls.len() - 1
        });
        let call = &mut calls[at];
        match (open, name) {
            (None, _) => draft.call_started(&call.id, &call.name),
            (Some(_), Some(name)) if call.name.is_empty() => call.name = name,
            (Some(_), _) => {}
        }
        call.others.extend(delta.others);
        let arguments = match function.arguments {
            Some(serde_json::Value::String(text)) => text,
            None | Some(serde_json::Value::Null) => String::new(),
            // A server that sends the object itself instead of its text.
            Some(other) => other.to_string(),
        };
        draft.call_arguments(&call.id, &arguments);
        call.arguments.push_str(&arguments);
    }

    /// The call, and what is sent back for it.
    pub(super) fn close(self) -> (ToolCall, Option<Box<RawValue>>) {
        let arguments = Arguments::read(&self.arguments);
        let text = match &arguments {
            Arguments::Object(_) if !self.arguments.trim().is_empty() => self.arguments.as_str(),
            Arguments::Object(_) | Arguments::Malformed { .. } => "{}",
        };
        let function = BTreeMap::from([("name", self.name.as_str()), ("arguments", text)]);
        let mut fields: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
        let own = [
            ("id", raw(&self.id)),
            ("type", raw("function")),
            ("function", raw(&function)),
        ];
        let others = self
            .others
            .iter()
            .map(|(name, value)| (name.as_str(), raw(value)));
        for (name, value) in others.chain(own) {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
        let call = ToolCall {
            id: self.id,
            name: self.name,
            arguments,
        };
        (call, raw(&fields))
    }
}
