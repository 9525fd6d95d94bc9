//! The earlier part of a conversation that is resumed, shortened to about a screenful. Pure.

use zeph_agent::message::ItemView;
use zeph_agent::transcript::{Transcript, TranscriptEntry};
use zeph_core::failure::one_line;

use crate::agent::card;
use crate::run::render::{DIM, escape};

/// Lines that are shown at most: of the end of the conversation.
const LINES_MAX: usize = 24;

/// Lines of what the user said, and of an answer.
const TEXT_LINES_MAX: usize = 4;

/// Columns where the terminal does not say.
const WIDTH: usize = 80;

/// The last part of what was said and called, and how much is before it. Ends with a line feed.
pub(super) fn shown(transcript: &Transcript, width: Option<usize>) -> String {
    let width = width.unwrap_or(WIDTH).clamp(20, 200);
    let entries = transcript.entries().iter();
    let lines: Vec<String> = entries.flat_map(|entry| lines(entry, width)).collect();
    let start = lines.len().saturating_sub(LINES_MAX);
    let mut text = String::new();
    if start > 0 {
        text.push_str(&format!(
            "{DIM}… {start} earlier lines; /export writes the whole conversation{DIM:#}\n"
        ));
    }
    for line in &lines[start..] {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn lines(entry: &TranscriptEntry, width: usize) -> Vec<String> {
    match entry {
        TranscriptEntry::User(user) if user.is_summary => beginning(&user.text, "… ", width),
        TranscriptEntry::User(user) => beginning(&user.text, "› ", width),
        TranscriptEntry::Assistant(answer) => {
            let items = answer.turn.items.iter();
            items.flat_map(|item| of_item(&item.view, width)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_item(view: &ItemView, width: usize) -> Vec<String> {
    match view {
        ItemView::Text(text) => beginning(text, "  ", width),
        ItemView::Call(call) => {
            let title = one_line(&card::title(call), width.saturating_sub(2));
            vec![format!("{DIM}{title}{DIM:#}")]
        }
        ItemView::Thinking(_) | ItemView::Opaque => Vec::new(),
    }
}

/// The first lines of a text, each on one line of the terminal.
fn beginning(text: &str, mark: &str, width: usize) -> Vec<String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut shown: Vec<String> = lines
        .by_ref()
        .take(TEXT_LINES_MAX)
        .map(|line| {
            let line = one_line(line, width.saturating_sub(mark.chars().count()));
            format!("{mark}{}", escape(&line))
        })
        .collect();
    if lines.next().is_some() {
        shown.push(format!("{mark}…"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use zeph_agent::transcript::{Transcript, TranscriptEntry, UserEntry};

    use super::{LINES_MAX, shown};

    fn said(text: &str) -> TranscriptEntry {
        TranscriptEntry::User(Box::new(UserEntry {
            text: text.to_owned(),
            attachments: Vec::new(),
            context: String::new(),
            is_summary: false,
            is_by_model: false,
        }))
    }

    #[test]
    fn the_end_of_a_conversation_is_shown_in_about_a_screenful() {
        let entries = (0..100).map(|n| said(&format!("number {n}\u{1b}[2J\n{}", "x".repeat(500))));
        let text = shown(&Transcript::load(entries), Some(60));
        assert!(
            text.contains("number 99") && !text.contains("number 10"),
            "{text}"
        );
        assert!(text.contains("earlier lines"), "{text}");
        assert!(!text.contains("\u{1b}[2J"), "{text:?}");
        assert!(text.lines().count() <= LINES_MAX + 1, "{text}");
    }
}
