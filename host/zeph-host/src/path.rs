//! The paths a call names, for rules: absolute, with symbolic links resolved as far as the path exists.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use zeph_core::call::{FileFacts, ObeyedPath, PATH_ARGUMENTS};
use zeph_core::failure::one_line;
use zeph_core::git_config::GitUser;
use zeph_core::obeyed;
use zeph_core::tool::ToolKind;
use zeph_engine::fs::{LeadSources, Leads, holds, in_packages};
use zeph_plugins::visible::visible_line;

/// Most names looked at in a directory that a call moves, copies or removes: a tenth of a second.
const ENTRIES_MAX: usize = 100_000;

/// What has to be known of a call to look at the paths it names.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) arguments: Map<String, Value>,
    /// The directories file tools may touch; relative paths start in the first. Absolute, resolved.
    pub(crate) roots: Vec<PathBuf>,
    /// The user whose configuration of git counts.
    pub(crate) git_user: GitUser,
    pub(crate) kind: ToolKind,
    pub(crate) can_change: bool,
    /// Whether the tool is one of the host's own, whose path arguments are paths of files.
    pub(crate) is_ours: bool,
}

impl Look {
    /// Looks at every path. It blocks, and lists directories that would be moved, copied or removed.
    pub(crate) fn facts(&self) -> FileFacts {
        let Some(directory) = self.roots.first() else {
            return FileFacts::default();
        };
        let mut facts = FileFacts::default();
        for (argument, given) in given(&self.arguments) {
            // Two forms of what a path names: the object its last link leads to, and the name itself.
            let path = directory.join(given);
            let object = resolve(&path);
            // The form that lies inside is enough for a call that only reads.
            if !self.can_change && self.root_of(&object).is_some() {
                continue;
            }
            let forms = [object, entry(&path)];
            if self.is_ours && forms.iter().all(|form| self.root_of(form).is_none()) {
                facts.outside = facts.outside.or_else(|| Some(self.outside(given)));
            }
            let taken = self.taken_root(argument, given, &forms[1]);
            facts.outside = facts.outside.or(taken);
            facts.reach.extend(forms);
        }
        if !self.can_change {
            return FileFacts {
                outside: facts.outside,
                ..FileFacts::default()
            };
        }
        facts.reach.sort();
        facts.reach.dedup();
        let mut leads = Leads::new(Arc::new(LeadSources {
            roots: self.roots.clone(),
            user: self.git_user.clone(),
        }));
        for path in &facts.reach {
            let named = self
                .root_of(path)
                .and_then(|root| leads.name_of(root, path));
            facts.obeyed.extend(named.map(|name| ObeyedPath {
                path: path.clone(),
                name,
                inside: false,
            }));
        }
        if facts.obeyed.is_empty() {
            facts.obeyed.extend(self.held(directory));
        }
        facts
    }

    /// What the directory that the call moves, copies or removes holds, or would hold under its new name.
    fn held(&self, directory: &Path) -> Option<ObeyedPath> {
        let entry = |argument: &str| {
            let given = self.arguments.get(argument)?.as_str()?;
            let path = entry(&directory.join(given));
            Some((self.root_of(&path)?.to_owned(), path))
        };
        let (source, names) = match (entry("destination"), self.kind) {
            (Some(new), ToolKind::Move) => {
                let old = entry("source")?;
                (old.1.clone(), vec![new, old])
            }
            (Some(new), _) => (resolve(&entry("source")?.1), vec![new]),
            (None, ToolKind::Delete) => {
                let old = entry("path")?;
                (old.1.clone(), vec![old])
            }
            (None, _) => return None,
        };
        let removes = self.kind == ToolKind::Delete;
        let is_directory = source.symlink_metadata().is_ok_and(|about| about.is_dir());
        // Of packages and products nothing is obeyed where it is.
        let (root, name) = names.first()?;
        if !is_directory || removes && in_packages(root, name) {
            return None;
        }
        let ends: Vec<(&Path, &Path)> = names
            .iter()
            .map(|(root, name)| (root.as_path(), name.as_path()))
            .collect();
        let name = match holds(&source, &ends, !removes, ENTRIES_MAX) {
            Ok(found) => found?,
            Err(_) => obeyed::TOO_MANY,
        };
        Some(ObeyedPath {
            path: ends.first()?.1.to_owned(),
            name,
            inside: true,
        })
    }

    /// That the call would take an allowed directory away, which nothing that is agreed to changes.
    fn taken_root(&self, argument: &str, given: &str, entry: &Path) -> Option<String> {
        let done = match (self.kind, argument) {
            (ToolKind::Delete, "path") => "deleted",
            (ToolKind::Move, "source") => "moved",
            _ => return None,
        };
        let holds_root = self.roots.iter().any(|root| root.starts_with(entry));
        (self.is_ours && holds_root).then(|| {
            let shown = one_line(given, 200);
            format!("`{shown}` may not be {done}: it is an allowed directory or holds one")
        })
    }

    fn root_of(&self, path: &Path) -> Option<&Path> {
        let holding = self.roots.iter().filter(|root| path.starts_with(root));
        holding
            .max_by_key(|root| root.as_os_str().len())
            .map(PathBuf::as_path)
    }

