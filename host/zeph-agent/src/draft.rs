//! An answer while it arrives.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::message::{
    Arguments, AssistantTurn, Item, ItemView, Origin, StopReason, ToolCall, valid_name,
};
use crate::provider::ModelEvent;
use crate::usage::Usage;

/// How ids begin that were made here, because the provider has none.
const MADE: &str = "zeph_";

/// What was read of an answer so far. Events wait here until the caller of the reader takes them.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) items: Vec<Item>,
    /// Set by the event that says how the answer ended.
    pub(crate) stop: Option<StopReason>,
    pub(crate) usage: Usage,
    pub(crate) events: Vec<ModelEvent>,
}

impl Draft {
    /// More text arrived. Nothing is said about none.
    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.events.push(ModelEvent::Text(text.to_owned()));
        }
    }

    pub(crate) fn thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.events.push(ModelEvent::Thinking(text.to_owned()));
        }
    }

    pub(crate) fn call_started(&mut self, id: &str, name: &str) {
        let (id, name) = (id.to_owned(), valid_name(name).into_owned());
        self.events.push(ModelEvent::CallStarted { id, name });
    }

    pub(crate) fn call_arguments(&mut self, id: &str, text: &str) {
        if !text.is_empty() {
            let (id, text) = (id.to_owned(), text.to_owned());
            self.events.push(ModelEvent::CallArguments { id, text });
        }
    }

    /// A call that came at once.
    pub(crate) fn whole_call(&mut self, call: &ToolCall) {
        self.call_started(&call.id, &call.name);
        let arguments = match &call.arguments {
            Arguments::Malformed { text, .. } => text.clone(),
            object @ Arguments::Object(_) => object.to_json(),
        };
        self.call_arguments(&call.id, &arguments);
    }

    pub(crate) fn measured(&mut self, usage: Usage) {
        if usage != self.usage {
            self.usage = usage;
            self.events.push(ModelEvent::Usage(usage));
        }
    }

    pub(crate) fn push(&mut self, view: ItemView, wire: Option<Box<RawValue>>) {
        self.items.push(Item { view, wire });
    }

    /// The turn, when it has an end. Calls have names that can be sent back. Two calls of one name and id are told apart: an exact repetition is dropped, another gets a new id.
    pub(crate) fn finish(self, origin: Origin) -> Option<AssistantTurn> {
        let mut stop = self.stop?;
        let items = self.items.into_iter().map(Item::with_valid_name);
        let items = distinct(items);
        let has_calls = items
            .iter()
            .any(|item| matches!(item.view, ItemView::Call(_)));
        if has_calls && stop == StopReason::EndTurn {
            stop = StopReason::ToolCalls;
        }
        Some(AssistantTurn {
            origin,
            items,
            stop,
        })
    }
}

/// An id for a call that has none.
pub(crate) fn made_id() -> String {
    format!("{MADE}{}", Uuid::new_v4().simple())
}

/// Whether an id was made here.
pub(crate) fn is_made(id: &str) -> bool {
    id.starts_with(MADE)
}

/// The id itself, or a made one.
pub(crate) fn id_or_made(id: Option<&str>) -> String {
    match id {
        Some(id) if !id.trim().is_empty() => id.to_owned(),
        _ => made_id(),
    }
}

fn distinct(items: impl ExactSizeIterator<Item = Item>) -> Vec<Item> {
    let mut seen: HashMap<String, ToolCall> = HashMap::new();
    let mut kept = Vec::with_capacity(items.len());
    for mut item in items {
        if let ItemView::Call(call) = &mut item.view {
            match seen.get(&call.id) {
                Some(first) if first == call => continue,
                Some(_) => {
                    call.id = made_id();
                    item.wire = item.wire.and_then(|wire| renamed(&wire, &call.id));
                }
                None => {}
            }
            seen.insert(call.id.clone(), call.clone());
        }
        kept.push(item);
    }
    kept
}

/// The form of the provider with another id.
fn renamed(wire: &RawValue, id: &str) -> Option<Box<RawValue>> {
    let mut wire: Value = serde_json::from_str(wire.get()).ok()?;
    let place = match &mut wire {
        Value::Object(fields) if fields.contains_key("functionCall") => {
            fields.get_mut("functionCall")?.as_object_mut()?.entry("id")
        }
        Value::Object(fields) if fields.contains_key("call_id") => fields.entry("call_id"),
        Value::Object(fields) => fields.entry("id"),
        _ => return None,
    };
    *place.or_insert(Value::Null) = Value::from(id);
    raw(&wire)
}

/// A value as JSON that is kept as it is.
pub(crate) fn raw(value: &(impl serde::Serialize + ?Sized)) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}
