//! How many calls run at once, and who is next: a free place goes to the client that runs the fewest, so that no client waits because
//! another asks for much.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Most calls of one client that wait for a place. Each holds its arguments in memory.
const WAITING_MAX: usize = 1_024;

/// The places of all clients. Clones are handles to the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    n_free: usize,
    clients: HashMap<String, Client>,
    /// Grows with each call that waits.
    order: u64,
}

#[derive(Debug, Default)]
struct Client {
    n_running: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    order: u64,
    place: oneshot::Sender<Place>,
}

/// A call may run while this is held.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    client: String,
    is_given: bool,
}

/// Too many calls of this client wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Places {
    pub(crate) fn new(n: NonZeroUsize) -> Self {
        Self(Arc::new(Mutex::new(State {
            n_free: n.get(),
            clients: HashMap::new(),
            order: 0,
        })))
    }

    /// Waits for a place for a call of `client`. Dropping the future gives up.
    ///
    /// Errors: [`Full`], at once.
    pub(crate) async fn take(&self, client: &str) -> Result<Place, Full> {
        let place = {
            let mut state = self.state();
            if state.n_free > 0 {
                state.n_free -= 1;
                state.client(client).n_running += 1;
                return Ok(self.place(client));
            }
            state.order += 1;
            let order = state.order;
            let waiting = &mut state.client(client).waiting;
            waiting.retain(|waiting| !waiting.place.is_closed());
            if waiting.len() == WAITING_MAX {
                return Err(Full);
            }
            let (sender, place) = oneshot::channel();
            waiting.push_back(Waiting {
                order,
                place: sender,
            });
            place
        };
        // The sender goes with its turn only.
        place.await.map_err(|_| Full)
    }

    fn place(&self, client: &str) -> Place {
        Place {
            places: self.clone(),
            client: client.to_owned(),
            is_given: true,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, client: &str) {
        let mut state = self.state();
        state.client(client).n_running -= 1;
        state.forget(client);
        state.n_free += 1;
        while state.n_free > 0 {
            let Some((next, waiting)) = state.next() else {
                return;
            };
            match waiting.place.send(self.place(&next)) {
                Ok(()) => {
                    state.n_free -= 1;
                    state.client(&next).n_running += 1;
                }
                // It has given up; the lock is held, so the place must not give itself back.
                Err(mut place) => place.is_given = false,
            }
            state.forget(&next);
        }
    }
}

impl State {
    fn client(&mut self, name: &str) -> &mut Client {
        self.clients.entry(name.to_owned()).or_default()
    }

    fn forget(&mut self, name: &str) {
        let is_idle = |client: &Client| client.n_running == 0 && client.waiting.is_empty();
        if self.clients.get(name).is_some_and(is_idle) {
            self.clients.remove(name);
        }
    }

    /// The first call of the client that runs the fewest; of several such clients, the one that has waited longest.
    fn next(&mut self) -> Option<(String, Waiting)> {
        let waiting = self.clients.iter().filter_map(|(name, client)| {
            let first = client.waiting.front()?;
            Some(((client.n_running, first.order), name))
        });
        let name = waiting.min()?.1.clone();
        let waiting = self.client(&name).waiting.pop_front()?;
        Some((name, waiting))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_given {
            self.places.give_back(&self.client);
        }
    }
}

#[cfg(test)]
mod tests;
