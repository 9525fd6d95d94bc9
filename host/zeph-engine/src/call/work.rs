//! What a call of a guest is done with: its component, and what it may touch and use.

use std::sync::Arc;

use zeph_core::id::Digest;
use zeph_core::inquiry::Resumption;
use zeph_core::limit::CallLimits;

use crate::fs::FsPolicy;
use crate::http_exit::HttpExit;
use crate::plugin::Plugin;

/// What one call may touch and use.
#[derive(Debug, Clone)]
pub struct CallGrant {
    /// Directories.
    pub fs: Arc<FsPolicy>,
    /// Bounds. They may exceed those of the engine; beyond [`crate::LIMITS_MAX`] they count as that.
    pub limits: CallLimits,
    /// Variables of the environment: name and value, each name once. The guest's environment is these and nothing else.
    pub variables: Arc<[(String, String)]>,
    /// What the operator set for the plugin: a JSON object.
    pub settings: Arc<str>,
    /// Where HTTP requests go; without one all are refused.
    pub http: Option<Arc<dyn HttpExit>>,
}

/// The settings of a plugin for which nothing was set.
pub const NO_SETTINGS: &str = "{}";

impl CallGrant {
    /// The same grant without any right on files but to read, for a tool that promises to change nothing. Cheap enough for
    /// every call.
    #[must_use]
    pub fn read_only(&self) -> Self {
        Self {
            fs: Arc::new(self.fs.read_only()),
            ..self.clone()
        }
    }

    /// Whether a call that is watched and sends nothing finds with `other`, cut from the same operator's policy, what it finds with
    /// this.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            fs,
            limits,
            variables,
            settings,
            http: _,
        } = self;
        fs.is_same(&other.fs)
            && *limits == other.limits
            && *variables == other.variables
            && *settings == other.settings
    }

    /// Whether the engine sees all that a call learns with it.
    pub fn can_be_watched(&self) -> bool {
        // Files are watched and requests noticed; a variable is simply there. What is granted besides has to be named here.
        let Self {
            fs: _,
            limits: _,
            variables,
            settings: _,
            http: _,
        } = self;
        variables.is_empty()
    }
}

/// A component, what one call of it may touch, and what the user has answered it.
#[derive(Debug, Clone)]
pub struct GuestWork {
    pub(super) plugin: Plugin,
    pub(super) grant: CallGrant,
    pub(super) resumption: Option<Resumption>,
}

impl GuestWork {
    /// What the call may touch.
    pub fn grant(&self) -> &CallGrant {
        &self.grant
    }

    /// The SHA-256 of the component.
    pub fn digest(&self) -> Digest {
        self.plugin.digest()
    }

    /// The same with a way out for its requests.
    #[must_use]
    pub fn reaching(mut self, exit: Option<Arc<dyn HttpExit>>) -> Self {
        self.grant.http = exit;
        self
    }

    /// The same for a call that is made again with answers.
    #[must_use]
    pub fn resuming(self, resumption: Option<Resumption>) -> Self {
        Self { resumption, ..self }
    }

    /// What makes it a call that is made again.
    pub fn resumption(&self) -> Option<&Resumption> {
        self.resumption.as_ref()
    }
}

impl Plugin {
    /// What a call of one of its tools is done with: this component, and what the call may touch.
    pub fn work(&self, grant: CallGrant) -> GuestWork {
        GuestWork {
            plugin: self.clone(),
            grant,
            resumption: None,
        }
    }
}
