//! Words that do not fit on a line of the terminal begin the next one, while the text arrives. Pure.
//!
//! What was shown stays: a word is held back only near the end of a line, where it may not fit. Code blocks and tables stay as they are,
//! and a word that is longer than a line, such as an address, is left to the terminal, so that it can be copied.

use ratatui::text::Span;

/// Columns at the end of a line in which a word is held back until it is complete.
const HELD_COLUMNS: usize = 24;

/// The narrowest line that is wrapped.
const WIDTH_MIN: usize = 20;

/// A text that arrives in pieces, with escape sequences of ours only.
#[derive(Debug, Default)]
pub(crate) struct WordWrap {
    /// Columns of a line; none when nothing has to fit.
    width: Option<usize>,
    column: usize,
    /// Blanks before the next word.
    gap: usize,
    /// The word that is held back, with its escape sequences.
    held: String,
    held_columns: usize,
    place: WordPlace,
    /// Where the lines of an item go on.
    indent: usize,
    /// What the line begins with, as far as that says what it is.
    head: String,
    is_fenced: bool,
}

/// Where the next character belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WordPlace {
    /// Between words.
    #[default]
    Outside,
    /// To a word that is shown as it comes.
    Shown,
    /// To a word that is held back.
    Held,
    /// To an escape sequence, in a word that is shown or not.
    Sequence(bool),
}

/// Columns of a text on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => Span::raw(text).width(),
    }
}

impl WordWrap {
    /// For lines of `width` columns.
    pub(crate) fn of_width(width: Option<usize>) -> Self {
        Self {
            width: width.filter(|width| *width >= WIDTH_MIN),
            ..Self::default()
        }
    }

    /// What is shown of the next piece.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.width.is_none() {
            return text.to_owned();
        }
        let mut shown = String::with_capacity(text.len());
        for character in text.chars() {
            self.character(character, &mut shown);
        }
        shown
    }

    /// What is still held back; the text has ended, and the next one begins on a line of its own.
    pub(crate) fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.end_word(&mut shown);
        *self = Self::of_width(self.width);
        shown
    }

    fn character(&mut self, character: char, shown: &mut String) {
        match (self.place, character) {
            (WordPlace::Sequence(is_held), _) => self.sequence(character, is_held, shown),
            (place, '\u{1b}') => {
                let is_held = place == WordPlace::Held;
                self.place = WordPlace::Sequence(is_held);
                self.add(character, is_held, shown);
            }
            (_, '\n') => self.line_end(shown),
            (_, ' ') => {
                self.end_word(shown);
                self.gap += 1;
            }
            (WordPlace::Outside, _) => {
                self.begin_word(shown);
                self.letter(character, shown);
            }
            _ => self.letter(character, shown),
        }
    }

    /// A sequence ends with a letter; it takes no column.
    fn sequence(&mut self, character: char, is_held: bool, shown: &mut String) {
        self.add(character, is_held, shown);
        if character.is_ascii_alphabetic() {
            self.place = match (is_held, self.gap, self.column) {
                (true, ..) => WordPlace::Held,
                (false, 0, 1..) => WordPlace::Shown,
                _ => WordPlace::Outside,
            };
        }
    }

    fn line_end(&mut self, shown: &mut String) {
        self.end_word(shown);
        if self.head.starts_with("```") || self.head.starts_with("~~~") {
            self.is_fenced = !self.is_fenced;
        }
        shown.push('\n');
        (self.column, self.gap, self.indent) = (0, 0, 0);
        self.head.clear();
    }

    /// Whether the line stays as it is.
    fn is_verbatim(&self) -> bool {
        let is_fence = self.head.starts_with("```") || self.head.starts_with("~~~");
        self.is_fenced || is_fence || self.head.starts_with('|')
    }

    fn room(&self) -> usize {
        let width = self.width.unwrap_or(usize::MAX);
        width.saturating_sub(self.column + self.gap)
    }

    fn begin_word(&mut self, shown: &mut String) {
        let held = self.width.map_or(0, |width| HELD_COLUMNS.min(width / 2));
        if self.is_verbatim() || self.column == 0 || self.room() >= held {
            self.show_gap(shown);
            self.place = WordPlace::Shown;
        } else {
            self.place = WordPlace::Held;
        }
    }

    fn letter(&mut self, character: char, shown: &mut String) {
        if self.head.len() < 3 {
            self.head.push(character);
        }
        let is_held = self.place == WordPlace::Held;
        let n_columns = columns(character.encode_utf8(&mut [0; 4]));
        self.add(character, is_held, shown);
        match is_held {
            true => self.held_columns += n_columns,
            false => self.column += n_columns,
        }
        // It cannot fit any more: the rest of it need not wait.
        if is_held && self.held_columns > self.room() {
            self.next_line(shown);
            self.place = WordPlace::Shown;
        }
    }

    fn add(&mut self, character: char, is_held: bool, shown: &mut String) {
        match is_held {
            true => self.held.push(character),
            false => shown.push(character),
        }
    }

    fn end_word(&mut self, shown: &mut String) {
        match self.place {
            WordPlace::Held => {
                self.show_gap(shown);
                self.release(shown);
            }
            WordPlace::Shown if is_marker(&self.head) && self.indent == 0 => {
                self.indent = self.column + 1;
            }
            _ => {}
        }
        self.place = WordPlace::Outside;
    }

    fn show_gap(&mut self, shown: &mut String) {
        shown.extend(std::iter::repeat_n(' ', self.gap));
        self.column += std::mem::take(&mut self.gap);
    }

    fn next_line(&mut self, shown: &mut String) {
        shown.push('\n');
        (self.column, self.gap) = (0, self.indent);
        self.show_gap(shown);
        self.release(shown);
    }

    fn release(&mut self, shown: &mut String) {
        shown.push_str(&std::mem::take(&mut self.held));
        self.column += std::mem::take(&mut self.held_columns);
    }
}

