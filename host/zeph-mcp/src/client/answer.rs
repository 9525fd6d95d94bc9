//! What became of a call, in the host's terms.
//!
//! Texts are kept whole: what is too long for the model goes to overflow like any other output. Only what no model can read in any case
//! is omitted, and noted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use zeph_core::argument::Disagreement;
use zeph_core::output::{Blob, Content, RawOutput, ResourceBody};
use zeph_core::text::plain_line;

use super::CallAnswer;
use super::message::{OMITTED_KEY, replaced};

/// Most blocks of a result. Texts beyond are joined to the last one, so that nothing of them is lost.
const BLOCKS_MAX: usize = 64;

/// So many blocks, and the verb that follows.
fn of_blocks(n: u64) -> (String, &'static str) {
    let are = if n == 1 { "is" } else { "are" };
    (zeph_core::text::counted(n, "block", "blocks"), are)
}

/// Reads a result. `agrees`: whether its structured part agrees with the tool's schema.
pub(super) fn of_result(result: CallToolResult, agrees: Result<(), Disagreement>) -> CallAnswer {
    let mut notes = Vec::new();
    let mut output = RawOutput::default();
    let mut n_omitted = 0_usize;
    let n_malformed = result
        .meta
        .as_ref()
        .and_then(|meta| meta.get(OMITTED_KEY)?.as_u64());
    if let Some(n) = n_malformed {
        let (blocks, are) = of_blocks(n);
        notes.push(format!(
            "{blocks} of a kind that is not known {are} omitted"
        ));
    }
    notes.extend(replaced(result.meta.as_ref()));
    for block in result.content {
        match content(block) {
            Ok(block) => n_omitted += usize::from(!add(&mut output.content, block)),
            Err(note) => notes.push(note),
        }
    }
    if n_omitted > 0 {
        let (blocks, are) = of_blocks(n_omitted as u64);
        notes.push(format!(
            "{blocks} of the result {are} omitted; the limit is {BLOCKS_MAX}"
        ));
    }
    notes.truncate(BLOCKS_MAX);
    let is_error = result.is_error == Some(true);
    if let Some(structured) = result.structured_content {
        if output.content.is_empty() {
            output.content.push(Content::Text(structured.to_string()));
        }
        match agrees {
            Err(problem) if !is_error => notes.push(format!(
                "the structured part of the result {problem} and is omitted"
            )),
            _ => output.structured = Some(structured),
        }
    }
    CallAnswer {
        output,
        is_error,
        notes,
    }
}

/// Adds a block; false when there is no room for it.
fn add(blocks: &mut Vec<Content>, block: Content) -> bool {
    if blocks.len() < BLOCKS_MAX {
        blocks.push(block);
        return true;
    }
    let Content::Text(more) = block else {
        return false;
    };
    match blocks.iter_mut().rev().find_map(text_of) {
        Some(text) => {
            text.push('\n');
            text.push_str(&more);
        }
        // One more than the limit, and the place for all other texts.
        None => blocks.push(Content::Text(more)),
    }
    true
}

fn text_of(block: &mut Content) -> Option<&mut String> {
    match block {
        Content::Text(text) => Some(text),
        _ => None,
    }
}

/// Errors: a note instead of what cannot be read.
fn content(block: ContentBlock) -> Result<Content, String> {
    Ok(match block {
        ContentBlock::Text(text) => Content::Text(text.text),
        ContentBlock::Image(image) => Content::Image(blob("image", &image.data, &image.mime_type)?),
        ContentBlock::Audio(audio) => Content::Audio(blob("audio", &audio.data, &audio.mime_type)?),
        ContentBlock::Resource(resource) => resource_content(resource.resource)?,
        ContentBlock::ResourceLink(link) => Content::Link {
            uri: plain_line(&link.uri, 2_048),
            name: plain_line(&link.name, 256),
            media_type: link.mime_type.as_deref().map(media_type),
            description: link
                .description
                .as_deref()
                .map(|text| plain_line(text, 500)),
        },
        _ => return Err("a block of a kind that is not known is omitted".to_owned()),
    })
}

fn blob(kind: &str, data: &str, of_type: &str) -> Result<Blob, String> {
    let data = STANDARD.decode(data.trim());
    let data = data.map_err(|_| format!("an {kind} that is not valid base64 is omitted"))?;
    Ok(Blob {
        media_type: media_type(of_type),
        data,
    })
}

fn resource_content(resource: ResourceContents) -> Result<Content, String> {
    let (uri, of_type, body) = match resource {
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            ..
        } => (uri, mime_type, ResourceBody::Text(text)),
        ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            ..
        } => {
            let data = STANDARD.decode(blob.trim());
            let data = data.map_err(|_| "a resource that is not valid base64 is omitted")?;
            (uri, mime_type, ResourceBody::Bytes(data))
        }
        _ => return Err("a resource of a kind that is not known is omitted".to_owned()),
    };
    Ok(Content::Resource {
        uri: plain_line(&uri, 2_048),
        media_type: of_type.as_deref().map(media_type),
        body,
    })
}

/// A media type, on one line.
fn media_type(text: &str) -> String {
    plain_line(text, 128)
}

#[cfg(test)]
mod tests;
