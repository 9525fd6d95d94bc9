//! Text for people that contains untrusted text, built line by line. Pure: the caller prints it.

use clap::builder::styling::{AnsiColor, Style};
use zeph_plugins::diff::{DiffLine, DiffMark};
use zeph_plugins::visible::{visible, visible_line};

use super::render::{BOLD, DIM, RED, YELLOW, push_styled};

const GREEN: Style = AnsiColor::Green.on_default();

/// Text for people. Everything that is pushed is made visible, and wrapped here: a terminal would go on at its left edge, where a
/// text made for it could pass for a line of ours.
#[derive(Debug)]
pub(crate) struct Page {
    shown: String,
    /// Columns of a line.
    width: usize,
}

impl Page {
    /// For lines of `width` columns; `None` when nothing has to fit.
    pub(crate) fn of_width(width: Option<usize>) -> Self {
        Self {
            shown: String::new(),
            width: width.unwrap_or(usize::MAX),
        }
    }

    /// A line that begins at `depth` steps.
    pub(crate) fn line(&mut self, depth: usize, text: &str) -> &mut Self {
        self.wrap(depth, Style::new(), &visible_line(text))
    }

    /// A side remark.
    pub(crate) fn dim(&mut self, depth: usize, text: &str) -> &mut Self {
        self.wrap(depth, DIM, &visible_line(text))
    }

    /// A name to type, and what follows on its line.
    pub(crate) fn name(&mut self, depth: usize, name: &str, rest: &str) -> &mut Self {
        let dot = if rest.is_empty() { "" } else { " · " };
        self.wrap(depth, BOLD, &visible_line(&format!("{name}{dot}{rest}")))
    }

    /// An empty line and a head.
    pub(crate) fn head(&mut self, text: &str) -> &mut Self {
        if !self.shown.is_empty() {
            self.shown.push('\n');
        }
        self.name(0, text, "")
    }

    /// A label and its value; nothing when there is none.
    pub(crate) fn field(&mut self, label: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.line(0, &format!("{label:<12}{value}")),
            None => self,
        }
    }

    /// Several lines of untrusted text.
    pub(crate) fn text(&mut self, depth: usize, text: &str) -> &mut Self {
        for line in visible(text.trim()).lines() {
            self.wrap(depth, Style::new(), &visible_line(line));
        }
        self
    }

    /// The lines of a difference, each in the colour of what it says.
    pub(crate) fn diff(&mut self, lines: &[DiffLine]) -> &mut Self {
        for line in lines {
            let style = match line.mark {
                DiffMark::Added => GREEN,
                DiffMark::Removed | DiffMark::Warning => RED,
                DiffMark::Changed => YELLOW,
                DiffMark::Plain => Style::new(),
            };
            for line in line.wrapped(self.width) {
                push_styled(&mut self.shown, style, &line);
                self.shown.push('\n');
            }
        }
        self
    }

    /// What is shown already and has its colours.
    pub(crate) fn push(&mut self, shown: &str) -> &mut Self {
        self.shown.push_str(shown);
        self
    }

    /// All of it, colours included.
    pub(crate) fn as_str(&self) -> &str {
        &self.shown
    }

    /// A line in a style of its own.
    pub(crate) fn styled(&mut self, depth: usize, style: Style, text: &str) -> &mut Self {
        self.wrap(depth, style, &visible_line(text))
    }

    fn wrap(&mut self, depth: usize, style: Style, text: &str) -> &mut Self {
        let line = DiffLine {
            mark: DiffMark::Plain,
            depth,
            text: text.trim_end().to_owned(),
        };
        for line in line.wrapped(self.width) {
            push_styled(&mut self.shown, style, &line);
            self.shown.push('\n');
        }
        self
    }
}
