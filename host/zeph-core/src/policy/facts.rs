//! What the authoriser must know of the session and the process. Gathered by its caller, so that deciding stays pure.

use std::fmt;
use std::path::PathBuf;

use super::{CallTrust, FlowFacts, GrantModes, HeardUrls, TrajectoryFacts};
use crate::lifetime::Lifetime;

/// The facts of one moment.
#[derive(Clone, Copy)]
pub struct SessionFacts<'a> {
    /// Calls this session has made before this one.
    pub calls_made: u32,
    /// How long the approval of exactly this call lasts; `None` without one.
    pub approval: Option<Lifetime>,
    /// What of the things that programs obey exactly this call may change, because a user agreed to that. Real paths.
    pub agreed_objects: &'a [PathBuf],
    /// How far the caller and the tool are trusted.
    pub trust: &'a CallTrust,
    /// The grants the call holds that do not simply allow, in words such as `host example.org`.
    pub grants: &'a GrantModes,
    /// Whether a variable of this name exists in the host's environment.
    pub has_variable: &'a (dyn Fn(&str) -> bool + Sync),
    /// The user the host runs as, when it has a name.
    pub user: Option<&'a str>,
    /// Whether the host runs as root, so that it can run tools as another user.
    pub is_root: bool,
    /// The addresses the session was told of; `None` where what its user says is not known.
    pub heard: Option<&'a HeardUrls>,
    /// What the conversation did before; `None` where sequences are not looked for.
    pub trajectory: Option<TrajectoryFacts<'a>>,
    /// What the conversation has read; `None` where that is not followed.
    pub flow: Option<FlowFacts<'a>>,
}

/// Trust in everybody.
static FULL_TRUST: CallTrust = CallTrust::FULL;

/// No grant.
static NO_GRANTS: GrantModes = GrantModes::NONE;

impl Default for SessionFacts<'_> {
    /// A fresh, trusted session of an unknown user without variables.
    fn default() -> Self {
        Self {
            calls_made: 0,
            approval: None,
            agreed_objects: &[],
            trust: &FULL_TRUST,
            grants: &NO_GRANTS,
            has_variable: &|_| false,
            user: None,
            is_root: false,
            heard: None,
            trajectory: None,
            flow: None,
        }
    }
}

impl fmt::Debug for SessionFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionFacts")
            .field("calls_made", &self.calls_made)
            .field("approval", &self.approval)
            .field("trust", &self.trust)
            .field("user", &self.user)
            .field("is_root", &self.is_root)
            .finish_non_exhaustive()
    }
}
