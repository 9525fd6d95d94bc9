//! Tools of MCP servers: by which names they are known.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::id::{ServerName, TOOL_NAME_CHARS_MAX, ToolName};

/// What the names of tools of servers begin with.
pub const SERVER_TOOL_PREFIX: &str = "mcp_";

/// Hexadecimal digits that tell long names of tools apart.
const HASH_DIGITS: usize = 8;

/// A tool of a server, by the names its configuration and the server give: what rules, pins and records refer to, whatever the tool is
/// offered as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerTool {
    /// The server.
    pub server: ServerName,
    /// The tool's name there; text of a stranger.
    pub tool: String,
}

impl ServerTool {
    /// The name that depends on nothing else: `mcp_SERVER_TOOL`.
    ///
    /// Shape: other characters than those of a [`ToolName`] become `_`. What is too long is cut and ends with eight digits of a hash.
    ///        Two tools can come out with one name; then only one of them can be offered.
    pub fn plain_name(&self) -> ToolName {
        let is_plain = |character: &char| character.is_ascii_alphanumeric() || *character == '-';
        let plain = self
            .tool
            .chars()
            .map(|character| match is_plain(&character) {
                true => character,
                false => '_',
            });
        let mut name = format!("{SERVER_TOOL_PREFIX}{}_", self.server);
        name.extend(plain);
        if name.len() > TOOL_NAME_CHARS_MAX {
            name.truncate(TOOL_NAME_CHARS_MAX - HASH_DIGITS - 1);
            name.push('_');
            name.push_str(&self.hash());
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

impl fmt::Display for ServerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.server, self.tool)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ServerName, ServerTool};

    fn tool(server: &str, tool: &str) -> ServerTool {
        ServerTool {
            server: ServerName::new(server).unwrap(),
            tool: tool.to_owned(),
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
