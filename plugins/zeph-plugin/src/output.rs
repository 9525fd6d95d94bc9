//! What a call that succeeded gives back.

use serde::Serialize;

use crate::{Blob, Content, FileLocation, Outcome, Output};

/// A number with its noun, for texts: `1 word`, `2 words`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

impl Output {
    /// A result that is one text for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            structured: None,
            locations: Vec::new(),
        }
    }

    /// Adds an image.
    pub fn image(mut self, media_type: impl Into<String>, data: Vec<u8>) -> Self {
        self.content.push(Content::Image(Blob {
            media_type: media_type.into(),
            data,
        }));
        self
    }

    /// Sets the structured part: the same facts for a program.
    ///
    /// A value that has no JSON form (a map whose keys are no strings) leaves it out.
    pub fn structured(mut self, value: &impl Serialize) -> Self {
        self.structured = serde_json::to_string(value).ok();
        self
    }

    /// Names a file that the call read or changed, and the line (from 1) it is about.
    pub fn location(mut self, path: impl Into<String>, line: Option<u32>) -> Self {
        self.locations.push(FileLocation {
            path: path.into(),
            line,
            column: None,
        });
        self
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self::Done(output)
    }
}
