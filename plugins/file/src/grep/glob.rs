//! The globs of a caller, in the form that a walk takes: as in .gitignore, relative to the directory that is searched.
//!
//! A glob that can fit no file is refused: its search would find nothing, which reads like an answer.

use globset::GlobBuilder;
use zeph_plugin::ToolError;

use crate::area::AreaPath;

/// Reads `glob`, without a `!` before it, for a search of `top`.
///
/// Shape: a leading `./` and a leading path of `top` are the top, where `/` starts for a walk.
/// Errors: it is empty, contains `..`, or is not a valid glob.
pub(super) fn relative(glob: &str, top: &AreaPath<'_>) -> Result<String, ToolError> {
    let invalid = |why: &str| {
        let message = format!("`glob`: `{glob}` {why}");
        Err(ToolError::invalid_parameters(message))
    };
    if glob.trim().is_empty() {
        return invalid("is empty");
    }
    if glob.split('/').any(|part| part == "..") {
        return invalid("is relative to `path` and cannot contain `..`; change `path` instead");
    }
    if let Err(error) = GlobBuilder::new(glob).build() {
        return invalid(&format!("is not a valid glob: {}", error.kind()));
    }
    let below = [top.absolute(), top.spelled()]
        .iter()
        .find_map(|top| below(glob, top))
        .or_else(|| glob.strip_prefix("./"));
    Ok(match below {
        Some(below) => format!("/{}", below.trim_start_matches("./")),
        // A line that begins like this is a comment.
        None if glob.starts_with('#') => format!("\\{glob}"),
        None => glob.to_owned(),
    })
}

/// What stands behind the absolute path `top`.
fn below<'a>(glob: &'a str, top: &str) -> Option<&'a str> {
    let rest = glob.strip_prefix(top.trim_end_matches('/'))?;
    top.starts_with('/').then(|| rest.strip_prefix('/'))?
}
