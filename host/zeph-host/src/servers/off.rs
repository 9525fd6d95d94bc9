//! Why a tool of a server cannot be called, and which names may be those of its tools.

use std::collections::BTreeMap;

use zeph_config::ServerConfig;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::ServerName;
use zeph_core::server::{self, ServerTool};
use zeph_plugins::off::why as why_of_plugin;
use zeph_plugins::set::PluginSet;

use super::Servers;
use super::set::{ServerStanding, ServerState};

impl Servers {
    /// Why a tool that is not offered is not, when it is one of `plugins` that is off, or of a server.
    pub(crate) fn why_absent(&self, plugins: &PluginSet, tool: &str) -> Option<ToolFailure> {
        why_of_plugin(plugins, tool, &self.0.program).or_else(|| self.why(tool))
    }

    /// Why a tool that is not offered is not, when it is one of a server.
    pub(crate) fn why(&self, tool: &str) -> Option<ToolFailure> {
        let set = self.set();
        let mut servers = self.may_have(tool);
        servers.find_map(|name| self.why_not(set.standing(name.as_str())?, tool))
    }

    /// Why a server does not offer a tool that may be its own.
    fn why_not(&self, standing: &ServerStanding, tool: &str) -> Option<ToolFailure> {
        let name = &standing.name;
        let about = standing.about.as_deref();
        let left_out = about
            .map(|about| about.left_out.as_slice())
            .unwrap_or_default();
        let is_it = |own: &str| is_called(name, own, tool);
        match left_out.iter().find(|(own, _)| is_it(own)) {
            Some((own, why)) => Some(off(
                ErrorCategory::PolicyBlocked,
                format!(
                    "`{own}` of MCP server `{name}` is not offered: {why} (`mcp.servers.{name}`)"
                ),
            )),
            None if matches!(standing.state, ServerState::Active) => None,
            None => Some(self.why_off(standing)),
        }
    }

    /// Why a server cannot be called.
    pub(crate) fn why_off(&self, standing: &ServerStanding) -> ToolFailure {
        let (name, program) = (&standing.name, &self.0.program);
        let (category, why) = match &standing.state {
            ServerState::Idle | ServerState::Starting | ServerState::Active => (
                ErrorCategory::ServerError,
                "is still being started; try again in a moment".to_owned(),
            ),
            ServerState::Changed(_) => (
                ErrorCategory::PolicyBlocked,
                format!(
                    "is not what was accepted, and is off; the operator can look at what is different, and accept it, with \
                     `{program} mcp approve {name}`"
                ),
            ),
            ServerState::Failed { reason, next_try } => (
                ErrorCategory::ServerError,
                format!(
                    "does not run{}; it is started again in {} s; `{program} mcp test {name}` says more",
                    told(reason),
                    next_try.as_secs() + 1
                ),
            ),
            ServerState::Disabled => (
                ErrorCategory::PolicyBlocked,
                format!("is switched off by `mcp.servers.{name}.disabled`"),
            ),
            ServerState::NeedsLogin(_) => (
                ErrorCategory::PolicyBlocked,
                format!("needs a login; the operator can log in with `{program} mcp login {name}`"),
            ),
        };
        off(category, format!("MCP server `{name}` {why}"))
    }
}

/// A reason as a model may read it: without paths of the host.
fn told(reason: &str) -> String {
    match reason.contains('/') {
        true => String::new(),
        false => format!(": {reason}"),
    }
}

pub(super) fn off(category: ErrorCategory, message: String) -> ToolFailure {
    ToolFailure::new(category, ErrorPhase::Setup, message)
}

/// Whether one of `servers` may have a tool that this name or glob of a rule means: which tools they have is known only when they run.
pub(crate) fn may_have(servers: &BTreeMap<ServerName, ServerConfig>, rule: &str) -> bool {
    let literal = rule
        .split(['*', '?', '[', '{', '!'])
        .next()
        .unwrap_or_default();
    let (rule, literal) = (rule.to_lowercase(), literal.to_lowercase());
    let mut servers = servers.iter();
    servers.any(|(name, config)| {
        let prefix = server::prefix(name).to_lowercase();
        let is_open = literal.len() < rule.len();
        let mut chosen = config
            .tools
            .values()
            .filter_map(|choice| choice.name.as_ref());
        literal.starts_with(&prefix)
            || is_open && prefix.starts_with(&literal)
            || chosen.any(|name| name.as_str().to_lowercase() == rule)
    })
}

/// Whether the operator chose this name for a tool of this server.
pub(super) fn is_chosen(config: &ServerConfig, tool: &str) -> bool {
    let mut choices = config.tools.values();
    choices.any(|choice| {
        let name = choice.name.as_ref();
        name.is_some_and(|name| name.as_str() == tool)
    })
}

/// Whether `tool` is a name of the server's tool `own`.
fn is_called(server: &ServerName, own: &str, tool: &str) -> bool {
    let named = ServerTool::new(server.clone(), own);
    let names = [named.plain_name(), named.hashed().plain_name()];
    names.iter().any(|name| name.as_str() == tool)
}
