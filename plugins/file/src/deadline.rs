//! When a long call has to stop by itself. The host ends a call that takes too long without asking: what was begun would
//! stay half done.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use zeph_plugin::Context;

/// Part of the time left that may be used; the rest is for cleaning up and for putting the result together.
const PART: f64 = 0.85;
/// Longest time taken for what is left, so that the sum with the present is a time.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What a call is told that has to stop.
pub const TIME_OVER: &str = "the time of the call is used up";

/// A point in time.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Of the call that `context` describes, which has just begun.
    pub fn of(context: &Context) -> Self {
        let time = Duration::from_millis(context.remaining_ms).min(TIME_MAX);
        Self(Instant::now() + time.mul_f64(PART))
    }

    /// The point half way from now.
    pub fn half(self) -> Self {
        let now = Instant::now();
        Self(now + self.0.saturating_duration_since(now) / 2)
    }

    /// Whether it has passed.
    pub fn is_over(self) -> bool {
        Instant::now() > self.0
    }

    /// Errors: timed out, once it has passed.
    pub fn check(self) -> io::Result<()> {
        match self.is_over() {
            true => Err(io::Error::new(ErrorKind::TimedOut, TIME_OVER)),
            false => Ok(()),
        }
    }
}
