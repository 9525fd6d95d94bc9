//! Tools that the configuration names and that there are not: a rule or a list that never applies is most likely misspelt.

use std::collections::BTreeMap;

use zeph_config::{Config, DependencySettings, ServerConfig};
use zeph_core::id::ServerName;
use zeph_core::policy::{NamedTool, Policy, tool_key, unknown_tools};
use zeph_core::tool::Tool;

use crate::dependencies::keys_of;
use crate::servers::{self, naming::Naming};

/// What the configuration says of tools by their names, besides rules.
pub(crate) struct NamedTools {
    /// The tools that lists name.
    tools: Vec<NamedTool>,
    /// What they need before them.
    dependencies: Option<DependencySettings>,
}

/// What is said of tools by their names, as far as the sections are in effect.
pub(crate) fn named_tools(config: &Config) -> NamedTools {
    if !config.tools_enabled {
        return NamedTools {
            tools: Vec::new(),
            dependencies: None,
        };
    }
    let mut named = Vec::new();
    let mut name = |key: String, tools: &[String]| {
        named.extend(tools.iter().map(|tool| NamedTool {
            key: key.clone(),
            tool: tool.clone(),
        }));
    };
    if let Some(filter) = &config.shaping.filter {
        name(
            "tools.schema_filter.always_on".to_owned(),
            &filter.always_on,
        );
    }
    let dependencies = config.shaping.dependencies.iter();
    for (tool, rule) in dependencies.flat_map(|dependencies| &dependencies.rules) {
        let key = format!("tools.dependencies.rules.{tool}");
        name(key.clone(), std::slice::from_ref(tool));
        name(format!("{key}.requires"), &rule.requires);
        name(format!("{key}.prefers"), &rule.prefers);
    }
    if let Some(judge) = &config.judge {
        name(
            "tools.adversarial_policy.exempt_tools".to_owned(),
            &judge.exempt_tools,
        );
    }
    if config.compression.enabled {
        for tool in &config.compression.named {
            let key = format!("tools.compression.strategies.{tool}");
            name(key, std::slice::from_ref(tool));
        }
    }
    name("tools.filters.tools".to_owned(), &config.filters.tools);
    name(
        "tools.governance.always_available".to_owned(),
        &config.rules.policy.governance.always_available,
    );
    NamedTools {
        tools: named,
        dependencies: config.shaping.dependencies.clone(),
    }
}

/// Whether a rule or a list names any tool.
pub(crate) fn names_any(config: &Config) -> bool {
    let rules = (&config.rules.policy, &BTreeMap::new());
    !problems(rules, &named_tools(config), std::iter::empty()).is_empty()
}

/// Which servers have names that begin with those of others, one sentence each.
pub(crate) fn shared_names(servers: &BTreeMap<ServerName, ServerConfig>) -> Vec<String> {
    let notes = servers.keys().flat_map(|name| {
        let naming = Naming::new(name, servers.keys(), []);
        naming.notes().collect::<Vec<_>>()
    });
    notes.collect()
}

/// What is wrong with rules and lists that no tool of `tools` can meet, one sentence each.
pub(crate) fn problems<'a>(
    (policy, servers): (&Policy, &BTreeMap<ServerName, ServerConfig>),
    named: &NamedTools,
    tools: impl Iterator<Item = &'a Tool>,
) -> Vec<String> {
    let tools: Vec<&Tool> = tools.collect();
    let may_come = |name: &str| servers::may_have(servers, name);
    let mut problems = policy.idle_rules(tools.iter().copied(), &may_come);
    problems.extend(cycles(named.dependencies.as_ref(), &tools));
    problems.extend(unknown_tools(&named.tools, tools, &may_come));
    problems
}

/// Which tools need each other, one sentence for each cycle: with both names of a tool in the rules it shows only where the tools are known.
fn cycles(dependencies: Option<&DependencySettings>, tools: &[&Tool]) -> Vec<String> {
    let one_name = |name: &str| {
        let key = tool_key(name);
        let mut tools = tools.iter().map(|tool| keys_of(tool));
        let known = tools.find(|keys| keys.contains(&key));
        known
            .and_then(|keys| keys.into_iter().next())
            .unwrap_or(key)
    };
    let cycles = dependencies.map(|dependencies| dependencies.cycles(one_name));
    let cycles = cycles.unwrap_or_default().into_iter();
    let told = cycles.map(|(tool, cycle)| {
        format!(
            "`tools.dependencies.rules.{tool}.requires`: the tools need each other, so none of them can ever run: {cycle}"
        )
    });
    told.collect()
}

#[cfg(test)]
mod tests;
