//! `find_tool` and `call_tool`, which stand in for a catalog that is too long to be listed. Pure.
//!
//! The first ranks tools by the words they share with a query; the second names a tool and its arguments, and is taken apart before
//! anything is decided: rules, approvals, quotas and the record see the real tool only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The tool that searches.
pub(crate) const FIND: &str = "find_tool";

/// The tool that calls.
pub(crate) const CALL: &str = "call_tool";

/// Names no tool of a plugin is exposed under.
pub(crate) const RESERVED: [&str; 2] = [FIND, CALL];

/// Tools that are described when a query asks for no other number.
const FOUND: usize = 5;

/// Most of them.
const FOUND_MAX: usize = 20;

/// Most words of a query that count.
const WORDS_MAX: usize = 32;

/// Most characters of a query that are read.
const QUERY_CHARS_MAX: usize = 1_000;

/// Most names of a list without descriptions.
const NAMES_MAX: usize = 200;

/// Bytes of JSON that come to a token, about.
const TOKEN_BYTES: usize = 4;

/// What a word counts in the name, the title, the description and the arguments of a tool.
const WEIGHTS: [u64; 4] = [12, 6, 3, 2];

/// A tool that can be found.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// As it is exposed.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) schema: Value,
}

/// Tokens that a list of this serialised size takes in a model's context, about.
pub(crate) fn tokens(n_bytes: usize) -> usize {
    n_bytes.div_ceil(TOKEN_BYTES)
}

/// The arguments of `find_tool`.
pub(crate) fn find_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What the tool has to do, in a few words, or its name." },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": FOUND_MAX,
                "description": format!("How many tools to describe at most ({FOUND} without it).")
            }
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

/// The arguments of `call_tool`.
pub(crate) fn call_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "The name of the tool, as `find_tool` gave it." },
            "arguments": { "type": "object", "description": "Its arguments, as its schema wants them." }
        },
        "required": ["name"],
        "additionalProperties": false
    })
}

/// What `find_tool` answers: the best tools with their schemas, best first, and how many there are.
///
/// Errors: what is wrong with the arguments.
pub(crate) fn find(arguments: &Map<String, Value>, entries: &[Entry]) -> Result<Value, String> {
    known(arguments, &["query", "limit"])?;
    let query = arguments.get("query").and_then(Value::as_str);
    let query = query.ok_or("`query` must be a text")?;
    let limit = match arguments.get("limit") {
        None => FOUND,
        Some(limit) => limit
            .as_u64()
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| (1..=FOUND_MAX).contains(limit))
            .ok_or_else(|| format!("`limit` must be a number from 1 to {FOUND_MAX}"))?,
    };
    let found = ranked(query, entries);
    let tools: Vec<Value> = found
        .iter()
        .take(limit)
        .map(|entry| described(entry))
        .collect();
    let more: Vec<&str> = match found.is_empty() {
        true => names(entries.iter()),
        false => names(found.iter().copied().skip(limit)),
    };
    Ok(json!({ "tools": tools, "more": more, "total": entries.len() }))
}

fn names<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<&'a str> {
    entries
        .map(|entry| entry.name.as_str())
        .take(NAMES_MAX)
        .collect()
}

fn described(entry: &Entry) -> Value {
    let mut tool = json!({
        "name": entry.name,
        "description": entry.description,
        "inputSchema": entry.schema,
    });
    if let Some(title) = &entry.title {
        tool["title"] = title.as_str().into();
    }
    tool
}

/// The tool and the arguments that a call of `call_tool` means.
///
/// Errors: what is wrong with the arguments.
pub(crate) fn meant(
    mut arguments: Map<String, Value>,
) -> Result<(String, Map<String, Value>), String> {
    known(&arguments, &["name", "arguments"])?;
    let Some(Value::String(name)) = arguments.remove("name") else {
        return Err("`name` must be the name of a tool".to_owned());
    };
    if RESERVED.contains(&name.as_str()) {
        return Err(format!("`{name}` is called directly"));
    }
    match arguments.remove("arguments") {
        None => Ok((name, Map::new())),
        Some(Value::Object(arguments)) => Ok((name, arguments)),
        Some(_) => Err("`arguments` must be an object".to_owned()),
    }
}

