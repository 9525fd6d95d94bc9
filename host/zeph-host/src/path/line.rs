//! The paths of a command line: where it may be while it runs, what its redirections open, and which files its words may name.
//!
//! Errs on one side only: a path that is not among these is not named by the line. What cannot be determined is unknown.

use std::path::{Component, Path, PathBuf};

use zeph_core::command::{CommandLine, LinePlaces, SimpleCommand, WordPlace, WordPlaces};

use super::resolve;

pub(crate) mod moves;

/// Most directories a line may be in. More `cd` than that is a script, of which nothing is said.
const DIRECTORIES_MAX: usize = 64;

/// Most paths that are looked up for the words of a line.
const LOOKUPS_MAX: usize = 10_000;

/// Characters that bash expands.
const EXPANDING: [char; 2] = ['$', '`'];

/// Characters of a pattern of bash.
const PATTERN: [char; 6] = ['*', '?', '[', ']', '{', '}'];

/// Options, in any program, whose value is the directory it works in.
const DIRECTORY_OPTIONS: [&str; 9] = [
    "-C",
    "--directory",
    "--chdir",
    "--cwd",
    "--workdir",
    "--work-tree",
    "--git-dir",
    "--prefix",
    "--project",
];

/// What is known of the surroundings of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here<'a> {
    /// Where it starts.
    pub(crate) directory: &'a Path,
    /// The home directory of commands.
    pub(crate) home: Option<&'a Path>,
    /// Whether `/tmp` is made for this command alone.
    pub(crate) has_private_tmp: bool,
    /// Directories whose content stays, though they may lie where that of others does not.
    pub(crate) kept: &'a [PathBuf],
    /// Whether a rule looks at words.
    pub(crate) looks_at_words: bool,
}

/// Resolves the paths of `line`.
pub(crate) fn places(line: &CommandLine, here: Here<'_>) -> LinePlaces {
    let home = here.home.filter(|_| !mentions(line, "HOME"));
    let directories = directories(line, here.directory, home);
    let targets = line.redirections.iter();
    let targets = targets.map(|redirection| redirection.target.as_deref());
    let resolved = |target: Option<&str>| known(target?, directories.as_deref(), home);
    LinePlaces {
        redirections: targets.map(resolved).collect(),
        words: match here.looks_at_words {
            true => words(line, directories.as_deref(), home),
            false => Vec::new(),
        },
        has_private_tmp: here.has_private_tmp,
        lost: moves::lost(line, directories.as_deref(), here),
        directories,
    }
}

/// Whether a variable is named anywhere, so that it may have been set to something else.
fn mentions(line: &CommandLine, variable: &str) -> bool {
    let mut arguments = line.commands.iter().flat_map(|command| &command.arguments);
    let sets = |text: &str| text.contains(&format!("{variable}=")) || text == variable;
    line.text.split_whitespace().any(sets) || arguments.any(|argument| sets(argument))
}

/// Every directory the line may be in; `None` when one is not known.
fn directories(line: &CommandLine, start: &Path, home: Option<&Path>) -> Option<Vec<PathBuf>> {
    let mut directories = vec![start.to_path_buf()];
    if !line.moves.is_empty() && mentions(line, "CDPATH") {
        return None;
    }
    for target in &line.moves {
        let target = target.as_deref()?;
        for known in directories.clone() {
            let joined = known.join(expanded(target, home)?);
            // `cd` takes `..` away from the name, a program from the directory behind it.
            for place in [resolve(&joined), resolve(&lexical(&joined))] {
                if !directories.contains(&place) {
                    directories.push(place);
                }
            }
        }
        if directories.len() > DIRECTORIES_MAX {
            return None;
        }
    }
    Some(directories)
}

/// A path with the home directory in place of `~`.
fn expanded(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix('~') {
        None => Some(PathBuf::from(path)),
        Some("") => home.map(Path::to_owned),
        Some(rest) => Some(home?.join(rest.strip_prefix('/')?)),
    }
}

fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Every place a path may be, resolved.
fn known(path: &str, directories: Option<&[PathBuf]>, home: Option<&Path>) -> Option<Vec<PathBuf>> {
    let path = expanded(path, home)?;
    if path.is_absolute() {
        return Some(vec![resolve(&path)]);
    }
    let directories = directories?.iter();
    Some(
        directories
            .map(|directory| resolve(&directory.join(&path)))
            .collect(),
    )
}

/// The words of all commands.
fn words(
    line: &CommandLine,
    directories: Option<&[PathBuf]>,
    home: Option<&Path>,
) -> Vec<WordPlaces> {
    let mut found = Vec::new();
    let mut n_lookups = 0;
    for command in &line.commands {
        let bases = bases(command, directories, home);
        for word in texts(command) {
            let place = place(command, word, bases.as_deref(), home);
            n_lookups += bases.as_ref().map_or(1, Vec::len);
            found.push(WordPlaces {
                word: word.to_owned(),
                place: match n_lookups > LOOKUPS_MAX {
                    true => WordPlace::Unknown,
                    false => place,
                },
            });
        }
        if has_added(command) {
            found.push(WordPlaces {
                word: command.text(),
                place: WordPlace::Unknown,
            });
        }
    }
    found
}

