//! The layers, put over each other key by key; each value remembers where it was said.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Value;

use super::environment::SetValues;
use super::file::{self, KeyAssignment, LayerSource, TableItem};
use super::keys::Keys;
use super::known;
use super::origin::{Problem, Setting, ValueOrigin, path_text};
use super::paths::PathBase;
use super::project;
use super::store_url;

/// Lists whose built-in items stay when the operator says some: a file that blocks one more command must not unblock the rest.
const KEPT: &[&str] = &["tools.shell.blocked_commands"];

/// What messages call a configuration that is no file.
const TEXT: &str = "configuration text";

/// A value as it may be shown.
fn shown(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if key == store_url::KEY => Value::String(store_url::shown(text)),
        other => other.clone(),
    }
}

/// The effective value of a key so far.
#[derive(Debug, Clone)]
pub(crate) struct MergedValue {
    pub(crate) value: Value,
    /// Where it was said, never empty in the end; more than one when a later layer added to a list.
    pub(crate) origins: Vec<ValueOrigin>,
    /// Where each table of a list stands; empty for other values, and when a variable or a flag said the list.
    pub(crate) items: Vec<TableItem>,
}

impl MergedValue {
    /// Where it was said, in words.
    pub(crate) fn said(&self) -> String {
        let places: Vec<String> = self.origins.iter().map(ValueOrigin::to_string).collect();
        places.join(", ")
    }

    /// Two lists, one after the other; what stands in both stays there twice.
    fn followed_by(&self, later: Self) -> Self {
        let items = |entry: &Self| entry.value.as_array().cloned().unwrap_or_default();
        Self {
            value: Value::Array([items(self), items(&later)].concat()),
            origins: [self.origins.clone(), later.origins].concat(),
            items: Vec::new(),
        }
    }
}

/// A list nobody said: one of a table whose keys are not known before.
const NOTHING: MergedValue = MergedValue {
    value: Value::Array(Vec::new()),
    origins: Vec::new(),
    items: Vec::new(),
};

/// The layers merged so far and what is wrong in them.
#[derive(Debug, Default)]
pub(crate) struct MergedLayers {
    pub(crate) entries: BTreeMap<String, MergedValue>,
    /// What is built in of the keys in [`KEPT`].
    kept: BTreeMap<String, MergedValue>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<String>,
}

/// Where a project file stands and what it is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProjectPlace<'a> {
    pub(crate) file: &'a Path,
    pub(crate) operator: PathBase<'a>,
    pub(crate) project: PathBase<'a>,
    /// The file in which the operator can say otherwise.
    pub(crate) operator_file: Option<&'a Path>,
}

