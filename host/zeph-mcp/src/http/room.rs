//! The room for the bodies of all requests together: what one request may have, many could have at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bodies of the largest size that there is room for.
const LARGEST_BODIES: usize = 16;

/// Bytes of each body that are not counted: ordinary messages find room whatever others send.
const FREE_BYTES: usize = 64 << 10;

/// What is left for the bodies of all requests.
#[derive(Debug)]
pub(super) struct BodyRoom {
    bytes_left: AtomicUsize,
}

/// The part of one body, until it is dropped.
#[derive(Debug)]
pub(super) struct BodyPlace {
    room: Arc<BodyRoom>,
    n_bytes: usize,
    n_taken: usize,
}

impl BodyRoom {
    /// Room for bodies of which each has at most `bytes_max`.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_left: AtomicUsize::new(bytes_max.saturating_mul(LARGEST_BODIES)),
        }
    }

    /// The place of a body that is empty yet.
    pub(super) fn place(self: &Arc<Self>) -> BodyPlace {
        BodyPlace {
            room: Arc::clone(self),
            n_bytes: 0,
            n_taken: 0,
        }
    }
}

impl BodyPlace {
    /// Makes room for `n_bytes` more. Says whether there is any.
    pub(super) fn grow(&mut self, n_bytes: usize) -> bool {
        self.n_bytes += n_bytes;
        let n_more = self.n_bytes.saturating_sub(FREE_BYTES) - self.n_taken;
        let left = &self.room.bytes_left;
        let take = |left: usize| left.checked_sub(n_more);
        let is_taken = left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok();
        if is_taken {
            self.n_taken += n_more;
        }
        is_taken
    }
}

impl Drop for BodyPlace {
    fn drop(&mut self) {
        self.room
            .bytes_left
            .fetch_add(self.n_taken, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BodyRoom, FREE_BYTES, LARGEST_BODIES};

    #[test]
    fn large_bodies_find_room_until_it_is_taken_and_small_ones_always() {
        let bytes_max = 1 << 20;
        let room = Arc::new(BodyRoom::new(bytes_max));
        let mut large: Vec<_> = (0..LARGEST_BODIES).map(|_| room.place()).collect();
        for place in &mut large {
            assert!(place.grow(bytes_max / 2) && place.grow(bytes_max / 2 + FREE_BYTES));
        }
        let mut small = room.place();
        assert!(small.grow(FREE_BYTES));
        assert!(!small.grow(1));
        large.pop();
        assert!(small.grow(bytes_max / 2));
        drop((large, small));
        assert!(room.place().grow(LARGEST_BODIES * bytes_max));
    }
}
