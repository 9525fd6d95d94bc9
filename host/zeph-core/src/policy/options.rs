//! Options in whatever way and place they are written: `rm -r -f x`, `rm -fr x` and `rm x -rf` are what `rm -rf *` means, and
//! `git push origin --force` is what `git push --force*` means.
//!
//! Only rules that refuse or ask look at this. Both the pattern and the command are taken apart into their options and what is left
//! without them; a command is meant when it has the options of the pattern and the rest fits the rest.

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

/// Beginnings of commands, a short option of theirs, and the long one that means the same.
///
/// Sources: the manual pages of the programs.
const SAME: &[(&str, char, &str)] = &[
    ("docker run", 'p', "--publish"),
    ("docker run", 'v', "--volume"),
    ("git commit", 'n', "--no-verify"),
    ("npm", 'g', "--global"),
    ("pnpm", 'g', "--global"),
    ("podman run", 'p', "--publish"),
    ("podman run", 'v', "--volume"),
];

/// Programs, and the letters of options without a value that may stand in one word before another option with its value: `sort -nofile`.
/// Upper and lower case are one.
///
/// Sources: the manual pages and `--help` of the programs.
const FLAGS: &[(&str, &str)] = &[
    ("curl wget", "#0123456abcdfgijklnpqrsvxz"),
    ("date", "ru"),
    ("docker nerdctl podman", "diqt"),
    ("fd fdfind", "01afghilpqsuv"),
    ("git", "aceghiklnpqrvwz"),
    ("ruby", "acdlnpsvw"),
    ("scc", "acdhlmnpuvwz"),
    ("sed gsed", "benrsuz"),
    ("sort", "bcdfghimnrsuvz"),
    ("ssh", "46acfgknqstvxy"),
    ("yq", "ceijmnprv"),
];

/// A text taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Apart {
    /// The letters of its short options, in lower case, as often as they stand there, in order.
    letters: Vec<char>,
    /// Its other options, in lower case, without their values. Of a pattern, one that ends with `*` means all that begin so.
    long: Vec<String>,
    /// The name and all other words, in lower case, with single spaces. The value of an option is a word of its own.
    rest: String,
}

impl Apart {
    /// Of a command, with and without the options before its subcommand, and with values apart from the letters they stand behind; nothing
    /// when it has no option.
    pub(super) fn of_command(command: &SimpleCommand) -> Vec<Self> {
        let name = command.base_name().to_lowercase();
        let starts = [Some(0), globals::end(command)].into_iter().flatten();
        let of_words = |start: usize| {
            let words = command.arguments.get(start..).unwrap_or_default();
            let apart: Vec<String> = words.iter().flat_map(|word| unglued(&name, word)).collect();
            let of = |words: &[String]| Self::new(&name, words.iter().map(String::as_str), true);
            let has_glued = apart.len() > words.len();
            [of(words), has_glued.then(|| of(&apart)).flatten()]
        };
        starts.flat_map(of_words).flatten().collect()
    }

    /// Of the text of a pattern; `None` when no word of it is an option.
    ///
    /// Shape: wildcards around an option are read as words beside it: `*rm *-rf*` is `*rm * -rf *`.
    pub(super) fn of_pattern(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let name = words.next()?;
        let name = name.rsplit('/').next().unwrap_or(name);
        Self::new(name, words, false)
    }

