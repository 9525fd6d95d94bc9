//! The tools of a conversation: chosen when it begins and when it is compacted, and the same in between, also after a resume.

use super::{Agent, Turn};
use crate::event::Journal;
use crate::provider::ToolDefinition;
use crate::tool_host::ToolHost;
use crate::transcript::{Transcript, TranscriptEntry};
use crate::usage::SideSpending;

/// The tools that were chosen for a stored conversation, as far as they are still there; all when none were chosen.
pub(super) fn of_transcript(host: &impl ToolHost, transcript: &Transcript) -> Vec<ToolDefinition> {
    let chosen = transcript.tools().and_then(|names| host.selected(names));
    chosen.unwrap_or_else(|| host.definitions())
}

impl<H: ToolHost, J: Journal> Agent<H, J> {
    /// The tools for a conversation that begins with `text` or goes on from it, when they have to be chosen now and not all are shown.
    pub(super) async fn chosen_for(
        &self,
        text: &str,
        spent: &mut SideSpending,
    ) -> Option<Vec<ToolDefinition>> {
        match self.transcript.tools() {
            Some(_) => None,
            None => self.host.select(text, spent).await,
        }
    }

    /// Chooses the tools for a conversation that begins with `text` or goes on from it; the entries that keep the choice and what it took.
    pub(super) async fn choose(&mut self, text: &str, turn: &Turn<'_>) -> Vec<TranscriptEntry> {
        self.host.meter(&self.limits.budget, &self.spent(turn));
        let mut spent = SideSpending::default();
        let chosen = self.chosen_for(text, &mut spent).await;
        let mut entries = Vec::new();
        if !spent.is_nothing() {
            self.spend(&spent);
            entries.push(TranscriptEntry::Spent(spent));
        }
        if let Some(tools) = chosen {
            let names = tools.iter().map(|tool| tool.name.clone()).collect();
            entries.push(TranscriptEntry::Tools { names });
            self.tools = tools;
        }
        entries
    }
}
