//! A stored conversation, told again.

use zeph_acp::content::ContentBlock;
use zeph_acp::update::SessionUpdate;
use zeph_agent::message::{Image, ItemView, ToolCall};
use zeph_agent::tool_host::{CallEnd, CallEndKind};
use zeph_agent::transcript::{AssistantEntry, ResultEntry, TranscriptEntry, UserEntry};

use super::session::AcpSession;
use super::telling::message;

/// Tells the client all that was said and done, at the pace at which it reads.
pub(super) async fn replay(session: &AcpSession, entries: &[TranscriptEntry]) {
    let mut rest = entries;
    while let [entry, after @ ..] = rest {
        rest = after;
        session.connection().caught_up().await;
        match entry {
            TranscriptEntry::User(user) => replay_user(session, user),
            TranscriptEntry::Assistant(answer) => replay_answer(session, answer, after),
            // A stored conversation begins with what its last base holds.
            TranscriptEntry::Base(_)
            | TranscriptEntry::Note(_)
            | TranscriptEntry::Started { .. }
            | TranscriptEntry::Tools { .. }
            | TranscriptEntry::Spent(_)
            | TranscriptEntry::Result(_) => {}
        }
    }
}

fn replay_user(session: &AcpSession, user: &UserEntry) {
    if user.is_summary {
        session.tell(&SessionUpdate::AgentThoughtChunk {
            content: ContentBlock::text(&*user.text),
        });
        return;
    }
    let said = |content| session.tell(&SessionUpdate::UserMessageChunk { content });
    if !user.text.is_empty() {
        said(ContentBlock::text(&*user.text));
    }
    for attachment in &user.attachments {
        if let Some(image) = &attachment.image {
            said(picture(image));
        }
    }
}

fn picture(image: &Image) -> ContentBlock {
    ContentBlock::Image {
        data: image.base64.clone(),
        mime_type: image.media_type.clone(),
    }
}

fn replay_answer(session: &AcpSession, answer: &AssistantEntry, after: &[TranscriptEntry]) {
    let mut n_calls = 0;
    for item in &answer.turn.items {
        match &item.view {
            ItemView::Text(text) => session.tell(&message(text)),
            ItemView::Thinking(text) if !text.is_empty() => {
                let content = ContentBlock::text(&**text);
                session.tell(&SessionUpdate::AgentThoughtChunk { content });
            }
            ItemView::Call(call) => {
                replay_call(session, call, result(n_calls, after));
                n_calls += 1;
            }
            ItemView::Thinking(_) | ItemView::Opaque => {}
        }
    }
}

/// The result of a call of the last answer.
fn result(index: usize, after: &[TranscriptEntry]) -> Option<&ResultEntry> {
    let of_answer = after.iter().take_while(|entry| {
        !matches!(
            entry,
            TranscriptEntry::Assistant(_) | TranscriptEntry::User(_) | TranscriptEntry::Base(_)
        )
    });
    let mut results = of_answer.filter_map(|entry| match entry {
        TranscriptEntry::Result(result) => Some(&**result),
        _ => None,
    });
    results.find(|result| result.index == index)
}

fn replay_call(session: &AcpSession, call: &ToolCall, result: Option<&ResultEntry>) {
    session.call_begins(call);
    let end = match result {
        Some(result) => CallEnd {
            images: result.images.clone(),
            ..CallEnd::of(
                match result.is_error {
                    true => CallEndKind::Failed,
                    false => CallEndKind::Done,
                },
                &*result.text,
            )
        },
        None => CallEnd::of(
            CallEndKind::Failed,
            "[error] the session ended before the result of this call",
        ),
    };
    session.call_ends(&call.id, &end);
}
