//! Here-documents.

use super::super::syntax::{Word, WordPart};
use super::word::QuotedUntil;
use super::{PendingDocument, Reader, Syntax, TextPlace};

impl Reader<'_, '_> {
    /// Reads a here-document, which begins here, with the line that ends it.
    pub(super) fn document(&mut self, pending: &PendingDocument) -> Result<(), Syntax> {
        let text = self.document_text(pending)?;
        let word = match pending.is_quoted {
            true => Word {
                parts: vec![WordPart::Quoted(text)],
            },
            false => {
                let mut reader = Reader::new(&text, self.depth, self.shared);
                reader.nested(|reader| reader.quoted(QuotedUntil::End))?
            }
        };
        if let Some(slot) = self.shared.documents.get_mut(pending.slot) {
            *slot = word;
        }
        Ok(())
    }

    fn document_text(&mut self, pending: &PendingDocument) -> Result<String, Syntax> {
        let mut text = String::new();
        while !self.rest().is_empty() {
            let line = self.document_line(pending)?;
            let written = line.strip_suffix('\n').unwrap_or(&line);
            let bare = match pending.strips_tabs {
                true => written.trim_start_matches('\t'),
                false => written,
            };
            // Bash looks before it removes the tabs, too: a delimiter may begin with one.
            if bare == pending.delimiter || written == pending.delimiter {
                return Ok(text);
            }
            // In a substitution bash takes `EOF)` for the end too, with a warning.
            let is_doubtful = self.place == TextPlace::Substitution
                && bare.starts_with(&pending.delimiter)
                && bare.contains(')');
            if is_doubtful {
                return self.fail("a here-document ends in an unusual way");
            }
            text.push_str(bare);
            text.push('\n');
        }
        match self.place {
            TextPlace::Top => Ok(text),
            TextPlace::Substitution => self.fail("a here-document does not end"),
        }
    }

    /// One line, with the lines that a backslash joins to it when the document is expanded.
    fn document_line(&mut self, pending: &PendingDocument) -> Result<String, Syntax> {
        let mut line = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
            let piece = rest.get(..end).unwrap_or_default();
            for c in piece.chars() {
                self.pass(c)?;
            }
            line.push_str(piece);
            let joins = !pending.is_quoted && !self.rest().is_empty() && joins_next(&line);
            if !joins {
                return Ok(line);
            }
            line.truncate(line.len() - 2);
        }
    }
}

/// Whether a line ends with an odd number of backslashes.
fn joins_next(line: &str) -> bool {
    let bare = line.strip_suffix('\n').unwrap_or(line);
    line.len() > bare.len() && bare.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}
