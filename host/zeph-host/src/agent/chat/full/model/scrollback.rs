//! Text with styles, line by line, the oldest dropped. Pure.

use std::collections::VecDeque;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Lines that are kept.
const LINES_MAX: usize = 10_000;

/// What was said.
#[derive(Debug, Default)]
pub(in super::super) struct Scrollback {
    /// The lines.
    pub(in super::super) lines: VecDeque<Line<'static>>,
    /// Whether the last one is not ended.
    is_open: bool,
    style: Style,
}

impl Scrollback {
    /// Adds text whose only escape sequences are styles of ours.
    pub(super) fn push(&mut self, text: &str) {
        for (idx, line) in text.split('\n').enumerate() {
            if idx > 0 {
                if !self.is_open {
                    self.begin_line();
                }
                self.is_open = false;
            }
            if !line.is_empty() {
                self.push_part(line);
            }
        }
    }

    /// Ends a line that is not ended.
    pub(super) fn end_line(&mut self) {
        self.is_open = false;
        self.style = Style::new();
    }

    fn begin_line(&mut self) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(Line::default());
        self.is_open = true;
    }

    /// Adds a part of a line.
    fn push_part(&mut self, part: &str) {
        let mut rest = part;
        while !rest.is_empty() {
            let start = rest.find("\u{1b}[").unwrap_or(rest.len());
            self.push_span(&rest[..start]);
            rest = &rest[start..];
            if let Some(end) = rest.find('m') {
                self.restyle(&rest[2..end]);
                rest = &rest[end + 1..];
            } else {
                rest = "";
            }
        }
    }

    fn push_span(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.is_open {
            self.begin_line();
        }
        let text = text.replace('\t', "    ");
        let style = self.style;
        if let Some(line) = self.lines.back_mut() {
            match line.spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(&text),
                _ => line.spans.push(Span::styled(text, style)),
            }
        }
    }

    /// The styles that the program itself uses.
    fn restyle(&mut self, codes: &str) {
        for code in codes.split(';') {
            self.style = match code {
                "1" => self.style.add_modifier(Modifier::BOLD),
                "2" => self.style.add_modifier(Modifier::DIM),
                "31" => self.style.fg(Color::Red),
                "32" => self.style.fg(Color::Green),
                "33" => self.style.fg(Color::Yellow),
                "36" => self.style.fg(Color::Cyan),
                _ => Style::new(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::{Color, Modifier};

    use super::{LINES_MAX, Scrollback};

    fn texts(scrollback: &Scrollback) -> Vec<String> {
        scrollback.lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn text_in_pieces_becomes_lines_with_styles() {
        let mut scrollback = Scrollback::default();
        for piece in [
            "one \u{1b}[1mbo",
            "ld\u{1b}[0m",
            " end\ntwo\n",
            "\nfo",
            "ur",
        ] {
            scrollback.push(piece);
        }
        assert_eq!(texts(&scrollback), ["one bold end", "two", "", "four"]);
        let spans = &scrollback.lines[0].spans;
        assert_eq!(spans.len(), 3);
        assert!(spans[1].style.add_modifier.contains(Modifier::BOLD));
        scrollback.end_line();
        scrollback.push("\u{1b}[31mred\u{1b}[0m\n");
        assert_eq!(scrollback.lines[4].spans[0].style.fg, Some(Color::Red));
    }

    #[test]
    fn the_oldest_lines_are_dropped() {
        let mut scrollback = Scrollback::default();
        scrollback.push(&"line\n".repeat(LINES_MAX + 5));
        assert_eq!(scrollback.lines.len(), LINES_MAX);
    }
}