impl MergedLayers {
    /// The built-in layer.
    pub(crate) fn built_in() -> Self {
        let entry = |default: &known::Default| {
            let entry = MergedValue {
                value: default.value.to_value(),
                origins: vec![ValueOrigin::BuiltIn { line: default.line }],
                items: Vec::new(),
            };
            (default.key.to_owned(), entry)
        };
        let mut merged = Self {
            // They are in order, which spares a search for each.
            entries: known::DEFAULTS.iter().map(entry).collect(),
            ..Self::default()
        };
        merged.kept = KEPT
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), merged.entries.get(*key)?.clone())))
            .collect();
        merged
    }

    /// The user's file.
    pub(crate) fn user(&mut self, path: &Path, keys: &Keys) {
        let source = LayerSource::User(path.to_owned());
        let assignments = self.read(path, &source, keys);
        assignments
            .into_iter()
            .for_each(|assignment| self.replace(assignment));
    }

    /// A text in place of the user's file.
    pub(crate) fn user_text(&mut self, text: &str, keys: &Keys) {
        let source = LayerSource::User(PathBuf::from(TEXT));
        let (assignments, problems) = file::parse(text, &source, keys);
        self.problems.extend(problems);
        assignments
            .into_iter()
            .for_each(|assignment| self.replace(assignment));
    }

    /// The project's file: each value is combined by its rule.
    ///
    /// When the user's file has problems the bounds are not known for certain, and a verdict that depends on one
    /// is left for the next attempt rather than told wrongly.
    pub(crate) fn project(&mut self, place: ProjectPlace<'_>, keys: &Keys) {
        let bounds_known = self.problems.is_empty();
        let source = LayerSource::Project(place.file.to_owned());
        for assignment in self.read(place.file, &source, keys) {
            let rule = keys.rule(&assignment.key);
            if rule == project::Rule::AddDenying {
                self.entries
                    .entry(assignment.key.clone())
                    .or_insert(NOTHING);
            }
            let Some(lower) = self.bound(&assignment.key, rule) else {
                if bounds_known || !rule.has_bound() {
                    self.never(assignment, rule, place.operator_file);
                }
                continue;
            };
            match rule.combine(lower, &assignment.value, place.operator, place.project) {
                Ok(value) => self.narrow(
                    KeyAssignment {
                        value,
                        ..assignment
                    },
                    rule,
                ),
                Err(_) if rule.has_bound() && !bounds_known => {}
                Err(message) => {
                    let message = format!(
                        "`{}`: {message}{}",
                        assignment.key,
                        advice(place.operator_file)
                    );
                    let item = project::not_denying(rule, &assignment.value)
                        .and_then(|idx| assignment.items.get(idx));
                    let origin = item.map(|item| item.origin.clone());
                    let origin = origin.unwrap_or(assignment.origin);
                    self.problems.push(Problem::new(origin, message));
                }
            }
        }
    }

    /// Refuses what no project may say, where nobody else says it either.
    fn never(&mut self, asked: KeyAssignment, rule: project::Rule, operator_file: Option<&Path>) {
        if matches!(rule, project::Rule::Never(_) | project::Rule::NarrowServer) {
            let message = format!(
                "`{}`: {}{}",
                asked.key,
                rule.refusal(),
                advice(operator_file)
            );
            self.problems.push(Problem::new(asked.origin, message));
        }
    }

    /// What a project's value is held against: a list of the jail that is empty means the directories of the shell.
    fn bound(&self, key: &str, rule: project::Rule) -> Option<&MergedValue> {
        let entry = self.entries.get(key)?;
        if rule == project::Rule::WithinPaths && project::texts(&entry.value).is_empty() {
            return self.entries.get("tools.shell.allowed_paths");
        }
        Some(entry)
    }

    /// The variables, or the flags.
    pub(crate) fn operator(&mut self, said: SetValues) {
        said.assignments
            .into_iter()
            .for_each(|assignment| self.replace(assignment));
        said.first
            .into_iter()
            .rev()
            .for_each(|assignment| self.put_first(assignment));
        self.problems.extend(said.problems);
        self.warnings.extend(said.warnings);
    }

    /// Every key with its value and its origins, sorted by key.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        self.entries
            .iter()
            .map(|(key, entry)| Setting {
                key: key.clone(),
                value: shown(key, &entry.value),
                origins: entry.origins.clone(),
            })
            .collect()
    }

    /// Records a problem with the effective value of `key`, at the place where it was last said.
    pub(crate) fn problem(&mut self, key: &str, message: &str) {
        self.problem_of_item(key, usize::MAX, message);
    }

    /// Records a problem with one item of a list, at the place that said it where flags put items before the list.
    pub(crate) fn problem_of_item(&mut self, key: &str, idx: usize, message: &str) {
        let origins = self.entries.get(key).map(|entry| &entry.origins);
        let origin = origins.and_then(|origins| origins.get(idx).or(origins.last()));
        let origin = origin.or_else(|| self.origin_in_table(key)).cloned();
        let origin = origin.unwrap_or(ValueOrigin::BuiltIn { line: 0 });
        self.problems
            .push(Problem::new(origin, format!("`{key}`: {message}")));
    }

    /// Where a field of a table was said that is one value, such as `mcp.servers.files.command`.
    fn origin_in_table(&self, key: &str) -> Option<&ValueOrigin> {
        let (table, field) = key.rsplit_once('.')?;
        let entry = self.entries.get(table)?;
        let item = entry.items.first();
        let of_field = item.and_then(|item| item.fields.get(field));
        of_field.or(entry.origins.last())
    }

    /// Records a problem with a field of one table of a list, at the place of that field.
    pub(crate) fn problem_in(&mut self, key: &str, idx: usize, field: &str, message: &str) {
        let item = self.entries.get(key).and_then(|entry| entry.items.get(idx));
        let Some(item) = item else {
            return self.problem(key, &format!("`[{idx}].{field}`: {message}"));
        };
        let origin = item.fields.get(field).unwrap_or(&item.origin).clone();
        self.problems.push(Problem::new(
            origin,
            format!("`{key}[{idx}].{field}`: {message}"),
        ));
    }

    /// The built-in items of a list that stay; they are the first of the effective ones.
    pub(crate) fn built_in_items(&self, key: &str) -> Value {
        let kept = self.kept.get(key).map(|entry| entry.value.clone());
        kept.unwrap_or_else(|| Value::Array(Vec::new()))
    }

    /// Whether `key` was said behind `other`, in a later layer or on a later line.
    pub(crate) fn is_later(&self, key: &str, other: &str) -> bool {
        let last = |key| self.entries.get(key).and_then(|entry| entry.origins.last());
        last(key) > last(other)
    }

    /// Where the effective value of `key` was said, in words.
    pub(crate) fn said(&self, key: &str) -> String {
        self.entries
            .get(key)
            .map_or_else(String::new, MergedValue::said)
    }

    fn read(&mut self, path: &Path, source: &LayerSource, keys: &Keys) -> Vec<KeyAssignment> {
        match file::read(path, file::FILE_BYTES_MAX) {
            Ok(text) => {
                let (assignments, problems) = file::parse(&text, source, keys);
                self.problems.extend(problems);
                assignments
            }
            Err(message) => {
                self.problems.push(Problem::new(source.at(0), message));
                Vec::new()
            }
        }
    }

    fn replace(&mut self, assignment: KeyAssignment) {
        let KeyAssignment {
            key,
            value,
            origin,
            items,
        } = assignment;
        let mut entry = MergedValue {
            value,
            origins: vec![origin],
            items,
        };
        if let Some(built_in) = self.kept.get(&key) {
            entry = built_in.followed_by(entry);
        }
        self.entries.insert(key, entry);
    }

    /// Puts an item before the list of its key; an empty list says nothing more, and its origin goes.
    fn put_first(&mut self, assignment: KeyAssignment) {
        let first = MergedValue {
            value: assignment.value,
            origins: vec![assignment.origin],
            items: assignment.items,
        };
        let list = self.entries.get(&assignment.key);
        let list = list.filter(|list| list.value.as_array().is_some_and(|list| !list.is_empty()));
        let entry = match list {
            Some(list) => first.followed_by(list.clone()),
            None => first,
        };
        self.entries.insert(assignment.key, entry);
    }

    fn narrow(&mut self, assignment: KeyAssignment, rule: project::Rule) {
        match self.entries.get_mut(&assignment.key) {
            Some(entry) if rule.adds() => {
                entry.value = assignment.value;
                entry.origins.push(assignment.origin);
                entry.items.splice(..0, assignment.items);
            }
            _ => self.replace(assignment),
        }
    }
}

fn advice(operator_file: Option<&Path>) -> String {
    match operator_file {
        Some(file) => format!("; the operator can set it in {}", path_text(file)),
        None => "; the operator can set it with --config or --set".to_owned(),
    }
}
