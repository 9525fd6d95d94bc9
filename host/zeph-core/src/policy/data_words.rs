//! Words of a command that only look like what a rule means: the text of a message, a pattern that is searched for, the name of a test.
//!
//! Rules that refuse or ask are compared with the text of a command. Where one fits, it is compared once more with what this makes of
//! the command; it has to fit both. What is not certain to be data stays as it is.

use super::globals;
use crate::command::SimpleCommand;

/// Stands for what is data. No pattern spells it.
const MARK: &str = "\u{fffc}";

/// Options whose value is a text.
struct Texts {
    names: &'static str,
    /// Their subcommands; empty for programs without.
    subcommands: &'static str,
    /// Letters without a value, which may stand with an option in one word.
    flags: &'static str,
    options: &'static str,
}

/// Sources: the manual pages of the programs.
const TEXTS: &[Texts] = &[
    Texts {
        names: "git",
        subcommands: "commit",
        flags: "aenqsv",
        options: "-m --message",
    },
    Texts {
        names: "git",
        subcommands: "merge notes stash tag",
        flags: "aq",
        options: "-m --message",
    },
    Texts {
        names: "git",
        subcommands: "log rev-list shortlog show whatchanged",
        flags: "p",
        options: "-G -S --author --committer --grep",
    },
    Texts {
        names: "git",
        subcommands: "grep",
        flags: "EFGHPchilnowv",
        options: "-e",
    },
    Texts {
        names: "hg jj",
        subcommands: "ci commit desc describe new squash",
        flags: "",
        options: "-m --message",
    },
    Texts {
        names: "egrep fgrep grep rg zgrep",
        subcommands: "",
        flags: "FHPchilnoqvwx",
        options: "-e --regexp",
    },
];

/// Long options of these programs without a value.
const LONG_FLAGS: &str = "--all --allow-empty --amend --no-edit --no-ff --no-verify --oneline --quiet --signoff --stat --verbose";

/// Options and settings of build tools whose value names modules and tests, and no task. Only presets, which ask about words of tasks, look
/// past them: an operator's own rule may mean the module.
const NAMED: &[Texts] = &[
    Texts {
        names: "mvn mvnw",
        subcommands: "",
        flags: "BUoqe",
        options: "-pl --projects -rf --resume-from -Dtest= -Dit.test=",
    },
    Texts {
        names: "gradle gradlew",
        subcommands: "",
        flags: "qis",
        options: "-p --project-dir --tests",
    },
    Texts {
        names: "bundle rake",
        subcommands: "",
        flags: "",
        options: "TEST= SPEC= TESTOPTS=",
    },
];

/// The command without what is data in it; `None` when nothing is, or not all of it is known.
///
/// Shape: options that `pattern` spells keep their values. `is_preset` says that the rule is one of the program's own.
pub(super) fn masked(
    command: &SimpleCommand,
    pattern: &str,
    is_preset: bool,
) -> Option<SimpleCommand> {
    if !command.holes.is_empty() || !command.is_literal {
        return None;
    }
    let mut masked = command.clone();
    let texts = TEXTS.iter().filter(|texts| texts.are_of(command));
    for texts in texts {
        texts.mask(&mut masked.arguments, pattern, undashed);
    }
    let named = NAMED.iter().filter(|named| named.are_of(command));
    for named in named.filter(|_| is_preset) {
        named.mask(&mut masked.arguments, pattern, |_| MARK.to_owned());
    }
    if is_preset && ["gradle", "gradlew"].contains(&command.base_name()) {
        masked.arguments.iter_mut().for_each(only_task);
    }
    if command.base_name() == "git" {
        mask_small_letters(&mut masked.arguments, pattern);
    }
    (masked != *command).then_some(masked)
}

/// The text `line`, in which `command` stands, with what `masked` has in place of its data. Data that is spelt otherwise there stays.
pub(super) fn masked_text(line: String, command: &SimpleCommand, masked: &SimpleCommand) -> String {
    let words = command.arguments.iter().zip(&masked.arguments);
    words.fold(line, |line, (word, masked)| {
        let mut same = word.char_indices().zip(masked.chars());
        let Some(((differs, _), _)) = same.find(|((_, one), other)| one != other) else {
            return line;
        };
        // A quote may stand between an option and its value.
        let glued = word.char_indices().nth(2).filter(|(at, _)| *at < differs);
        let start = match word[..differs].split_once('=') {
            Some((option, _)) if option.starts_with('-') => option.len() + 1,
            None if word.starts_with('-') => glued.map_or(0, |(at, _)| at),
            _ => 0,
        };
        let is_apart = |c: Option<char>| c.is_none_or(|c| c != '-' && !c.is_alphanumeric());
        let is_word = |at: &usize| {
            let (before, rest) = line.split_at(*at);
            let ends = is_apart(rest[word.len() - start..].chars().next());
            ends && (start > 0 || is_apart(before.chars().next_back()))
        };
        let mut places = line.match_indices(&word[start..]).map(|(at, _)| at);
        match places.find(is_word) {
            Some(at) => {
                let (before, rest) = line.split_at(at);
                format!(
                    "{before}{}{}",
                    &masked[start..],
                    &rest[word.len() - start..]
                )
            }
            None => line,
        }
    })
}

