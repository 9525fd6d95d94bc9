//! Conversations of clients: whose outputs, background runs and approvals they are.
//!
//! Over standard input the process is the conversation, and over HTTP in the old revisions its session is. In the new ones a request
//! that names none begins one; its result carries the handle that later requests name it by. A handle counts only for the caller it was
//! given to. Where replicas share keys (`handle`), each of them goes on with a conversation of another: what is kept of it is in the store,
//! and what only a machine has is refused (`workspace`).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_config::Workspace;
use zeph_core::id::{ConversationId, Digest, OverflowId};
use zeph_core::principal::Principal;
use zeph_mcp::caller::Caller;
use zeph_store::{Owner, Store, StoreError};

use super::handle::SharedHandle;
use crate::admission::Admission;
use crate::clock::now_ms;
use crate::host::Host;
use crate::seals::Seals;
use crate::session::Session;
use crate::workspace::SessionWorkspace;

/// The key of a handle in `_meta`.
pub(crate) const CONVERSATION_KEY: &str = "zeph.host/conversation";

/// Conversations of one caller at one time. One more ends the one that was idle longest. Clients that know nothing of handles begin one with
/// each call, so it is some time of calls too.
const PER_CALLER_MAX: usize = 1_024;

/// How long a conversation is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_hours(1);
const IDLE_MAX_MS: i64 = 3_600_000;

/// Calls of one conversation that can be made again without its handle: as many as may wait for a person.
const ASKED_MAX: usize = 64;

/// A conversation that is open. Requests hold it while they use it.
#[derive(Debug)]
pub(crate) struct Conversation {
    host: Host,
    session: Session,
    owner: Owner,
    /// Cancelled when what let its caller in is revoked.
    right: CancellationToken,
    /// Protects the moment of the last use.
    used: Mutex<Instant>,
    /// The full texts of its results, for requests that name one of them and no conversation.
    outputs: Mutex<HashSet<OverflowId>>,
    /// The calls of it that a person is asked about, for requests that make one of them again and name no conversation.
    asked: Mutex<HashSet<Digest>>,
    closed: OnceCell<()>,
    naming: Naming,
}

/// How clients name a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Naming {
    /// By its ID, to this process.
    Own,
    /// To every replica; it began at the one of this name.
    Shared(Arc<str>),
    /// Not at all: it is looked into for one request.
    Nameless,
}

impl Conversation {
    /// The one of a process.
    pub(crate) fn new(host: &Host, session: Session) -> Self {
        Self::named((host, session), &Caller::default(), Naming::Own)
    }

