//! The paths a call names, for rules: absolute, with symbolic links resolved as far as the path exists.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};
use zeph_core::call::PATH_ARGUMENTS;

/// Every path-valued argument, resolved.
pub(crate) fn named_by(arguments: &Map<String, Value>, directory: &Path) -> Vec<PathBuf> {
    PATH_ARGUMENTS
        .iter()
        .filter_map(|name| arguments.get(*name).and_then(Value::as_str))
        .map(|given| resolve(&directory.join(given)))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::named_by;

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
