//! What the texts begin with that an expression matches, as far as it can be told at a glance.
//!
//! Rules are for programs: `^git\s+diff\b`. A command of another program need not be tried, and an expression that is tried on
//! none need not be compiled, which takes a thousand times longer. Where the notation is not plain, nothing is told.

/// One of these begins every text that `pattern` matches; `None` when that cannot be told.
pub(super) fn starts(pattern: &str) -> Option<Vec<String>> {
    let of_branches = branches(pattern).into_iter().map(starts_of_branch);
    let starts: Option<Vec<_>> = of_branches.collect();
    starts.map(|starts| starts.concat())
}

fn starts_of_branch(branch: &str) -> Option<Vec<String>> {
    let rest = branch.strip_prefix('^')?;
    let Some(group) = rest.strip_prefix("(?:") else {
        return Some(vec![plain_start(rest)?]);
    };
    let end = group_end(group)?;
    let is_repeated = group[end + 1..].starts_with(['?', '*', '+', '{']);
    let inner = branches(&group[..end]).into_iter().map(plain_start);
    inner.collect::<Option<Vec<_>>>().filter(|_| !is_repeated)
}

/// The letters, digits and hyphens a branch begins with; `None` when there are none.
fn plain_start(branch: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let rest = branch.trim_start_matches(is_plain);
    let mut start = branch[..branch.len() - rest.len()].to_owned();
    if rest.starts_with(['?', '*', '{']) {
        start.pop();
    }
    (!start.is_empty()).then_some(start)
}

/// The parts between the `|` that stand in no group and no class.
fn branches(pattern: &str) -> Vec<&str> {
    let mut branches = Vec::new();
    let mut start = 0;
    for (at, c, depth) in signs(pattern) {
        if c == '|' && depth == 0 {
            branches.push(&pattern[start..at]);
            start = at + 1;
        }
    }
    branches.push(&pattern[start..]);
    branches
}

/// The end of the group whose beginning was taken off.
fn group_end(group: &str) -> Option<usize> {
    let mut ends = signs(group).filter(|(_, c, depth)| *c == ')' && *depth < 0);
    ends.next().map(|(at, ..)| at)
}

/// The characters that mean something, with the number of groups that are open after them.
fn signs(pattern: &str) -> impl Iterator<Item = (usize, char, i32)> {
    let (mut depth, mut is_class, mut is_escaped) = (0, false, false);
    pattern.char_indices().filter_map(move |(at, c)| {
        if std::mem::take(&mut is_escaped) {
            return None;
        }
        match c {
            '\\' => is_escaped = true,
            ']' => is_class = false,
            _ if is_class => {}
            '[' => is_class = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => return Some((at, c, depth)),
        }
        (c == ')').then_some((at, c, depth))
    })
}

#[cfg(test)]
mod tests;