    fn named((host, session): (&Host, Session), caller: &Caller, naming: Naming) -> Self {
        Self {
            host: host.clone(),
            naming,
            session,
            owner: owner(caller),
            right: caller.right.clone(),
            used: Mutex::new(Instant::now()),
            outputs: Mutex::default(),
            asked: Mutex::default(),
            closed: OnceCell::new(),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Its ID.
    pub(crate) fn handle(&self) -> ConversationId {
        self.session.conversation
    }

    /// What its client names it by, if it can.
    pub(super) fn name(&self, seals: &Seals) -> Option<String> {
        match self.shared() {
            Some(shared) => Some(shared.text(seals, self.owner.text().as_deref())),
            None if self.naming == Naming::Nameless => None,
            None => Some(self.handle().to_string()),
        }
    }

    /// What it is called at other replicas, if it is.
    pub(super) fn shared(&self) -> Option<SharedHandle> {
        let Naming::Shared(home) = &self.naming else {
            return None;
        };
        Some(SharedHandle {
            conversation: self.handle(),
            home: Arc::clone(home),
        })
    }

    /// Whether `caller` may use it.
    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        let Owner { id, token } = &self.owner;
        *id == caller.id && *token == caller.token && !self.right.is_cancelled()
    }

    /// Whose it is: a caller, as long as what let it in is valid.
    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Cancelled when what let its caller in is revoked.
    pub(super) fn right(&self) -> &CancellationToken {
        &self.right
    }

    /// Remembers that a result of it has a full text.
    pub(crate) fn remember(&self, output: OverflowId) {
        self.outputs().insert(output);
    }

    /// Remembers that a person is asked about a call of it.
    pub(super) fn remember_asked(&self, call: Digest) {
        let mut asked = self.asked();
        if asked.len() < ASKED_MAX {
            asked.insert(call);
        }
    }

    /// The call was made or refused: the next such call is another one.
    pub(super) fn forget_asked(&self, call: Digest) {
        self.asked().remove(&call);
    }

    fn asked(&self) -> MutexGuard<'_, HashSet<Digest>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Ends what runs in its background. The caller waits for that, also when it was asked for before.
    pub(crate) async fn close(&self) {
        // Nobody can be told of it any more.
        let end = || async { drop(self.host.end_runs(&self.session).await) };
        self.closed.get_or_init(end).await;
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
    /// Whether there is one is not known.
    #[error("the store cannot say whether the conversation goes on; nothing ran, so try again")]
    Unread,
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
        let mut found = self.of_caller(caller, |one| one.outputs().contains(&output));
        found.pop()
    }

    /// The one of `caller` in which a person was asked about this very call. An approval holds in its conversation: clients that know
    /// nothing of handles make the call again all the same. Of several, because the call was made more than once before anybody was
    /// asked, it is the one where something was approved.
    ///
    /// Errors: [`NoConversation::Unread`].
    pub(super) async fn with_asked(
        &self,
        store: &Store,
        call: Digest,
        caller: &Caller,
    ) -> Result<Option<Arc<Conversation>>, NoConversation> {
        let mut found = self.of_caller(caller, |one| one.asked().contains(&call));
        if found.len() > 1 {
            let approved = store.list_approvals(now_ms()).await;
            let approved = approved.map_err(|error| unread(&error))?;
            let is_approved = |one: &Arc<Conversation>| {
                let here = Some(one.handle());
                approved
                    .iter()
                    .any(|approval| approval.conversation == here)
            };
            found.sort_by_key(is_approved);
        }
        Ok(found.pop())
    }

    /// Those of `caller` for which `has` holds; they are used from now on.
    fn of_caller(
        &self,
        caller: &Caller,
        has: impl Fn(&Conversation) -> bool,
    ) -> Vec<Arc<Conversation>> {
        let open = self.open();
        let found = open.values().filter(|one| one.is_of(caller) && has(one));
        let found: Vec<_> = found.cloned().collect();
        found.iter().for_each(|one| one.touch());
        found
    }

    /// Begins one for `caller`. One that is one too many is ended for it.
    ///
    /// Errors: [`NoConversation::TooMany`].
    pub(super) fn begin(
        &self,
        host: &Host,
        caller: &Caller,
        naming: Naming,
    ) -> Result<Arc<Conversation>, NoConversation> {
        let session = session(host, None, caller);
        let session = session.with_workspace(own_workspace(host));
        self.insert(Conversation::named((host, session), caller, naming), caller)
    }

    /// Goes on with one that `caller` began here or at another replica, and that has not ended.
    ///
    /// Errors: [`NoConversation`].
    pub(super) async fn adopt(
        &self,
        host: &Host,
        handle: &SharedHandle,
        caller: &Caller,
    ) -> Result<Arc<Conversation>, NoConversation> {
        if let Ok(found) = self.find(&handle.conversation.to_string(), caller) {
            return Ok(found);
        }
        let used = host.store().conversation_used(handle.conversation).await;
        let used = used.map_err(|error| unread(&error))?;
        let has_ended = match used {
            Some(used_ms) => now_ms().saturating_sub(used_ms) >= IDLE_MAX_MS,
            // Without records, one whose calls stored nothing has no row.
            None => host.config().audit.enabled,
        };
        if has_ended {
            return Err(NoConversation::Unknown);
        }
        let session = session(host, Some(handle.conversation), caller);
        let session = session.with_workspace(workspace_of(host, &handle.home));
        let naming = Naming::Shared(Arc::clone(&handle.home));
        self.insert(Conversation::named((host, session), caller, naming), caller)
    }

    /// The conversation of an output that `caller` has at any replica, for one request.
    ///
    /// Errors: [`NoConversation::Unread`].
    pub(super) async fn of_output(
        host: &Host,
        output: OverflowId,
        caller: &Caller,
    ) -> Result<Option<Arc<Conversation>>, NoConversation> {
        let id = host.store().conversation_of_output(output, owner(caller));
        let id = id.await.map_err(|error| unread(&error))?;
        Ok(id.map(|id| {
            let session = session(host, Some(id), caller);
            let session = session.with_workspace(SessionWorkspace::Nowhere);
            Arc::new(Conversation::named(
                (host, session),
                caller,
                Naming::Nameless,
            ))
        }))
    }

    /// The conversation of a task of `caller` whose server ended over it; it began at `home`, or where others cannot go on with it.
    /// `has_files`: whether this server has the files of that one.
    pub(super) fn of_task(
        host: &Host,
        id: ConversationId,
        (home, has_files): (Option<&Arc<str>>, bool),
        caller: &Caller,
    ) -> Arc<Conversation> {
        let session = session(host, Some(id), caller);
        let (session, naming) = match home {
            Some(home) => {
                let workspace = match workspace_of(host, home) {
                    here if has_files => here,
                    SessionWorkspace::Nowhere => SessionWorkspace::Nowhere,
                    // Of the same name, and with other directories.
                    SessionWorkspace::Here | SessionWorkspace::Elsewhere { .. } => {
                        SessionWorkspace::Elsewhere {
                            replica: Arc::clone(home),
                            shares_files: false,
                        }
                    }
                };
                let naming = Naming::Shared(Arc::clone(home));
                (session.with_workspace(workspace), naming)
            }
            None if has_files => (
                session.with_workspace(own_workspace(host)),
                Naming::Nameless,
            ),
            None => (
                session.with_workspace(SessionWorkspace::Nowhere),
                Naming::Nameless,
            ),
        };
        Arc::new(Conversation::named((host, session), caller, naming))
    }

    /// Opens a conversation, unless another request has opened the same.
    fn insert(
        &self,
        new: Conversation,
        caller: &Caller,
    ) -> Result<Arc<Conversation>, NoConversation> {
        let mut open = self.open();
        if let Some(found) = open.get(&new.handle()) {
            let found = found.is_of(caller).then(|| Arc::clone(found));
            return found.ok_or(NoConversation::Unknown);
        }
        if let Some(longest_idle) = make_room(&mut open, caller)? {
            self.end(longest_idle);
        }
        let conversation = Arc::new(new);
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

    /// Ends those whose callers were let in by what has been revoked.
    pub(crate) fn end_revoked(&self) {
        let revoked = |_: &ConversationId, one: &mut Arc<Conversation>| one.right().is_cancelled();
        for (_, conversation) in self.open().extract_if(revoked) {
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

/// Whose the things of a caller are.
pub(super) fn owner(caller: &Caller) -> Owner {
    Owner {
        id: caller.id.clone(),
        token: caller.token,
    }
}

/// Whether no request and no session uses it. Asked while the map is locked, which alone hands conversations out.
fn is_idle(conversation: &Arc<Conversation>) -> bool {
    Arc::strong_count(conversation) == 1
}

/// A session of `caller`, of an old conversation or of a new one, of which the store knows with its first call.
fn session(host: &Host, conversation: Option<ConversationId>, caller: &Caller) -> Session {
    let principal = Principal::Model {
        caller_id: caller.id.clone(),
    };
    let session = host.look_on(conversation, principal);
    // Its calls are counted as they come in.
    let session = session.admitted(Admission {
        token: caller.token,
        tools: caller.tools.clone(),
        rate: None,
    });
    match caller.id {
        Some(_) => session,
        None => session.of_anybody(),
    }
}

/// What conversations have that begin here.
fn own_workspace(host: &Host) -> SessionWorkspace {
    match host.config().serve.workspace {
        Workspace::Own | Workspace::Shared => SessionWorkspace::Here,
        Workspace::None => SessionWorkspace::Nowhere,
    }
}

/// What conversations have here that began at `home`.
fn workspace_of(host: &Host, home: &Arc<str>) -> SessionWorkspace {
    let serve = &host.config().serve;
    let shares_files = match serve.workspace {
        Workspace::None => return SessionWorkspace::Nowhere,
        _ if serve.replica.as_deref() == Some(&**home) => return SessionWorkspace::Here,
        Workspace::Shared => true,
        Workspace::Own => false,
    };
    SessionWorkspace::Elsewhere {
        replica: Arc::clone(home),
        shares_files,
    }
}

fn unread(error: &StoreError) -> NoConversation {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "a conversation cannot be looked up"
    );
    NoConversation::Unread
}

#[cfg(test)]
mod tests;
