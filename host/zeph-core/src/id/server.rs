//! The name of an MCP server.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of an MCP server, as its operator gave it (`[mcp.servers.NAME]`, `wrap --name NAME`).
///
/// Shape: 1 to 32 of `A-Z a-z 0-9 _ -`, the first a letter or a digit, so that `mcp_NAME_tool` leaves room for the tool, and the
/// name can be a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

/// Most characters in a [`ServerName`].
pub const SERVER_NAME_CHARS_MAX: usize = 32;

/// An invalid [`ServerName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of an MCP server has 1 to {SERVER_NAME_CHARS_MAX} of `A-Z a-z 0-9 _ -` and begins with a letter or a digit"
)]
pub struct BadServerName;

impl ServerName {
    /// Checks `name`.
    ///
    /// Errors: [`BadServerName`] if a character or the length is invalid.
    pub fn new(name: impl Into<String>) -> Result<Self, BadServerName> {
        let name = name.into();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let begins_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_short = name.len() <= SERVER_NAME_CHARS_MAX;
        match begins_well && is_short && name.bytes().all(is_plain) {
            true => Ok(Self(name)),
            false => Err(BadServerName),
        }
    }

    /// A valid name that is as close to `text` as can be: what it cannot contain becomes `-`, and the end is cut off.
    ///
    /// Shape: `server` for a text without a letter or digit.
    pub fn near(text: &str) -> Self {
        let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            true => c,
            false => '-',
        };
        let text: String = text.chars().map(plain).collect();
        let text = text.trim_matches(['-', '_']);
        let cut: String = text.chars().take(SERVER_NAME_CHARS_MAX).collect();
        Self::new(cut.trim_end_matches(['-', '_'])).unwrap_or_else(|_bad| Self("server".to_owned()))
    }

    /// This name with `-NUMBER` behind it, its end cut off where it would be too long.
    pub fn numbered(&self, number: u32) -> Self {
        let number = format!("-{number}");
        let n_chars = SERVER_NAME_CHARS_MAX.saturating_sub(number.len());
        let mut name: String = self.0.chars().take(n_chars).collect();
        name.push_str(&number);
        Self(name)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = BadServerName;

    fn from_str(text: &str) -> Result<Self, BadServerName> {
        Self::new(text)
    }
}

impl TryFrom<String> for ServerName {
    type Error = BadServerName;

    fn try_from(name: String) -> Result<Self, BadServerName> {
        Self::new(name)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_is_none() {
        for name in ["files", "GitHub", "my-server_2", "a", "7", &"x".repeat(32)] {
            assert_eq!(ServerName::new(name).unwrap().as_str(), name);
        }
        for name in [
            "",
            "-x",
            "_x",
            "a.b",
            "a/b",
            "..",
            "é",
            "a b",
            "a\n",
            &"x".repeat(33),
        ] {
            assert_eq!(ServerName::new(name), Err(BadServerName), "{name:?}");
        }
    }

    #[test]
    fn the_nearest_name_is_always_a_name() {
        for (text, name) in [
            ("@scope/server-files", "scope-server-files"),
            ("mcp-server-git", "mcp-server-git"),
            ("../..", "server"),
            ("", "server"),
            ("__", "server"),
            ("a.", "a"),
            ("日本", "server"),
        ] {
            assert_eq!(ServerName::near(text).as_str(), name, "{text}");
        }
        assert_eq!(ServerName::near(&"x".repeat(99)).as_str().len(), 32);
    }

    #[test]
    fn a_name_with_a_number_is_a_name() {
        let long = "x".repeat(32);
        for (name, number, numbered) in [
            ("server", 2, "server-2".to_owned()),
            (&long, 10, format!("{}-10", &long[..29])),
            (&long, u32::MAX, format!("{}-{}", &long[..21], u32::MAX)),
        ] {
            let found = ServerName::new(name).unwrap().numbered(number);
            assert_eq!(found.as_str(), numbered);
            assert_eq!(ServerName::new(numbered), Ok(found));
        }
    }
}
