//! What prompts and answers are made of.

use serde::{Deserialize, Serialize};

/// A piece of a prompt or of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text, Markdown as a rule.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    #[serde(rename_all = "camelCase")]
    Image {
        /// The file, in base64.
        data: String,
        /// Such as `image/png`.
        mime_type: String,
    },
    /// A sound. No agent of ours takes one.
    #[serde(rename_all = "camelCase")]
    Audio {
        /// The file, in base64.
        data: String,
        /// Such as `audio/wav`.
        mime_type: String,
    },
    /// Something the agent may look at by itself.
    ResourceLink {
        /// Its address, as a rule `file://`.
        uri: String,
        /// Its name.
        name: String,
    },
    /// Something with its contents.
    Resource {
        /// It.
        resource: EmbeddedResource,
    },
}

/// Contents that come with a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EmbeddedResource {
    /// Text.
    Text {
        /// Its address.
        uri: String,
        /// The text.
        text: String,
    },
    /// Anything else.
    #[serde(rename_all = "camelCase")]
    Blob {
        /// Its address.
        uri: String,
        /// The bytes, in base64.
        blob: String,
        /// Such as `image/png`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}
