//! Conversations of clients: whose outputs, background runs and approvals they are.
//!
//! Over standard input the process is the conversation, and over HTTP in the old revisions its session is. In the new ones a request
//! that names none begins one; its result carries the handle that later requests name it by. A handle counts only for the caller it was
//! given to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zeph_core::id::ConversationId;
use zeph_core::principal::Principal;
use zeph_mcp::caller::Caller;
use zeph_store::StoreError;

use crate::host::Host;
use crate::session::Session;

/// The key of a handle in `_meta`.
pub(crate) const CONVERSATION_KEY: &str = "zeph.host/conversation";

/// Conversations of one caller at one time. One more ends the one that was idle longest.
const PER_CALLER_MAX: usize = 64;

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
    is_closed: AtomicBool,
}

impl Conversation {
    pub(crate) fn new(session: Session, owner: Option<String>) -> Self {
        Self {
            session,
            owner,
            used: Mutex::new(Instant::now()),
            is_closed: AtomicBool::new(false),
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

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what runs in its background.
    pub(crate) async fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.session.close().await;
        }
    }
}

/// Why a request has no conversation.
#[derive(Debug, thiserror::Error)]
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
    #[error("the conversation cannot be recorded")]
    Store(#[from] StoreError),
}

/// The conversations that clients name by a handle.
#[derive(Debug, Default)]
pub(crate) struct Conversations(Mutex<HashMap<ConversationId, Arc<Conversation>>>);

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

    /// Begins one for `caller`. One that was idle too long, or one too many, is ended for it.
    ///
    /// Errors: those of beginning it.
    pub(crate) async fn begin(
        &self,
        host: &Host,
        caller: &Caller,
    ) -> Result<Arc<Conversation>, NoConversation> {
        self.make_room(caller)?;
        let conversation = Arc::new(open(host, caller).await?);
        let handle = conversation.handle();
        self.open().insert(handle, Arc::clone(&conversation));
        Ok(conversation)
    }

    /// Gives one up that its session ends.
    pub(crate) fn forget(&self, conversation: &Conversation) {
        self.open().remove(&conversation.handle());
    }

    /// Ends all.
    pub(crate) async fn close(&self) {
        let all: Vec<_> = self.open().drain().map(|(_, one)| one).collect();
        let mut closing = tokio::task::JoinSet::new();
        for conversation in all {
            closing.spawn(async move { conversation.close().await });
        }
        closing.join_all().await;
    }

    fn make_room(&self, caller: &Caller) -> Result<(), NoConversation> {
        let mut open = self.open();
        let now = Instant::now();
        let is_idle = |one: &Arc<Conversation>| Arc::strong_count(one) == 1;
        open.retain(|_, one| {
            let stays = !is_idle(one) || now.saturating_duration_since(one.used()) < IDLE_MAX;
            if !stays {
                end(Arc::clone(one));
            }
            stays
        });
        let of_caller = || open.values().filter(|one| one.is_of(caller));
        if of_caller().count() < PER_CALLER_MAX {
            return Ok(());
        }
        let idle = of_caller().filter(|one| is_idle(one));
        let longest = idle.min_by_key(|one| one.used()).map(|one| one.handle());
        let ended = longest.and_then(|handle| open.remove(&handle));
        ended.map(end).ok_or(NoConversation::TooMany)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ConversationId, Arc<Conversation>>> {
        // Every change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a conversation of `caller`.
pub(crate) async fn open(host: &Host, caller: &Caller) -> Result<Conversation, StoreError> {
    let principal = Principal::Model {
        caller_id: caller.id.clone(),
    };
    let session = host.open_session(None, principal).await?;
    Ok(Conversation::new(session, caller.id.clone()))
}

/// Closes a conversation that nobody can name any more, without waiting for it.
pub(crate) fn end(conversation: Arc<Conversation>) {
    tokio::spawn(async move { conversation.close().await });
}
