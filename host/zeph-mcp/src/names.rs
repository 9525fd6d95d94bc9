//! The names under which tools are exposed to clients.
//!
//! A tool keeps its name of the catalog when every client can take it. Clients put a prefix of their own before it, and model
//! providers refuse what is longer than 64 characters then; so a name that is too long, or that is taken, ends in a part of the hash
//! of its qualified name instead. What a tool is called depends on the set of tools and not on their order, and no name of a stranger
//! takes the name of another tool away.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};
use zeph_core::id::{Digest, TOOL_NAME_CHARS_MAX, ToolName};
use zeph_core::tool::Tool;

/// What the longest prefix of a known client looks like, with the server under the name that the snippets give it.
const CLIENT_PREFIX: &str = "mcp__zeph-host__";

/// Most characters of an exposed name: what model providers accept, less the prefix of a client.
pub const EXPOSED_NAME_CHARS_MAX: usize = TOOL_NAME_CHARS_MAX - CLIENT_PREFIX.len();

/// Hexadecimal digits of the hash that a renamed tool ends in. More are taken only while fewer do not tell all tools apart.
const HASH_DIGITS: [usize; 4] = [8, 16, 24, 40];

/// The exposed name of each tool of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExposedNames {
    exposed: BTreeMap<ToolName, String>,
    tools: BTreeMap<String, ToolName>,
}

impl ExposedNames {
    /// Names `tools`, whose own names are unique. None of them gets a name of `reserved`.
    pub fn of<'a>(tools: impl IntoIterator<Item = &'a Tool>, reserved: &[&str]) -> Self {
        let mut names = Self::default();
        let mut renamed = Vec::new();
        for tool in tools {
            let name = tool.name.as_str();
            match name.len() <= EXPOSED_NAME_CHARS_MAX && !reserved.contains(&name) {
                true => names.insert(name.to_owned(), &tool.name),
                false => renamed.push(Renamed::of(tool)),
            }
        }
        for n_digits in HASH_DIGITS {
            renamed = names.insert_unique(renamed, n_digits, reserved);
        }
        names
    }

    /// The name a tool is exposed under.
    pub fn exposed(&self, tool: &ToolName) -> Option<&str> {
        self.exposed.get(tool).map(String::as_str)
    }

    /// The tool that is exposed under `name`.
    pub fn tool(&self, name: &str) -> Option<&ToolName> {
        self.tools.get(name)
    }

    fn insert(&mut self, exposed: String, tool: &ToolName) {
        self.tools.insert(exposed.clone(), tool.clone());
        self.exposed.insert(tool.clone(), exposed);
    }

    /// Names those whose hash tells them apart at this length; returns the others.
    fn insert_unique(
        &mut self,
        renamed: Vec<Renamed>,
        n_digits: usize,
        reserved: &[&str],
    ) -> Vec<Renamed> {
        let names: Vec<String> = renamed.iter().map(|tool| tool.name(n_digits)).collect();
        let mut seen = BTreeSet::new();
        let twice: BTreeSet<String> = names
            .iter()
            .filter(|name| !seen.insert(*name))
            .cloned()
            .collect();
        let mut left = Vec::new();
        for (tool, name) in renamed.into_iter().zip(names) {
            let is_taken = self.tools.contains_key(&name) || reserved.contains(&name.as_str());
            match is_taken || twice.contains(&name) {
                true => left.push(tool),
                false => self.insert(name, &tool.name),
            }
        }
        left
    }
}

/// A tool that cannot keep its name.
struct Renamed {
    name: ToolName,
    /// The SHA-256 of its qualified name, in hexadecimal.
    hash: String,
}

impl Renamed {
    fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            hash: Digest::new(Sha256::digest(tool.qualified_name()).into()).hex(),
        }
    }

    fn name(&self, n_digits: usize) -> String {
        let n_kept = EXPOSED_NAME_CHARS_MAX - n_digits - 1;
        let name = self.name.as_str();
        format!(
            "{}_{}",
            &name[..name.len().min(n_kept)],
            &self.hash[..n_digits]
        )
    }
}

#[cfg(test)]
mod tests;
