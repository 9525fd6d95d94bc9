//! Warnings that are shown before a diff.

use zeph_core::tool::Tool;

use super::PluginSide;
use super::tool::counterpart;
use crate::definitions::canonical_json;
use crate::visible::is_hidden;

/// Of definitions that do not have the digest of their pin.
pub(super) const EDITED: &str = "the old definitions in `zeph.lock` do not have the digest that stands beside them: they were changed by hand, \
     and what is shown as old may be wrong";

/// The warnings, one sentence each.
pub(super) fn all(old: PluginSide<'_>, new: PluginSide<'_>) -> Vec<String> {
    let mut warnings = of_tools(old.definitions.tools(), new.definitions.tools());
    if old.definitions.digest() != old.pin.tools {
        warnings.insert(0, EDITED.to_owned());
    }
    warnings
}

/// The warnings about tools, one sentence each. Both lists are sorted by name.
pub(super) fn of_tools(old: &[Tool], new: &[Tool]) -> Vec<String> {
    let mut warnings = Vec::new();
    for tool in new {
        let name = &tool.name;
        let before = counterpart(old, tool);
        if let Some(before) = before {
            if runs_unasked(tool) && !runs_unasked(before) {
                warnings.push(format!(
                    "`{name}` is now declared read-only: its calls will run without approval"
                ));
            }
            if before.annotations.destructive && !tool.annotations.destructive {
                warnings.push(format!("`{name}` is no longer declared destructive"));
            }
        }
        if has_hidden(tool) && !before.is_some_and(has_hidden) {
            warnings.push(format!(
                "the texts of `{name}` hold characters that cannot be seen or that reorder text; they stand here as `\\u{{…}}`"
            ));
        }
    }
    warnings
}

/// What the policy makes of the promises of a tool: see `zeph_core::policy::authorise`.
fn runs_unasked(tool: &Tool) -> bool {
    tool.annotations.read_only && !tool.annotations.open_world
}

/// Whether a text of the tool holds what a person would not see. The mark that makes a character an emoji is harmless.
fn has_hidden(tool: &Tool) -> bool {
    let is_suspect = |character| is_hidden(character) && !"\n\t\r\u{fe0f}".contains(character);
    let schemas = std::iter::once(tool.parameters.schema()).chain(tool.output.as_deref());
    let texts = [
        tool.title.clone().unwrap_or_default(),
        tool.description.clone(),
    ];
    let mut texts = texts.into_iter().chain(schemas.map(canonical_json));
    texts.any(|text| text.contains(is_suspect))
}
