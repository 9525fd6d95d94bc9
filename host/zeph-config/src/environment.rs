//! The operator's last words: `ZEPH_…` variables and the flags `--set`, `--root` and `--plugins`.

use std::path::{Path, PathBuf};

use toml::Value;
use zeph_core::failure::one_line;
use zeph_core::nearest::nearest;

use super::file::KeyAssignment;
use super::keys::Keys;
use super::origin::{Problem, ValueOrigin, path_text};
use super::store_url;
use super::surroundings::{Flags, Surroundings};
use super::value;

/// Names the user's file, as `--config` does. Not a key.
pub const CONFIG_VARIABLE: &str = "ZEPH_HOST_CONFIG";

/// The directories of commands, which `--root` names as well.
pub(crate) const COMMAND_DIRECTORIES: &str = "tools.shell.allowed_paths";

/// The folders of plugins that the operator names.
pub(crate) const FOLDERS: &str = "plugins.folders";

/// What a layer without lines says.
#[derive(Debug, Default)]
pub(crate) struct SetValues {
    pub(crate) assignments: Vec<KeyAssignment>,
    /// Items for the list of a key, one each: they stand before what other layers and `assignments` say there.
    pub(crate) first: Vec<KeyAssignment>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<String>,
}

/// The variable of a key: `tools.overflow.threshold` is `ZEPH_TOOLS_OVERFLOW_THRESHOLD`.
pub(crate) fn variable_of(key: &str) -> String {
    format!("ZEPH_{}", key.replace('.', "_").to_uppercase())
}

/// The variables that name a key. One that only looks like it is a warning: a typing error there must not be silent,
/// and other programs of the Zeph family have variables of their own, so it is not an error either.
pub(crate) fn variables(surroundings: &Surroundings, keys: &Keys) -> SetValues {
    let mut said = SetValues::default();
    if surroundings.env.is_empty() {
        return said;
    }
    let leaves = keys.leaves.iter().map(|key| key.name);
    let known: Vec<(String, &str)> = leaves.map(|key| (variable_of(key), key)).collect();
    for (name, text) in &surroundings.env {
        if let Some((_, key)) = known.iter().find(|(variable, _)| variable == name) {
            let origin = ValueOrigin::Environment {
                variable: name.clone(),
            };
            match text.to_str() {
                Some(text) => said.assign(keys, key, text, origin),
                None => {
                    let message = format!("`{key}`: the value is not UTF-8");
                    said.problems.push(Problem::new(origin, message));
                }
            }
        } else if let Some(map) = map_of(name, keys) {
            said.warnings.push(format!(
                "the variable `{}` sets nothing: what is in `{map}` is set in a file or with `--set {map}.…`",
                one_line(name, 100)
            ));
        } else if looks_like_a_key(name, keys) {
            let names = known.iter().map(|(variable, _)| variable.as_str());
            said.warnings.push(match nearest(name, names) {
                Some(near) => format!(
                    "the variable `{}` is not a configuration key; did you mean `{near}`?",
                    one_line(name, 100)
                ),
                None => format!(
                    "the variable `{}` is not a configuration key",
                    one_line(name, 100)
                ),
            });
        }
    }
    said
}

/// The table whose keys are names that a variable seems to be about: no variable can spell every name.
fn map_of(name: &str, keys: &Keys) -> Option<&'static str> {
    let mut maps = keys.maps.iter().map(|map| map.name);
    maps.find(|map| {
        let rest = name.strip_prefix(&variable_of(map));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    })
}

/// Whether a variable begins like one of a known table, such as `ZEPH_TOOLS_…`.
fn looks_like_a_key(name: &str, keys: &Keys) -> bool {
    keys.sections
        .iter()
        .filter(|section| !section.is_empty())
        .any(|section| name.starts_with(&format!("{}_", variable_of(section))))
}

/// What the flags say; a later `--set` of the same key wins, and `--root` over both. `--plugins` adds to what was said.
///
/// `--root` is for every tool: commands have the same directories, unless `--set` names theirs.
pub(crate) fn flags(flags: &Flags, keys: &Keys) -> SetValues {
    let mut said = SetValues::default();
    said.paths(COMMAND_DIRECTORIES, "--root", &flags.roots);
    // What is wrong with them is reported for the directories of file tools.
    said.problems.clear();
    for text in &flags.set {
        let parts = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty());
        let origin = ValueOrigin::Flag {
            flag: match parts {
                Some((key, value)) if key.trim() == store_url::KEY => {
                    format!("--set {}={}", store_url::KEY, store_url::shown(value))
                }
                _ => format!("--set {text}"),
            },
        };
        let Some((key, value)) = parts else {
            let message = "wanted KEY=VALUE, such as `limits.cpu_secs=60`".to_owned();
            said.problems.push(Problem::new(origin, message));
            continue;
        };
        let key = key.trim();
        if keys.kind(key).is_some() {
            said.assign(keys, key, value, origin);
        } else {
            said.problems
                .push(Problem::new(origin, keys.unknown_path(key)));
        }
    }
    said.paths("tools.file.allowed_paths", "--root", &flags.roots);
    for folder in &flags.plugins {
        said.first_path(FOLDERS, "--plugins", folder);
    }
    said
}

/// Whether `--root` said a value.
pub(crate) fn is_root(origin: &ValueOrigin) -> bool {
    matches!(origin, ValueOrigin::Flag { flag } if flag.starts_with("--root "))
}

impl SetValues {
    fn assign(&mut self, keys: &Keys, key: &str, text: &str, origin: ValueOrigin) {
        let Some(kind) = keys.kind(key) else {
            return;
        };
        match value::from_text(kind, text) {
            Ok(value) => self.assignments.push(KeyAssignment {
                key: key.to_owned(),
                value,
                origin,
                items: Vec::new(),
            }),
            Err(wrong) => {
                let message = format!("`{key}`: {}", wrong.message);
                self.problems.push(Problem::new(origin, message));
            }
        }
    }

    /// A flag for one path that may be repeated, and the list it stands for.
    fn paths(&mut self, key: &str, flag: &str, paths: &[PathBuf]) {
        let Some(last) = paths.last() else {
            return;
        };
        let texts = paths.iter().filter_map(|path| self.text_of(flag, path));
        let assignment = KeyAssignment {
            key: key.to_owned(),
            value: Value::Array(texts.collect()),
            origin: of_flag(flag, last),
            items: Vec::new(),
        };
        self.assignments.push(assignment);
    }

    /// A flag for one path, and the list it stands before.
    fn first_path(&mut self, key: &str, flag: &str, path: &Path) {
        let text = self.text_of(flag, path);
        self.first.extend(text.map(|text| KeyAssignment {
            key: key.to_owned(),
            value: Value::Array(vec![text]),
            origin: of_flag(flag, path),
            items: Vec::new(),
        }));
    }

    /// The path as a value; what is not UTF-8 is a problem.
    fn text_of(&mut self, flag: &str, path: &Path) -> Option<Value> {
        let text = path.to_str().map(|text| Value::String(text.to_owned()));
        if text.is_none() {
            let message = "the path is not UTF-8".to_owned();
            self.problems
                .push(Problem::new(of_flag(flag, path), message));
        }
        text
    }
}

fn of_flag(flag: &str, path: &Path) -> ValueOrigin {
    ValueOrigin::Flag {
        flag: format!("{flag} {}", path_text(path)),
    }
}
