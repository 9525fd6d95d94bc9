//! The file of `tools.policy.policy_file`: found, read, and compiled rule by rule.

use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::{Table, Value};
use zeph_core::policy::PolicyRule;

use super::super::super::file::{self, LayerSource, TableItem};
use super::super::super::keys::Keys;
use super::super::super::origin::{Problem, ValueOrigin, path_text};
use super::super::super::paths::PathBase;
use super::super::super::raw::{RawMode, RawPolicyFile};
use super::super::Compiling;
use super::text_of;

/// Bytes of the longest file of rules. Source: the documented limit; 256 rules of a kilobyte.
const POLICY_FILE_BYTES_MAX: u64 = 256 * 1024;

const KEY: &str = "tools.policy.policy_file";

impl Compiling<'_> {
    /// The resolved path of the file, when one is named.
    ///
    /// It has to lie in the working directory or beside the operator's file: elsewhere it would be a file that others keep.
    pub(super) fn policy_file(&mut self, text: &str, user_file: Option<&Path>) -> Option<PathBuf> {
        let path = self.named_file(KEY, text)?;
        let beside = user_file.and_then(Path::parent);
        let homes = [Some(self.surroundings.working_directory.as_path()), beside];
        let homes = homes
            .into_iter()
            .flatten()
            .filter_map(|home| std::fs::canonicalize(home).ok());
        if !homes.into_iter().any(|home| path.starts_with(home)) {
            let message = format!(
                "{} lies neither in the working directory nor beside the configuration file",
                path_text(&path)
            );
            self.merged.problem(KEY, &message);
            return None;
        }
        Some(path)
    }

    /// The resolved path of the file that `key` names, as `text`, when it names one: relative to the file that says it, or else to the
    /// working directory.
    pub(in super::super) fn named_file(&mut self, key: &str, text: &str) -> Option<PathBuf> {
        if text.is_empty() {
            return None;
        }
        // A relative path of a file of the configuration means the same file in whichever directory the host starts.
        let named_in = self.named_in(key);
        let base = PathBase {
            directory: named_in.as_deref().unwrap_or(self.base().directory),
            ..self.base()
        };
        let found = base.absolute(text).and_then(|path| {
            std::fs::canonicalize(&path)
                .map_err(|error| format!("{} cannot be read: {error}", path_text(&path)))
        });
        match found {
            Ok(path) => Some(path),
            Err(message) => {
                self.merged.problem(key, &message);
                None
            }
        }
    }

    /// The directory of the operator's file that says `key`; none when a variable or a flag does.
    fn named_in(&self, key: &str) -> Option<PathBuf> {
        let origins = &self.merged.entries.get(key)?.origins;
        match origins.last()? {
            ValueOrigin::User { path, .. } => {
                let path = self.base().directory.join(path);
                path.parent().map(Path::to_path_buf)
            }
            _ => None,
        }
    }

    /// The rules of the file; what is wrong in it is a problem of the file.
    pub(super) fn rules_of_file(
        &mut self,
        path: &Path,
        section: RawMode,
        variables: &mut Vec<String>,
    ) -> Vec<PolicyRule> {
        let source = LayerSource::User(path.to_owned());
        let text = match file::read(path, POLICY_FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(message) => {
                self.merged
                    .problems
                    .push(Problem::new(source.at(0), message));
                return Vec::new();
            }
        };
        let (assignments, problems) = file::parse(&text, &source, &Keys::of_policy_file());
        let is_sound = problems.is_empty();
        self.merged.problems.extend(problems);
        let mut items: Vec<TableItem> = Vec::new();
        let mut table = Table::new();
        for assignment in assignments {
            items = assignment.items;
            table.insert(assignment.key, assignment.value);
        }
        if items.is_empty() && is_sound {
            let message = "has no `[[rules]]`".to_owned();
            self.merged
                .problems
                .push(Problem::new(source.at(0), message));
        }
        // Every value was checked against the schema of this very type.
        let Ok(raw) = RawPolicyFile::deserialize(Value::Table(table)) else {
            return Vec::new();
        };
        let directory = text_of(&self.surroundings.working_directory);
        let mut rules = Vec::new();
        for (rule, item) in raw.rules.iter().zip(items) {
            variables.extend_from_slice(&rule.env);
            match self.rule(rule, section, &directory) {
                Ok(rule) => rules.push(rule),
                Err((field, message)) => {
                    let origin: &ValueOrigin = item.fields.get(field).unwrap_or(&item.origin);
                    let message = format!("`{field}`: {message}");
                    self.merged
                        .problems
                        .push(Problem::new(origin.clone(), message));
                }
            }
        }
        rules
    }
}
