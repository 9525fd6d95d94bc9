//! Where sequences come from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::CallId;

/// Why a sequence was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnedCause {
    /// A person marked the result of its last call as unacceptable.
    Revoked,
    /// Its last call was refused, by rules or by a person.
    Refused,
    /// Its last call tried what had not been granted.
    Violated,
    /// The tool of its last call failed.
    Failed,
}

impl LearnedCause {
    /// As it stands in the store.
    pub fn label(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Refused => "refused",
            Self::Violated => "violated",
            Self::Failed => "failed",
        }
    }

    /// The cause with this label.
    pub fn of_label(label: &str) -> Option<Self> {
        let all = [Self::Revoked, Self::Refused, Self::Violated, Self::Failed];
        all.into_iter().find(|cause| cause.label() == label)
    }
}

/// Where a sequence comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SequenceOrigin {
    /// The place in `tools.governance.blocked_sequences`.
    Configured(usize),
    /// It was learned.
    Learned {
        /// What `zeph-host forgive` calls it.
        id: i64,
        /// Why.
        cause: LearnedCause,
        /// The call it was learned from.
        call: CallId,
    },
}

impl SequenceOrigin {
    /// The rule, for records and traces.
    pub(super) fn rule(&self) -> String {
        match self {
            Self::Configured(idx) => format!("tools.governance.blocked_sequences[{idx}]"),
            Self::Learned { id, cause, .. } => {
                format!(
                    "tools.governance: learned sequence {id} ({})",
                    cause.label()
                )
            }
        }
    }

    /// How it is changed.
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Configured(idx) => format!(
                "only the operator can change this, at `tools.governance.blocked_sequences[{idx}]`"
            ),
            Self::Learned { id, .. } => format!("`zeph-host forgive {id}` removes it"),
        }
    }
}

impl fmt::Display for SequenceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cause, call) = match self {
            Self::Configured(idx) => {
                return write!(f, "`tools.governance.blocked_sequences[{idx}]`");
            }
            Self::Learned { cause, call, .. } => (cause, call),
        };
        match cause {
            LearnedCause::Revoked => write!(f, "learned from call {call}, which a person revoked"),
            LearnedCause::Refused => write!(f, "learned from call {call}, which was refused"),
            LearnedCause::Violated => {
                write!(
                    f,
                    "learned from call {call}, which tried what was not granted"
                )
            }
            LearnedCause::Failed => write!(f, "learned from call {call}, whose tool failed"),
        }
    }
}
