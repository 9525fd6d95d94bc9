//! Rules that come with the program, to be turned on with `tools.permissions_preset`.

use serde::Deserialize;
use zeph_core::policy::{Action, BadRule, PermissionRule};

/// The rules of the preset "developer".
const DEVELOPER: &str = include_str!("presets/developer.toml");

/// Which rules of the program are used after the operator's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Preset {
    None,
    Developer,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetFile {
    group: Vec<PresetGroup>,
}

/// Patterns with one action.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetGroup {
    #[expect(dead_code, reason = "the title is for the reader of the file")]
    title: String,
    action: Action,
    patterns: Vec<String>,
}

impl Preset {
    /// Its name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Developer => "developer",
        }
    }

    /// Its rules for `bash`, in order.
    ///
    /// Errors: a defect of the program, which the tests find.
    pub(crate) fn rules(self, directory: &str) -> Result<Vec<PermissionRule>, BadRule> {
        let text = match self {
            Self::None => return Ok(Vec::new()),
            Self::Developer => DEVELOPER,
        };
        let file: PresetFile = toml::from_str(text).map_err(|error| BadRule {
            rule: self.name().to_owned(),
            reason: error.to_string(),
        })?;
        let groups = file.group.into_iter();
        let patterns = groups.flat_map(|group| {
            let action = group.action;
            group
                .patterns
                .into_iter()
                .map(move |pattern| (pattern, action))
        });
        let rules = patterns.map(|(pattern, action)| {
            let rule = PermissionRule::new("bash", &pattern, action, directory)?;
            Ok(rule.of_preset(self.name()))
        });
        rules.collect()
    }
}
