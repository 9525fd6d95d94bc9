//! The layers, put over each other key by key; each value remembers where it was said.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Value;

use super::environment::Said;
use super::file::{self, Assignment, Source};
use super::keys::Keys;
use super::origin::{Origin, Problem, Setting, path_text};
use super::paths::Base;
use super::project;

/// The effective value of a key so far.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Where it was said, never empty; more than one when a project file added to a list.
    pub(crate) origins: Vec<Origin>,
}

impl Entry {
    /// Where it was said, in words.
    pub(crate) fn said(&self) -> String {
        let places: Vec<String> = self.origins.iter().map(Origin::to_string).collect();
        places.join(", ")
    }
}

/// The layers merged so far and what is wrong in them.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) entries: BTreeMap<String, Entry>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<String>,
}

/// Where a project file stands and what it is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProjectPlace<'a> {
    pub(crate) file: &'a Path,
    pub(crate) operator: Base<'a>,
    pub(crate) project: Base<'a>,
    /// The file in which the operator can say otherwise.
    pub(crate) operator_file: Option<&'a Path>,
}

impl Merged {
    /// The built-in layer.
    pub(crate) fn built_in(keys: &Keys) -> Self {
        let (assignments, problems) = file::parse(file::DEFAULTS, &Source::BuiltIn, keys);
        let mut merged = Self {
            problems,
            ..Self::default()
        };
        assignments
            .into_iter()
            .for_each(|assignment| merged.replace(assignment));
        merged
    }

    /// The user's file.
    pub(crate) fn user(&mut self, path: &Path, keys: &Keys) {
        let source = Source::User(path.to_owned());
        let assignments = self.read(path, &source, keys);
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
        let source = Source::Project(place.file.to_owned());
        for assignment in self.read(place.file, &source, keys) {
            let rule = project::rule(&assignment.key);
            let Some(lower) = self.entries.get(&assignment.key) else {
                continue;
            };
            match rule.combine(lower, &assignment.value, place.operator, place.project) {
                Ok(value) => self.narrow(
                    Assignment {
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
                    self.problems.push(Problem::new(assignment.origin, message));
                }
            }
        }
    }

    /// The variables, or the flags.
    pub(crate) fn operator(&mut self, said: Said) {
        said.assignments
            .into_iter()
            .for_each(|assignment| self.replace(assignment));
        self.problems.extend(said.problems);
        self.warnings.extend(said.warnings);
    }

    /// Every key with its value and its origins, sorted by key.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        self.entries
            .iter()
            .map(|(key, entry)| Setting {
                key: key.clone(),
                value: entry.value.clone(),
                origins: entry.origins.clone(),
            })
            .collect()
    }

    /// Records a problem with the effective value of `key`, at the place where it was last said.
    pub(crate) fn problem(&mut self, key: &str, message: &str) {
        let origin = self.entries.get(key).and_then(|entry| entry.origins.last());
        let origin = origin.cloned().unwrap_or(Origin::BuiltIn { line: 0 });
        self.problems
            .push(Problem::new(origin, format!("`{key}`: {message}")));
    }

    fn read(&mut self, path: &Path, source: &Source, keys: &Keys) -> Vec<Assignment> {
        match file::read(path) {
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

    fn replace(&mut self, assignment: Assignment) {
        let Assignment { key, value, origin } = assignment;
        self.entries.insert(
            key,
            Entry {
                value,
                origins: vec![origin],
            },
        );
    }

    fn narrow(&mut self, assignment: Assignment, rule: project::Rule) {
        match self.entries.get_mut(&assignment.key) {
            Some(entry) if rule == project::Rule::Hide => {
                entry.value = assignment.value;
                entry.origins.push(assignment.origin);
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
