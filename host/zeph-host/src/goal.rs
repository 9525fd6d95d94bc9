//! What a session works towards: the goal of `/plan` or of `agent.goal_text`, kept in the store, known to every turn.
//!
//! In reading order: the goal of a session (here), `plan` (`/plan`, and how a plan is shown). Turns, guests, commands, hooks and the audit are
//! told its ID; `compression` is told its words.

pub(crate) mod plan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;
use zeph_core::call::CallFrame;
use zeph_core::principal::Principal;
use zeph_filter::compression::GoalWords;
use zeph_store::{Goal, GoalSource, GoalState, NewGoal, Store, StoreError};

use crate::clock::now_ms;
use crate::session::Session;

/// A goal, ready to be compared with outputs.
#[derive(Debug)]
pub(crate) struct SessionGoal {
    /// As it is stored.
    pub(crate) goal: Goal,
    /// What tells that something is near it.
    pub(crate) words: GoalWords,
}

/// The place of a session for its goal. Clones are handles to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct GoalPlace(Arc<GoalRoom>);

#[derive(Debug, Default)]
struct GoalRoom {
    /// Full once the goal of the conversation was looked for; who asks meanwhile waits.
    found: OnceCell<()>,
    /// Protects what is known, for the moment of exchanging it.
    known: Mutex<KnownGoals>,
}

#[derive(Debug, Default)]
struct KnownGoals {
    /// The active one of the conversation.
    active: Option<Arc<SessionGoal>>,
    /// One that a door named for a turn, by its name; none when there is none of it.
    named: Option<(String, Option<Arc<SessionGoal>>)>,
}

impl SessionGoal {
    /// For a stored goal.
    pub(crate) fn new(goal: Goal) -> Arc<Self> {
        let words = GoalWords::new(&goal.text);
        Arc::new(Self { goal, words })
    }

    /// As turns are told it.
    pub(crate) fn id(&self) -> String {
        self.goal.id.to_string()
    }
}

impl GoalPlace {
    /// The active goal.
    pub(crate) fn active(&self) -> Option<Arc<SessionGoal>> {
        self.lock().active.clone()
    }

    /// Puts a goal in the place of the one there was.
    pub(crate) fn set(&self, goal: Option<Arc<SessionGoal>>) {
        self.lock().active = goal;
    }

    fn lock(&self) -> MutexGuard<'_, KnownGoals> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the goal of a session the first time it is asked for: the one its conversation has, else that of the configuration, which is none of
/// a person's own calls.
///
/// Errors: [`StoreError`]; the session goes on without one, and it is looked for again.
pub(crate) async fn find(
    store: &Store,
    session: &Session,
    configured: Option<&str>,
) -> Result<(), StoreError> {
    let is_operator = matches!(session.principal(), Principal::Operator(_));
    let found = session.goals().0.found.get_or_try_init(|| async {
        if session.goals().active().is_some() {
            return Ok(());
        }
        let last = store.goals(session.conversation, 1).await?.pop();
        let goal = match is_operator {
            true => last.filter(|goal| goal.state == GoalState::Active),
            false => of_conversation(store, session, last, configured).await?,
        };
        if let Some(goal) = goal {
            session.set_goal(Some(SessionGoal::new(goal)));
        }
        Ok(())
    });
    found.await.copied()
}

/// The goal of a conversation whose last one is `last`: a goal of the configuration is the one that is there now, and does not begin again
/// once it has ended.
async fn of_conversation(
    store: &Store,
    session: &Session,
    last: Option<Goal>,
    configured: Option<&str>,
) -> Result<Option<Goal>, StoreError> {
    let is_active = |goal: &Goal| goal.state == GoalState::Active;
    match (last, configured) {
        (Some(goal), _) if goal.source == GoalSource::Plan && is_active(&goal) => Ok(Some(goal)),
        (Some(goal), Some(text)) if goal.text == text => Ok(Some(goal).filter(is_active)),
        (_, Some(text)) => {
            let new = new(session, text, GoalSource::Configuration);
            store.begin_goal(new, now_ms()).await.map(Some)
        }
        (Some(goal), None) => {
            let state = GoalState::Cancelled;
            let ended = store.end_goal(goal.conversation, goal.id, state, now_ms());
            ended.await.map(|_| None)
        }
        (None, None) => Ok(None),
    }
}

/// Tells a call the goal of its turn, which is perhaps only now looked for. A person's own calls have what the person said with `/plan`.
pub(crate) async fn tell(
    store: &Store,
    session: &Session,
    configured: Option<&str>,
    frame: &mut CallFrame,
) {
    if matches!(session.principal(), Principal::Operator(_)) {
        return;
    }
    if let Err(error) = find(store, session, configured).await {
        tracing::warn!(%error, "the goal of a conversation cannot be read");
    }
    let active = session.goals().active();
    if let (Some(turn), Some(goal)) = (&mut frame.turn, active) {
        turn.goal_id.get_or_insert_with(|| goal.id());
    }
}

/// The goal of this ID, while it is active.
pub(crate) async fn of_call(
    store: &Store,
    session: &Session,
    goal_id: &str,
) -> Option<Arc<SessionGoal>> {
    let active = session.goals().active();
    if let Some(goal) = active.filter(|goal| goal.id() == goal_id) {
        return Some(goal);
    }
    if let Some((_, named)) = session
        .goals()
        .lock()
        .named
        .as_ref()
        .filter(|(id, _)| id == goal_id)
    {
        return named.clone();
    }
    let id = goal_id.parse().ok()?;
    let stored = store.goal(session.conversation, id).await.ok()?;
    let found = stored.filter(|goal| goal.state == GoalState::Active);
    let found = found.map(SessionGoal::new);
    session.goals().lock().named = Some((goal_id.to_owned(), found.clone()));
    found
}

/// Sets the goal of a session in the place of the one it had.
///
/// Errors: [`StoreError`] when it cannot be recorded; then the old one stays.
pub(crate) async fn set(
    store: &Store,
    session: &Session,
    text: &str,
) -> Result<Arc<SessionGoal>, StoreError> {
    let new = new(session, text, GoalSource::Plan);
    let goal = SessionGoal::new(store.begin_goal(new, now_ms()).await?);
    session.set_goal(Some(Arc::clone(&goal)));
    Ok(goal)
}

/// Takes over how far a goal is.
pub(crate) fn update(session: &Session, goal: Goal) {
    let is_active = goal.state == GoalState::Active;
    session.set_goal(is_active.then(|| SessionGoal::new(goal)));
}

/// Ends the goal of a session; none when there was none.
///
/// Errors: [`StoreError`] when it cannot be recorded; then it goes on.
pub(crate) async fn end(
    store: &Store,
    session: &Session,
    state: GoalState,
) -> Result<Option<Arc<SessionGoal>>, StoreError> {
    let Some(goal) = session.goals().active() else {
        return Ok(None);
    };
    let ended = store.end_goal(session.conversation, goal.goal.id, state, now_ms());
    ended.await?;
    session.set_goal(None);
    Ok(Some(goal))
}

fn new(session: &Session, text: &str, source: GoalSource) -> NewGoal {
    NewGoal {
        conversation: session.conversation,
        text: text.to_owned(),
        source,
    }
}
