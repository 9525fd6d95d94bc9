//! `tools.tafc`, `tools.schema_filter`, `tools.dependencies`.

use std::collections::BTreeMap;

use zeph_core::policy::tool_key;

use super::{Compiling, count};
use crate::raw::{RawDependencies, RawDependencyRule, RawTools};
use crate::shaping::{DependencyRule, DependencySettings, SchemaFilterSettings, ShapingSettings};

const THRESHOLD: &str = "tools.tafc.complexity_threshold";

/// What the threshold is when it is no number.
const THRESHOLD_DEFAULT: f64 = 0.6;

const RULES: &str = "tools.dependencies.rules";

impl Compiling<'_> {
    pub(super) fn shaping(&mut self, raw: &RawTools) -> ShapingSettings {
        let threshold = self.threshold(raw.tafc.complexity_threshold);
        let dependencies = self.dependencies(&raw.dependencies);
        let filter = &raw.schema_filter;
        let filter = filter.enabled.then(|| SchemaFilterSettings {
            top_k: count(filter.top_k),
            always_on: filter.always_on.clone(),
            min_similarity: filter.min_similarity,
        });
        ShapingSettings {
            tafc_threshold: raw.tafc.enabled.then_some(threshold),
            filter,
            dependencies: raw.dependencies.enabled.then_some(dependencies),
        }
    }

    /// Any number counts as the nearest from 0 to 1, and what is none as the default.
    fn threshold(&mut self, asked: f64) -> f64 {
        let used = match asked.is_finite() {
            true => asked.clamp(0.0, 1.0),
            false => THRESHOLD_DEFAULT,
        };
        if used.to_bits() != asked.to_bits() && asked != used {
            self.merged.warnings.push(format!(
                "`{THRESHOLD}`: {asked} is not between 0 and 1; {used} is used"
            ));
        }
        used
    }

    /// The rules. A cycle is wrong even where the section is disabled: it would be found when the section is enabled.
    fn dependencies(&mut self, raw: &RawDependencies) -> DependencySettings {
        let needs = Needs::of(&raw.rules);
        for tool in raw.rules.keys() {
            let Some(cycle) = needs.cycle(&tool_key(tool)) else {
                continue;
            };
            // Each cycle is told once, at its first tool.
            if cycle.iter().min() == Some(&tool_key(tool)) {
                let path: Vec<&str> = cycle
                    .iter()
                    .chain(cycle.first())
                    .map(String::as_str)
                    .collect();
                let message = format!(
                    "the tools need each other, so none of them could ever run: {}",
                    path.join(" needs ")
                );
                self.merged
                    .problem(&format!("{RULES}.{tool}.requires"), &message);
            }
        }
        let rules = raw.rules.iter().map(|(tool, rule)| {
            let rule = DependencyRule {
                requires: rule.requires.clone(),
                prefers: rule.prefers.clone(),
            };
            (tool.clone(), rule)
        });
        DependencySettings {
            boost_per_dep: raw.boost_per_dep,
            max_total_boost: raw.max_total_boost,
            rules: rules.collect(),
        }
    }
}

/// What each tool requires, by the names that rules know tools by.
struct Needs(BTreeMap<String, Vec<String>>);

impl Needs {
    fn of(rules: &BTreeMap<String, RawDependencyRule>) -> Self {
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (tool, rule) in rules {
            let required = rule.requires.iter().map(|name| tool_key(name));
            needs.entry(tool_key(tool)).or_default().extend(required);
        }
        Self(needs)
    }

    /// A shortest way from `tool` back to itself, beginning with it; none when there is none.
    fn cycle(&self, tool: &str) -> Option<Vec<String>> {
        let mut ways: Vec<Vec<&str>> = vec![vec![tool]];
        let mut seen: Vec<&str> = Vec::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let needed = way.last().and_then(|last| self.0.get(*last));
                for next in needed.into_iter().flatten() {
                    if next == tool {
                        return Some(way.into_iter().map(str::to_owned).collect());
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
}
