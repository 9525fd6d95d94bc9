//! The words of a call: its tool, its arguments, and the simple commands of a command line, in lower case and in one spelling.
//!
//! Short options stand apart and sorted before and after the operands, so that `rm -rf x`, `rm -r -f x` and `rm x -fr` have the words
//! of one another in order.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::PATH_ARGUMENTS;
use crate::command::{Becomes, CommandLine, SimpleCommand};

/// Words of one unit that are kept whether or not a sequence has them.
const WORDS_KEPT: usize = 64;

/// Most words of one call.
const WORDS_MAX: usize = 4_096;

/// Most bytes of a word.
const WORD_BYTES_MAX: usize = 512;

/// Words of one call that a learned sequence has.
const LEARNED_WORDS_MAX: usize = 24;

/// Deepest nesting of arguments that is looked into.
const DEPTH_MAX: u32 = 64;

/// Most letters of a word that are taken for options of one letter each.
const CLUSTER_CHARS_MAX: usize = 5;

/// Long options that many programs have as a short one too.
const LONG: [(&str, &str); 2] = [("--recursive", "-r"), ("--force", "-f")];

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordKind {
    /// The name of the tool: it begins a call.
    Tool,
    /// The name of a program: it begins a simple command.
    Head,
    /// Any other.
    Word,
    /// A part that is known only when the command runs.
    Hole,
}

/// A word of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallWord {
    /// What it is.
    #[serde(rename = "k")]
    pub kind: WordKind,
    /// In lower case.
    #[serde(rename = "w")]
    pub text: String,
    /// Whether it says again what the word before it says.
    #[serde(rename = "a", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_alias: bool,
}

/// The words of one call, in order.
///
/// Limits: 4,096 words of 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallWords(Vec<CallWord>);

impl CallWords {
    /// The words of a call of the tool that rules know by `names`. Of long arguments, words that
    /// `is_known` are kept wherever they stand.
    pub fn of(
        names: &[String],
        arguments: &Map<String, Value>,
        line: Option<&CommandLine>,
        is_known: Option<&dyn Fn(&str) -> bool>,
    ) -> Self {
        let mut room = Collector::new(is_known);
        for (idx, name) in names.iter().enumerate() {
            room.add(WordKind::Tool, name, idx > 0);
        }
        match line {
            Some(line) => line
                .commands
                .iter()
                .enumerate()
                .for_each(|(idx, command)| room.command(line, idx, command)),
            None => {
                in_order(arguments).for_each(|(name, value)| room.argument(name, value, DEPTH_MAX));
            }
        }
        Self(room.words)
    }

    /// The words.
    pub fn words(&self) -> &[CallWord] {
        &self.0
    }

    /// The name of the tool; empty without words.
    pub fn tool(&self) -> &str {
        self.0.first().map_or("", |word| word.text.as_str())
    }

    /// What a learned sequence keeps of it: each thing once, in one spelling.
    ///
    /// Limits: 24 words.
    pub fn pattern(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let plain = self.0.iter().filter(|word| {
            let is_option = word.text.starts_with('-');
            let is_first = !is_option || seen.insert(word.text.as_str());
            !word.is_alias && word.kind != WordKind::Hole && is_first
        });
        let texts = plain.map(|word| word.text.clone());
        texts.take(LEARNED_WORDS_MAX).collect()
    }
}

/// The words of a sequence as an operator or a learned call gives them, in the spelling of the words of calls.
pub(super) fn of_sequence(given: &[String]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut options: BTreeSet<String> = BTreeSet::new();
    for given in given.iter().flat_map(|word| word.split_whitespace()) {
        let word = given.to_lowercase();
        if is_option(&word) {
            let short = LONG.iter().find(|(long, _)| *long == word);
            let word = short.map_or(word, |(_, short)| (*short).to_owned());
            options.extend(letters(&word).unwrap_or_else(|| vec![word]));
            continue;
        }
        words.extend(std::mem::take(&mut options));
        words.push(plain_path(&word).unwrap_or(word));
    }
    words.extend(options);
    if let Some(first) = words.first_mut() {
        *first = crate::policy::tool_key(first);
    }
    words
}

/// Arguments that name a file first, then an address, then the others by name.
fn in_order(arguments: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let rank = |name: &str| match name {
        name if PATH_ARGUMENTS.contains(&name) => 0,
        "url" => 1,
        _ => 2,
    };
    let of_rank = move |wanted: u8| {
        arguments
            .iter()
            .filter(move |(name, _)| rank(name) == wanted)
    };
    (0..3).flat_map(of_rank)
}

struct Collector<'a> {
    words: Vec<CallWord>,
    is_known: Option<&'a dyn Fn(&str) -> bool>,
    /// Words of this unit so far.
    n_in_unit: usize,
    /// Words beyond those that this unit keeps anyway.
    far: HashSet<String>,
}

impl<'a> Collector<'a> {
    fn new(is_known: Option<&'a dyn Fn(&str) -> bool>) -> Self {
        Self {
            words: Vec::new(),
            is_known,
            n_in_unit: 0,
            far: HashSet::new(),
        }
    }

    fn add(&mut self, kind: WordKind, text: &str, is_alias: bool) {
        if matches!(kind, WordKind::Tool | WordKind::Head) && !is_alias {
            self.n_in_unit = 0;
            self.far.clear();
        }
        let text = text.to_lowercase();
        let text = match text.len() {
            0 => return,
            1..=WORD_BYTES_MAX => text,
            _ => text[..text.floor_char_boundary(WORD_BYTES_MAX)].to_owned(),
        };
        let is_near = self.n_in_unit < WORDS_KEPT;
        let is_kept = is_near
            || (self.is_known.is_some_and(|is_known| is_known(&text))
                && self.far.insert(text.clone()));
        if !is_kept || self.words.len() >= WORDS_MAX {
            return;
        }
        self.n_in_unit += 1;
        self.words.push(CallWord {
            kind,
            text,
            is_alias,
        });
    }

