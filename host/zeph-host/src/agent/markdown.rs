//! Markdown on a terminal while it arrives. Pure.
//!
//! What is shown is only ever appended to, so that scrollback, copying and search keep working. A character is held back only while it
//! may belong to a marker; everything else is shown at once. Without colours the text is shown as it is. No character of the text can
//! drive the terminal.

use clap::builder::styling::{AnsiColor, Style};

use crate::run::render::{BOLD, DIM, escape};

/// Code.
const CODE: Style = AnsiColor::Cyan.on_default();

/// The longest marker at the beginning of a line.
const MARKER_CHARS_MAX: usize = 16;

/// A text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    is_plain: bool,
    /// What may be a marker.
    held: String,
    /// Whether only blanks and marker characters of this line have come.
    is_inside: bool,
    /// The character and the length of the fence of a code block.
    fence: Option<(char, usize)>,
    is_heading: bool,
    is_code: bool,
    is_bold: bool,
    is_fence_line: bool,
}

impl MarkdownStream {
    /// For a terminal with colours, or without.
    pub(crate) fn new(has_color: bool) -> Self {
        Self {
            is_plain: !has_color,
            ..Self::default()
        }
    }

    /// What is shown of the next piece.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.is_plain {
            return escape(text);
        }
        let mut shown = String::new();
        text.chars()
            .for_each(|character| self.character(character, &mut shown));
        shown
    }

    /// What is still held back; the text has ended.
    pub(crate) fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.release(&mut shown);
        let is_plain = self.is_plain;
        if self.is_bold || self.is_code || self.is_heading || self.is_fence_line {
            shown.push_str(&reset());
        }
        *self = Self::new(!is_plain);
        shown
    }

    fn character(&mut self, character: char, shown: &mut String) {
        if character == '\n' {
            return self.line_end(shown);
        }
        match self.is_inside {
            false => self.at_begin(character, shown),
            true => self.inside(character, shown),
        }
    }

    fn line_end(&mut self, shown: &mut String) {
        if !self.is_inside {
            self.decide('\n', shown);
        }
        self.release(shown);
        if self.is_heading || self.is_fence_line || (self.is_code && self.fence.is_none()) {
            shown.push_str(&reset());
            (self.is_heading, self.is_fence_line, self.is_code) = (false, false, false);
            self.restyle(shown);
        }
        shown.push('\n');
        self.is_inside = false;
    }

    /// At the beginning of a line: what may be a marker is held back until it is known what it is.
    fn at_begin(&mut self, character: char, shown: &mut String) {
        let marker = self.held.trim_start().chars().next();
        let goes_on = match marker {
            None => character == ' ' || "`~#-*+>".contains(character),
            Some(first) => character == first && "`~#".contains(first),
        };
        if goes_on && self.held.len() < MARKER_CHARS_MAX {
            self.held.push(character);
            return;
        }
        self.is_inside = true;
        if !self.decide(character, shown) {
            self.inside(character, shown);
        }
    }

    /// What the held marker is, now that the character after it has come; whether that character belongs to it.
    fn decide(&mut self, after: char, shown: &mut String) -> bool {
        let marker = self.held.trim_start();
        let n_chars = marker.chars().count();
        let first = marker.chars().next().unwrap_or(' ');
        if "`~".contains(first) && n_chars >= 3 {
            self.toggle_fence(first, n_chars, shown);
            return false;
        }
        if self.fence.is_some() {
            self.release(shown);
            return false;
        }
        match first {
            '#' if after == ' ' && n_chars <= 6 => {
                self.is_heading = true;
                self.held.clear();
                shown.push_str(&BOLD.render().to_string());
                true
            }
            '-' | '*' | '+' if after == ' ' => {
                let indent = self.held.len() - n_chars;
                self.held.clear();
                shown.push_str(&format!("{}• ", " ".repeat(indent)));
                true
            }
            '>' => {
                self.held.clear();
                shown.push_str(&format!("{DIM}│{DIM:#} "));
                after == ' '
            }
            _ => {
                let held = std::mem::take(&mut self.held);
                held.chars()
                    .for_each(|character| self.inside(character, shown));
                false
            }
        }
    }

    fn toggle_fence(&mut self, first: char, n_chars: usize, shown: &mut String) {
        match self.fence {
            Some((open, length)) if open == first && n_chars >= length => self.fence = None,
            None => self.fence = Some((first, n_chars)),
            Some(_) => return self.release(shown),
        }
        self.is_fence_line = true;
        (self.is_bold, self.is_code) = (false, false);
        shown.push_str(&DIM.render().to_string());
        self.release(shown);
    }

    fn inside(&mut self, character: char, shown: &mut String) {
        if self.fence.is_some() || self.is_fence_line {
            return push(character, shown);
        }
        match (self.held.as_str(), character) {
            ("\\", _) => {
                let is_mark = character.is_ascii_punctuation();
                self.held.clear();
                if !is_mark {
                    shown.push('\\');
                }
                push(character, shown);
            }
            ("*", '*') if !self.is_code => {
                self.held.clear();
                self.is_bold = !self.is_bold;
                self.style_changed(shown);
            }
            ("*", _) => {
                self.held.clear();
                shown.push('*');
                self.inside(character, shown);
            }
            (_, '`') => {
                self.is_code = !self.is_code;
                self.style_changed(shown);
            }
            (_, '*' | '\\') if !self.is_code => self.held.push(character),
            _ => push(character, shown),
        }
    }

    fn style_changed(&self, shown: &mut String) {
        shown.push_str(&reset());
        self.restyle(shown);
    }

    fn restyle(&self, shown: &mut String) {
        if self.is_bold || self.is_heading {
            shown.push_str(&BOLD.render().to_string());
        }
        if self.is_code {
            shown.push_str(&CODE.render().to_string());
        }
    }

    /// Shows what was held back as it is.
    fn release(&mut self, shown: &mut String) {
        shown.push_str(&escape(&std::mem::take(&mut self.held)));
    }
}

