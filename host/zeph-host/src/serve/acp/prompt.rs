//! What the user says, from the blocks of a prompt to an entry of the transcript.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeph_acp::content::{ContentBlock, EmbeddedResource};
use zeph_acp::rpc::RpcError;
use zeph_agent::message::Image;
use zeph_agent::transcript::{Attachment, UserEntry};

use crate::agent::begin::user_entry;
use crate::agent::tools::HostTools;

/// Bytes of all texts of a prompt.
const PROMPT_BYTES_MAX: usize = 1_048_576;

/// Pictures and documents of one prompt.
const ATTACHMENTS_MAX: usize = 32;

/// The pictures models can see.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A prompt as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    /// What was typed, with the links in it.
    pub(super) text: String,
    attachments: Vec<Attachment>,
}

impl Prompt {
    /// Reads the blocks of a prompt.
    ///
    /// Errors: what is wrong with them.
    pub(super) fn read(blocks: Vec<ContentBlock>) -> Result<Self, RpcError> {
        let mut prompt = Self::default();
        let mut n_bytes = 0;
        for block in blocks {
            n_bytes += text_bytes(&block);
            if n_bytes > PROMPT_BYTES_MAX {
                let message = format!("the prompt is longer than {PROMPT_BYTES_MAX} bytes");
                return Err(RpcError::params(message));
            }
            prompt.push(block)?;
        }
        if prompt.text.trim().is_empty() && prompt.attachments.is_empty() {
            return Err(RpcError::params("the prompt is empty"));
        }
        Ok(prompt)
    }

    fn push(&mut self, block: ContentBlock) -> Result<(), RpcError> {
        match block {
            ContentBlock::Text { text } => self.text.push_str(&text),
            ContentBlock::ResourceLink { uri, name } => {
                self.text.push_str(&format!("[{name}]({uri})"));
            }
            ContentBlock::Image { data, mime_type } => {
                let image = image(&data, &mime_type)?;
                self.attach("image".to_owned(), None, Some(image))?;
            }
            ContentBlock::Resource { resource } => self.resource(resource)?,
            ContentBlock::Audio { .. } => {
                return Err(RpcError::params("sounds cannot be part of a prompt"));
            }
        }
        Ok(())
    }

    fn resource(&mut self, resource: EmbeddedResource) -> Result<(), RpcError> {
        match resource {
            EmbeddedResource::Text { uri, text } => {
                self.text.push_str(&format!("[{}]", name(&uri)));
                self.attach(name(&uri).to_owned(), Some(text), None)
            }
            EmbeddedResource::Blob {
                uri,
                blob,
                mime_type,
            } => {
                let image = image(&blob, &mime_type.unwrap_or_default())?;
                self.attach(name(&uri).to_owned(), None, Some(image))
            }
        }
    }

    fn attach(
        &mut self,
        name: String,
        text: Option<String>,
        image: Option<Image>,
    ) -> Result<(), RpcError> {
        if self.attachments.len() >= ATTACHMENTS_MAX {
            let message = format!("more than {ATTACHMENTS_MAX} pictures and documents");
            return Err(RpcError::params(message));
        }
        self.attachments.push(Attachment { name, text, image });
        Ok(())
    }

    /// The entry of the transcript, with the files that `@path` names; and what is wrong with those.
    pub(super) fn entry(self, tools: &HostTools) -> (UserEntry, Vec<String>) {
        let (mut entry, problems) = user_entry(tools, &self.text);
        let redactor = tools.host().redactor();
        let given = self.attachments.into_iter().map(|mut attachment| {
            if let Some(text) = &mut attachment.text {
                redactor.clean(text);
            }
            attachment
        });
        entry.attachments.extend(given);
        (entry, problems)
    }
}

fn text_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::ResourceLink { uri, name } => uri.len() + name.len(),
        ContentBlock::Resource {
            resource: EmbeddedResource::Text { uri, text },
        } => uri.len() + text.len(),
        _ => 0,
    }
}

fn image(base64: &str, media_type: &str) -> Result<Image, RpcError> {
    if !IMAGES.contains(&media_type) {
        let known = IMAGES.join(", ");
        let shown: String = media_type.chars().take(80).collect();
        let message = format!("`{shown}` cannot be part of a prompt; pictures can: {known}");
        return Err(RpcError::params(message));
    }
    let bytes = STANDARD.decode(base64);
    let bytes =
        bytes.map_err(|error| RpcError::params(format!("a picture is not base64: {error}")))?;
    Image::read(&bytes).map_err(|why| RpcError::params(format!("a picture cannot be used: {why}")))
}

/// What a document is called by.
fn name(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use zeph_acp::content::{ContentBlock, EmbeddedResource};

    use super::{PROMPT_BYTES_MAX, Prompt};

    #[test]
    fn a_prompt_is_text_with_what_is_attached() {
        let prompt = Prompt::read(vec![
            ContentBlock::text("look at "),
            ContentBlock::ResourceLink {
                uri: "file:///src/a".to_owned(),
                name: "a".to_owned(),
            },
            ContentBlock::Resource {
                resource: EmbeddedResource::Text {
                    uri: "file:///src/b".to_owned(),
                    text: "content".to_owned(),
                },
            },
            ContentBlock::Image {
                data: "iVBORw0KGgo=".to_owned(),
                mime_type: "image/png".to_owned(),
            },
        ])
        .unwrap();
        assert_eq!(prompt.text, "look at [a](file:///src/a)[/src/b]");
        assert_eq!(prompt.attachments.len(), 2);
        assert_eq!(prompt.attachments[0].text.as_deref(), Some("content"));
    }

    #[test]
    fn what_is_too_long_or_unknown_is_refused() {
        let long = "x".repeat(PROMPT_BYTES_MAX);
        assert!(Prompt::read(vec![ContentBlock::text(&*long)]).is_ok());
        let longer = vec![ContentBlock::text(long), ContentBlock::text("x")];
        let image = |data: &str, kind: &str| {
            let (data, mime_type) = (data.to_owned(), kind.to_owned());
            vec![ContentBlock::Image { data, mime_type }]
        };
        for bad in [
            longer,
            Vec::new(),
            vec![ContentBlock::text(" ")],
            image("?", "image/png"),
            image("iVBORw0KGgo=", "image/tiff"),
            image("AAAA", "image/png"),
        ] {
            assert_eq!(Prompt::read(bad).unwrap_err().code, -32602);
        }
    }
}
