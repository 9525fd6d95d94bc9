//! The cursor over a text that everything else reads with, and where newlines and here-documents are taken in.
//!
//! The grammar is that of bash 5 as `bash -c` has it: no aliases, no history, `extglob` off. A reader that differs from
//! bash lets a command be hidden, so whatever is doubtful is a [`Syntax`] error, never a guess. Reading takes steps; nesting
//! and steps are bounded, so no text takes long or deep.

use super::syntax::{Dialect, List, Script, Word};

mod ansi;
mod arithmetic;
mod compound;
mod document;
mod expansion;
pub(super) mod list;
mod word;

/// Most levels of nesting (substitutions, groups, loops) a text may have. People write five; each level takes some kilobytes
/// of stack.
pub(super) const DEPTH_MAX: usize = 40;

/// Most characters looked at per text, re-reading included: eight times the longest text.
const STEPS_MAX: usize = 1024 * 1024;

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Syntax {
    pub(super) reason: &'static str,
    /// The text from where reading stopped.
    pub(super) part: String,
}

/// What readers of one script share.
#[derive(Debug, Default)]
struct ReaderState {
    dialect: Dialect,
    documents: Vec<Word>,
    steps: usize,
}

/// A here-document whose text has not begun yet.
#[derive(Debug)]
struct PendingDocument {
    slot: usize,
    delimiter: String,
    is_quoted: bool,
    strips_tabs: bool,
}

/// What a text is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    Top,
    Substitution,
}

struct Reader<'t, 's> {
    text: &'t str,
    at: usize,
    depth: usize,
    place: TextPlace,
    pending: Vec<PendingDocument>,
    /// Whether bash may find the end of something around by counting brackets, whatever the grammar says about them.
    is_counted: bool,
    /// Whether double quotes stand around, outside of substitutions too.
    is_in_quotes: bool,
    /// Whether the word that is read holds double quotes between double quotes.
    has_inner_quotes: bool,
    /// Whether something around waits for a here-document of its own.
    is_pending_outside: bool,
    shared: &'s mut ReaderState,
}

/// Reads a script that is nested `depth` levels deep already.
///
/// Errors: [`Syntax`] when bash would not read it, might read it in another way, or it is too deep or too long.
pub(super) fn read(text: &str, dialect: Dialect, depth: usize) -> Result<Script, Syntax> {
    let mut shared = ReaderState {
        dialect,
        ..ReaderState::default()
    };
    let list = Reader::new(text, depth, &mut shared).whole()?;
    Ok(Script {
        dialect,
        list,
        documents: shared.documents,
    })
}

impl<'t, 's> Reader<'t, 's> {
    fn new(text: &'t str, depth: usize, shared: &'s mut ReaderState) -> Self {
        Self {
            text,
            at: 0,
            depth,
            place: TextPlace::Top,
            pending: Vec::new(),
            is_counted: false,
            is_in_quotes: false,
            has_inner_quotes: false,
            is_pending_outside: false,
            shared,
        }
    }

    fn whole(&mut self) -> Result<List, Syntax> {
        let list = self.nested(Self::list)?;
        match self.peek() {
            None => Ok(list),
            Some(_) => self.fail("something stands where a command must begin"),
        }
    }

    /// Reads one level deeper.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Syntax>,
    ) -> Result<T, Syntax> {
        if self.depth >= DEPTH_MAX {
            return self.fail("it is nested too deeply");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn fail<T>(&self, reason: &'static str) -> Result<T, Syntax> {
        Err(Syntax {
            reason,
            part: self.rest().to_owned(),
        })
    }

    fn is_bash(&self) -> bool {
        self.shared.dialect == Dialect::Bash
    }

    /// Refuses what shells other than bash read in another way.
    fn only_bash(&self) -> Result<(), Syntax> {
        match self.shared.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Portable => self.fail("shells read this differently"),
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character. A backslash before a line end joins two lines and is passed over.
    fn peek(&mut self) -> Option<char> {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
        self.rest().chars().next()
    }

    /// How many bytes of the text are `expected`, if it goes on with that; lines may be joined inside of it.
    fn length_of(&mut self, expected: &str) -> Option<usize> {
        self.peek();
        let mut rest = self.rest();
        for (at, c) in expected.char_indices() {
            while at > 0 && rest.starts_with("\\\n") {
                rest = &rest[2..];
            }
            rest = rest.strip_prefix(c)?;
        }
        Some(self.rest().len() - rest.len())
    }

    /// Whether the text goes on with `expected`.
    fn looks_at(&mut self, expected: &str) -> bool {
        self.length_of(expected).is_some()
    }

    /// Passes over `expected` if the text goes on with it.
    fn takes(&mut self, expected: &str) -> bool {
        let length = self.length_of(expected);
        self.at += length.unwrap_or_default();
        length.is_some()
    }

    /// Passes over one character.
    fn pass(&mut self, c: char) -> Result<(), Syntax> {
        self.at += c.len_utf8();
        self.shared.steps += 1;
        if self.shared.steps > STEPS_MAX {
            return self.fail("it is too long");
        }
        Ok(())
    }

    /// Passes over spaces, tabs and a comment.
    fn blanks(&mut self) -> Result<(), Syntax> {
        while let Some(c @ (' ' | '\t')) = self.peek() {
            self.pass(c)?;
        }
        if self.peek() == Some('#') {
            if self.is_counted {
                return self.fail("a comment may hold what ends something around it");
            }
            let end = self.rest().find('\n').unwrap_or(self.rest().len());
            self.at += end;
        }
        Ok(())
    }

    /// Passes over blanks, comments and line ends.
    fn lines(&mut self) -> Result<(), Syntax> {
        self.blanks()?;
        while self.peek() == Some('\n') {
            self.line_end()?;
            self.blanks()?;
        }
        Ok(())
    }

    /// Passes over a line end, and over the here-documents that begin after it.
    fn line_end(&mut self) -> Result<(), Syntax> {
        if self.is_pending_outside {
            return self.fail("a here-document begins inside a substitution");
        }
        self.pass('\n')?;
        for pending in std::mem::take(&mut self.pending) {
            self.document(&pending)?;
        }
        Ok(())
    }
}

/// Whether a character ends an unquoted word.
fn ends_word(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
    )
}
