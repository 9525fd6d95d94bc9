//! Makes untrusted text safe to show: no control sequences, no reordering, nothing invisible.
//!
//! Invisible characters are omitted, including joiners between letters, so that a person and a model read the same text.

use std::fmt::Display;

/// Whether a character controls, reorders or hides text: control characters, line and paragraph separators, and characters
/// without width.
///
/// Source: Unicode's `Cc`, `Zl`, `Zp` and `Default_Ignorable_Code_Point`, with the blank Hangul fillers and variation
/// selectors, all of which can carry invisible text.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A number with its noun: `1 line`, `2 lines`, `0 lines`.
pub fn counted<N: Display + PartialEq + From<bool>>(n: N, one: &str, many: &str) -> String {
    let noun = match n == N::from(true) {
        true => one,
        false => many,
    };
    format!("{n} {noun}")
}

/// `text` on one line of at most `chars_max` characters; white space becomes single spaces, and truncated text ends in `…`.
pub fn plain_line(text: &str, chars_max: usize) -> String {
    let spaced: String = text.chars().filter_map(spaced).collect();
    let words = spaced.split_whitespace();
    let mut line = String::new();
    let mut n_chars = 0;
    for word in words {
        let gap = usize::from(n_chars > 0);
        if gap == 1 {
            line.push(' ');
        }
        n_chars += gap;
        for character in word.chars() {
            if n_chars == chars_max {
                line.push('…');
                return line;
            }
            line.push(character);
            n_chars += 1;
        }
    }
    line
}

/// `text` without deceptive characters other than line breaks and tabs, and without white space at its ends.
pub fn plain_text(text: &str) -> String {
    let kept = |character: char| matches!(character, '\n' | '\t') || !is_deceptive(character);
    let text: String = text.chars().filter(|character| kept(*character)).collect();
    text.trim().to_owned()
}

/// Replaces deceptive white space with spaces, and removes other deceptive characters.
fn spaced(character: char) -> Option<char> {
    if character.is_whitespace() {
        return Some(' ');
    }
    (!is_deceptive(character)).then_some(character)
}

#[cfg(test)]
mod tests;
