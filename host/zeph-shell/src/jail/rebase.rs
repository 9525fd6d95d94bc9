//! What git would run when it goes on with what it stopped in: `git rebase --continue` executes lines of a file in the git directory,
//! and a strategy of merging is the name of a program. A person goes on outside the jail with what a command left, as git itself advises.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zeph_core::git_config::settings;
use zeph_core::text::plain_line;

use super::git::{self, bytes_of};
use super::new_repositories;

/// Most bytes of such a file; a line of a rebase has some fifty.
const BYTES_MAX: u64 = 16 << 20;

/// Most lines that a note names, and characters of each.
const SHOWN_MAX: usize = 3;
const LINE_CHARS_MAX: usize = 80;

/// Where git keeps what is left to do. Source: `sequencer.c` of git 2.50.
const TODO: &str = "rebase-merge/git-rebase-todo";
const STRATEGY: &str = "rebase-merge/strategy";
const OPTIONS: &str = "sequencer/opts";

/// Strategies of merging that git has itself.
const STRATEGIES: [&str; 6] = ["octopus", "ort", "ours", "recursive", "resolve", "subtree"];

/// A file of a git directory, and a line of it that git would run; no line where the file is none that git makes, or too large.
pub(super) type RebaseStep = (PathBuf, Vec<u8>);

/// Finds lines that git would run in a file.
type Lines = fn(&[u8]) -> Vec<Vec<u8>>;

/// The git directories of which steps are looked for: those in which nothing that git obeys can be changed, and those of `loose`
/// repositories.
fn directories<'a>(
    guarded: impl IntoIterator<Item = &'a PathBuf>,
    loose: impl IntoIterator<Item = &'a PathBuf>,
) -> BTreeSet<PathBuf> {
    let guarded = guarded.into_iter();
    let guarded = guarded.flat_map(|git| {
        let inner = git::worktrees(git).into_iter().chain(git::modules(git));
        inner.chain([git.clone()])
    });
    let loose = loose.into_iter();
    guarded
        .chain(loose.flat_map(|work| new_repositories::directories(work)))
        .collect()
}

/// What git would run in their git directories.
pub(super) fn steps<'a>(
    guarded: impl IntoIterator<Item = &'a PathBuf>,
    loose: impl IntoIterator<Item = &'a PathBuf>,
) -> BTreeSet<RebaseStep> {
    let gits = directories(guarded, loose);
    gits.iter().flat_map(|git| steps_in(git)).collect()
}

/// What git would run in one.
pub(super) fn steps_in(git: &Path) -> Vec<RebaseStep> {
    let mut found = Vec::new();
    for (name, lines) in [
        (TODO, exec_lines as Lines),
        (STRATEGY, strategies),
        (OPTIONS, options),
    ] {
        let file = git.join(name);
        let folder = file.parent().unwrap_or(git);
        let Ok(about) = folder.symlink_metadata() else {
            continue;
        };
        if !about.is_dir() {
            found.push((folder.to_owned(), Vec::new()));
            continue;
        }
        let Ok(about) = file.symlink_metadata() else {
            continue;
        };
        let bytes = about.is_file().then(|| bytes_of(&file, BYTES_MAX));
        match bytes.flatten() {
            Some(bytes) => found.extend(lines(&bytes).into_iter().map(|line| (file.clone(), line))),
            None => found.push((file, Vec::new())),
        }
    }
    found
}

fn exec_lines(todo: &[u8]) -> Vec<Vec<u8>> {
    let lines = todo.split(is_end).filter(|line| is_exec(line));
    lines.map(|line| line.trim_ascii().to_vec()).collect()
}

fn is_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | 0)
}

fn is_exec(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_start().split(u8::is_ascii_whitespace);
    matches!(words.next(), Some(b"exec" | b"x"))
}

fn strategies(content: &[u8]) -> Vec<Vec<u8>> {
    let name = content.trim_ascii();
    let is_own = name.is_empty() || STRATEGIES.iter().any(|own| own.as_bytes() == name);
    (!is_own).then(|| name.to_vec()).into_iter().collect()
}

fn options(content: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(content);
    let options = settings(&text).into_iter();
    let named = options.filter(|option| option.name == "options.strategy");
    let named = named.filter_map(|option| option.value);
    named.flat_map(|name| strategies(name.as_bytes())).collect()
}

/// What the file of `steps` can be without them; none where it is held back as a whole.
pub(super) fn without(file: &Path, steps: &[Vec<u8>]) -> Option<Vec<u8>> {
    if !file.ends_with(TODO) || steps.iter().any(Vec::is_empty) {
        return None;
    }
    let todo = bytes_of(file, BYTES_MAX)?;
    let lines = todo.split(is_end);
    let left =
        lines.filter(|line| !(is_exec(line) && steps.iter().any(|step| step == line.trim_ascii())));
    Some(left.collect::<Vec<_>>().join(&b'\n'))
}

/// The lines as a note names them.
pub(super) fn shown(steps: &[Vec<u8>]) -> String {
    let named = steps.iter().filter(|step| !step.is_empty());
    let shown = named.take(SHOWN_MAX).map(|step| {
        let text = plain_line(&String::from_utf8_lossy(step), LINE_CHARS_MAX);
        format!("`{text}`")
    });
    let shown: Vec<String> = shown.collect();
    match (shown.is_empty(), steps.len().saturating_sub(shown.len())) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", shown.join(", ")),
        (false, n_more) => format!(" ({} and {n_more} more)", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, exec_lines, options, strategies};

    #[test]
    fn what_git_would_run_is_found() {
        let cases: [(Lines, &str, &[&str]); 12] = [
            (exec_lines, "pick 1 exec\n# exec a\nlabel x\nbreak\n", &[]),
            (exec_lines, "pick 1\nexec make test\n", &["exec make test"]),
            (exec_lines, " \tx a\r\nx\tb\nexec", &["x a", "x\tb", "exec"]),
            (exec_lines, "execute a\nxx b\nmerge -C 1 x\n", &[]),
            (strategies, "ort\n", &[]),
            (strategies, "", &[]),
            (strategies, "a/b\n", &["a/b"]),
            (strategies, "theirs", &["theirs"]),
            (options, "[options]\n\tstrategy = ours\n", &[]),
            (options, "[options]\n\tsignoff = true\n", &[]),
            (options, "[Options] Strategy = \"a/b\"", &["a/b"]),
            (options, "[options]\nstrategy\n", &[]),
        ];
        for (look, content, expect) in cases {
            let found = look(content.as_bytes());
            let found: Vec<_> = found
                .iter()
                .map(|line| String::from_utf8_lossy(line))
                .collect();
            assert_eq!(found, expect, "{content:?}");
        }
    }
}