impl Texts {
    fn are_of(&self, command: &SimpleCommand) -> bool {
        let start = globals::end(command).unwrap_or_default();
        let first = command.arguments.get(start).map_or("", String::as_str);
        let second = command.arguments.get(start.saturating_add(1));
        holds(self.names, command.base_name())
            && (self.subcommands.is_empty() || holds(self.subcommands, first))
            && takes_texts(first, second.map_or("", String::as_str))
    }

    /// Replaces the values of its options that `pattern` does not spell.
    fn mask(&self, words: &mut [String], pattern: &str, mask: impl Fn(&str) -> String) {
        let is_spelled = |option: &&str| {
            let mut words = pattern.split_whitespace();
            words.any(|word| word.trim_start_matches('*').starts_with(*option))
        };
        let options: Vec<&str> = self.options.split(' ').collect();
        let mut at = 0;
        // Whether the word before may take the next one for its value.
        let mut is_open = false;
        while let Some(word) = words.get(at).cloned() {
            at += 1;
            let glued = options.iter().find_map(|o| Some((*o, glued(&word, o)?)));
            if let Some((option, n_before)) = glued {
                if !is_spelled(&option)
                    && let Some(word) = words.get_mut(at - 1)
                {
                    *word = format!("{}{}", &word[..n_before], mask(&word[n_before..]));
                }
                is_open = false;
            } else if let Some(option) = options.iter().find(|o| self.ends_in(&word, o)) {
                if !is_open
                    && !is_spelled(option)
                    && let Some(value) = words.get_mut(at)
                {
                    *value = mask(value);
                }
                // Otherwise it is not certain which of the two has the next word.
                at += usize::from(!is_open);
            } else {
                is_open = word.starts_with('-') && !self.is_flag(&word);
            }
        }
    }

    /// Whether the word is the option, alone or behind letters without a value: `-am`.
    fn ends_in(&self, word: &str, option: &str) -> bool {
        let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
        let before = letter.and_then(|letter| word.strip_prefix('-')?.strip_suffix(letter));
        let is_cluster =
            before.is_some_and(|before| before.chars().all(|c| self.flags.contains(c)));
        word == option || is_cluster
    }

    fn is_flag(&self, word: &str) -> bool {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let is_cluster = !letters.is_empty() && letters.chars().all(|c| self.flags.contains(c));
        is_cluster || word.contains('=') || holds(LONG_FLAGS, word)
    }
}

/// Whether a subcommand followed by `second` knows its options as texts: `git stash show -m` is an option of `diff` without a value.
fn takes_texts(subcommand: &str, second: &str) -> bool {
    match subcommand {
        "notes" => holds("add append edit", second),
        // Without a word of its own it is `push`.
        "stash" => second.starts_with('-') || holds("push save store", second),
        _ => true,
    }
}

fn holds(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Where the value begins that stands in the word of its option: `--grep=…`, `-m…`, `TEST=…`.
fn glued(word: &str, option: &str) -> Option<usize> {
    let rest = word.strip_prefix(option)?;
    let is_letter = option.len() == 2 && option.starts_with('-');
    let n_before = match option.ends_with('=') || is_letter {
        true => option.len(),
        false => option.len() + rest.starts_with('=').then_some(1)?,
    };
    (n_before < word.len()).then_some(n_before)
}

/// A text in which no word begins with a dash.
fn undashed(text: &str) -> String {
    let mut is_start = true;
    let mut undashed = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '-' if is_start => undashed.push_str(MARK),
            c => undashed.push(c),
        }
        is_start = c.is_whitespace();
    }
    undashed
}

/// Leaves the task of `:module:task`.
fn only_task(word: &mut String) {
    if !word.starts_with('-')
        && let Some((_, task)) = word.rsplit_once(':')
    {
        *word = format!(":{task}");
    }
}

/// Hides the small letters of options that `pattern` spells with a capital one, which is another option: `git branch -D` is not `-d`. With
/// force, one may be the other.
fn mask_small_letters(words: &mut [String], pattern: &str) {
    let end = words.iter().position(|word| word == "--");
    let end = end.unwrap_or(words.len());
    let words = words.get_mut(..end).unwrap_or_default();
    let has = |letter: char| words.iter().any(|word| letters(word).contains(letter));
    if has('f') || words.iter().any(|word| is_force(word)) {
        return;
    }
    let capitals = pattern.split_whitespace().flat_map(|word| {
        let option = letters(word.trim_matches('*'));
        option.chars().filter(char::is_ascii_uppercase)
    });
    let small = capitals.filter(|capital| !has(*capital));
    let small: Vec<char> = small.map(|capital| capital.to_ascii_lowercase()).collect();
    for word in words.iter_mut().filter(|word| !letters(word).is_empty()) {
        *word = word.replace(small.as_slice(), MARK);
    }
}

/// Whether a long option is that of force, or begins like it.
fn is_force(word: &str) -> bool {
    const FORCE: &str = "--force";
    word.len() > 2 && (word.starts_with(FORCE) || FORCE.starts_with(word))
}

/// The letters of a word of short options.
fn letters(word: &str) -> &str {
    let letters = word.strip_prefix('-').unwrap_or_default();
    match letters.bytes().all(|b| b.is_ascii_alphanumeric()) {
        true => letters,
        false => "",
    }
}
