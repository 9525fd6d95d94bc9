//! How near a text is to a goal: by the telling words they share. Deterministic, and the same on every machine.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::TextLines;
use regex::{Regex, RegexBuilder};

/// Words of a goal that count. A longer goal is a text, whose first words say what it is about.
const WORDS_MAX: usize = 64;

/// Words are compared up to this length, so that endings do not matter.
const EXACT_CHARS_MAX: usize = 4;

/// Bytes of a line that are looked at.
const LINE_BYTES_MAX: usize = 2_048;

/// What a word counts that stands in more than a quarter of all lines: it tells them apart no more.
const COMMON_WEIGHT: f64 = 0.25;

/// What a name counts that has an underscore, a dot, a slash or capitals in it.
const NAME_WEIGHT: f64 = 2.0;

/// Words that say nothing of what a goal is about.
const PLAIN: &str = " a about add all also an and any are as at be been build but by can change changes code create do does done each \
    every fix for from get give had has have how if implement in into is it its just let like make more my need new no not now of on one \
    only or our out please project put set should so some such that the their them then there these they this those to up update use \
    used user users using want was we were what when where which while who will with work works would write you your ";

/// The telling words of a goal.
#[derive(Debug, Clone)]
pub struct GoalWords {
    /// Finds the beginning of any of them; none when there are none.
    expression: Option<Regex>,
    /// By what is found, in lower case: its number.
    numbers: BTreeMap<String, usize>,
    weights: Vec<f64>,
}

/// How near the lines of a text are to a goal.
#[derive(Debug)]
pub(super) struct LineScores {
    /// By line: the words of the goal in it, a bit each.
    words: Vec<u64>,
    weights: Vec<f64>,
}

impl GoalWords {
    /// Those of a goal in its user's words.
    pub fn new(goal: &str) -> Self {
        let mut words: Vec<(String, f64)> = Vec::new();
        let mut add = |word: String, weight| {
            if words.len() < WORDS_MAX && !words.iter().any(|(other, _)| *other == word) {
                words.push((word, weight));
            }
        };
        let is_around =
            |letter: char| letter.is_whitespace() || "\"'`()[]{}<>,;!?".contains(letter);
        for token in goal.split(is_around) {
            let token = token.trim_matches(|letter: char| !letter.is_alphanumeric());
            let parts = parts(token);
            if parts.len() > 1 {
                add(token.to_lowercase(), NAME_WEIGHT);
            }
            for stem in parts.iter().filter_map(|part| stem(part)) {
                add(stem, 1.0);
            }
        }
        // The longest is found first where one begins like another.
        words.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
        let expressions: Vec<String> = words.iter().map(|(word, _)| regex::escape(word)).collect();
        let expression = RegexBuilder::new(&expressions.join("|"))
            .case_insensitive(true)
            .build();
        Self {
            expression: expression.ok().filter(|_| !words.is_empty()),
            numbers: words
                .iter()
                .zip(0..)
                .map(|((word, _), number)| (word.clone(), number))
                .collect(),
            weights: words.into_iter().map(|(_, weight)| weight).collect(),
        }
    }

    /// How near `text` is to the goal, from 0 to 1: each telling word halves what is missing.
    pub fn relevance(&self, text: &str) -> f64 {
        relevance(self.words(text), &self.weights)
    }

    pub(super) fn scores(&self, lines: &TextLines<'_>) -> LineScores {
        let words: Vec<u64> = (0..lines.len())
            .map(|idx| self.words(lines.line(idx)))
            .collect();
        let n_with = |number: usize| {
            words
                .iter()
                .filter(|words| *words >> number & 1 == 1)
                .count()
        };
        let is_common = |number: usize| words.len() >= 8 && n_with(number) * 4 > words.len();
        let weights = self.weights.iter().enumerate();
        let weights = weights.map(|(number, weight)| match is_common(number) {
            true => weight * COMMON_WEIGHT,
            false => *weight,
        });
        LineScores {
            weights: weights.collect(),
            words,
        }
    }

    /// The words of the goal in a line, a bit each.
    fn words(&self, line: &str) -> u64 {
        let Some(expression) = &self.expression else {
            return 0;
        };
        let line = &line[..line.floor_char_boundary(LINE_BYTES_MAX.min(line.len()))];
        let found = expression.find_iter(line);
        let found = found.filter(|found| is_word(line, found.range()));
        let number = |text: &str| self.numbers.get(&text.to_lowercase()).copied();
        let numbers = found.filter_map(|found| number(found.as_str()));
        numbers.fold(0, |words, number| words | 1_u64 << number)
    }
}

impl LineScores {
    pub(super) fn of_line(&self, idx: usize) -> f64 {
        relevance(self.words[idx], &self.weights)
    }

    pub(super) fn of_lines(&self, lines: Range<usize>) -> f64 {
        let words = self.words[lines].iter().fold(0, |all, words| all | words);
        relevance(words, &self.weights)
    }
}

fn relevance(words: u64, weights: &[f64]) -> f64 {
    let numbers = weights.iter().enumerate();
    let found = numbers.filter(|(number, _)| words >> number & 1 == 1);
    let sum: f64 = found.map(|(_, weight)| weight).sum();
    1.0 - 0.5_f64.powf(sum)
}

/// Whether a word begins where something was found; a short one has to end there too.
fn is_word(line: &str, found: Range<usize>) -> bool {
    let before = line[..found.start].chars().next_back();
    let mut inside = line[found.clone()].chars();
    let begins = match (before, inside.next()) {
        (None, _) => true,
        (Some(before), _) if !before.is_alphanumeric() => true,
        // `parseConfig`
        (Some(before), Some(first)) => before.is_lowercase() && first.is_uppercase(),
        (Some(_), None) => false,
    };
    if !begins || found.len() > EXACT_CHARS_MAX {
        return begins;
    }
    let behind = &line[found.end..];
    let behind = behind.strip_prefix(['s', 'S']).unwrap_or(behind);
    !behind.starts_with(char::is_lowercase)
}

/// The words of a name: `parse_config`, `parseConfig` and `parse.config` have two.
fn parts(token: &str) -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    let mut part = String::new();
    let mut last = ' ';
    for letter in token.chars() {
        let is_border = !letter.is_alphanumeric() || (last.is_lowercase() && letter.is_uppercase());
        if is_border {
            parts.insert(std::mem::take(&mut part));
        }
        if letter.is_alphanumeric() {
            part.extend(letter.to_lowercase());
        }
        last = letter;
    }
    parts.insert(part);
    parts.remove("");
    parts
}

/// What all forms of a word begin with; none for a word that says nothing.
fn stem(word: &str) -> Option<String> {
    const ENDINGS: [&str; 12] = [
        "ications", "ication", "ations", "ation", "ings", "ing", "ies", "ers", "ed", "es", "s", "e",
    ];
    let n_chars = word.chars().count();
    let is_number = word.chars().all(|letter| letter.is_ascii_digit());
    if n_chars < 2 || (is_number && n_chars < 4) || PLAIN.contains(&format!(" {word} ")) {
        return None;
    }
    // What is left has to be long enough to be found by its beginning; an `s` behind a short word does not matter.
    let is_stem = |ending: &str, n_chars: usize| {
        n_chars > EXACT_CHARS_MAX || (ending == "s" && n_chars == EXACT_CHARS_MAX)
    };
    let stem = ENDINGS.iter().find_map(|ending| {
        let stem = word.strip_suffix(ending)?;
        is_stem(ending, stem.chars().count()).then_some(stem)
    });
    Some(stem.unwrap_or(word).to_owned())
}
