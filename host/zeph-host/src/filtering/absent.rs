//! Why a rule finds no strategy of the name it gives, in words for the operator: which plugin would offer it, and which command
//! lets it. Pure over the plugins of one moment.

use zeph_core::failure::one_line;
use zeph_plugins::set::{PluginSet, PluginStanding, Status};

/// Most plugins that are named: a person mends one after the other.
const NAMED_MAX: usize = 3;

/// Characters of the name that a rule gives; no plugin offers a longer one.
const NAME_CHARS_MAX: usize = 100;

/// Characters of why a file is no plugin.
const REASON_CHARS_MAX: usize = 300;

/// Why `set` has no strategy of this name.
///
/// Shape: one line; `program` is how this program is called here, for the commands in it.
pub(super) fn absent(set: &PluginSet, name: &str, program: &str) -> String {
    let shown = one_line(name, NAME_CHARS_MAX);
    if let [first, others @ ..] = set.owners(name).as_slice()
        && !others.is_empty()
    {
        let others: Vec<_> = (others.iter())
            .map(|owner| format!("`wasm:{owner}/{shown}`"))
            .collect();
        return format!(
            "several plugins have a strategy `{shown}`; write `wasm:{first}/{shown}` or {}",
            others.join(" or ")
        );
    }
    let mut text = format!("no active plugin offers a strategy `{shown}`");
    let is_off = |standing: &&PluginStanding| standing.status != Status::Active;
    let off: Vec<&PluginStanding> = set.standings.iter().filter(is_off).collect();
    let would: Vec<&PluginStanding> = off
        .iter()
        .filter(|standing| offers(standing, name))
        .copied()
        .collect();
    let known: Vec<String> = set
        .strategy_names()
        .map(|name| format!("`wasm:{name}`"))
        .collect();
    if would.is_empty() && !known.is_empty() {
        text.push_str(&format!("; there are {}", known.join(", ")));
    }
    let named = if would.is_empty() { off } else { would };
    for standing in named.iter().take(NAMED_MAX) {
        text.push_str("; ");
        text.push_str(&told(standing, program));
    }
    if named.len() > NAMED_MAX {
        text.push_str(&format!(
            "; {} more plugins are off, see `{program} plugin list`",
            named.len() - NAMED_MAX
        ));
    }
    for problem in &set.problems {
        text.push_str("; ");
        text.push_str(&one_line(problem, REASON_CHARS_MAX));
    }
    text
}

/// Whether a plugin that is off has a strategy that rules would know by this name. Of one that cannot be looked at, its own name
/// says whether it is meant.
fn offers(standing: &PluginStanding, name: &str) -> bool {
    let (plugin, own_name) = match name.split_once('/') {
        Some((plugin, own_name)) => (Some(plugin), own_name),
        None => (None, name),
    };
    let is_meant = plugin.is_none_or(|plugin| standing.name.0 == plugin);
    let has_it = standing.good.as_ref().map_or(plugin.is_some(), |good| {
        let mut own = good.plugin.strategies().iter();
        own.any(|strategy| strategy.name == own_name)
    });
    is_meant && has_it
}

fn told(standing: &PluginStanding, program: &str) -> String {
    let plugin = &standing.name;
    match &standing.status {
        Status::Active => format!("plugin `{plugin}` is active"),
        Status::Loading => format!("plugin `{plugin}` is still being loaded"),
        Status::Changed => format!(
            "plugin `{plugin}` is not what was accepted and is off; look at the changes with `{program} plugin approve {plugin}`"
        ),
        Status::Disabled => format!(
            "plugin `{plugin}` is switched off; `{program} plugin enable {plugin}` switches it on"
        ),
        Status::Quarantined(reason) => format!(
            "plugin `{plugin}` is not used: {}",
            one_line(reason, REASON_CHARS_MAX)
        ),
    }
}