/// Where relative words of a command may start: where the line may be, and the directories its own options name.
fn bases(
    command: &SimpleCommand,
    directories: Option<&[PathBuf]>,
    home: Option<&Path>,
) -> Option<Vec<PathBuf>> {
    let mut bases = directories?.to_vec();
    let mut words = command.arguments.iter().peekable();
    while let Some(word) = words.next() {
        let (option, glued) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None if word.len() > 2 && word.starts_with("-C") => ("-C", Some(&word[2..])),
            None => (word.as_str(), None),
        };
        if !DIRECTORY_OPTIONS.contains(&option) {
            continue;
        }
        let Some(value) = glued.or_else(|| words.peek().map(|next| next.as_str())) else {
            continue;
        };
        if !command.is_literal && value.contains(EXPANDING) {
            return None;
        }
        for base in bases.clone() {
            bases.push(resolve(&base.join(expanded(value, home)?)));
        }
        if bases.len() > DIRECTORIES_MAX {
            return None;
        }
    }
    Some(bases)
}

/// Every text of a command that may name a file: its words, and what stands in them behind the signs that programs separate with.
fn texts(command: &SimpleCommand) -> Vec<&str> {
    let mut texts = Vec::new();
    if command.name.contains('/') {
        texts.push(command.name.as_str());
    }
    for word in &command.arguments {
        texts.push(word.as_str());
        let pieces = word.split(['=', ':', ',', '@']).skip(1);
        let is_short = word.starts_with('-') && !word.starts_with("--");
        let glued = word.get(2..).filter(|_| is_short);
        let head = word
            .split([':', ',', '@'])
            .next()
            .filter(|head| *head != word.as_str());
        texts.extend(
            pieces
                .chain(glued)
                .chain(head)
                .filter(|text| !text.is_empty()),
        );
        let value = word.split_once('=').map(|(_, value)| value);
        texts.extend(value.filter(|value| !value.is_empty()));
    }
    texts.retain(|text| {
        (text.contains('/') || !text.starts_with('-')) && !text.contains(['\n', '\0'])
    });
    texts.dedup();
    texts
}

/// Whether a program adds arguments to those that are written, as `xargs` does.
fn has_added(command: &SimpleCommand) -> bool {
    let is_made =
        |text: &String| text.contains(EXPANDING) || text.contains(PATTERN) || text.starts_with('~');
    !command.is_literal && !command.arguments.iter().chain([&command.name]).any(is_made)
}

fn place(
    command: &SimpleCommand,
    word: &str,
    bases: Option<&[PathBuf]>,
    home: Option<&Path>,
) -> WordPlace {
    // Which of the words are quoted is not known of a command some word of which is made while it runs.
    if !command.is_literal && word.contains(EXPANDING) {
        return WordPlace::Unknown;
    }
    let pattern = word.find(PATTERN).filter(|_| !command.is_literal);
    if let Some(at) = pattern {
        return like(&word[..at], word, bases, home);
    }
    let spelt = match command.is_literal && word.starts_with('~') {
        true => format!("./{word}"),
        false => word.to_owned(),
    };
    match spelt.starts_with('~') && expanded(&spelt, home).is_none() {
        // `~user`, or a name that begins so.
        true => WordPlace::Unknown,
        false => known(&spelt, bases, home).map_or(WordPlace::Unknown, WordPlace::Known),
    }
}

/// A pattern: what it begins with, resolved, and what it ends with.
fn like(head: &str, word: &str, bases: Option<&[PathBuf]>, home: Option<&Path>) -> WordPlace {
    let (folder, name) = head
        .rsplit_once('/')
        .map_or((".", head), |(folder, name)| (folder, name));
    let folder = match head.starts_with('/') && folder.is_empty() {
        true => "/",
        false => folder,
    };
    let rest = &word[head.len()..];
    let Some(folders) = known(folder, bases, home) else {
        return WordPlace::Unknown;
    };
    // What `..` behind a pattern leads to is not told by its beginning.
    if rest.contains("..") {
        return WordPlace::Unknown;
    }
    let begins = |folder: PathBuf| {
        let folder = folder.to_string_lossy().trim_end_matches('/').to_owned();
        format!("{folder}/{name}")
    };
    let end = rest.rsplit(PATTERN).next().unwrap_or_default();
    WordPlace::Like {
        beginnings: folders.into_iter().map(begins).collect(),
        end: end.to_owned(),
    }
}

#[cfg(test)]
mod presets;
#[cfg(test)]
mod tests;
