//! `git_status`: the long format of `git status` without its hints. Every path, section and branch line stays.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Confidence, Coverage, Definition, Input, Selection, Strategy, options, severity};

/// The entry of the table.
pub const DEFINITION: Definition = Definition {
    name: "git_status",
    description: "Drops the hints of `git status`; branch, sections and every path stay.",
    coverage: Coverage::Recognised,
    schema: options::schema::<Options>,
    create,
};

/// There is nothing to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {}

fn create(options: &str) -> Result<Box<dyn Strategy>, String> {
    Ok(Box::new(options::read::<Options>(options)?))
}

/// What the long format begins with.
const BRANCH: [&str; 5] = [
    "On branch ",
    "HEAD detached ",
    "Not currently on any branch",
    "interactive rebase in progress",
    "rebase in progress",
];

impl Strategy for Options {
    fn apply(&self, input: &Input<'_>) -> Selection {
        let is_long_format =
            (input.lines.iter()).any(|line| BRANCH.iter().any(|start| line.starts_with(start)));
        if !is_long_format {
            return Selection::all(input, Confidence::Fallback);
        }
        let is_kept: Vec<_> = input.lines.iter().map(|line| !is_hint(line)).collect();
        Selection::of(&is_kept, Confidence::Full)
    }
}

/// Hints stand in parentheses: `  (use "git add <file>..." to update what will be committed)`. A path in parentheses is indented
/// by a tab or ends otherwise.
fn is_hint(line: &str) -> bool {
    let hint = line
        .strip_prefix("  (")
        .or_else(|| line.strip_prefix('('))
        .or_else(|| line.strip_prefix("    ("));
    let is_hint = hint.is_some_and(|hint| hint.starts_with("use \"git") && hint.ends_with(')'));
    let is_blank = line.trim().is_empty();
    (is_hint || is_blank) && severity(line).is_none()
}
