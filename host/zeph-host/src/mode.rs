//! How much a session may do beyond the rules: chosen by its user, at any time, also while a turn runs.

use std::sync::atomic::{AtomicU8, Ordering};

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::policy::{AllowRule, Refusal};

/// The mode of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SessionMode {
    /// The rules decide, and what they leave open asks.
    #[default]
    Ask,
    /// As [`Self::Ask`], and the tools that write files run without asking, as with `--allow`. What programs obey asks nevertheless.
    Edit,
    /// Only tools that change nothing run, whatever the rules allow.
    ReadOnly,
}

/// The tools that [`SessionMode::Edit`] allows, by the names that are nobody else's.
const EDITS: [&str; 3] = ["file__create_directory", "file__edit", "file__write"];

impl SessionMode {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Ask, Self::Edit, Self::ReadOnly];

    /// Its name in protocols.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::ReadOnly => "read-only",
        }
    }

    /// The mode of this name.
    pub(crate) fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.id() == id)
    }

    /// The rules of [`Self::Edit`]. Relative patterns, of which there are none, would start in `directory`.
    pub(crate) fn edit_rules(directory: &str) -> Vec<AllowRule> {
        let rules = EDITS.iter().map(|tool| AllowRule::parse(tool, directory));
        rules.filter_map(Result::ok).collect()
    }
}

/// The mode of one session, shared by all that act in it.
#[derive(Debug, Default)]
pub(crate) struct ModeSwitch(AtomicU8);

impl ModeSwitch {
    /// The mode of this moment.
    pub(crate) fn mode(&self) -> SessionMode {
        let index = usize::from(self.0.load(Ordering::Acquire));
        SessionMode::ALL.get(index).copied().unwrap_or_default()
    }

    /// Another mode from now on.
    pub(crate) fn set(&self, mode: SessionMode) {
        let index = SessionMode::ALL.iter().position(|known| *known == mode);
        let index = index.and_then(|index| u8::try_from(index).ok());
        self.0.store(index.unwrap_or_default(), Ordering::Release);
    }
}

/// Why a call that changes something does not run in [`SessionMode::ReadOnly`].
pub(crate) fn read_only_refusal(tool: &str) -> Refusal {
    let reason = format!("the session is read-only, and `{tool}` may change something");
    Refusal {
        failure: ToolFailure::new(
            ErrorCategory::PolicyBlocked,
            ErrorPhase::Setup,
            format!("{reason}; its user can choose the mode `ask` or `edit`"),
        ),
        rule: "mode read-only".to_owned(),
        reason,
        allow: Vec::new(),
        can_be_approved: false,
        trace: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{EDITS, ModeSwitch, SessionMode};

    #[test]
    fn a_mode_has_one_name_and_can_be_changed() {
        let switch = ModeSwitch::default();
        assert_eq!(switch.mode(), SessionMode::Ask);
        for mode in SessionMode::ALL {
            switch.set(mode);
            assert_eq!(SessionMode::of(switch.mode().id()), Some(mode));
        }
        assert_eq!(SessionMode::of("code"), None);
        assert_eq!(SessionMode::edit_rules("/").len(), EDITS.len());
    }
}
