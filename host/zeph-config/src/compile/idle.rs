//! Keys that restrict something, and do nothing because the section that they belong to was never enabled.

use toml::Value;

use super::super::merge::MergedValue;
use super::super::origin::ValueOrigin;
use super::Compiling;

/// Sections that are off by default: the key that enables one, and what does nothing without it.
const SECTIONS: [(&str, &[&str]); 6] = [
    (
        "tools.scoped.enabled",
        &[
            "tools.scoped.denied_tools",
            "tools.scoped.allowed_tools",
            "tools.scoped.constraints",
        ],
    ),
    (
        "tools.policy.enabled",
        &["tools.policy.rules", "tools.policy.policy_file"],
    ),
    (
        "tools.authorization.enabled",
        &["tools.authorization.rules"],
    ),
    (
        "tools.scope.enabled",
        &["tools.scope.run_as_user", "tools.scope.require_capability"],
    ),
    ("tools.dependencies.enabled", &["tools.dependencies.rules"]),
    (
        "tools.shell.transactional",
        &["tools.shell.auto_rollback", "tools.shell.snapshot_required"],
    ),
];

impl Compiling<'_> {
    /// Says which keys of the operator do nothing, unless the operator switched their section off in so many words.
    pub(super) fn warn_of_idle_sections(&mut self) {
        let idle = SECTIONS.iter().filter(|(switch, _)| {
            let entry = self.merged.entries.get(*switch);
            entry.is_none_or(|entry| !is_of_operator(entry) && entry.value == Value::Boolean(false))
        });
        let said = idle.flat_map(|(switch, keys)| {
            let said = keys.iter().filter_map(|key| self.idle(key));
            said.map(move |said| format!("{said} has no effect, because `{switch}` is false"))
        });
        let said: Vec<String> = said.collect();
        self.merged.warnings.extend(said);
    }

    /// A key that the operator gave a value, with the place; a table of other keys as a whole.
    fn idle(&self, key: &str) -> Option<String> {
        let is_meant = |name: &str| {
            let rest = name.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut entries = self.merged.entries.iter();
        let (_, entry) = entries.find(|(name, entry)| {
            is_meant(name.as_str()) && is_of_operator(entry) && says_something(&entry.value)
        })?;
        Some(format!("`{key}` ({})", entry.said()))
    }
}

/// Whether the operator said it. What projects add to rules counts however the section is set.
fn is_of_operator(entry: &MergedValue) -> bool {
    let is_own = |origin: &ValueOrigin| {
        !matches!(
            origin,
            ValueOrigin::BuiltIn { .. } | ValueOrigin::Project { .. }
        )
    };
    entry.origins.iter().any(is_own)
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Boolean(is_set) => *is_set,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
