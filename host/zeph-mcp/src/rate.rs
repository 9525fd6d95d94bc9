//! How many calls a minute a caller may make.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// A bucket of calls that fills evenly and holds at most a minute's worth.
#[derive(Debug)]
pub struct Rate {
    per_minute: u32,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    calls: f64,
    at: Instant,
}

impl Rate {
    /// A full bucket. `per_minute` is at least 1.
    pub fn new(per_minute: u32, now: Instant) -> Self {
        let bucket = Bucket {
            calls: f64::from(per_minute),
            at: now,
        };
        Self {
            per_minute,
            bucket: Mutex::new(bucket),
        }
    }

    /// Calls a minute.
    pub fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Takes one call.
    ///
    /// Errors: how long to wait until there is one.
    pub fn take(&self, now: Instant) -> Result<(), Duration> {
        let per_second = f64::from(self.per_minute) / MINUTE.as_secs_f64();
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.calls = (bucket.calls + since * per_second).min(f64::from(self.per_minute));
        bucket.at = bucket.at.max(now);
        if bucket.calls < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.calls) / per_second));
        }
        bucket.calls -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Rate;

    #[test]
    fn a_bucket_is_emptied_and_fills_evenly() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let rate = Rate::new(60, start);
        for _ in 0..60 {
            assert!(rate.take(start).is_ok());
        }
        let wait = rate.take(start).expect_err("empty");
        assert_eq!(wait.as_millis(), 1_000);
        assert!(rate.take(after(999)).is_err());
        assert!(rate.take(after(1_001)).is_ok());
        assert!(rate.take(after(1_002)).is_err());
    }

    #[test]
    fn no_more_than_a_minute_is_saved_up() {
        let start = Instant::now();
        let rate = Rate::new(2, start);
        let much_later = start + Duration::from_secs(3_600);
        assert!(rate.take(much_later).is_ok());
        assert!(rate.take(much_later).is_ok());
        assert!(rate.take(much_later).is_err());
    }
}
