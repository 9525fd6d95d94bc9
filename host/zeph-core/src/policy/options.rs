//! Short options in whatever way they are written: `rm -r -f x`, `rm -fr x` and `rm x -rf` are what `rm -rf *` means.
//!
//! Only rules that refuse or ask look at this. Both the pattern and the command are taken apart into the letters of their options and what
//! is left without them; a command is meant when it has the letters of the pattern and the rest fits the rest.

use super::globals;
use super::pattern::Pattern;
use crate::command::SimpleCommand;

/// Most letters of a word that are taken for options of one letter each. A longer word is an option of its own, or has a value.
const CLUSTER_CHARS_MAX: usize = 5;

/// Programs whose options of several letters begin with one dash.
///
/// Sources: the manual pages and `--help` of the programs.
const SINGLE_DASH: [&str; 27] = [
    "ansible",
    "as",
    "cc",
    "clang",
    "clang++",
    "consul",
    "convert",
    "ffmpeg",
    "ffprobe",
    "find",
    "g++",
    "gcc",
    "go",
    "java",
    "javac",
    "ld",
    "magick",
    "nomad",
    "openssl",
    "packer",
    "qemu",
    "rustc",
    "swift",
    "terraform",
    "tofu",
    "vault",
    "xset",
];

/// Long options that are a short one of the same program.
///
/// Sources: the manual pages of the programs.
const LONG: &[(&[&str], &str, char)] = &[
    (&["rm", "chmod", "chown", "chgrp", "cp"], "--recursive", 'r'),
    (
        &["rm", "cp", "mv", "ln", "git", "docker", "podman"],
        "--force",
        'f',
    ),
    (&["git"], "--delete", 'd'),
];

/// A text taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Apart {
    /// The letters of its short options, in lower case, as often as they stand there, in order.
    letters: Vec<char>,
    /// The name and all other words, in lower case, with single spaces.
    rest: String,
}

impl Apart {
    /// Of a command, with and without the options before its subcommand; nothing when it has no short option.
    pub(super) fn of_command(command: &SimpleCommand) -> Vec<Self> {
        let starts = [Some(0), globals::end(command)].into_iter().flatten();
        let of_words = |start: usize| {
            let words = command.arguments.iter().skip(start).map(String::as_str);
            Self::new(command.base_name(), words, true)
        };
        starts.filter_map(of_words).collect()
    }

    /// Of the text of a pattern; `None` when no word of it is a short option in full.
    pub(super) fn of_pattern(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let name = words.next()?;
        let name = name.rsplit('/').next().unwrap_or(name);
        Self::new(name, words, false)
    }

    fn new<'t>(name: &str, words: impl Iterator<Item = &'t str>, is_command: bool) -> Option<Self> {
        let name = name.to_lowercase();
        if SINGLE_DASH.contains(&name.as_str()) {
            return None;
        }
        let mut letters = Vec::new();
        let mut rest = vec![name.clone()];
        let mut is_ended = false;
        for word in words.map(str::to_lowercase) {
            match options(&name, &word).filter(|_| !is_ended) {
                Some(options) => letters.extend(options),
                None if word == "--" && is_command && !is_ended => is_ended = true,
                None => rest.push(word),
            }
        }
        letters.sort_unstable();
        (!letters.is_empty()).then(|| Self {
            letters,
            rest: rest.join(" "),
        })
    }

    /// Whether it has all the letters of `pattern`, and the rest fits.
    pub(super) fn is_meant_by(&self, pattern: &Self, rest: &Pattern) -> bool {
        let mut letters = self.letters.iter();
        let has = |wanted: &char| letters.any(|letter| letter == wanted);
        pattern.letters.iter().all(has) && rest.fits_command(&self.rest)
    }

    /// What is left without the options.
    pub(super) fn rest(&self) -> &str {
        &self.rest
    }
}

/// The letters of a word of options, in lower case.
fn options(name: &str, word: &str) -> Option<Vec<char>> {
    if let Some(letter) = long(name, word) {
        return Some(vec![letter]);
    }
    let letters = word.strip_prefix('-')?;
    let is_cluster = (1..=CLUSTER_CHARS_MAX).contains(&letters.len())
        && letters.bytes().all(|b| b.is_ascii_alphanumeric());
    is_cluster.then(|| letters.chars().collect())
}

/// The short option that a long one is. Programs take the beginning of a long option for all of it.
fn long(name: &str, word: &str) -> Option<char> {
    let is_meant = |option: &str| word.len() > 2 && option.starts_with(word);
    LONG.iter()
        .find(|(names, option, _)| names.contains(&name) && is_meant(option))
        .map(|(_, _, letter)| *letter)
}
