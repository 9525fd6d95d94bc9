//! The lines a diff is shown as.

use std::fmt;

/// Columns of one step of indentation.
const STEP: usize = 4;

/// Columns of text on a wrapped line, however narrow the terminal.
const ROOM_MIN: usize = 20;

/// Stands before what goes on from the line above.
const GOES_ON: &str = "┆ ";

/// What a line says; the command line colours by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffMark {
    /// `+`: new.
    Added,
    /// `-`: gone.
    Removed,
    /// `~`: different; the lines below say how.
    Changed,
    /// `!`: to be looked at twice.
    Warning,
    /// A remark.
    Plain,
}

/// One line, safe for a terminal. Its `Display` has no line end: `    + text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// What it says.
    pub mark: DiffMark,
    /// How far it is indented, in steps.
    pub depth: usize,
    /// What stands in it, escaped.
    pub text: String,
}

impl DiffLine {
    /// A line; `text` must be escaped.
    pub(super) fn new(mark: DiffMark, depth: usize, text: String) -> Self {
        Self { mark, depth, text }
    }
}

impl DiffLine {
    /// The line on as many as it needs where a line has `width` columns, broken between words where there are some. Nothing is left out.
    ///
    /// A terminal would go on at its left edge, where a text made for it could pass for a line of its own.
    pub fn wrapped(&self, width: usize) -> Vec<String> {
        let line = self.to_string();
        let indent = STEP * self.depth + 2;
        let room = width.max(indent + ROOM_MIN);
        let head = format!("{:indent$}{GOES_ON}", "");
        let mut wrapped = Vec::new();
        // Where its text begins, what is before cannot be broken.
        let (mut row, mut begin, mut n_used) = (String::new(), indent, 0);
        for character in line.chars() {
            let n_columns = columns(character);
            if n_used + n_columns > room {
                let blank = row.get(begin..).and_then(|text| text.rfind(' '));
                let at = blank.map_or(row.len(), |at| begin + at + 1);
                let n_moved: usize = row[at..].chars().map(columns).sum();
                n_used = indent + GOES_ON.chars().count();
                let rest = match n_used + n_moved + n_columns <= room && character != ' ' {
                    true => row.split_off(at),
                    false => String::new(),
                };
                n_used += rest.chars().map(columns).sum::<usize>();
                begin = head.len();
                wrapped.push(std::mem::replace(&mut row, format!("{head}{rest}")));
            }
            n_used += n_columns;
            row.push(character);
        }
        wrapped.push(row);
        wrapped
    }
}

/// At most so many columns; what is narrower only wraps a little early.
fn columns(character: char) -> usize {
    match character {
        // East Asian characters and emoji take two; they all stand behind this one.
        wide if wide >= '\u{1100}' => 2,
        _ => 1,
    }
}

impl DiffMark {
    /// The character before the text; none for a remark.
    pub(crate) fn sign(self) -> Option<char> {
        match self {
            Self::Added => Some('+'),
            Self::Removed => Some('-'),
            Self::Changed => Some('~'),
            Self::Warning => Some('!'),
            Self::Plain => None,
        }
    }
}

impl fmt::Display for DiffLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mark, depth, text } = self;
        let indent = STEP * depth;
        match mark.sign() {
            Some(sign) => write!(f, "{:indent$}{sign} {text}", ""),
            None => write!(f, "{:indent$}{text}", ""),
        }
    }
}