    /// Whether no further word of this unit is kept.
    fn is_full(&self) -> bool {
        self.is_known.is_none() && self.n_in_unit >= WORDS_KEPT || self.words.len() >= WORDS_MAX
    }

    /// A word and its other spellings.
    fn word(&mut self, text: &str) {
        self.add(WordKind::Word, text, false);
        for alias in aliases(text) {
            self.add(WordKind::Word, &alias, true);
        }
    }

    fn command(&mut self, line: &CommandLine, idx: usize, command: &SimpleCommand) {
        self.add(WordKind::Head, command.base_name(), false);
        if command.base_name() != command.name {
            self.add(WordKind::Head, &command.name, true);
        }
        let options = options(command);
        for option in &options {
            self.add(WordKind::Word, option, false);
        }
        for (at, argument) in command.arguments.iter().enumerate() {
            if has_hole(command, at) {
                self.add(WordKind::Hole, argument, false);
            } else if !is_option(argument) {
                self.word(argument);
            }
        }
        if has_hole(command, command.arguments.len()) {
            self.add(WordKind::Hole, "…", false);
        }
        let opened = line.redirections.iter();
        for opened in opened.filter(|opened| opened.commands.contains(&idx)) {
            match &opened.target {
                Some(target) => self.word(target),
                None => self.add(WordKind::Hole, "…", false),
            }
        }
        for option in &options {
            self.add(WordKind::Word, option, true);
        }
    }

    fn argument(&mut self, name: &str, value: &Value, depth: u32) {
        match value {
            Value::String(text) => self.text(name, text),
            Value::Number(number) => self.add(WordKind::Word, &number.to_string(), false),
            Value::Array(items) if depth > 0 => items
                .iter()
                .for_each(|item| self.argument(name, item, depth - 1)),
            Value::Object(members) if depth > 0 => {
                in_order(members).for_each(|(name, member)| self.argument(name, member, depth - 1));
            }
            _ => {}
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        let is_one = PATH_ARGUMENTS.contains(&name) || name == "url";
        if is_one {
            return self.word(text.trim());
        }
        for word in text.split_whitespace() {
            if self.is_full() {
                return;
            }
            let bare = word.trim_matches(is_around);
            self.word(bare);
            let parts = bare.split(is_around).filter(|part| !part.is_empty());
            for part in parts.filter(|part| part.len() < bare.len()) {
                self.add(WordKind::Word, part, true);
            }
        }
    }
}

/// What stands around words of a text.
fn is_around(letter: char) -> bool {
    matches!(
        letter,
        '"' | '\''
            | '`'
            | ','
            | ';'
            | ':'
            | '='
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | '!'
            | '?'
            | '|'
    )
}

/// Whether an argument may become something else while the line runs. A pattern of file names is known well enough.
fn has_hole(command: &SimpleCommand, at: usize) -> bool {
    let mut holes = command.holes.iter();
    holes.any(|hole| hole.argument == at && matches!(hole.becomes, Becomes::Text | Becomes::Words))
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The options of a command, each once and sorted: letters by themselves, long ones with and without their value.
fn options(command: &SimpleCommand) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, argument) in command.arguments.iter().enumerate() {
        if !is_option(argument) || has_hole(command, at) {
            continue;
        }
        let word = argument.to_lowercase();
        if let Some((name, value)) = word.split_once('=') {
            found.insert(name.to_owned());
            found.insert(value.to_owned());
        }
        let short = LONG.iter().find(|(long, _)| *long == word);
        found.extend(short.map(|(_, short)| (*short).to_owned()));
        found.extend(letters(&word).unwrap_or_default());
        found.insert(word);
    }
    found
}

/// `-rf` → `-f`, `-r`; none of what is no bundle of letters.
fn letters(word: &str) -> Option<Vec<String>> {
    let letters = word.strip_prefix('-')?;
    let is_bundle = (1..=CLUSTER_CHARS_MAX).contains(&letters.len())
        && letters.bytes().all(|letter| letter.is_ascii_alphabetic());
    is_bundle.then(|| letters.chars().map(|letter| format!("-{letter}")).collect())
}

/// What else a word may be called: its path without what says nothing, the directory whose whole content it means, the name of the file.
fn aliases(word: &str) -> Vec<String> {
    if !word.contains('/') {
        return Vec::new();
    }
    let whole = word.strip_suffix("/*").map(|directory| match directory {
        "" => "/",
        directory => directory,
    });
    let plain = plain_path(whole.unwrap_or(word));
    let path = plain.as_deref().or(whole).unwrap_or(word);
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    let name = name.map(str::to_owned);
    let path = (path != word).then(|| path.to_owned());
    path.into_iter().chain(name).collect()
}

/// A path without empty parts, `.` and a slash at its end; none where there is nothing to remove, and of addresses.
fn plain_path(word: &str) -> Option<String> {
    if !word.contains('/') || word.contains("://") {
        return None;
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in word
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        match part {
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if word.starts_with('/') => {}
            part => kept.push(part),
        }
    }
    let start = if word.starts_with('/') { "/" } else { "" };
    let plain = format!("{start}{}", kept.join("/"));
    (plain != word && !plain.is_empty()).then_some(plain)
}
