//! How far a call is trusted: by who makes it, and by what runs it.
//!
//! Trust is kept for owners and their tools ([`TrustSubject`]), never for a name that a tool is offered by: names can move.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Finding, Verdict};
use crate::failure::one_line;
use crate::id::{PluginId, ServerName, ToolName};
use crate::tool::{Backend, Tool};

/// Between a plugin and its tool. No name of a plugin contains it.
const JOINT: &str = "__";

/// Most bytes of a subject as text: names of tools of servers are texts of strangers.
const SUBJECT_BYTES_MAX: usize = 512;

/// How far a caller, a tool or an owner of tools is trusted; the first is trusted most.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// Callers: the person at the terminal. Tools: parts of the program, and MCP servers that are configured as trusted.
    #[default]
    Trusted,
    /// Callers: models and programs that the user or a token let in. Tools: plugins, by the digest that was pinned.
    Verified,
    /// Callers: clients over HTTP that showed no token. Tools: all other MCP servers.
    Quarantined,
    /// Nothing of it runs.
    Blocked,
}

impl TrustLevel {
    /// Every level, the most trusted first.
    pub const ALL: [Self; 4] = [
        Self::Trusted,
        Self::Verified,
        Self::Quarantined,
        Self::Blocked,
    ];

    /// Its word in configuration, records and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Verified => "verified",
            Self::Quarantined => "quarantined",
            Self::Blocked => "blocked",
        }
    }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A word that is no level of trust.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a trust level; write `trusted`, `verified`, `quarantined` or `blocked`")]
pub struct BadTrustLevel(String);

impl FromStr for TrustLevel {
    type Err = BadTrustLevel;

    fn from_str(text: &str) -> Result<Self, BadTrustLevel> {
        let mut levels = Self::ALL.into_iter();
        let found = levels.find(|level| level.label() == text);
        found.ok_or_else(|| BadTrustLevel(one_line(text, 60)))
    }
}

/// What trust is kept for: a tool by its owner and the name it has there, or an owner with all of its tools.
///
/// As text: `PLUGIN__TOOL`, `plugin:PLUGIN`, `server:SERVER/TOOL`, `server:SERVER`, and the name of a tool of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustSubject {
    /// Who offers it.
    pub owner: ToolOwner,
    /// The tool under the owner's own name for it; none for all of them.
    pub tool: Option<String>,
}

/// Who offers a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolOwner {
    /// A plugin, by its name.
    Plugin(PluginId),
    /// An MCP server, by its name in the configuration.
    Server(ServerName),
    /// The host itself, or the program that embeds it.
    Host,
}

impl TrustSubject {
    /// That of a tool.
    pub fn of_tool(tool: &Tool) -> Self {
        let (owner, own) = match &tool.backend {
            Backend::Wasm(plugin) => {
                let qualified = tool.qualified_name();
                let own = qualified.strip_prefix(&format!("{plugin}{JOINT}"));
                let own = own.unwrap_or(&qualified).to_owned();
                (ToolOwner::Plugin(plugin.clone()), own)
            }
            Backend::Mcp(tool) => (ToolOwner::Server(tool.server.clone()), tool.tool.clone()),
            Backend::Builtin | Backend::Shell => (ToolOwner::Host, tool.name.to_string()),
        };
        Self {
            owner,
            tool: Some(own),
        }
    }

    /// Its owner with all of its tools; none for a tool of the host, which has no such whole.
    pub fn whole(&self) -> Option<Self> {
        let has_whole = self.owner != ToolOwner::Host;
        has_whole.then(|| Self {
            owner: self.owner.clone(),
            tool: None,
        })
    }
}

impl fmt::Display for TrustSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.owner, &self.tool) {
            (ToolOwner::Plugin(plugin), Some(tool)) => write!(f, "{plugin}{JOINT}{tool}"),
            (ToolOwner::Plugin(plugin), None) => write!(f, "plugin:{plugin}"),
            (ToolOwner::Server(server), Some(tool)) => write!(f, "server:{server}/{tool}"),
            (ToolOwner::Server(server), None) => write!(f, "server:{server}"),
            (ToolOwner::Host, Some(tool)) if tool.contains(JOINT) => write!(f, "host:{tool}"),
            (ToolOwner::Host, tool) => f.write_str(tool.as_deref().unwrap_or("host:")),
        }
    }
}

/// A text that names neither a tool nor an owner of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no tool; write `PLUGIN__TOOL`, `plugin:PLUGIN`, `server:SERVER/TOOL` or `server:SERVER`"
)]
pub struct BadTrustSubject(String);

impl FromStr for TrustSubject {
    type Err = BadTrustSubject;

