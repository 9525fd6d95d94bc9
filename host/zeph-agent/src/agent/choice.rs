//! The tools of a conversation: chosen when it begins and when it is compacted, and the same in between, also after a resume.

use super::Agent;
use crate::event::Journal;
use crate::provider::ToolDefinition;
use crate::tool_host::ToolHost;
use crate::transcript::{Transcript, TranscriptEntry};

/// The tools that were chosen for a stored conversation, as far as they are still there; all when none were chosen.
pub(super) fn of_transcript(host: &impl ToolHost, transcript: &Transcript) -> Vec<ToolDefinition> {
    let chosen = transcript.tools().and_then(|names| host.selected(names));
    chosen.unwrap_or_else(|| host.definitions())
}

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// The tools for a conversation that begins with `text` or goes on from it, when they have to be chosen now and not all are shown.
    pub(super) async fn chosen_for(&self, text: &str) -> Option<Vec<ToolDefinition>> {
        match self.transcript.tools() {
            Some(_) => None,
            None => self.host.select(text).await,
        }
    }

    /// The same with the entry that keeps the choice.
    pub(super) async fn choice_for(
        &self,
        text: &str,
    ) -> Option<(TranscriptEntry, Vec<ToolDefinition>)> {
        let tools = self.chosen_for(text).await?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        Some((TranscriptEntry::Tools { names }, tools))
    }
}
