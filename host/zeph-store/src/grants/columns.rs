//! The columns of a grant, from records and back, whatever the database.

use zeph_core::capability::Capability;
use zeph_core::id::{ConversationId, Digest, Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::policy::Mode;

use super::{GrantRecord, problem};

/// The columns of a row, in the order in which both databases read them.
macro_rules! grant_columns {
    () => {
        "id, plugin, wasm, tools, capability, lifetime, conversation_id, until_ms, granted_at_ms, mode"
    };
}

pub(crate) use grant_columns;

/// A lifetime as it stands in its three columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LifetimeColumns<T> {
    pub(crate) label: T,
    pub(crate) conversation: Option<String>,
    pub(crate) until_ms: Option<i64>,
}

/// A row as it is stored.
#[derive(Debug)]
pub(crate) struct GrantColumns<'a> {
    pub(crate) id: i64,
    pub(crate) plugin: &'a str,
    pub(crate) wasm: &'a str,
    pub(crate) tools: &'a str,
    pub(crate) capability: &'a str,
    pub(crate) lifetime: LifetimeColumns<&'a str>,
    pub(crate) granted_at_ms: i64,
    pub(crate) mode: Option<String>,
}

impl GrantColumns<'_> {
    /// The grant, or why it cannot be read.
    pub(crate) fn grant(self) -> Result<GrantRecord, String> {
        let digest = |text: &str, name: &str| {
            let read = text.parse::<Digest>();
            read.map_err(|error| format!("its `{name}` is no digest: {error}"))
        };
        let capability: Capability = serde_json::from_str(self.capability)
            .map_err(|error| format!("its capability is none this program knows: {error}"))?;
        if let Some(problem) = problem(&capability) {
            return Err(format!(
                "its capability `{capability}` cannot be: {problem}"
            ));
        }
        Ok(GrantRecord {
            id: self.id,
            plugin: PluginId(self.plugin.to_owned()),
            pin: Pin {
                wasm: digest(self.wasm, "wasm")?,
                tools: digest(self.tools, "tools")?,
            },
            capability,
            lifetime: self.lifetime.lifetime()?,
            granted_at_ms: self.granted_at_ms,
            mode: self.mode.map(mode).transpose()?,
        })
    }
}

/// Splits a lifetime into its columns.
pub(crate) fn columns(lifetime: GrantLifetime) -> LifetimeColumns<&'static str> {
    let (label, conversation, until_ms) = match lifetime {
        GrantLifetime::Once => ("once", None, None),
        GrantLifetime::Session { conversation } => {
            ("session", Some(conversation.to_string()), None)
        }
        GrantLifetime::Until { at_ms } => ("until", None, Some(at_ms)),
        GrantLifetime::Always => ("always", None, None),
    };
    LifetimeColumns {
        label,
        conversation,
        until_ms,
    }
}

impl LifetimeColumns<&str> {
    /// Puts a lifetime together again; columns that contradict each other are no lifetime.
    fn lifetime(self) -> Result<GrantLifetime, String> {
        match (self.label, self.conversation, self.until_ms) {
            ("once", None, None) => Ok(GrantLifetime::Once),
            ("always", None, None) => Ok(GrantLifetime::Always),
            ("until", None, Some(at_ms)) => Ok(GrantLifetime::Until { at_ms }),
            ("session", Some(conversation), None) => {
                let conversation: ConversationId = conversation
                    .parse()
                    .map_err(|error| format!("its conversation is none: {error}"))?;
                Ok(GrantLifetime::Session { conversation })
            }
            (label, ..) => Err(format!("its lifetime `{label}` makes no sense")),
        }
    }
}

/// The word of a mode in its column.
pub(crate) fn mode_label(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Ask => "ask",
        Mode::Deny => "deny",
    }
}

/// A mode this program does not know grants nothing.
fn mode(label: String) -> Result<Mode, String> {
    let mut modes = [Mode::Observe, Mode::Ask, Mode::Deny].into_iter();
    let mode = modes.find(|mode| mode_label(*mode) == label);
    mode.ok_or_else(|| format!("its mode `{label}` is none this program knows"))
}
