//! Identifiers. Each has its own type, so that they cannot be confused.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

mod approval;
mod prefix;
mod server;

pub use approval::{ApprovalId, BadApprovalId};
pub use prefix::{BadCallPrefix, CallPrefix};
pub use server::{BadServerName, SERVER_NAME_CHARS_MAX, ServerName};

/// A tool's name as a model sees it.
///
/// Shape: 1 to 64 of `A-Z a-z 0-9 _ -`, the set every model provider accepts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// Most characters in a [`ToolName`]. Model providers refuse longer names.
pub const TOOL_NAME_CHARS_MAX: usize = 64;

/// An invalid [`ToolName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool name has 1 to {TOOL_NAME_CHARS_MAX} of `A-Z a-z 0-9 _ -`")]
pub struct BadToolName;

impl ToolName {
    /// Checks `name`.
    ///
    /// Errors: [`BadToolName`] if a character or the length is invalid.
    pub fn new(name: impl Into<String>) -> Result<Self, BadToolName> {
        let name = name.into();
        let chars_ok = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if name.is_empty() || name.len() > TOOL_NAME_CHARS_MAX || !chars_ok {
            return Err(BadToolName);
        }
        Ok(Self(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = BadToolName;

    fn try_from(name: String) -> Result<Self, BadToolName> {
        Self::new(name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A plugin's name: the one it declares, or the stem of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginId(pub String);

/// Most characters of the name of a plugin in a folder, so that it fits before a tool's.
pub const PLUGIN_NAME_CHARS_MAX: usize = 48;

impl PluginId {
    /// What the name of a plugin in a folder is made of, when `name` cannot be one.
    pub fn problem(name: &str) -> Option<String> {
        let chars_ok = name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
        let length_ok = (1..=PLUGIN_NAME_CHARS_MAX).contains(&name.len());
        let is_name = chars_ok && length_ok && !name.starts_with('-');
        // `plugin__tool` has to say which is which.
        let is_ambiguous = name.contains("__") || name.ends_with('_');
        (!is_name || is_ambiguous).then(|| {
            format!(
                "1 to {PLUGIN_NAME_CHARS_MAX} of `a-z 0-9 _ -`, without `__` and without `_` at the end"
            )
        })
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of some bytes, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// An invalid [`Digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 hexadecimal digits")]
pub struct BadDigest;

impl Digest {
    /// Wraps the output of SHA-256.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 64 digits alone, for names of files.
    pub fn hex(&self) -> String {
        // Each call writes several: into its record, and where its grants are looked up.
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
        let mut text = String::with_capacity(2 * self.0.len());
        for byte in self.0 {
            text.push(digit(byte >> 4));
            text.push(digit(byte & 15));
        }
        text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let hex = text.strip_prefix("sha256:").ok_or(BadDigest)?;
        if hex.len() != 64
            || !hex
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(BadDigest);
        }
        let mut bytes = [0; 32];
        for (idx, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * idx..2 * idx + 2], 16).map_err(|_| BadDigest)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = BadDigest;

    fn try_from(text: String) -> Result<Self, BadDigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A plugin as its operator accepted it. A grant applies to exactly this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pin {
    /// The digest of the component's bytes.
    pub wasm: Digest,
    /// The digest of all tool definitions and requested capabilities.
    pub tools: Digest,
}

/// A text that is no ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("wanted a whole ID, such as `0198c0de-7a4b-7c2e-9f10-3d5b6a7c8e90`")]
pub struct BadId;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $new:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new, unique identifier.
            #[expect(clippy::new_without_default, reason = "each value differs: a default would mislead")]
            pub fn new() -> Self {
                Self($new)
            }

            /// The UUID itself.
            pub fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Uuid::try_parse(text).map(Self).map_err(|_| BadId)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

uuid_id!(
    /// One call, from request to audit. Version 7, so rows sort by time.
    CallId,
    Uuid::now_v7()
);
uuid_id!(
    /// A conversation: the owner of stored outputs. Version 7.
    ConversationId,
    Uuid::now_v7()
);
uuid_id!(
    /// A stored full output. Version 4: a model must not be able to guess one from another.
    OverflowId,
    Uuid::new_v4()
);

#[cfg(test)]
mod tests {
    use super::PluginId;

    #[test]
    fn names_of_plugins() {
        for good in ["a", "notes-2", "x_y", "0", &"a".repeat(48)] {
            assert_eq!(PluginId::problem(good), None, "{good}");
        }
        for bad in [
            "",
            "A",
            "a b",
            "ä",
            "a.b",
            "-a",
            "a/b",
            "a__b",
            "a_",
            &"a".repeat(49),
        ] {
            assert!(PluginId::problem(bad).is_some(), "{bad}");
        }
    }
}
