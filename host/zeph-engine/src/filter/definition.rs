//! The strategies of a component as its guest lists them, checked before anything else of the host sees them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use zeph_core::text::{plain_line, plain_text};

use super::Listed;

/// Most strategies of one component: a list that a person reads.
const STRATEGIES_MAX: usize = 64;

/// Most characters of a strategy's name (`strategy-definition.name` of the contract).
const NAME_CHARS_MAX: usize = 48;

/// Most bytes of a description: some paragraphs.
const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;

/// Most bytes of a schema of options. Those of ours have one kilobyte.
const OPTIONS_BYTES_MAX: usize = 64 * 1024;

/// A strategy that a component offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyDefinition {
    /// 1 to 48 of `a-z 0-9 _ -`, unique in its component.
    pub name: String,
    /// For people; plain text.
    pub description: String,
    /// The JSON Schema of its options: an object, as text.
    pub options: String,
}

/// The strategies of a component.
///
/// Errors: one sentence naming the strategy and what its author has to mend.
pub(crate) fn strategies(listed: Vec<Listed>) -> Result<Vec<StrategyDefinition>, String> {
    if listed.is_empty() {
        return Err("it lists no strategies".to_owned());
    }
    if listed.len() > STRATEGIES_MAX {
        let n = listed.len();
        return Err(format!(
            "it lists {n} strategies; the limit is {STRATEGIES_MAX}"
        ));
    }
    let definitions: Result<Vec<_>, _> = listed.into_iter().map(definition).collect();
    let definitions = definitions?;
    let mut names = HashSet::new();
    match definitions.iter().find(|one| !names.insert(&one.name)) {
        Some(twice) => Err(format!("it lists `{}` twice", twice.name)),
        None => Ok(definitions),
    }
}

fn definition(listed: Listed) -> Result<StrategyDefinition, String> {
    let Listed {
        name,
        description,
        options,
    } = listed;
    let shown = plain_line(&name, 80);
    let is_of_a_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.bytes().all(is_of_a_name) {
        return Err(format!(
            "`{shown}` is not a valid strategy name: 1 to {NAME_CHARS_MAX} of `a-z 0-9 _ -`"
        ));
    }
    if description.len() > DESCRIPTION_BYTES_MAX {
        return Err(format!(
            "`{shown}`: its description is longer than {DESCRIPTION_BYTES_MAX} bytes"
        ));
    }
    let is_object =
        || serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&options).is_ok();
    if options.len() > OPTIONS_BYTES_MAX || !is_object() {
        return Err(format!(
            "`{shown}`: the schema of its options is not a JSON object of at most {OPTIONS_BYTES_MAX} bytes"
        ));
    }
    Ok(StrategyDefinition {
        name,
        description: plain_text(&description),
        options,
    })
}
