//! Tools of MCP servers: by which names they are known.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::id::{ServerName, TOOL_NAME_CHARS_MAX, ToolName};

/// What the names of tools of servers begin with.
pub const SERVER_TOOL_PREFIX: &str = "mcp_";

/// Hexadecimal digits that tell names of tools apart.
const HASH_DIGITS: usize = 8;

/// A tool of a server, by the names its configuration and the server give: what rules, pins and records refer to, whatever the tool is
/// offered as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerTool {
    /// The server.
    pub server: ServerName,
    /// The tool's name there; text of a stranger.
    pub tool: String,
    /// Whether `mcp_SERVER_TOOL` is the name of another tool, so that the name of this one holds a hash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hashed: bool,
}

impl ServerTool {
    /// The tool that `server` calls `tool`, named `mcp_SERVER_TOOL`.
    pub fn new(server: ServerName, tool: impl Into<String>) -> Self {
        Self {
            server,
            tool: tool.into(),
            is_hashed: false,
        }
    }

    /// The tool, named `mcp_SERVER_HASH_TOOL`.
    #[must_use]
    pub fn hashed(self) -> Self {
        Self {
            is_hashed: true,
            ..self
        }
    }

    /// The name that no choice of the operator changes: `mcp_SERVER_TOOL`, or `mcp_SERVER_HASH_TOOL`.
    ///
    /// Shape: other characters than those of a [`ToolName`] become `_`. What is too long is cut and holds eight digits of a hash.
    pub fn plain_name(&self) -> ToolName {
        let is_plain = |character: &char| character.is_ascii_alphanumeric() || *character == '-';
        let plain = self
            .tool
            .chars()
            .map(|character| match is_plain(&character) {
                true => character,
                false => '_',
            });
        let mut name = prefix(&self.server);
        if self.is_hashed {
            name.push_str(&self.hash());
            name.push('_');
        }
        name.extend(plain);
        match (name.len() > TOOL_NAME_CHARS_MAX, self.is_hashed) {
            (false, _) => {}
            (true, true) => name.truncate(TOOL_NAME_CHARS_MAX),
            (true, false) => {
                name.truncate(TOOL_NAME_CHARS_MAX - HASH_DIGITS - 1);
                name.push('_');
                name.push_str(&self.hash());
            }
        }
        ToolName::new(name).expect("bug: every character was looked at, and the length")
    }

    fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.server.as_str(), &self.tool] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digits = hash.finalize();
        let digits = digits.iter().take(HASH_DIGITS / 2);
        digits.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What the names of all tools of `server` begin with, but for those that the operator chose.
pub fn prefix(server: &ServerName) -> String {
    format!("{SERVER_TOOL_PREFIX}{server}_")
}

/// The one of `servers` that owns the names of tools that begin like `tool`: of several that fit, the one with the longest name.
///
/// `servers` are those that are configured, whether they run or not, so that a name never changes its owner while they are.
pub fn owner<'n>(
    tool: &str,
    servers: impl IntoIterator<Item = &'n ServerName>,
) -> Option<&'n ServerName> {
    // As rules compare names.
    let tool = tool.to_ascii_lowercase();
    let servers = servers.into_iter();
    let fitting = servers.filter(|name| tool.starts_with(&prefix(name).to_ascii_lowercase()));
    fitting.max_by_key(|name| name.as_str().len())
}

impl fmt::Display for ServerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, self.tool)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ServerName, ServerTool, owner};

    fn tool(server: &str, tool: &str) -> ServerTool {
        ServerTool::new(ServerName::new(server).unwrap(), tool)
    }

    #[test]
    fn a_name_belongs_to_the_longest_server_that_it_begins_with() {
        let servers = ["git", "GitHub", "github_enterprise", "a_"];
        let servers = servers.map(|name| ServerName::new(name).unwrap());
        for (name, expect) in [
            ("mcp_git_status", Some("git")),
            ("mcp_github_search", Some("GitHub")),
            ("mcp_GitHub_enterprise", Some("GitHub")),
            ("mcp_GitHub_enterprise_search", Some("github_enterprise")),
            ("mcp_a__x", Some("a_")),
            ("mcp_a_x", None),
            ("git_status", None),
        ] {
            let found = owner(name, &servers).map(ServerName::as_str);
            assert_eq!(found, expect, "{name}");
        }
        // With a hash, it is out of the way of the longer one.
        for own in [
            "enterprise_search",
            &format!("enterprise_{}", "x".repeat(99)),
        ] {
            let named = tool("GitHub", own);
            assert_eq!(
                owner(named.plain_name().as_str(), &servers),
                Some(&servers[2])
            );
            let name = named.hashed().plain_name();
            assert!(name.as_str().contains("_enterprise_"), "{name}");
            assert_eq!(owner(name.as_str(), &servers), Some(&servers[1]), "{name}");
        }
    }

    #[test]
    fn a_tool_is_named_after_its_server() {
        let name = |server: &str, own: &str| tool(server, own).plain_name().to_string();
        assert_eq!(name("git", "status"), "mcp_git_status");
        assert_eq!(name("git", "files.read"), "mcp_git_files_read");
        assert_eq!(name("git", "a/b c:ü"), "mcp_git_a_b_c__");
        assert_eq!(name("git", ""), "mcp_git_");
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let long = "x".repeat(60);
        let one = tool("git", &format!("{long}1")).plain_name();
        let other = tool("git", &format!("{long}2")).plain_name();
        assert_eq!(one.as_str().len(), 64);
        assert!(one.as_str().starts_with("mcp_git_xxx"), "{one}");
        assert_ne!(one, other);
        assert_eq!(one, tool("git", &format!("{long}1")).plain_name());
    }

    proptest! {
        #[test]
        fn every_name_is_one(own in ".{0,300}") {
            let name = tool("server", &own).plain_name();
            prop_assert!(name.as_str().starts_with("mcp_server_"));
        }
    }
}
