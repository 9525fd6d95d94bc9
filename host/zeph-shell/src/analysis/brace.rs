//! Brace expansion: `-{r,}f` is `-rf -f`, `{1..3}` is `1 2 3`.
//!
//! Only what is plainly one of these two is expanded. Anything else with braces is left as it is, and is not known then.

use super::syntax::{Word, WordPart};

/// Most words a word is expanded into.
const WORDS_MAX: usize = 1_000;

/// A character that may be grammar, or something that is not.
#[derive(Debug, Clone)]
enum Atom {
    Plain(char),
    Other(WordPart),
}

/// The words that `word` becomes; itself when nothing is expanded.
pub(super) fn expand(word: &Word) -> Vec<Word> {
    let has_brace = |part: &WordPart| matches!(part, WordPart::Text(text) if text.contains('{'));
    if !word.parts.iter().any(has_brace) {
        return vec![word.clone()];
    }
    match sequence_of(&atoms(word)) {
        Some(words) if !words.iter().any(|word| makes_expansion(word)) => {
            words.into_iter().filter_map(joined).collect()
        }
        _ => vec![word.clone()],
    }
}

/// Whether a `$` meets what was no part of it before: braces are expanded first, so `{a,$x}y` holds the variable `xy`.
fn makes_expansion(atoms: &[Atom]) -> bool {
    atoms.windows(2).any(|pair| match pair {
        [Atom::Plain('$'), _] => true,
        [Atom::Other(WordPart::Expansion(expansion)), Atom::Plain(c)] => {
            let is_braced = expansion.source.ends_with(['}', ')', '`']);
            !is_braced && (c.is_ascii_alphanumeric() || *c == '_')
        }
        _ => false,
    })
}

fn atoms(word: &Word) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for part in &word.parts {
        match part {
            WordPart::Text(text) => atoms.extend(text.chars().map(Atom::Plain)),
            other => atoms.push(Atom::Other(other.clone())),
        }
    }
    atoms
}

/// A word again; `None` when nothing is left of it.
fn joined(atoms: Vec<Atom>) -> Option<Word> {
    let mut word = Word::default();
    for atom in atoms {
        match atom {
            Atom::Plain(c) => word.push_text(c),
            Atom::Other(part) => word.parts.push(part),
        }
    }
    (!word.parts.is_empty()).then_some(word)
}

/// Every combination of what stands in a text; `None` when its braces are unusual.
fn sequence_of(atoms: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let mut words: Vec<Vec<Atom>> = vec![Vec::new()];
    let mut rest = atoms;
    while let Some((first, after)) = rest.split_first() {
        let choices = match first {
            Atom::Plain('}') => return None,
            Atom::Plain('{') => {
                let end = closing(after)?;
                rest = after.get(end + 1..)?;
                choices(after.get(..end)?)?
            }
            other => {
                rest = after;
                vec![vec![other.clone()]]
            }
        };
        if words.len() * choices.len() > WORDS_MAX {
            return None;
        }
        words = words
            .iter()
            .flat_map(|word| {
                choices
                    .iter()
                    .map(|choice| [word.as_slice(), choice].concat())
            })
            .collect();
    }
    Some(words)
}

/// Where the brace that was opened before is closed.
fn closing(atoms: &[Atom]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Plain('{') => depth += 1,
            Atom::Plain('}') if depth == 0 => return Some(at),
            Atom::Plain('}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The alternatives between two braces.
fn choices(inside: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let mut depth = 0usize;
    let mut pieces: Vec<Vec<Atom>> = vec![Vec::new()];
    for atom in inside {
        match atom {
            Atom::Plain('{') => depth += 1,
            Atom::Plain('}') => depth = depth.saturating_sub(1),
            Atom::Plain(',') if depth == 0 => {
                pieces.push(Vec::new());
                continue;
            }
            _ => {}
        }
        pieces.last_mut()?.push(atom.clone());
    }
    if pieces.len() == 1 {
        return range(inside);
    }
    let expanded = pieces.iter().map(|piece| sequence_of(piece));
    Some(expanded.collect::<Option<Vec<_>>>()?.concat())
}

/// `1..3`, `01..10..2`, `a..e`.
fn range(inside: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let plain = inside.iter().map(|atom| match atom {
        Atom::Plain(c) => Some(*c),
        Atom::Other(_) => None,
    });
    let text: String = plain.collect::<Option<_>>()?;
    let mut pieces = text.split("..");
    let (first, last, step) = (pieces.next()?, pieces.next()?, pieces.next());
    if pieces.next().is_some() {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?;
    let step = step.unsigned_abs().max(1);
    let texts = letters(first, last, step).or_else(|| numbers(first, last, step))?;
    let atoms = |text: String| text.chars().map(Atom::Plain).collect();
    Some(texts.into_iter().map(atoms).collect())
}

fn numbers(first: &str, last: &str, step: u64) -> Option<Vec<String>> {
    let is_padded = |text: &str| {
        let digits = text.trim_start_matches('-');
        digits.len() > 1 && digits.starts_with('0')
    };
    let width = match is_padded(first) || is_padded(last) {
        true => first.len().max(last.len()),
        false => 0,
    };
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    if !is_number(first) || !is_number(last) {
        return None;
    }
    let values = steps(first.parse().ok()?, last.parse().ok()?, step)?;
    Some(
        values
            .into_iter()
            .map(|value| format!("{value:0width$}"))
            .collect(),
    )
}

/// Letters of one case: the characters between the cases have a meaning in shells.
fn letters(first: &str, last: &str, step: u64) -> Option<Vec<String>> {
    let letter = |text: &str| match text.as_bytes() {
        [only] if only.is_ascii_alphabetic() => Some(*only),
        _ => None,
    };
    let (first, last) = (letter(first)?, letter(last)?);
    if first.is_ascii_lowercase() != last.is_ascii_lowercase() {
        return None;
    }
    let values = steps(first.into(), last.into(), step)?;
    let letters = values.into_iter().map(|value| u8::try_from(value).ok());
    letters
        .map(|letter| Some(char::from(letter?).to_string()))
        .collect()
}

fn steps(first: i64, last: i64, step: u64) -> Option<Vec<i64>> {
    let n = first.abs_diff(last) / step;
    if usize::try_from(n).ok()? >= WORDS_MAX {
        return None;
    }
    let step = i64::try_from(step).ok()? * if last < first { -1 } else { 1 };
    let n = i64::try_from(n).ok()?;
    Some((0..=n).map(|i| first + i * step).collect())
}
