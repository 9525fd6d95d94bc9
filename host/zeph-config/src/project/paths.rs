//! Paths and patterns of a project file: within what the operator granted, or hidden besides what the operator hides.

use std::path::PathBuf;

use toml::Value;
use zeph_core::failure::one_line;

use super::super::merge::MergedValue;
use super::super::origin::path_text;
use super::super::paths::PathBase;
use super::super::places::RootPlace;
use super::{add, texts};

pub(super) fn add_paths(
    lower: &MergedValue,
    asked: &Value,
    project: PathBase<'_>,
) -> Result<Value, String> {
    let mut paths = Vec::new();
    for text in texts(asked) {
        for path in project.named(text)? {
            paths.push(utf8(path, text)?);
        }
    }
    Ok(add(lower, paths.into_iter()))
}

pub(super) fn hide(
    lower: &MergedValue,
    asked: &Value,
    project: PathBase<'_>,
) -> Result<Value, String> {
    let mut patterns: Vec<String> = texts(&lower.value).into_iter().map(str::to_owned).collect();
    for text in texts(asked) {
        for glob in project.deny(text)? {
            if !patterns.contains(&glob) {
                patterns.push(glob);
            }
        }
    }
    Ok(Value::Array(
        patterns.into_iter().map(Value::String).collect(),
    ))
}

pub(super) fn within(
    lower: &MergedValue,
    asked: &Value,
    operator: PathBase<'_>,
    project: PathBase<'_>,
) -> Result<Value, String> {
    let granted = granted(lower, operator);
    let roots = match texts(asked).as_slice() {
        // Empty means the working directory, here as everywhere, and that may well lie outside of what is granted.
        [] => vec![root(".", operator, &granted, lower)?],
        some => some
            .iter()
            .map(|text| root(text, project, &granted, lower))
            .collect::<Result<Vec<_>, _>>()?,
    };
    Ok(Value::Array(roots.into_iter().map(Value::String).collect()))
}

/// The canonical roots of the lower layers; those that cannot be used are reported where they stand.
fn granted(lower: &MergedValue, operator: PathBase<'_>) -> Vec<PathBuf> {
    let mut roots = texts(&lower.value);
    if roots.is_empty() {
        roots.push(".");
    }
    roots
        .iter()
        .filter_map(|text| operator.directory(text).ok())
        .collect()
}

fn root(
    text: &str,
    base: PathBase<'_>,
    granted: &[PathBuf],
    lower: &MergedValue,
) -> Result<String, String> {
    let path = base.directory(text)?;
    if !granted.iter().any(|root| path.starts_with(root)) {
        return Err(format!(
            "a project file may only name directories within the granted ones: `{}` is {}, outside {} ({})",
            one_line(text, 200),
            path_text(&path),
            list(granted),
            lower.said()
        ));
    }
    utf8(path, text)
}

/// Paths of the jail, of files too. One that does not exist is taken as it would resolve: a build can make it later.
pub(super) fn within_paths(
    lower: &MergedValue,
    asked: &Value,
    operator: PathBase<'_>,
    project: PathBase<'_>,
) -> Result<Value, String> {
    let mut bound = texts(&lower.value);
    if bound.is_empty() {
        bound.push(".");
    }
    let granted: Vec<PathBuf> = bound
        .iter()
        .filter_map(|text| match operator.places(text) {
            Ok(RootPlace::Existing(paths)) => Some(paths),
            Ok(RootPlace::Missing) | Err(_) => None,
        })
        .flatten()
        .collect();
    let texts = match texts(asked) {
        // Empty means the directories of the shell, which may be more than what the jail is given.
        some if some.is_empty() => vec!["."],
        some => some,
    };
    let paths = texts.into_iter().map(|text| {
        let path = match project.named(text)?.pop() {
            Some(path) if granted.iter().any(|root| path.starts_with(root)) => path,
            path => {
                return Err(format!(
                    "a project file may only name paths within the granted ones: `{}` is {}, outside {} ({})",
                    one_line(text, 200),
                    path.as_deref().map_or_else(String::new, path_text),
                    list(&granted),
                    lower.said()
                ));
            }
        };
        utf8(path, text).map(Value::String)
    });
    paths.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

fn utf8(path: PathBuf, text: &str) -> Result<String, String> {
    path.into_os_string()
        .into_string()
        .map_err(|_| format!("`{}` lies in a path that is not UTF-8", one_line(text, 200)))
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path_text(path)).collect();
    shown.join(", ")
}
