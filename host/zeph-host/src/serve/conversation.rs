//! Conversations of clients: whose outputs, background runs and approvals they are.
//!
//! Over standard input the process is the conversation, and over HTTP in the old revisions its session is. In the new ones a request
//! that names none begins one; its result carries the handle that later requests name it by. A handle counts only for the caller it was
//! given to.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use zeph_core::id::{ConversationId, OverflowId};
use zeph_core::principal::Principal;
use zeph_mcp::caller::Caller;

use crate::host::Host;
use crate::session::Session;

/// The key of a handle in `_meta`.
pub(crate) const CONVERSATION_KEY: &str = "zeph.host/conversation";

/// Conversations of one caller at one time. One more ends the one that was idle longest. Clients that know nothing of handles begin one with
/// each call, so it is some time of calls too.
const PER_CALLER_MAX: usize = 1_024;

/// How long a conversation is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_hours(1);

/// A conversation that is open. Requests hold it while they use it.
#[derive(Debug)]
pub(crate) struct Conversation {
    session: Session,
    /// Who may use it.
    owner: Option<String>,
    /// Protects the moment of the last use.
    used: Mutex<Instant>,
    /// The full texts of its results, for requests that name one of them and no conversation.
    outputs: Mutex<HashSet<OverflowId>>,
    closed: OnceCell<()>,
}

impl Conversation {
    pub(crate) fn new(session: Session, owner: Option<String>) -> Self {
        Self {
            session,
            owner,
            used: Mutex::new(Instant::now()),
            outputs: Mutex::default(),
            closed: OnceCell::new(),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// What a client names it by.
    pub(crate) fn handle(&self) -> ConversationId {
        self.session.conversation
    }

    /// Whether `caller` may use it.
    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        self.owner == caller.id
    }

    /// Remembers that a result of it has a full text.
    pub(crate) fn remember(&self, output: OverflowId) {
        self.outputs().insert(output);
    }

    fn outputs(&self) -> MutexGuard<'_, HashSet<OverflowId>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what runs in its background. Whoever asks waits for that, also when it was asked for before.
    pub(crate) async fn close(&self) {
        self.closed.get_or_init(|| self.session.close()).await;
    }
}

/// Why a request has no conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoConversation {
    /// One sentence for both, so that nobody learns which handles exist.
    #[error(
        "there is no conversation of this handle for this caller (`_meta[\"{CONVERSATION_KEY}\"]`); it may have ended: call without it to begin another"
    )]
    Unknown,
    #[error(
        "{PER_CALLER_MAX} conversations of this caller are in use; wait until one of their calls has ended"
    )]
    TooMany,
}

/// The conversations that clients name by a handle.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    open: Mutex<Open>,
    /// Those that are being closed.
    ending: Mutex<JoinSet<()>>,
}

impl Conversations {
    /// The one that `caller` names.
    ///
    /// Errors: [`NoConversation::Unknown`].
    pub(crate) fn find(
        &self,
        handle: &str,
        caller: &Caller,
    ) -> Result<Arc<Conversation>, NoConversation> {
        let handle: ConversationId = handle.parse().map_err(|_| NoConversation::Unknown)?;
        let found = self.open().get(&handle).cloned();
        let found = found.filter(|conversation| conversation.is_of(caller));
        let found = found.ok_or(NoConversation::Unknown)?;
        found.touch();
        Ok(found)
    }

    /// The one of `caller` that has this output. Clients that know nothing of handles name their outputs all the same.
    pub(crate) fn with_output(
        &self,
        output: OverflowId,
        caller: &Caller,
    ) -> Option<Arc<Conversation>> {
        let open = self.open();
        let mut of_caller = open.values().filter(|one| one.is_of(caller));
        let found = of_caller.find(|one| one.outputs().contains(&output))?;
        found.touch();
        Some(Arc::clone(found))
    }

    /// Begins one for `caller`. One that is one too many is ended for it.
    ///
    /// Errors: [`NoConversation::TooMany`].
    pub(crate) fn begin(
        &self,
        host: &Host,
        caller: &Caller,
    ) -> Result<Arc<Conversation>, NoConversation> {
        let mut open = self.open();
        if let Some(longest_idle) = make_room(&mut open, caller)? {
            self.end(longest_idle);
        }
        let conversation = Arc::new(begun(host, caller));
        open.insert(conversation.handle(), Arc::clone(&conversation));
        Ok(conversation)
    }

    /// Ends those that nobody has used for long.
    pub(crate) fn sweep(&self, now: Instant) {
        let idle = |_: &ConversationId, one: &mut Arc<Conversation>| {
            is_idle(one) && now.saturating_duration_since(one.used()) >= IDLE_MAX
        };
        for (_, conversation) in self.open().extract_if(idle) {
            self.end(conversation);
        }
    }

    /// Gives one up that its session ends.
    pub(crate) fn forget(&self, conversation: &Conversation) {
        self.open().remove(&conversation.handle());
    }

    /// Closes one that nobody can name any more, without waiting for it.
    pub(crate) fn end(&self, conversation: Arc<Conversation>) {
        let mut ending = self.ending();
        while ending.try_join_next().is_some() {}
        ending.spawn(async move { conversation.close().await });
    }

    /// Ends all, and waits for those that were being closed.
    pub(crate) async fn close(&self) {
        let all: Vec<_> = self.open().drain().map(|(_, one)| one).collect();
        all.into_iter()
            .for_each(|conversation| self.end(conversation));
        let ending = std::mem::take(&mut *self.ending());
        ending.join_all().await;
    }

    fn ending(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Every change is complete before anything can panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Open = HashMap<ConversationId, Arc<Conversation>>;

/// Takes out the conversation of `caller` that was idle longest, when there are too many.
fn make_room(
    open: &mut Open,
    caller: &Caller,
) -> Result<Option<Arc<Conversation>>, NoConversation> {
    let of_caller = || open.values().filter(|one| one.is_of(caller));
    if of_caller().count() < PER_CALLER_MAX {
        return Ok(None);
    }
    let idle = of_caller().filter(|one| is_idle(one));
    let longest = idle.min_by_key(|one| one.used()).map(|one| one.handle());
    let longest = longest.and_then(|handle| open.remove(&handle));
    longest.map(Some).ok_or(NoConversation::TooMany)
}

/// Whether no request and no session uses it. Asked while the map is locked, which alone hands conversations out.
fn is_idle(conversation: &Arc<Conversation>) -> bool {
    Arc::strong_count(conversation) == 1
}

/// A conversation of `caller`; the store knows of it with its first call.
fn begun(host: &Host, caller: &Caller) -> Conversation {
    let principal = Principal::Model {
        caller_id: caller.id.clone(),
    };
    let session = host.look_on(None, principal);
    let session = match caller.id {
        Some(_) => session,
        None => session.of_anybody(),
    };
    Conversation::new(session, caller.id.clone())
}

#[cfg(test)]
mod tests;
