//! The output of a call: as the tool produced it, and as the model sees it.

use serde::Serialize;
use serde_json::Value;

use crate::failure::ToolFailure;
use crate::id::OverflowId;

mod cut;

pub use cut::{Cut, cut};

/// One block of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// An image and its media type.
    Image(Blob),
    /// A sound and its media type.
    Audio(Blob),
    /// A document with its contents.
    Resource {
        /// Its URI.
        uri: String,
        /// Its media type, when known.
        media_type: Option<String>,
        /// Its text, or its bytes.
        body: ResourceBody,
    },
    /// A reference to a document.
    Link {
        /// Its URI.
        uri: String,
        /// Its name.
        name: String,
        /// Its media type, when known.
        media_type: Option<String>,
        /// A description.
        description: Option<String>,
    },
}

/// Bytes with their media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes.
    pub data: Vec<u8>,
}

/// A document's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

/// A location in a file that a call read or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileLocation {
    /// The path, as the tool reported it.
    pub path: String,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawOutput {
    /// Blocks in order.
    pub content: Vec<Content>,
    /// The structured part.
    pub structured: Option<Value>,
    /// Files it read or changed.
    pub locations: Vec<FileLocation>,
}

impl RawOutput {
    /// A result that consists of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            ..Self::default()
        }
    }

    /// The text of all blocks in order. Other blocks are described by kind, media type and size.
    pub fn to_text(&self) -> String {
        let parts: Vec<String> = self.content.iter().map(Content::to_text).collect();
        parts.join("\n")
    }
}

impl Content {
    fn to_text(&self) -> String {
        let named = |kind: &str, media_type: &str, n_bytes: usize| {
            format!("[{kind}: {media_type}, {n_bytes} bytes]")
        };
        match self {
            Self::Text(text) => text.clone(),
            Self::Image(blob) => named("image", &blob.media_type, blob.data.len()),
            Self::Audio(blob) => named("audio", &blob.media_type, blob.data.len()),
            Self::Resource {
                uri,
                body,
                media_type,
            } => match body {
                ResourceBody::Text(text) => text.clone(),
                ResourceBody::Bytes(data) => {
                    let media_type = media_type.as_deref().unwrap_or("application/octet-stream");
                    format!("{uri} {}", named("resource", media_type, data.len()))
                }
            },
            Self::Link { uri, name, .. } => format!("[{name}]({uri})"),
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The tool succeeded.
    Done,
    /// The call was invalid, denied, or failed.
    Failed(ToolFailure),
}

/// The output of a call for its caller, on success and failure.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// How it ended.
    pub outcome: Outcome,
    /// The text for the model: the result, truncated to the limit, or the feedback block.
    pub text: String,
    /// The structured part of a success.
    pub structured: Option<Value>,
    /// Blocks other than text, unchanged.
    pub attachments: Vec<Content>,
    /// Files it read or changed.
    pub locations: Vec<FileLocation>,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
    /// Whether `text` is truncated.
    pub is_cut: bool,
    /// The reference of the full text, if `text` is truncated.
    pub overflow: Option<OverflowId>,
}

impl ToolOutput {
    /// Adds notes for the caller to this output.
    pub fn failed_with(failure: ToolFailure, notes: Vec<String>) -> Self {
        let mut output = Self::failed(failure);
        for note in &notes {
            output.text.push_str("\n[note] ");
            output.text.push_str(note);
        }
        output.notes = notes;
        output
    }

    /// Turns this output into that of a call that failed after producing it: the feedback block is put before the text.
    pub fn failed_by(mut self, failure: ToolFailure) -> Self {
        self.text = format!("{}\n{}", failure.feedback(), self.text);
        self.outcome = Outcome::Failed(failure);
        self
    }

    /// The text without the feedback block of a failure.
    pub fn produced(&self) -> &str {
        let Outcome::Failed(failure) = &self.outcome else {
            return &self.text;
        };
        let rest = self.text.strip_prefix(&failure.feedback());
        rest.map_or(self.text.as_str(), |rest| {
            rest.strip_prefix('\n').unwrap_or(rest)
        })
    }

    /// The output of a call that did not succeed.
    pub fn failed(failure: ToolFailure) -> Self {
        Self {
            text: failure.feedback(),
            outcome: Outcome::Failed(failure),
            structured: None,
            attachments: Vec::new(),
            locations: Vec::new(),
            notes: Vec::new(),
            is_cut: false,
            overflow: None,
        }
    }
}
