//! The strategies by name.

use crate::{
    Input, Selection, dedup, git_diff, git_status, group_by_rule, keep_matching, strip_annotated,
    strip_noise, test_summary, truncate,
};

/// A strategy with its options, made once and applied many times. It keeps nothing from one output to the next.
pub trait Strategy: Send + Sync {
    /// Selects what is shown of one output. Never fails: what is not understood is [`Confidence::Fallback`](crate::Confidence).
    fn apply(&self, input: &Input<'_>) -> Selection;
}

/// Which lines a strategy may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Only lines it recognises, so that output of other commands mixed in survives.
    Recognised,
    /// Any line but those it looks for.
    Unrecognised,
}

/// One entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// As rules name it.
    pub name: &'static str,
    /// One sentence for people.
    pub description: &'static str,
    /// Which lines it may leave out.
    pub coverage: Coverage,
    /// The JSON Schema of its options.
    pub schema: fn() -> String,
    /// Makes it from options as JSON text; the error is one plain sentence.
    pub create: fn(&str) -> Result<Box<dyn Strategy>, String>,
}

/// Every strategy, in the order of the manual.
pub static STRATEGIES: [Definition; 9] = [
    strip_noise::DEFINITION,
    truncate::DEFINITION,
    keep_matching::DEFINITION,
    strip_annotated::DEFINITION,
    test_summary::DEFINITION,
    group_by_rule::DEFINITION,
    git_status::DEFINITION,
    git_diff::DEFINITION,
    dedup::DEFINITION,
];

/// The entry of a name.
pub fn find(name: &str) -> Option<&'static Definition> {
    STRATEGIES.iter().find(|definition| definition.name == name)
}

/// Makes a strategy from its name and its options as JSON text.
///
/// Errors: one plain sentence when there is no such strategy or the options are wrong.
pub fn create(name: &str, options: &str) -> Result<Box<dyn Strategy>, String> {
    let definition = find(name).ok_or_else(|| format!("there is no strategy `{name}`"))?;
    (definition.create)(options)
}

#[cfg(test)]
mod tests;
