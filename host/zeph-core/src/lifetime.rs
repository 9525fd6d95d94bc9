//! How long an agreement lasts: the approval of a call, or a grant to a plugin.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::ConversationId;

/// How long the approval of a call lasts, and what a person answers when asked about a call or a grant.
///
/// Which call and which conversation are meant stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// For one call, which uses it up.
    Once,
    /// For every such call of the conversation.
    Session,
    /// For every such call, until it is revoked.
    Always,
}

impl Lifetime {
    /// Its word in the database, in JSON and on the command line.
    pub fn label(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

/// How long a grant lasts: a [`Lifetime`] that names its conversation, or a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "lifetime", rename_all = "snake_case")]
pub enum GrantLifetime {
    /// For the next call that uses it.
    Once,
    /// For the calls of one conversation.
    Session {
        /// The conversation.
        conversation: ConversationId,
    },
    /// Until a point in time.
    Until {
        /// The time, in milliseconds since 1970.
        at_ms: i64,
    },
    /// Until it is revoked.
    Always,
}

impl GrantLifetime {
    /// The lifetime of a grant that a person of `conversation` agreed to for `lifetime`.
    pub fn of(lifetime: Lifetime, conversation: ConversationId) -> Self {
        match lifetime {
            Lifetime::Once => Self::Once,
            Lifetime::Session => Self::Session { conversation },
            Lifetime::Always => Self::Always,
        }
    }
}

impl fmt::Display for GrantLifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Once => f.write_str("once"),
            Self::Session { conversation } => write!(f, "session {conversation}"),
            Self::Until { at_ms } => write!(f, "until {at_ms}"),
            Self::Always => f.write_str("always"),
        }
    }
}
