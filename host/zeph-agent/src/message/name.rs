//! Names of tools as every provider takes them back. A model can invent any name, and one that its provider refuses would make every later
//! request of the conversation fail.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use zeph_core::id::{TOOL_NAME_CHARS_MAX, ToolName};

use super::{Item, ItemView};
use crate::draft::raw;

/// What a call without a name is called.
const UNNAMED: &str = "unnamed";

/// The name itself, or, where no tool can be called that, the beginning of it with `_` for every other character.
pub(crate) fn valid_name(name: &str) -> Cow<'_, str> {
    if ToolName::new(name).is_ok() {
        return Cow::Borrowed(name);
    }
    if name.is_empty() {
        return Cow::Borrowed(UNNAMED);
    }
    let letters = name.chars().take(TOOL_NAME_CHARS_MAX);
    let letters = letters.map(|letter| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
        _ => '_',
    });
    Cow::Owned(letters.collect())
}

impl Item {
    /// The item; a call under a name that can be sent, in its view and in the form of its provider.
    pub(crate) fn with_valid_name(mut self) -> Self {
        if let ItemView::Call(call) = &mut self.view {
            let name = valid_name(&call.name).into_owned();
            if name != call.name {
                self.wire = self.wire.and_then(|wire| renamed(&wire, &name));
                call.name = name;
            }
        }
        self
    }
}

/// The form of the provider with another name of the tool.
fn renamed(wire: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let mut wire: Value = serde_json::from_str(wire.get()).ok()?;
    let function = function_of(wire.as_object_mut()?)?;
    function.insert("name".to_owned(), Value::from(name));
    raw(&wire)
}

/// Where the name stands: Gemini, Chat Completions and Ollama, all others.
fn function_of(call: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    let mut places = ["functionCall", "function"].into_iter();
    match places.find(|place| call.contains_key(*place)) {
        Some(place) => call.get_mut(place)?.as_object_mut(),
        None => Some(call),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_tool_can_have_become_some_that_one_can() {
        let long = "ä".repeat(3_000);
        let cut = "_".repeat(TOOL_NAME_CHARS_MAX);
        let cases = [
            ("read", "read"),
            ("plugin__tool-1", "plugin__tool-1"),
            ("search the web!", "search_the_web_"),
            ("functions.read\n", "functions_read_"),
            ("", UNNAMED),
            (&long, &cut),
        ];
        for (name, expected) in cases {
            assert_eq!(valid_name(name), expected);
            ToolName::new(valid_name(name)).unwrap();
        }
    }

    #[test]
    fn stored_calls_get_a_valid_name_when_they_are_read() {
        let wires = [
            r#"{"function":{"arguments":"{}","name":"look up"},"id":"1","type":"function"}"#,
            r#"{"functionCall":{"args":{},"name":"look up"},"thoughtSignature":"s"}"#,
            r#"{"arguments":"{}","call_id":"1","name":"look up","type":"function_call"}"#,
        ];
        for wire in wires {
            let call = r#"{"call":{"id":"1","name":"look up","arguments":{"object":{}}}}"#;
            let stored = format!(r#"{{"view":{call},"wire":{wire}}}"#);
            let item: Item = serde_json::from_str(&stored).unwrap();
            let ItemView::Call(call) = &item.view else {
                panic!("{item:?}");
            };
            assert_eq!(call.name, "look_up");
            let healed: Value = serde_json::from_str(item.wire.unwrap().get()).unwrap();
            let expected = wire.replace("look up", "look_up");
            assert_eq!(healed, serde_json::from_str::<Value>(&expected).unwrap());
        }
    }
}
