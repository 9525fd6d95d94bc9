//! The stored session of an agent: entries as lines of JSON. What is stored of the user's words is also heard by the session: a call asks
//! before it reaches an address that nobody named.

use std::sync::Mutex;
use std::sync::PoisonError;

use zeph_agent::event::Journal;
use zeph_agent::message::Arguments;
use zeph_agent::transcript::{AssistantEntry, Transcript, TranscriptEntry};
use zeph_core::failure::one_line;
use zeph_core::id::ConversationId;
use zeph_store::{AppendEnd, NewSession, NewSessionItem, SessionRecord, Store};

use crate::builtin;
use crate::clock::now_ms;
use crate::session::Session;

/// Characters of a session's title.
const TITLE_CHARS_MAX: usize = 80;

/// How the title of a session begins that the run of a schedule began.
const SCHEDULED: &str = "[scheduled] ";

/// Whether the run of a schedule began the session.
pub(crate) fn is_of_schedule(session: &SessionRecord) -> bool {
    session.title.starts_with(SCHEDULED)
}

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
    /// What failed to be appended after it. One of these may be there all the same: the answer to a commit can be lost.
    in_doubt: Vec<Vec<String>>,
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
                in_doubt: Vec::new(),
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
        if session.new.title.is_empty()
            && let Some(title) = entries.iter().find_map(title)
        {
            let beginning = self.calls.made_by().map_or("", |_schedule| SCHEDULED);
            session.new.title = format!("{beginning}{title}");
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

    async fn add(&self, items: &[NewSessionItem], after: i64) -> Result<AppendEnd, String> {
        let conversation = self.calls.conversation;
        let added = self
            .store
            .append_items(conversation, items.to_vec(), after, now_ms());
        let added = added.await;
        if added.is_err() {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            let items = items.iter().map(|item| item.json.clone());
            session.in_doubt.push(items.collect());
        }
        added.map_err(|error| error.to_string())
    }

    fn goes_on_after(&self, last: i64) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.last = last;
        session.in_doubt.clear();
    }

    /// The number of the last item, when all that was appended since the last known one is what this process failed to append.
    async fn own_last(&self, state: &SessionState) -> Result<Option<i64>, String> {
        if state.in_doubt.is_empty() {
            return Ok(None);
        }
        let conversation = self.calls.conversation;
        let found = self.store.session_items_after(conversation, state.last);
        let found = found.await.map_err(|error| error.to_string())?;
        let is_own = state.in_doubt.contains(&found.items);
        Ok(is_own.then_some(found.last))
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
            calls.hear_call(&call.name, &arguments.clone().into());
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
        let mut end = self.add(&items, state.last).await?;
        if end == AppendEnd::NoSession {
            // It was deleted while it is in use: it goes on from here.
            self.begin(state.new.clone()).await?;
            self.goes_on_after(0);
            end = self.add(&items, 0).await?;
        }
        if end == AppendEnd::Moved
            && let Some(last) = self.own_last(&state).await?
        {
            self.goes_on_after(last);
            end = self.add(&items, last).await?;
        }
        match end {
            AppendEnd::Appended(last) => {
                self.goes_on_after(last);
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

#[cfg(test)]
mod tests {
    use zeph_agent::transcript::NoteEntry;
    use zeph_config::Flags;
    use zeph_core::principal::Principal;

    use super::*;
    use crate::host::{Host, StartOptions};
    use crate::traceless;

    fn note(text: &str) -> TranscriptEntry {
        TranscriptEntry::Note(NoteEntry {
            text: text.to_owned(),
            ended_task: None,
        })
    }

    fn item(text: &str) -> NewSessionItem {
        NewSessionItem {
            json: serde_json::to_string(&note(text)).unwrap(),
            is_base: false,
        }
    }

    /// A journal with one item, and behind it another one that it did not see.
    async fn behind(host: &Host) -> StoreJournal {
        let principal = Principal::Model { caller_id: None };
        let session = host.open_session(None, principal).await.unwrap();
        let conversation = session.conversation;
        let store = host.store().clone();
        let journal = StoreJournal::new(store.clone(), session, "/work".to_owned(), 0);
        journal.append(&[note("first")]).await.unwrap();
        let last = store.last_item(conversation).await.unwrap();
        let appended = store.append_items(conversation, vec![item("second")], last, 1);
        assert!(matches!(appended.await.unwrap(), AppendEnd::Appended(_)));
        journal
    }

    #[tokio::test]
    async fn what_lasted_without_its_answer_is_not_of_another_process() {
        let config = traceless::config(std::env::temp_dir(), Flags::default());
        let (host, _) = Host::start(config, StartOptions::default()).await.unwrap();
        let cases: [(&[&str], &str); 3] = [
            (&["second"], "first second third"),
            (&["other", "second"], "first second third"),
            (&["other"], "first second"),
        ];
        for (in_doubt, expected) in cases {
            let journal = behind(&host).await;
            journal.session.lock().unwrap().in_doubt =
                in_doubt.iter().map(|text| vec![item(text).json]).collect();
            let appended = journal.append(&[note("third")]).await;
            assert_eq!(
                appended.is_ok(),
                expected.ends_with("third"),
                "{appended:?}"
            );
            let conversation = journal.calls.conversation;
            let stored = host.store().session_items(conversation).await.unwrap();
            let expected: Vec<String> = expected.split(' ').map(|text| item(text).json).collect();
            assert_eq!(stored.items, expected);
            // From there on it goes as before.
            let again = journal.append(&[note("fourth")]).await;
            assert_eq!(again.is_ok(), appended.is_ok(), "{again:?}");
        }
    }
}
