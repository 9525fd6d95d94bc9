//! Files that a command line would move to where they do not stay: the home directory of a command and its `/tmp` end with it.

use std::path::{Path, PathBuf};

use zeph_core::command::{CommandLine, SimpleCommand, WordPlace};

use super::{EXPANDING, Here, mentions, place, resolve};

/// Temporary directories that every command has of its own.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What of a private home directory is kept for later commands.
const CACHE: &str = ".cache";

/// Spellings of the home directory before they are expanded.
const HOMES: [&str; 2] = ["$HOME", "${HOME}"];

/// Whether anything in `line` moves files.
pub(crate) fn moves_files(line: &CommandLine) -> bool {
    line.commands.iter().any(is_move)
}

fn is_move(command: &SimpleCommand) -> bool {
    let has = |option: fn(&str) -> bool| command.arguments.iter().any(|word| option(word));
    match command.base_name() {
        "mv" => true,
        "rsync" => has(|word| ["--remove-source-files", "--remove-sent-files"].contains(&word)),
        "tar" => has(|word| word.len() > 9 && "--remove-files".starts_with(word)),
        _ => false,
    }
}

/// The words of `line` that name where files would be moved to and lost. What is fetched back from there by the same line is not.
pub(super) fn lost(
    line: &CommandLine,
    directories: Option<&[PathBuf]>,
    here: Here<'_>,
) -> Vec<String> {
    if !here.has_private_tmp || !moves_files(line) {
        return Vec::new();
    }
    let home = here.home.filter(|_| !mentions(line, "HOME"));
    let ending = Ending::of(here);
    let is_lost = |command: &SimpleCommand, word: &str| {
        let word = with_tilde(command, word);
        match place(command, &word, directories, home) {
            WordPlace::Known(places) => ending.holds_all(&places),
            WordPlace::Like { beginnings, .. } => {
                ending.holds_all(&beginnings.iter().map(PathBuf::from).collect::<Vec<_>>())
            }
            WordPlace::Unknown => false,
        }
    };
    let mut found = Vec::new();
    for (idx, command) in line.commands.iter().enumerate() {
        let Some((target, sources)) = Some(command).filter(|one| is_move(one)).and_then(operands)
        else {
            continue;
        };
        let takes = sources.is_empty() || sources.iter().any(|word| !is_lost(command, word));
        let is_fetched = || {
            let later = line.commands.iter().skip(idx + 1);
            let fetches = later.filter(|one| is_move(one) || one.base_name() == "cp");
            let fetched = fetches
                .filter_map(operands)
                .flat_map(|(_, sources)| sources);
            let target = target.trim_end_matches('/');
            fetched.into_iter().any(|word| word.starts_with(target))
        };
        let is_known = found.iter().any(|known| known == target);
        if !is_known && takes && is_lost(command, target) && !is_fetched() {
            found.push(target.to_owned());
        }
    }
    found
}

/// Where nothing stays.
struct Ending<'a> {
    home: Option<PathBuf>,
    kept: &'a [PathBuf],
}

impl<'a> Ending<'a> {
    fn of(here: Here<'a>) -> Self {
        Self {
            home: here.home.map(resolve),
            kept: here.kept,
        }
    }

    /// Whether all of `places`, of which there are some, lie there.
    fn holds_all(&self, places: &[PathBuf]) -> bool {
        !places.is_empty() && places.iter().all(|place| self.holds(place))
    }

    fn holds(&self, place: &Path) -> bool {
        let is_in = |top: &Path| place.starts_with(top);
        let home = self.home.as_ref();
        let stays = home.is_some_and(|home| is_in(&home.join(CACHE)))
            || self.kept.iter().any(|kept| is_in(kept));
        let is_at_home = home.is_some_and(|home| is_in(home));
        !stays && (is_at_home || TEMPORARY.iter().any(|top| is_in(Path::new(top))))
    }
}

/// The word with `~` in place of the variable that names the home directory.
fn with_tilde(command: &SimpleCommand, word: &str) -> String {
    let rest = HOMES.iter().find_map(|home| word.strip_prefix(home));
    match rest.filter(|rest| !command.is_literal && (rest.is_empty() || rest.starts_with('/'))) {
        Some(rest) if !rest.contains(EXPANDING) => format!("~{rest}"),
        _ => word.to_owned(),
    }
}

/// Where a command puts files, and which.
fn operands(command: &SimpleCommand) -> Option<(&str, Vec<&str>)> {
    match command.base_name() {
        "tar" => archive(command),
        _ => of_copy(command),
    }
}

/// The archive that `tar` makes, if it is named.
fn archive(command: &SimpleCommand) -> Option<(&str, Vec<&str>)> {
    let words = command.arguments.iter().map(String::as_str);
    let words: Vec<&str> = words.collect();
    let glued = words.iter().find_map(|word| word.strip_prefix("--file="));
    let is_short = |word: &str| !word.starts_with("--") && word.ends_with('f');
    let named = words.iter().enumerate().find(|(idx, word)| {
        **word == "--file" || is_short(word) && (*idx == 0 || word.starts_with('-'))
    });
    let named = named.and_then(|(idx, _)| words.get(idx + 1).copied());
    Some((glued.or(named)?, Vec::new()))
}

/// Where a `mv`, `cp` or `rsync` puts files, and which.
fn of_copy(command: &SimpleCommand) -> Option<(&str, Vec<&str>)> {
    let mut operands = Vec::new();
    let mut target = None;
    let mut words = command.arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--" => operands.extend(words.by_ref()),
            "-S" | "--suffix" => drop(words.next()),
            // No other long option begins like that.
            _ if word.starts_with("--t") => {
                target = match word.split_once('=') {
                    Some((_, glued)) => Some(glued),
                    None => words.next(),
                };
            }
            _ if word.starts_with("--") => {}
            _ if word.len() > 1 && word.starts_with('-') => {
                if let Some((_, glued)) = word.split_once('t') {
                    target = match glued {
                        "" => words.next(),
                        glued => Some(glued),
                    };
                }
            }
            _ => operands.push(word),
        }
    }
    let target = target.or_else(|| operands.pop())?;
    Some((target, operands))
}
