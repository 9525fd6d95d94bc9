//! What a server does wrong, told to its operator a bounded number of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zeph_core::failure::one_line;

use super::listener::ServerListener;

/// Most complaints about one connection.
const COMPLAINTS_MAX: usize = 16;

/// Most characters of one.
const CHARS_MAX: usize = 300;

/// Complaints about one connection.
#[derive(Debug, Clone)]
pub(super) struct Complaints {
    listener: Arc<dyn ServerListener>,
    n: Arc<AtomicUsize>,
}

impl Complaints {
    pub(super) fn new(listener: Arc<dyn ServerListener>) -> Self {
        Self {
            listener,
            n: Arc::default(),
        }
    }

    /// Passes `line` on, unless there were too many.
    pub(super) fn add(&self, line: impl AsRef<str>) {
        let n = self.n.fetch_add(1, Ordering::Relaxed);
        match n {
            0..COMPLAINTS_MAX => self.listener.complained(one_line(line.as_ref(), CHARS_MAX)),
            COMPLAINTS_MAX => self
                .listener
                .complained("more of this kind is not shown".to_owned()),
            _ => {}
        }
    }
}
