//! `tools.tafc`, `tools.schema_filter`, `tools.dependencies`.

use zeph_core::policy::tool_key;

use super::{Compiling, count};
use crate::raw::{RawDependencies, RawTools};
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
        let rules = raw.rules.iter().map(|(tool, rule)| {
            let rule = DependencyRule {
                requires: rule.requires.clone(),
                prefers: rule.prefers.clone(),
            };
            (tool.clone(), rule)
        });
        let settings = DependencySettings {
            boost_per_dep: raw.boost_per_dep,
            max_total_boost: raw.max_total_boost,
            rules: rules.collect(),
        };
        for (tool, cycle) in settings.cycles(tool_key) {
            let message =
                format!("the tools need each other, so none of them could ever run: {cycle}");
            self.merged
                .problem(&format!("{RULES}.{tool}.requires"), &message);
        }
        settings
    }
}
