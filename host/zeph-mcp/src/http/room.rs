//! The room for the bodies of all requests together: what one request may have, many could have at once. No caller has more than a part
//! of it, and none has more than one body of the part that is left for those who come later.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bodies of the largest size that there is room for.
const LARGEST_BODIES: usize = 16;

/// Of those, the ones of one caller.
const LARGEST_BODIES_OF_CALLER: usize = 4;

/// How many large bodies may be second or further ones of their callers. The rest is kept for the first body of each caller.
const LARGEST_BODIES_BEYOND: usize = 8;

/// Bytes of each body that are not counted: ordinary messages find room whatever others send.
const FREE_BYTES: usize = 64 << 10;

/// What is left for the bodies of all requests.
#[derive(Debug)]
pub(super) struct BodyRoom {
    bytes_max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    n_bytes: usize,
    /// The bytes of each caller that has any.
    of: HashMap<Option<String>, usize>,
}

/// The part of one body, until it is dropped.
#[derive(Debug)]
pub(super) struct BodyPlace {
    room: Arc<BodyRoom>,
    caller_id: Option<String>,
    n_bytes: usize,
    n_taken: usize,
}

impl BodyRoom {
    /// Room for bodies of which each has at most `bytes_max`.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            taken: Mutex::default(),
        }
    }

    /// The place of a body that is empty yet.
    pub(super) fn place(self: &Arc<Self>, caller_id: Option<&str>) -> BodyPlace {
        BodyPlace {
            room: Arc::clone(self),
            caller_id: caller_id.map(str::to_owned),
            n_bytes: 0,
            n_taken: 0,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyPlace {
    /// Makes room for `n_bytes` more. Says whether there is any.
    pub(super) fn grow(&mut self, n_bytes: usize) -> bool {
        self.n_bytes += n_bytes;
        let n_more = self.n_bytes.saturating_sub(FREE_BYTES) - self.n_taken;
        if n_more == 0 {
            return true;
        }
        let most = |n_bodies: usize| self.room.bytes_max.saturating_mul(n_bodies);
        let mut taken = self.room.taken();
        let own = taken.of.get(&self.caller_id).copied().unwrap_or_default();
        let (all, own_all) = (taken.n_bytes + n_more, own + n_more);
        let has_room = match own_all <= most(1) {
            true => all <= most(LARGEST_BODIES),
            false => {
                all <= most(LARGEST_BODIES_BEYOND) && own_all <= most(LARGEST_BODIES_OF_CALLER)
            }
        };
        if has_room {
            taken.n_bytes += n_more;
            taken.of.insert(self.caller_id.clone(), own + n_more);
            self.n_taken += n_more;
        }
        has_room
    }
}

impl Drop for BodyPlace {
    fn drop(&mut self) {
        if self.n_taken == 0 {
            return;
        }
        let mut taken = self.room.taken();
        taken.n_bytes -= self.n_taken;
        let own = taken.of.remove(&self.caller_id).unwrap_or_default();
        let rest = own.saturating_sub(self.n_taken);
        if rest > 0 {
            taken.of.insert(self.caller_id.clone(), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{
        BodyPlace, BodyRoom, FREE_BYTES, LARGEST_BODIES, LARGEST_BODIES_BEYOND,
        LARGEST_BODIES_OF_CALLER,
    };

    /// As many bodies of the largest size as find room, four at most more than a caller may have.
    fn fill(room: &Arc<BodyRoom>, name: &str) -> Vec<BodyPlace> {
        let half = room.bytes_max / 2;
        let places = (0..LARGEST_BODIES_OF_CALLER + 4).map(|_| room.place(Some(name)));
        places
            .filter_map(|mut place| {
                (place.grow(half) && place.grow(half + FREE_BYTES)).then_some(place)
            })
            .collect()
    }

    #[test]
    fn large_bodies_find_room_until_it_is_taken_and_small_ones_always() {
        let bytes_max = 1 << 20;
        let room = Arc::new(BodyRoom::new(bytes_max));
        let mut large = Vec::new();
        // The first callers get their full share, later ones one body each, until all room is used.
        let n_first = LARGEST_BODIES_BEYOND / LARGEST_BODIES_OF_CALLER;
        let n_callers = n_first + LARGEST_BODIES - LARGEST_BODIES_BEYOND;
        for n in 0..n_callers {
            let name = format!("caller {n}");
            let expect = if n < n_first {
                LARGEST_BODIES_OF_CALLER
            } else {
                1
            };
            let own = fill(&room, &name);
            assert_eq!(own.len(), expect, "{name}");
            large.extend(own);
            let mut small = room.place(Some(&name));
            assert!(small.grow(FREE_BYTES) && !small.grow(1));
        }
        assert!(n_callers > 4);
        assert_eq!(large.len(), LARGEST_BODIES);
        let mut small = room.place(None);
        assert!(small.grow(FREE_BYTES) && !small.grow(1));
        large.pop();
        assert!(small.grow(bytes_max / 2));
        drop((large, small));
        let whole = LARGEST_BODIES_OF_CALLER * bytes_max;
        assert!(room.place(Some("ann")).grow(whole));
        assert!(!room.place(Some("ann")).grow(whole + FREE_BYTES + 1));
        assert!(room.taken().of.is_empty());
    }
}
