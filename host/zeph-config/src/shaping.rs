//! What a model is shown of the tools, and who else judges its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// What a model is shown of the tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShapingSettings {
    /// How complex a tool has to be, from 0 to 1, to get a field to think in (`tools.tafc`); `None`: no tool gets one.
    pub tafc_threshold: Option<f64>,
    /// Which tools are shown (`tools.schema_filter`); `None`: all.
    pub filter: Option<SchemaFilterSettings>,
    /// Which tools come before which (`tools.dependencies`); `None` when that does not count.
    pub dependencies: Option<DependencySettings>,
}

/// Which tools a model is shown (`tools.schema_filter`).
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaFilterSettings {
    /// How many tools are chosen by similarity; `None` without limit.
    pub top_k: Option<NonZeroUsize>,
    /// Tools that are shown whatever is talked about.
    pub always_on: Vec<String>,
    /// The least similarity of a tool that is chosen, from 0 to 1.
    pub min_similarity: f64,
}

/// Which tools come before which (`tools.dependencies`).
#[derive(Debug, Clone, PartialEq)]
pub struct DependencySettings {
    /// What each preferred tool that has succeeded adds to the similarity.
    pub boost_per_dep: f64,
    /// What all of them add at most.
    pub max_total_boost: f64,
    /// By the name of the tool that needs something; `requires` has no cycle of tools that are called by one name each.
    pub rules: BTreeMap<String, DependencyRule>,
}

impl DependencySettings {
    /// The tools that need each other, so that none of them can ever run: the rule where that is told, and a shortest way from its tool
    /// back to itself. Each cycle once. `key` is the one name of a tool, whatever it is called.
    pub fn cycles(&self, key: impl Fn(&str) -> String) -> Vec<(&str, String)> {
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (tool, rule) in &self.rules {
            let required = rule.requires.iter().map(|name| key(name));
            needs.entry(key(tool)).or_default().extend(required);
        }
        let mut told = BTreeSet::new();
        let mut cycles = Vec::new();
        for tool in self.rules.keys() {
            let first = key(tool);
            let Some(cycle) = way_back(&needs, &first) else {
                continue;
            };
            if cycle.iter().min() == Some(&first.as_str()) && told.insert(first.clone()) {
                let way = [cycle.as_slice(), &cycle[..1]].concat();
                cycles.push((tool.as_str(), way.join(" needs ")));
            }
        }
        cycles
    }
}

/// A shortest way from `tool` back to itself, beginning with it; none when there is none.
fn way_back<'a>(
    needs: &'a BTreeMap<String, BTreeSet<String>>,
    tool: &'a str,
) -> Option<Vec<&'a str>> {
    let mut ways = vec![vec![tool]];
    let mut seen: Vec<&str> = Vec::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let needed = way.last().and_then(|last| needs.get(*last));
            for next in needed.into_iter().flatten() {
                if next == tool {
                    return Some(way);
                }
                if !seen.contains(&next.as_str()) {
                    seen.push(next);
                    longer.push([way.as_slice(), &[next.as_str()]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

/// What one tool needs before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyRule {
    /// Tools that must have succeeded in the conversation.
    pub requires: Vec<String>,
    /// Tools after which it is more likely to be chosen.
    pub prefers: Vec<String>,
}

/// A second model that judges calls before they run (`tools.adversarial_policy`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeSettings {
    /// The name of one of [`Config::providers`](crate::Config::providers).
    pub provider: String,
    /// What it judges by, never empty; one sentence each.
    pub policies: Vec<String>,
    /// The file they are from, resolved; `None` for the built-in ones.
    pub policy_file: Option<PathBuf>,
    /// How long a verdict may take.
    pub timeout: Duration,
    /// Whether a call runs about which there is no verdict.
    pub fail_open: bool,
    /// Tools whose calls are not judged.
    pub exempt_tools: Vec<String>,
    /// Whether a denied call is refused; else it runs with a note.
    pub block_on_reject: bool,
}
