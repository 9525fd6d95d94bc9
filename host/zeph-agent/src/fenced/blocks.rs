//! Fenced blocks in a text, and the calls in them.

use serde_json::{Map, Value};

use crate::draft::made_id;
use crate::message::{Arguments, ToolCall, valid_name};

/// Names of the field with the name of the tool, and of the one with its arguments, that models use.
const NAMES: [&str; 4] = ["name", "tool", "tool_id", "function"];
const ARGUMENTS: [&str; 5] = ["arguments", "args", "parameters", "params", "input"];

/// A block: what stands behind the fence, and what stands in it.
#[derive(Debug, PartialEq, Eq)]
struct FencedBlock<'a> {
    tag: &'a str,
    body: String,
}

/// The calls in the blocks of a text, in order. A block that is not closed is none.
pub(super) fn calls(text: &str, has_tool: &dyn Fn(&str) -> bool) -> Vec<ToolCall> {
    let calls = blocks(text).into_iter().filter_map(|block| {
        let (name, arguments) = call(&block, has_tool)?;
        Some(ToolCall {
            id: made_id(),
            name: valid_name(&name).into_owned(),
            arguments,
        })
    });
    calls.collect()
}

fn call(block: &FencedBlock<'_>, has_tool: &dyn Fn(&str) -> bool) -> Option<(String, Arguments)> {
    match block.tag {
        "bash" if has_tool("bash") => {
            let command = Value::from(block.body.trim_end());
            let arguments = Map::from_iter([("command".to_owned(), command)]);
            Some(("bash".to_owned(), Arguments::Object(arguments)))
        }
        "scrape" if has_tool("web_scrape") => {
            Some(("web_scrape".to_owned(), Arguments::read(&block.body)))
        }
        "tool_call" | "tool" => Some(named(&block.body).unwrap_or_else(|| {
            // The model reads what was wrong with it.
            (block.tag.to_owned(), unnamed(&block.body))
        })),
        // JSON that is no call is an example, or data.
        "json" => named(&block.body).filter(|(name, _)| has_tool(name)),
        _ => None,
    }
}

/// The tool that an object names, with its arguments.
fn named(body: &str) -> Option<(String, Arguments)> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(body) else {
        return None;
    };
    let name = NAMES.iter().find_map(|name| fields.get(*name)?.as_str());
    let name = name?.to_owned();
    let arguments = ARGUMENTS.iter().find_map(|field| fields.remove(*field))?;
    Some((name, Arguments::of(arguments)))
}

fn unnamed(body: &str) -> Arguments {
    match Arguments::read(body) {
        malformed @ Arguments::Malformed { .. } => malformed,
        Arguments::Object(_) => Arguments::Malformed {
            text: body.chars().take(1_000).collect(),
            why: "the block names no tool: it needs `name` and `arguments`".to_owned(),
        },
    }
}

/// The blocks of a text, as CommonMark reads them: what stands in one is no block of its own, whatever it looks like.
fn blocks(text: &str) -> Vec<FencedBlock<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((fence, tag)) = opening(line) else {
            continue;
        };
        let mut body = String::new();
        for line in lines.by_ref() {
            if fence.is_closed_by(line) {
                blocks.push(FencedBlock { tag, body });
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        // What is not closed reaches to the end, where nothing follows.
    }
    blocks
}

/// What a block begins with: a number of backticks or tildes.
#[derive(Debug, Clone, Copy)]
struct Fence {
    letter: char,
    length: usize,
}

impl Fence {
    /// At the beginning of a line, with what follows it.
    fn at(line: &str) -> Option<(Self, &str)> {
        let rest = line.trim_start_matches(' ');
        let letter = rest.chars().next().filter(|first| "`~".contains(*first))?;
        let after = rest.trim_start_matches(letter);
        let length = rest.len() - after.len();
        let is_one = length >= 3 && line.len() - rest.len() <= 3;
        is_one.then_some((Self { letter, length }, after.trim()))
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::at(line).is_some_and(|(fence, after)| {
            fence.letter == self.letter && fence.length >= self.length && after.is_empty()
        })
    }
}

/// The fence of a line that opens a block, and its tag: a word that is over where it ends. Calls stand between backticks, so a block between
/// tildes has no tag.
fn opening(line: &str) -> Option<(Fence, &str)> {
    let (fence, info) = Fence::at(line)?;
    if fence.letter == '~' {
        return Some((fence, ""));
    }
    let tag = info.split_whitespace().next().unwrap_or_default();
    (!info.contains('`')).then_some((fence, tag))
}

#[cfg(test)]
mod tests;
