//! The stored session of an agent: entries as lines of JSON. What is stored of the user's words is also heard by the session: a call asks
//! before it reaches an address that nobody named.

use std::sync::Mutex;
use std::sync::PoisonError;

use zeph_agent::event::Journal;
use zeph_agent::message::Arguments;
use zeph_agent::transcript::{AssistantEntry, Transcript, TranscriptEntry};
use zeph_core::failure::one_line;
use zeph_core::id::ConversationId;
use zeph_store::{AppendEnd, NewSession, NewSessionItem, Store};

use crate::builtin;
use crate::clock::now_ms;
use crate::session::Session;

/// Characters of a session's title.
const TITLE_CHARS_MAX: usize = 80;

/// Stores the entries of one conversation. The session begins with its first entry.
#[derive(Debug)]
pub(crate) struct StoreJournal {
    store: Store,
    /// Hears what the user says.
    calls: Session,
    /// As it is begun; changed when another model is used.
    session: Mutex<SessionState>,
}

#[derive(Debug, Clone)]
struct SessionState {
    new: NewSession,
    is_begun: bool,
    /// The number of the last item that is known: what follows is appended after it.
    last: i64,
}

impl StoreJournal {
    /// For the conversation of `calls`, in `directory`, with a model. `last` is the number of its last item.
    pub(crate) fn new(store: Store, calls: Session, directory: String, last: i64) -> Self {
        let new = NewSession {
            conversation: calls.conversation,
            title: String::new(),
            directory,
            provider: String::new(),
            model: String::new(),
        };
        Self {
            store,
            calls,
            session: Mutex::new(SessionState {
                new,
                is_begun: false,
                last,
            }),
        }
    }

    /// Notes the model in use.
    pub(crate) fn uses(&self, provider: &str, model: &str) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.new.provider = provider.to_owned();
        session.new.model = model.to_owned();
        session.is_begun = false;
    }

    fn state(&self, entries: &[TranscriptEntry]) -> SessionState {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.new.title.is_empty() {
            session.new.title = entries.iter().find_map(title).unwrap_or_default();
        }
        session.clone()
    }

    async fn begin(&self, new: NewSession) -> Result<(), String> {
        let begun = self.store.begin_session(new, now_ms()).await;
        begun.map_err(|error| error.to_string())?;
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.is_begun = true;
        Ok(())
    }
}

/// Tells a session of the addresses in entries of its conversation: those that the user named or attached, and those in results of
/// earlier processes, where `with_results`. A summary is what a model wrote, and so is what failed: it names what was asked for. What
/// only repeats the conversation names nothing.
pub(crate) fn hear(calls: &Session, entries: &[TranscriptEntry], with_results: bool) {
    let mut tools: Vec<&str> = Vec::new();
    for entry in entries {
        match entry {
            TranscriptEntry::User(user) if user.is_by_model => calls.hear_model(&user.text),
            TranscriptEntry::User(user) if !user.is_summary => {
                calls.hear_user(&user.text);
                let attached = user.attachments.iter();
                attached
                    .filter_map(|one| one.text.as_deref())
                    .for_each(|text| calls.hear_result(text));
            }
            TranscriptEntry::Assistant(answer) if with_results => {
                tools = answer.turn.calls().map(|call| call.name.as_str()).collect();
                hear_answer(calls, answer);
            }
            TranscriptEntry::Result(result) if with_results && !result.is_error => {
                let tool = tools.get(result.index);
                if !tool.is_some_and(|tool| builtin::only_repeats(tool)) {
                    calls.hear_result(&result.text);
                }
            }
            TranscriptEntry::Base(base) => hear(calls, &base.entries, with_results),
            _ => {}
        }
    }
}

/// A result that repeats what a call wrote names nothing.
fn hear_answer(calls: &Session, answer: &AssistantEntry) {
    for call in answer.turn.calls() {
        if let Arguments::Object(arguments) = &call.arguments {
            calls.hear_arguments(&arguments.clone().into());
        }
    }
}

fn title(entry: &TranscriptEntry) -> Option<String> {
    match entry {
        TranscriptEntry::User(user) if !user.is_summary => {
            Some(one_line(&user.text, TITLE_CHARS_MAX))
        }
        _ => None,
    }
}

impl Journal for StoreJournal {
    async fn append(&self, entries: &[TranscriptEntry]) -> Result<(), String> {
        hear(&self.calls, entries, false);
        let mut items = Vec::new();
        for entry in entries {
            items.push(NewSessionItem {
                json: serde_json::to_string(entry).map_err(|error| error.to_string())?,
                is_base: matches!(entry, TranscriptEntry::Base(_)),
            });
        }
        let state = self.state(entries);
        let conversation = state.new.conversation;
        if !state.is_begun {
            self.begin(state.new.clone()).await?;
        }
        let append = |after| {
            let appended = self
                .store
                .append_items(conversation, items.clone(), after, now_ms());
            async move { appended.await.map_err(|error| error.to_string()) }
        };
        let mut end = append(state.last).await?;
        if end == AppendEnd::NoSession {
            // It was deleted while it is in use: it goes on from here.
            self.begin(state.new).await?;
            end = append(0).await?;
        }
        match end {
            AppendEnd::Appended(last) => {
                let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
                session.last = last;
                Ok(())
            }
            AppendEnd::NoSession => Err("the conversation was deleted".to_owned()),
            AppendEnd::Moved => Err(format!(
                "another process goes on with this conversation; `zeph-host run --resume {conversation}` takes it over from there"
            )),
        }
    }
}

/// The stored conversation, and the number of its last item.
///
/// Errors: in words.
pub(crate) async fn load(
    store: &Store,
    conversation: ConversationId,
) -> Result<(Transcript, i64), String> {
    let stored = store.session_items(conversation).await;
    let stored = stored.map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    for item in &stored.items {
        let entry: TranscriptEntry = serde_json::from_str(item)
            .map_err(|error| format!("the stored session cannot be read: {error}"))?;
        entries.push(entry);
    }
    Ok((Transcript::load(entries), stored.last))
}
