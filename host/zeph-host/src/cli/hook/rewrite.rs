//! The same command through `zeph-host filter`: only where nothing but its output changes.

use zeph_core::command::Wraps;
use zeph_filter::Filters;
use zeph_shell::analysis::analyse;

/// The command with our program before it; `None` when no rule is for it, or when it is more than one plain command.
///
/// What a shell would do itself (change its directory, set variables, redirect, run several commands) has to be done by
/// the agent's shell, which may go on after it; and what cannot be told apart is never touched.
pub(super) fn rewritten(filters: &Filters, text: &str, program: &str) -> Option<String> {
    let line = analyse(text);
    let ([command], Some(last)) = (line.commands.as_slice(), &line.last) else {
        return None;
    };
    let is_plain = command.is_literal
        && command.wraps == Wraps::Nothing
        && line.unknown.is_empty()
        && !line
            .redirections
            .iter()
            .any(|redirection| redirection.writes)
        && last.pipes.is_empty()
        && !last.is_one_of_several;
    // A variable before it would become the name of a program; a parenthesis would stay alone.
    let words = text.trim();
    let words = words.strip_suffix(" 2>&1").unwrap_or(words);
    let begins_plainly = words.starts_with(&command.name)
        && !words.contains(['\n', '(', ')', '{', '}', ';', '&', '|', '<', '>', '`']);
    let has_rule = !filters.why(&line).acting.is_empty();
    (is_plain && begins_plainly && has_rule).then(|| format!("{program} filter -- {}", text.trim()))
}