/// Whether the first word of a line marks an item of a list or a quotation.
fn is_marker(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    let is_number = !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit());
    is_number || matches!(word, "•" | "-" | "*" | "+" | "│" | ">")
}

#[cfg(test)]
mod tests {
    use super::{WordWrap, columns};

    /// The text in pieces of `n_chars` on a terminal of `width` columns.
    fn wrapped(text: &str, width: usize, n_chars: usize) -> String {
        let mut wrap = WordWrap::of_width(Some(width));
        let characters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for piece in characters.chunks(n_chars) {
            shown.push_str(&wrap.push(&piece.iter().collect::<String>()));
        }
        shown.push_str(&wrap.finish());
        shown
    }

    fn check(text: &str, width: usize, expect: &str) {
        for n_chars in [1, 2, 5, 1_000] {
            assert_eq!(wrapped(text, width, n_chars), expect, "{n_chars}");
        }
    }

    #[test]
    fn words_that_do_not_fit_begin_the_next_line() {
        check(
            "one two three four five six seven",
            20,
            "one two three four\nfive six seven",
        );
        check(
            "twelve words, of\nwhich some fit",
            20,
            "twelve words, of\nwhich some fit",
        );
        check(
            "日本語 日本語 日本語 日本語",
            20,
            "日本語 日本語 日本語\n日本語",
        );
        check("exactly 20 columns!!", 20, "exactly 20 columns!!");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let words = (0..200).map(|n| "x".repeat(1 + n * 7 % 13));
        let text = words.collect::<Vec<_>>().join(" ");
        for width in [28, 33, 80] {
            let shown = wrapped(&text, width, 3);
            assert!(shown.lines().all(|line| columns(line) <= width), "{shown}");
            assert_eq!(shown.replace('\n', " "), text);
        }
    }

    #[test]
    fn items_go_on_below_their_text() {
        check(
            "• an item of a list that is long\nnext",
            20,
            "• an item of a list\n  that is long\nnext",
        );
        check(
            "1. the first of the items",
            20,
            "1. the first of the\n   items",
        );
    }

    #[test]
    fn code_and_tables_stay_as_they_are() {
        let text =
            "```\na line of code that is longer than this\n```\n| a table | that is longer |";
        check(text, 20, text);
    }

    #[test]
    fn an_address_is_in_one_piece() {
        check(
            "see https://example.com/a/long/address now",
            20,
            "see https://example.com/a/long/address\nnow",
        );
    }

    #[test]
    fn styles_take_no_columns() {
        check(
            "\u{1b}[1mone two\u{1b}[0m three four\u{1b}[1m five\u{1b}[0m",
            20,
            "\u{1b}[1mone two\u{1b}[0m three four\u{1b}[1m\nfive\u{1b}[0m",
        );
    }

    #[test]
    fn a_word_at_the_beginning_is_shown_at_once() {
        let mut wrap = WordWrap::of_width(Some(80));
        assert_eq!(wrap.push("Hel"), "Hel");
        assert_eq!(wrap.push("lo wor"), "lo wor");
    }
}
