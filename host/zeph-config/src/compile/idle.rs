//! Keys that do nothing, because what they belong to was never switched on.

use std::collections::BTreeSet;

use toml::Value;

use super::super::merge::MergedValue;
use super::super::origin::ValueOrigin;
use super::Compiling;

/// The switch of a section, by the last word of its key: all other keys of the section need it.
const SWITCH: &str = "enabled";

/// Switches inside a section, and the keys beside them that need them.
pub(crate) const INNER: [(&str, &[&str]); 2] = [
    (
        "tools.shell.transactional",
        &[
            "tools.shell.auto_rollback",
            "tools.shell.max_snapshot_bytes",
            "tools.shell.max_undo",
            "tools.shell.snapshot_required",
            "tools.shell.transaction_scope",
        ],
    ),
    (
        "tools.shell.auto_rollback",
        &["tools.shell.auto_rollback_exit_codes"],
    ),
];

impl Compiling<'_> {
    /// Says which keys of the operator do nothing, unless the operator switched them off in so many words.
    pub(super) fn warn_of_idle_keys(&mut self) {
        let mut said = Vec::new();
        for (switch, keys) in self.switches().into_iter().chain(inner()) {
            let entry = self.merged.entries.get(&switch);
            let is_off = entry.is_some_and(|entry| is_built_in(entry) && is_false(&entry.value));
            let idle = keys
                .iter()
                .filter(|_| is_off)
                .filter_map(|key| self.idle(key));
            said.extend(
                idle.map(|key| format!("{key} has no effect, because `{switch}` is false")),
            );
        }
        self.merged.warnings.extend(said);
    }

    /// The switch of each section that has one, with the other keys of that section that the operator gave.
    fn switches(&self) -> Vec<(String, BTreeSet<String>)> {
        let entries = &self.merged.entries;
        let given = entries.iter().filter(|(_, entry)| is_of_operator(entry));
        // Few: each section looks at all of them.
        let given: Vec<&String> = given.map(|(name, _)| name).collect();
        let switches = entries.keys();
        let switches = switches.filter(|name| name.strip_suffix(SWITCH).is_some_and(ends_with_dot));
        let sections = switches.map(|switch| {
            let section = switch.strip_suffix(SWITCH).unwrap_or_default();
            let keys = given.iter().filter_map(|name| {
                let word = name.strip_prefix(section)?.split('.').next()?;
                (word != SWITCH).then(|| format!("{section}{word}"))
            });
            (switch.clone(), keys.collect())
        });
        sections.collect()
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

fn inner() -> impl Iterator<Item = (String, BTreeSet<String>)> {
    INNER.iter().map(|(switch, keys)| {
        let keys = keys.iter().map(|key| (*key).to_owned());
        ((*switch).to_owned(), keys.collect())
    })
}

fn ends_with_dot(section: &str) -> bool {
    section.ends_with('.')
}

fn is_built_in(entry: &MergedValue) -> bool {
    let mut origins = entry.origins.iter();
    origins.all(|origin| matches!(origin, ValueOrigin::BuiltIn { .. }))
}

fn is_false(value: &Value) -> bool {
    *value == Value::Boolean(false)
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