    /// Reads what [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, BadTrustSubject> {
        let bad = || BadTrustSubject(one_line(text, 100));
        if text.is_empty() || text.len() > SUBJECT_BYTES_MAX {
            return Err(bad());
        }
        let plugin = |name: &str| ToolOwner::Plugin(PluginId(name.to_owned()));
        let named = |tool: &str| Some(tool.to_owned()).filter(|tool| !tool.is_empty());
        // Another name of a tool of the host could be taken for one of these forms.
        let own = |tool: &str| ToolName::new(tool).map(|name| Some(name.to_string()));
        let (owner, tool) = if let Some(name) = text.strip_prefix("plugin:") {
            let is_whole = !name.is_empty() && !name.contains(JOINT);
            (is_whole.then(|| plugin(name)).ok_or_else(bad)?, None)
        } else if let Some(rest) = text.strip_prefix("server:") {
            let (name, tool) = match rest.split_once('/') {
                Some((name, tool)) => (name, Some(tool.to_owned())),
                None => (rest, None),
            };
            let name = ServerName::new(name).map_err(|_| bad())?;
            (ToolOwner::Server(name), tool)
        } else if let Some(tool) = text.strip_prefix("host:") {
            (ToolOwner::Host, own(tool).map_err(|_| bad())?)
        } else if let Some((name, tool)) = text.split_once(JOINT) {
            let tool = named(tool).filter(|_| !name.is_empty());
            (plugin(name), Some(tool.ok_or_else(bad)?))
        } else {
            (ToolOwner::Host, own(text).map_err(|_| bad())?)
        };
        Ok(Self { owner, tool })
    }
}

/// How far one call is trusted, and what keeps it from running. The default is full trust.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTrust {
    /// Who makes the call.
    pub caller: TrustLevel,
    /// What runs it: the less trusted of the tool and its owner.
    pub provider: TrustLevel,
    /// Why nothing of it runs; none when it may.
    pub block: Option<TrustBlock>,
}

/// Why a tool is blocked, and how that is lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustBlock {
    /// What set it, for the record: `tools.anomaly`, or the command of a person.
    pub rule: String,
    /// What is blocked, as `zeph-host trust` names it.
    pub subject: String,
    /// Why, as the end of a sentence.
    pub reason: String,
    /// The command that lifts it.
    pub reset: String,
}

impl CallTrust {
    /// Full trust, with nothing that blocks.
    pub const FULL: Self = Self {
        caller: TrustLevel::Trusted,
        provider: TrustLevel::Trusted,
        block: None,
    };

    /// The less trusted of caller and provider: what `trust_level` of a rule is compared with.
    pub fn level(&self) -> TrustLevel {
        match self.block {
            Some(_) => TrustLevel::Blocked,
            None => self.caller.max(self.provider),
        }
    }
}

/// Refuses what is blocked.
pub(super) fn check(trust: &CallTrust) -> Finding {
    if let Some(block) = &trust.block {
        let TrustBlock {
            rule,
            subject,
            reason,
            reset,
        } = block;
        let reason = format!(
            "`{}` is blocked ({rule}): {reason}; the operator can unblock it with `{reset}`",
            one_line(subject, 200)
        );
        return Finding::new(Verdict::Deny, rule.clone()).because(reason);
    }
    if trust.level() == TrustLevel::Blocked {
        return Finding::new(Verdict::Deny, "trust").because("the caller or the tool is blocked");
    }
    let detail = format!("caller {}, tool {}", trust.caller, trust.provider);
    Finding::pass(&detail)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{CallTrust, ToolOwner, TrustLevel, TrustSubject};
    use crate::id::PluginId;

    #[test]
    fn subjects_are_read_as_they_are_written() {
        for text in [
            "bash",
            "host:odd__name",
            "greet__hello",
            "greet___odd",
            "greet__a__b",
            "plugin:greet",
            "server:git",
            "server:git/status",
            "server:git/a/b c\"",
            "server:git/",
        ] {
            let subject: TrustSubject = text.parse().unwrap();
            assert_eq!(subject.to_string(), text);
            assert_eq!(
                subject.whole().is_none(),
                text.contains("host:") || text == "bash"
            );
        }
        for text in [
            "",
            "plugin:",
            "plugin:a__b",
            "server:",
            "server:/x",
            "__x",
            "a__",
            "host:",
        ] {
            assert!(text.parse::<TrustSubject>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_less_trusted_counts() {
        assert_eq!(CallTrust::FULL.level(), TrustLevel::Trusted);
        let mixed = CallTrust {
            caller: TrustLevel::Verified,
            provider: TrustLevel::Quarantined,
            block: None,
        };
        assert_eq!(mixed.level(), TrustLevel::Quarantined);
    }

    proptest! {
        #[test]
        fn no_text_names_two_subjects(text in ".{0,60}") {
            if let Ok(subject) = text.parse::<TrustSubject>() {
                prop_assert_eq!(subject.to_string().parse::<TrustSubject>().unwrap(), subject);
            }
        }

        #[test]
        fn every_tool_of_a_plugin_has_a_text(plugin in "[a-z][a-z0-9-]{0,20}", tool in "[A-Za-z0-9_-]{1,20}") {
            let subject = TrustSubject {
                owner: ToolOwner::Plugin(PluginId(plugin)),
                tool: Some(tool),
            };
            prop_assert_eq!(subject.to_string().parse::<TrustSubject>().unwrap(), subject);
        }
    }
}
