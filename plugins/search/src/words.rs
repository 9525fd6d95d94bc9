//! The words of identifiers and of prose.

/// Shortest and longest words that are kept, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=48;

/// Calls `take` with every word of `text`, in lower case: `parseHTTPUrl2` is `parse`, `http`, `url2` and, when it has more than one
/// part, `parsehttpurl2`; `snake_case` likewise.
pub fn split(text: &str, mut take: impl FnMut(&str)) {
    let is_inside = |character: char| character.is_alphanumeric() || character == '_';
    for identifier in text.split(|character| !is_inside(character)) {
        if identifier.len() > 4 * LENGTHS.end() {
            continue;
        }
        let parts = parts(identifier);
        for part in &parts {
            taken(part, &mut take);
        }
        if parts.len() > 1 {
            taken(&parts.concat(), &mut take);
        }
    }
}

fn taken(word: &str, take: &mut impl FnMut(&str)) {
    if LENGTHS.contains(&word.len()) {
        take(word);
    }
}

/// The parts of one identifier, in lower case.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in identifier.split('_').filter(|piece| !piece.is_empty()) {
        let characters: Vec<char> = piece.chars().collect();
        let mut part = String::new();
        for (at, character) in characters.iter().enumerate() {
            if begins_part(&characters, at) && !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
            part.extend(character.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

/// A capital after a small letter begins a part, and one before a small letter: `parseURL`, `HTTPServer`.
fn begins_part(characters: &[char], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| characters[before]) else {
        return false;
    };
    let is_capital = characters[at].is_uppercase();
    let next_is_small = characters
        .get(at + 1)
        .is_some_and(|next| next.is_lowercase());
    is_capital && (!before.is_uppercase() || next_is_small)
}

#[cfg(test)]
mod tests {
    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        super::split(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn identifiers_are_split() {
        assert_eq!(
            words("parseHTTPUrl2"),
            ["parse", "http", "url2", "parsehttpurl2"]
        );
        assert_eq!(words("snake_case_"), ["snake", "case", "snakecase"]);
        assert_eq!(words("MAX_BYTES"), ["max", "bytes", "maxbytes"]);
        assert_eq!(words("a + b(cd)"), ["cd"]);
        assert_eq!(words("größeÄndern"), ["größe", "ändern", "größeändern"]);
        assert_eq!(words(&"x".repeat(500)), Vec::<String>::new());
    }
}
