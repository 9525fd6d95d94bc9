//! What the outputs of a turn held: addresses, paths and JSON, for the tool `turn_state` and for commands (`ZEPH_TURN_STATE`).
//!
//! It is taken from outputs from which every known secret is gone, belongs to one caller of one conversation, is bounded, and is forgotten when
//! another turn begins. Nothing is looked up: a path is what looks like one.

mod search;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use zeph_core::call::{CallFrame, TurnContext};
use zeph_core::output::{Content, RawOutput};
use zeph_core::redact::Redactor;

use crate::calls::CallControl;
use crate::known_secrets::KnownSecrets;
use crate::session::Session;

/// Items of each kind; the oldest go first.
const ITEMS_MAX: usize = 100;

/// Bytes of each kind.
const BYTES_MAX: usize = 64 * 1024;

/// Callers of one session whose turns are remembered.
const CALLERS_MAX: usize = 64;

/// Bytes of the beginning and of the end of an output that are looked at.
const LOOKED_AT_BYTES: usize = 64 * 1024;

/// What turns of a session held, by caller. Clones are handles to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnStates(Arc<Mutex<BTreeMap<Option<String>, TurnState>>>);

/// What the outputs of one turn held.
#[derive(Debug, Default)]
struct TurnState {
    turn_id: String,
    urls: Recent,
    paths: Recent,
    json: Recent,
}

/// The latest items of one kind, each once, oldest first.
#[derive(Debug, Default)]
struct Recent {
    items: VecDeque<(Value, usize)>,
    bytes: usize,
}

impl Recent {
    fn push(&mut self, item: Value) {
        let bytes = item
            .as_str()
            .map_or_else(|| item.to_string().len(), str::len);
        if bytes > BYTES_MAX / 4 {
            return;
        }
        if let Some(at) = self.items.iter().position(|(other, _)| *other == item) {
            self.remove(at);
        }
        self.items.push_back((item, bytes));
        self.bytes += bytes;
        while self.items.len() > ITEMS_MAX || self.bytes > BYTES_MAX {
            self.remove(0);
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some((_, bytes)) = self.items.remove(at) {
            self.bytes -= bytes;
        }
    }

    fn values(&self) -> Vec<Value> {
        self.items.iter().map(|(item, _)| item.clone()).collect()
    }
}

impl TurnStates {
    /// Takes what an output of `turn` holds, unless another turn of its caller has begun since. `output` holds no known secret.
    pub(crate) fn take(
        &self,
        caller: Option<&str>,
        (turn, current): (&TurnContext, &TurnContext),
        output: &RawOutput,
    ) {
        if turn.turn_id != current.turn_id {
            return;
        }
        let text = match output.content.as_slice() {
            [Content::Text(text)] => looked_at(text),
            _ => looked_at(&output.to_text()),
        };
        let locations = output
            .locations
            .iter()
            .map(|location| location.path.clone());
        let paths: Vec<String> = locations.chain(search::paths(&text)).collect();
        let (urls, mut values) = (search::urls(&text), search::json(&text));
        values.retain(|value| !is_state(value));
        let mut states = self.lock();
        let state = of_turn(&mut states, caller, &turn.turn_id);
        latest(urls).for_each(|url| state.urls.push(url.into()));
        latest(paths).for_each(|path| state.paths.push(path.into()));
        values.into_iter().for_each(|value| state.json.push(value));
    }

    /// What the outputs of the turn of `frame` held: `{ "urls": [], "paths": [], "json": [] }`, without what has become a secret since.
    pub(crate) fn of(&self, frame: &CallFrame, redactor: &Redactor) -> Value {
        let turn_id = frame.turn.as_ref().map(|turn| turn.turn_id.as_str());
        let caller = frame.principal.caller_id().map(str::to_owned);
        let states = self.lock();
        let state = states.get(&caller);
        let state = state.filter(|state| Some(state.turn_id.as_str()) == turn_id);
        let values = |of: fn(&TurnState) -> &Recent| {
            state.map(|state| of(state).values()).unwrap_or_default()
        };
        let mut told = json!({
            "urls": values(|state| &state.urls),
            "paths": values(|state| &state.paths),
            "json": values(|state| &state.json),
        });
        drop(states);
        redactor.clean_json(&mut told);
        told
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<String>, TurnState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The texts that will stay, each once, where it stands last: those before them would be compared with all that is known, and go again.
fn latest(texts: Vec<String>) -> impl Iterator<Item = String> {
    let mut seen = HashSet::new();
    let mut kept: Vec<String> = Vec::new();
    for text in texts.into_iter().rev() {
        if kept.len() == ITEMS_MAX {
            break;
        }
        if seen.insert(text.clone()) {
            kept.push(text);
        }
    }
    kept.into_iter().rev()
}

/// Whether a value is what a command read in its file: it says nothing new.
fn is_state(value: &Value) -> bool {
    let has_all = |object: &serde_json::Map<String, Value>| {
        let mut kinds = ["json", "paths", "urls"].iter();
        object.len() == 3 && kinds.all(|kind| object.contains_key(*kind))
    };
    value.as_object().is_some_and(has_all)
}

/// `control` of a command, which reads what its turn held.
pub(crate) fn told(
    session: &Session,
    frame: &CallFrame,
    secrets: &KnownSecrets,
    control: CallControl,
) -> CallControl {
    let state = session.turn_states().of(frame, &secrets.redactor());
    CallControl {
        turn_state: Some(state.to_string().into_bytes().into()),
        ..control
    }
}

/// The beginning and the end of a long text.
fn looked_at(text: &str) -> String {
    if text.len() <= 2 * LOOKED_AT_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(LOOKED_AT_BYTES);
    let tail = text.ceil_char_boundary(text.len() - LOOKED_AT_BYTES);
    format!("{}\n{}", &text[..head], &text[tail..])
}

/// The state of a turn, which is begun when it is not that of its caller.
fn of_turn<'a>(
    states: &'a mut BTreeMap<Option<String>, TurnState>,
    caller: Option<&str>,
    turn_id: &str,
) -> &'a mut TurnState {
    let caller = caller.map(str::to_owned);
    if states.len() >= CALLERS_MAX && !states.contains_key(&caller) {
        states.pop_first();
    }
    let state = states.entry(caller).or_default();
    if state.turn_id != turn_id {
        *state = TurnState {
            turn_id: turn_id.to_owned(),
            ..TurnState::default()
        };
    }
    state
}

#[cfg(test)]
mod tests;
