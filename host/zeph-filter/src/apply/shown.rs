//! A text as lines, and which of them are shown.

use crate::apply::Loss;
use crate::mark::MARK;

/// A line of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// This line of the text, counted from 0.
    Raw(usize),
    /// A line of ours, with its mark.
    Note(String),
}

impl Shown {
    /// The number of a line of the text.
    pub(crate) fn raw(&self) -> Option<usize> {
        match self {
            Self::Raw(line_idx) => Some(*line_idx),
            Self::Note(_) => None,
        }
    }
}

/// A text and its lines.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) text: &'a str,
    pub(crate) lines: Vec<&'a str>,
}

impl<'a> Text<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self {
            text,
            lines: text.lines().collect(),
        }
    }

    pub(crate) fn all(&self) -> Vec<Shown> {
        (0..self.lines.len()).map(Shown::Raw).collect()
    }

    pub(crate) fn line<'b>(&self, line: &'b Shown) -> &'b str
    where
        'a: 'b,
    {
        match line {
            Shown::Raw(line_idx) => self.lines[*line_idx],
            Shown::Note(note) => note,
        }
    }

    /// Which lines of the text are shown.
    pub(crate) fn is_shown(&self, shown: &[Shown]) -> Vec<bool> {
        let mut is_shown = vec![false; self.lines.len()];
        for line in shown {
            if let Shown::Raw(line_idx) = line {
                is_shown[*line_idx] = true;
            }
        }
        is_shown
    }

    /// What the shown lines lack: blank lines between others are not counted.
    pub(crate) fn loss(&self, shown: &[Shown]) -> Loss {
        let is_shown = self.is_shown(shown);
        let is_lost =
            |line_idx: &usize| !is_shown[*line_idx] && !self.lines[*line_idx].trim().is_empty();
        match (0..is_shown.len()).find(is_lost) {
            None => Loss::None,
            Some(first) if is_shown[first..].iter().all(|is_shown| !is_shown) => Loss::Tail,
            Some(_) => Loss::Whole,
        }
    }

    /// The result as text. One line says how much is missing when no other does: a text with a line of ours is never filtered
    /// again, and a reader sees that there was more.
    pub(crate) fn write(&self, shown: &[Shown]) -> String {
        let mut text = String::new();
        let mut was_blank = false;
        let mut has_note = false;
        for line in shown {
            let line_text = self.line(line);
            let is_blank = line_text.trim().is_empty();
            has_note |= matches!(line, Shown::Note(_));
            if !(is_blank && was_blank) {
                text.push_str(line_text);
                text.push('\n');
            }
            was_blank = is_blank;
        }
        if !has_note {
            let n_lost = self
                .is_shown(shown)
                .iter()
                .filter(|is_shown| !**is_shown)
                .count();
            let noun = if n_lost == 1 { "line" } else { "lines" };
            text.push_str(&format!("{MARK}{n_lost} {noun} left out\n"));
        }
        if !self.text.ends_with('\n') {
            text.pop();
        }
        text
    }
}