fn push(character: char, shown: &mut String) {
    shown.push_str(&escape(character.encode_utf8(&mut [0; 4])));
}

fn reset() -> String {
    BOLD.render_reset().to_string()
}

#[cfg(test)]
mod tests {
    use super::MarkdownStream;

    /// The text in pieces of `n_chars`, without the colours.
    fn shown(text: &str, n_chars: usize) -> String {
        let mut stream = MarkdownStream::new(true);
        let characters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for piece in characters.chunks(n_chars) {
            shown.push_str(&stream.push(&piece.iter().collect::<String>()));
        }
        shown.push_str(&stream.finish());
        anstream::adapter::strip_str(&shown).to_string()
    }

    #[test]
    fn markers_become_styles_however_the_text_is_cut() {
        let text = "# Head\n\nSome **bold** and `co*de` text, 2 * 3, a\\*b.\n- one\n* two\n  + three\n> said\n```rust\n# no head\n**x**\n```\nend *";
        let expect = "Head\n\nSome bold and co*de text, 2 * 3, a*b.\n• one\n• two\n  • three\n│ said\n```rust\n# no head\n**x**\n```\nend *";
        for n_chars in [1, 2, 3, 7, 1000] {
            assert_eq!(shown(text, n_chars), expect, "{n_chars}");
        }
    }

    #[test]
    fn nothing_of_the_text_drives_the_terminal() {
        for has_color in [true, false] {
            let mut stream = MarkdownStream::new(has_color);
            let mut shown = stream.push("a\u{1b}]0;title\u{7}b\r\u{9b}2J`\u{1b}[31m`");
            shown.push_str(&stream.finish());
            let shown = anstream::adapter::strip_str(&shown).to_string();
            assert!(
                !shown.contains(['\u{1b}', '\r', '\u{7}', '\u{9b}']),
                "{shown:?}"
            );
            assert!(shown.contains("\\x1b"), "{shown:?}");
        }
    }

    #[test]
    fn a_word_is_shown_as_soon_as_it_comes() {
        let mut stream = MarkdownStream::new(true);
        assert_eq!(stream.push("Hel"), "Hel");
        assert_eq!(stream.push("lo"), "lo");
    }

    #[test]
    fn without_colours_the_text_is_as_it_was() {
        let mut stream = MarkdownStream::new(false);
        assert_eq!(stream.push("# a **b**"), "# a **b**");
        assert_eq!(stream.finish(), "");
    }
}
