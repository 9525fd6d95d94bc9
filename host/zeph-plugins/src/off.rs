//! Why a tool is not there although a plugin has it: the plugin is off, and there is a line that changes that.

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::{ToolFailure, one_line};

use super::set::{PluginSet, PluginStanding, Status};

/// Characters of the longest reason.
const REASON_CHARS_MAX: usize = 300;

/// The message for a call of `tool`, which no active plugin has; `None` if no other plugin has it either.
///
/// Shape: `program` is how the program is called here, for the command that the text names.
pub fn why(set: &PluginSet, tool: &str, program: &str) -> Option<ToolFailure> {
    let standing = set.standings.iter().find(|standing| has(standing, tool))?;
    let name = &standing.name;
    let why = match &standing.status {
        Status::Active | Status::Loading => return None,
        Status::Changed => format!(
            "it is not what was accepted; the operator can look at what is different, and accept it, with \
             `{program} plugin approve {name}`"
        ),
        Status::Disabled => format!(
            "the operator switched it off, and can switch it on with `{program} plugin enable {name}`"
        ),
        Status::Quarantined(reason) => {
            format!(
                "it cannot be used{}; `{program} plugin info {name}` says more",
                shown(reason)
            )
        }
    };
    let tool = one_line(tool, 80);
    let message = format!("`{tool}` is a tool of plugin `{name}`, which is off: {why}");
    let (category, phase) = (ErrorCategory::PolicyBlocked, ErrorPhase::Setup);
    Some(ToolFailure::new(category, phase, message))
}

/// A model does not read paths of the host.
fn shown(reason: &str) -> String {
    match reason.contains('/') {
        true => String::new(),
        false => format!(" ({})", one_line(reason, REASON_CHARS_MAX)),
    }
}

/// Whether it is off and `tool` is, or was, one of its own, by either name.
fn has(standing: &PluginStanding, tool: &str) -> bool {
    if matches!(standing.status, Status::Active | Status::Loading) {
        return false;
    }
    let own = match tool.split_once("__") {
        Some((plugin, own)) if plugin == standing.name.0 => own,
        _ => tool,
    };
    let good = standing.good.iter();
    let mut now = good.flat_map(|good| good.plugin.tools());
    let mut accepted = standing.accepted.iter();
    now.any(|tool| tool.name.as_str() == own) || accepted.any(|name| name.as_str() == own)
}

#[cfg(test)]
mod tests;
