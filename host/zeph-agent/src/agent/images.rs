//! Pictures that a provider refuses: the conversation goes on without them, once the model has answered to what is left. They would be sent,
//! and refused, with every later request; but most refusals are not about pictures, and then they stay.

use super::{Agent, Turn};
use crate::event::{AgentEvent, Journal};
use crate::tool_host::ToolHost;
use crate::transcript::TranscriptEntry;

/// What stands in the place of a picture.
const REMOVED: &str = "[image removed: the provider refused it]";

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// The conversation without the pictures that the model in use has never answered to; none when there are none.
    pub(super) fn without_images(&self, turn: &Turn<'_>) -> Option<Vec<TranscriptEntry>> {
        let mut entries = self.transcript.entries().to_vec();
        let origin = self.provider.origin();
        let is_answer = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::Assistant(answer) if answer.turn.origin == *origin);
        let since = entries.iter().rposition(is_answer).unwrap_or_default();
        let n_images: usize = entries[since..].iter_mut().map(remove).sum();
        if n_images == 0 {
            return None;
        }
        let images = zeph_core::text::counted(n_images, "image", "images");
        let notice = format!("the provider refuses the request; it is sent again without {images}");
        turn.observer.on(AgentEvent::Notice(&notice));
        Some(entries)
    }
}

/// Removes the pictures of an entry; how many there were.
fn remove(entry: &mut TranscriptEntry) -> usize {
    match entry {
        TranscriptEntry::User(user) => {
            let attached = user.attachments.iter_mut();
            let pictures = attached.filter_map(|one| one.image.take().map(|_| &mut one.text));
            pictures
                .map(|text| *text = Some(REMOVED.to_owned()))
                .count()
        }
        TranscriptEntry::Result(result) => {
            let n_images = std::mem::take(&mut result.images).len();
            for _ in 0..n_images {
                result.text.push('\n');
                result.text.push_str(REMOVED);
            }
            n_images
        }
        _ => 0,
    }
}