    fn outside(&self, given: &str) -> String {
        let roots = self
            .roots
            .iter()
            .map(|root| format!("`{}`", visible_line(&root.to_string_lossy())));
        format!(
            "`{}` is outside the allowed directories: {}",
            one_line(given, 200),
            roots.collect::<Vec<_>>().join(", ")
        )
    }
}

fn given(arguments: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &str)> {
    PATH_ARGUMENTS
        .iter()
        .filter_map(|name| Some((*name, arguments.get(*name)?.as_str()?)))
}

/// The path with every link but the last resolved.
fn entry(path: &Path) -> PathBuf {
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(leaf))) => resolve(parent).join(leaf),
        _ => resolve(path),
    }
}

/// Every path-valued argument, resolved.
pub(crate) fn named_by(arguments: &Map<String, Value>, directory: &Path) -> Vec<PathBuf> {
    given(arguments)
        .map(|(_, given)| resolve(&directory.join(given)))
        .collect()
}

/// The canonical form of the longest part that exists, and the rest appended without `.` and `..`.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut existing = path;
    let base = loop {
        if let Ok(base) = existing.canonicalize() {
            break base;
        }
        let Some(parent) = existing.parent() else {
            break PathBuf::from("/");
        };
        if let Some(last) = existing.components().next_back() {
            rest.push(last);
        }
        existing = parent;
    };
    let mut resolved = base;
    for component in rest.into_iter().rev() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

pub(crate) mod line;
pub(crate) mod rights;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_core::git_config::GitUser;
    use zeph_core::tool::ToolKind;

    use super::{Look, named_by};

    /// Whether a directory of packages or products holds a workspace does not matter, only whether the workspace holds one.
    #[test]
    fn what_a_removed_directory_holds_is_found_wherever_the_workspace_lies() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for (place, path, expect) in [
            ("plain/ws", "sub", true),
            ("dist/ws", "sub", true),
            ("vendor/target/ws", "sub", true),
            ("plain/ws", "dist", false),
            ("dist/ws", "dist", false),
        ] {
            let root = top.join(place);
            std::fs::create_dir_all(root.join(path).join("in/.git")).unwrap();
            let look = Look {
                arguments: json!({"path": path, "recursive": true})
                    .as_object()
                    .unwrap()
                    .clone(),
                roots: vec![root.clone()],
                git_user: GitUser::default(),
                kind: ToolKind::Delete,
                can_change: true,
                is_ours: true,
            };
            let obeyed = look.facts().obeyed;
            let found: Vec<_> = obeyed.iter().map(|one| (&one.path, one.inside)).collect();
            let held = (root.join(path), true);
            let expect = if expect {
                vec![(&held.0, held.1)]
            } else {
                Vec::new()
            };
            assert_eq!(found, expect, "{place} {path}");
        }
    }

    #[test]
    fn an_allowed_directory_is_not_taken_away_whatever_is_agreed_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("sub/.git")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("link")).unwrap();
        let facts = |kind, arguments: serde_json::Value, is_ours| {
            let look = Look {
                arguments: arguments.as_object().unwrap().clone(),
                roots: vec![root.clone(), root.join("sub/.git")],
                git_user: GitUser::default(),
                kind,
                can_change: true,
                is_ours,
            };
            look.facts().outside
        };
        for (kind, arguments, expect) in [
            (ToolKind::Delete, json!({"path": "."}), Some("deleted")),
            (ToolKind::Delete, json!({"path": root}), Some("deleted")),
            (ToolKind::Delete, json!({"path": "sub"}), Some("deleted")),
            (ToolKind::Delete, json!({"path": "link"}), None),
            (ToolKind::Delete, json!({"path": "other"}), None),
            (ToolKind::Edit, json!({"path": "."}), None),
            (
                ToolKind::Move,
                json!({"source": ".", "destination": "x"}),
                Some("moved"),
            ),
            (
                ToolKind::Move,
                json!({"source": "x", "destination": "."}),
                None,
            ),
        ] {
            let told = facts(kind, arguments.clone(), true);
            let expect = expect.map(|done| format!("may not be {done}: it is an allowed"));
            assert_eq!(told.is_some(), expect.is_some(), "{arguments} {told:?}");
            assert!(
                told.unwrap_or_default()
                    .contains(&expect.unwrap_or_default()),
                "{arguments}"
            );
            // Only the plugin itself knows which of its arguments are paths.
            assert_eq!(facts(kind, arguments.clone(), false), None, "{arguments}");
        }
    }

    #[test]
    fn links_are_resolved_before_rules_see_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("src")).unwrap();
        std::fs::create_dir(root.join("other")).unwrap();
        std::os::unix::fs::symlink(root.join("other"), root.join("src/link")).unwrap();
        let table = [
            ("src/new.rs", "src/new.rs"),
            ("src/link/new.rs", "other/new.rs"),
            ("src/link/../x", "x"),
            ("src/../x", "x"),
            ("./src/./a/b/c", "src/a/b/c"),
            ("nowhere/../../x", "../x"),
        ];
        for (given, expect) in table {
            let arguments = json!({ "path": given }).as_object().unwrap().clone();
            let expect = if let Some(outside) = expect.strip_prefix("../") {
                root.parent().unwrap().join(outside)
            } else {
                root.join(expect)
            };
            assert_eq!(named_by(&arguments, &root), [expect], "{given}");
        }
    }
}