fn known(arguments: &Map<String, Value>, keys: &[&str]) -> Result<(), String> {
    let other = arguments.keys().find(|key| !keys.contains(&key.as_str()));
    match other {
        Some(other) => {
            let other = zeph_core::failure::one_line(other, 60);
            Err(format!(
                "there is no argument `{other}`; there are: {}",
                keys.join(", ")
            ))
        }
        None => Ok(()),
    }
}

/// The tools that share a word with the query, best first; of equals, the first by name.
fn ranked<'a>(query: &str, entries: &'a [Entry]) -> Vec<&'a Entry> {
    let query: String = query.chars().take(QUERY_CHARS_MAX).collect();
    let wanted: BTreeSet<String> = words(&query).into_iter().take(WORDS_MAX).collect();
    let indexed: Vec<BTreeMap<String, u64>> = entries.iter().map(weighted).collect();
    let n_having = |word: &String| {
        indexed
            .iter()
            .filter(|words| weight(words, word) > 0)
            .count()
    };
    // A word that few tools have says more about which one is meant.
    let most = u64::from((entries.len() as u64 + 1).ilog2()) + 1;
    let rarity = |word: &String| {
        let having = n_having(word) as u64 + 1;
        most.saturating_sub(having.ilog2().into()).max(1)
    };
    let rarity: Vec<(&String, u64)> = wanted.iter().map(|word| (word, rarity(word))).collect();
    let score = |(entry, words): (&'a Entry, &BTreeMap<String, u64>)| {
        let is_named = entry.name.eq_ignore_ascii_case(query.trim());
        let shared: u64 = rarity
            .iter()
            .map(|(word, rarity)| weight(words, word) * rarity)
            .sum();
        (shared + if is_named { 1_000_000 } else { 0 }, entry)
    };
    let mut scored: Vec<(u64, &Entry)> = entries.iter().zip(&indexed).map(score).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by(|one, other| {
        let key = |(score, entry): &(u64, &'a Entry)| (Reverse(*score), entry.name.clone());
        key(one).cmp(&key(other))
    });
    scored.into_iter().map(|(_, entry)| entry).collect()
}

/// What a wanted word counts in a tool: all of it for the word, a third for one that begins with it.
fn weight(words: &BTreeMap<String, u64>, wanted: &str) -> u64 {
    if let Some(weight) = words.get(wanted) {
        return *weight;
    }
    if wanted.chars().count() < 3 {
        return 0;
    }
    let longer = words.range(wanted.to_owned()..);
    let longer = longer.take_while(|(word, _)| word.starts_with(wanted));
    longer
        .map(|(_, weight)| weight.div_ceil(3))
        .max()
        .unwrap_or(0)
}

/// The words of a tool with what each counts.
fn weighted(entry: &Entry) -> BTreeMap<String, u64> {
    let arguments = entry.schema.get("properties").and_then(Value::as_object);
    let arguments = arguments
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    let arguments: Vec<&str> = arguments.collect();
    let texts = [
        entry.name.clone(),
        entry.title.clone().unwrap_or_default(),
        entry.description.clone(),
        arguments.join(" "),
    ];
    let mut weighted = BTreeMap::new();
    for (text, weight) in texts.iter().zip(WEIGHTS) {
        for word in words(text) {
            let known = weighted.entry(word).or_insert(weight);
            *known = weight.max(*known);
        }
    }
    weighted
}

/// The words of a text: runs of letters and digits, in lower case, parted where a capital follows a small letter, without the `s` of a
/// plural.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in text.chars() {
        let begins = !letter.is_alphanumeric() || (letter.is_uppercase() && was_small);
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        was_small = letter.is_lowercase();
    }
    for word in &mut words {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests;
