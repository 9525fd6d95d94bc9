//! Shows untrusted text so that every character of it is visible.
//!
//! Stricter than what results are shown with (`run::render::escape`): an operator decides on these texts, and a model reads
//! characters that no terminal draws. The price is that joined emoji and some scripts look clumsy.

use std::fmt::Write as _;

/// `text` with every character that drives a terminal, reorders or cannot be seen written out: `\u{1b}`, `\u{202e}`.
///
/// Shape: line feeds and tabs stay.
pub fn visible(text: &str) -> String {
    shown(text, |character| {
        is_hidden(character) && !matches!(character, '\n' | '\t')
    })
}

/// Like [`visible`], on one line: line feeds and tabs are written out too.
pub fn visible_line(text: &str) -> String {
    shown(text, is_hidden)
}

/// JSON text of the same value, with hidden characters as JSON writes them: `\u202e`.
///
/// Shape: JSON text; what stands between its tokens stays. Hidden characters can only be inside strings.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) && !matches!(character, '\n' | '\t' | '\r') {
            push_json_escape(&mut shown, character);
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Appends `\uXXXX`, twice for a character beyond the first 65,536.
pub(super) fn push_json_escape(shown: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        write!(shown, "\\u{unit:04x}").expect("bug: writing to a string cannot fail");
    }
}

/// Whether a person would not see `character`, or would see others in a wrong order.
///
/// Source: the Unicode property `Default_Ignorable_Code_Point`, the control characters, line and paragraph separator, the
/// annotation characters, and the blank that is no space (U+2800).
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            hidden if is_hidden(hidden) => match hidden {
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                '\r' => shown.push_str("\\r"),
                _ => write!(shown, "\\u{{{:x}}}", u32::from(hidden))
                    .expect("bug: writing to a string cannot fail"),
            },
            plain => shown.push(plain),
        }
    }
    shown
}

#[cfg(test)]
mod tests;