    /// Of a name and words.
    pub(super) fn new<'t>(
        name: &str,
        words: impl Iterator<Item = &'t str>,
        is_command: bool,
    ) -> Option<Self> {
        let name = name.to_lowercase();
        let mut apart = Self {
            letters: Vec::new(),
            long: Vec::new(),
            rest: String::new(),
        };
        let mut rest = vec![name.clone()];
        let mut is_ended = false;
        for word in words.map(str::to_lowercase) {
            if is_ended {
                rest.push(word);
            } else if word == "--" && is_command {
                is_ended = true;
            } else if is_command {
                apart.take(&name, &word, &mut rest);
            } else {
                apart.take_of_pattern(&name, &word, &mut rest);
            }
        }
        apart.rest = rest.join(" ");
        if is_command {
            apart.add_same();
        }
        apart.letters.sort_unstable();
        let has_some = !apart.letters.is_empty() || !apart.long.is_empty();
        has_some.then_some(apart)
    }

    /// Takes a word of a pattern, which may have wildcards around an option.
    fn take_of_pattern(&mut self, name: &str, word: &str, rest: &mut Vec<String>) {
        let bare = word.trim_matches('*');
        if bare.len() < 2 || !bare.starts_with('-') {
            return rest.push(word.to_owned());
        }
        if word.starts_with('*') {
            rest.push("*".to_owned());
        }
        let n_long = self.long.len();
        self.take(name.trim_start_matches('*'), bare, rest);
        if !word.ends_with('*') {
            return;
        }
        // What the wildcard stands for is the rest of the value, or of the option and all that follows.
        if bare.contains('=') {
            let value = rest.pop();
            rest.extend(value.map(|value| value + "*"));
            return;
        }
        if let Some(option) = self.long.get_mut(n_long) {
            option.push('*');
        }
        rest.push("*".to_owned());
    }

    /// Takes a word: letters of options, an option with its value, or any other.
    fn take(&mut self, name: &str, word: &str, rest: &mut Vec<String>) {
        if let Some(letters) = letters(name, word) {
            self.letters.extend(letters);
            return;
        }
        match long(name, word) {
            Some((option, value)) => {
                self.long.push(option.to_owned());
                rest.extend(value.map(str::to_owned));
            }
            None => rest.push(word.to_owned()),
        }
    }

    /// Adds options that mean the same as those that are there: a pattern may spell either.
    fn add_same(&mut self) {
        let is_of = |start: &str| {
            let rest = self.rest.strip_prefix(start);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let same = SAME.iter().filter(|(start, ..)| is_of(start));
        let same: Vec<(char, &str)> = same.map(|(_, letter, long)| (*letter, *long)).collect();
        for (letter, long) in same {
            let has_letter = self.letters.contains(&letter);
            let has_long = self.long.iter().any(|option| option == long);
            match (has_letter, has_long) {
                (true, false) => self.long.push(long.to_owned()),
                (false, true) => self.letters.push(letter),
                _ => {}
            }
        }
    }

    /// Whether it has all the options of `pattern`, and the rest fits.
    pub(super) fn is_meant_by(&self, pattern: &Self, rest: &Pattern) -> bool {
        let mut letters = self.letters.iter();
        let has = |wanted: &char| letters.any(|letter| letter == wanted);
        pattern.letters.iter().all(has)
            && pattern.long.iter().all(|wanted| self.has_long(wanted))
            && rest.fits_command(&self.rest)
    }

    /// Whether it has an option, written in full.
    fn has_long(&self, wanted: &str) -> bool {
        match wanted.strip_suffix('*') {
            Some(start) => self.long.iter().any(|option| option.starts_with(start)),
            None => self.long.iter().any(|option| option == wanted),
        }
    }

    /// What is left without the options.
    pub(super) fn rest(&self) -> &str {
        &self.rest
    }
}

/// The letters of a word of options, in lower case.
fn letters(name: &str, word: &str) -> Option<Vec<char>> {
    if let Some(letter) = short_of(name, word) {
        return Some(vec![letter]);
    }
    let letters = word.strip_prefix('-')?;
    let is_cluster = (1..=CLUSTER_CHARS_MAX).contains(&letters.len())
        && letters.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_cluster && !SINGLE_DASH.contains(&name)).then(|| letters.chars().collect())
}

/// The letters of a word of short options, each as a word, and the value that stands behind the last of them; any other word as it is.
fn unglued(name: &str, word: &str) -> Vec<String> {
    let body = word.strip_prefix('-').unwrap_or_default();
    let is_short = body.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_short || SINGLE_DASH.contains(&name) || letters(name, word).is_some() {
        return vec![word.to_owned()];
    }
    let mut rows = FLAGS.iter();
    let row = rows.find(|(names, _)| names.split(' ').any(|known| known == name));
    let flags = row.map_or("", |(_, flags)| *flags);
    let is_flag = |c: char| flags.contains(c.to_ascii_lowercase());
    let n_flags = body.find(|c| !is_flag(c)).unwrap_or(body.len());
    let has_option = body[n_flags..].starts_with(|c: char| c.is_ascii_alphanumeric());
    let (letters, value) = body.split_at(n_flags + usize::from(has_option));
    let letters = letters.chars().map(|letter| format!("-{letter}"));
    let value = Some(value.to_owned()).filter(|value| !value.is_empty());
    letters.chain(value).collect()
}

/// An option of several letters and its value, if that stands behind a `=`. For some programs one dash is enough, and two mean the same.
fn long<'w>(name: &str, word: &'w str) -> Option<(&'w str, Option<&'w str>)> {
    let dashes = if SINGLE_DASH.contains(&name) {
        "-"
    } else {
        "--"
    };
    let shorter = word
        .strip_prefix('-')
        .filter(|rest| rest.starts_with(dashes) && dashes == "-");
    let option = shorter.unwrap_or(word);
    let is_option = option.len() > dashes.len() && option.starts_with(dashes);
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    is_option.then_some((name, value))
}

/// The short option that a long one is. Programs take the beginning of a long option for all of it.
fn short_of(name: &str, word: &str) -> Option<char> {
    let is_meant = |option: &str| word.len() > 2 && option.starts_with(word);
    LONG.iter()
        .find(|(names, option, _)| names.contains(&name) && is_meant(option))
        .map(|(_, _, letter)| *letter)
}
