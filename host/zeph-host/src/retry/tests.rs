use std::time::Duration;

use tokio::time::Instant;
use zeph_config::RetryConfig;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::tool::Annotations;
use zeph_engine::Cancel;

use super::Attempts;

const CONFIG: RetryConfig = RetryConfig {
    attempts_max: 3,
    budget: Some(Duration::from_secs(30)),
    base: Duration::from_millis(500),
    longest: Duration::from_secs(5),
};

const IDEMPOTENT: Annotations = Annotations {
    read_only: false,
    destructive: false,
    idempotent: true,
    open_world: true,
};

fn failure(category: ErrorCategory) -> ToolFailure {
    ToolFailure::new(category, ErrorPhase::Execution, "it failed")
}

/// Those of a call that may take a minute, at its begin.
struct Begun(Attempts, Instant);

impl Begun {
    fn wait_after(&mut self, failure: &ToolFailure) -> Option<Duration> {
        self.0.wait_after(failure, self.1)
    }
}

fn attempts(config: &RetryConfig, promises: Annotations) -> Begun {
    let now = Instant::now();
    Begun(
        Attempts::new(config, promises, Duration::from_secs(60), now),
        now,
    )
}

#[test]
fn exactly_what_passes_by_itself_is_tried_again() {
    for category in ErrorCategory::ALL {
        let wait = attempts(&CONFIG, IDEMPOTENT).wait_after(&failure(category));
        let passes = matches!(
            category,
            ErrorCategory::RateLimited
                | ErrorCategory::ServerError
                | ErrorCategory::NetworkError
                | ErrorCategory::Timeout
        );
        assert_eq!(wait.is_some(), passes, "{category}");
        let promises = Annotations {
            idempotent: false,
            ..IDEMPOTENT
        };
        let wait = attempts(&CONFIG, promises).wait_after(&failure(category));
        assert_eq!(wait, None, "{category}");
    }
}

/// It would end by the time of the call, which says nothing of the server that is slow.
#[test]
fn an_attempt_that_cannot_end_is_not_begun() {
    let slow = failure(ErrorCategory::Timeout);
    let config = RetryConfig {
        budget: None,
        ..CONFIG
    };
    let check = |took: u64, expect: bool| {
        let Begun(mut attempts, begun) = attempts(&config, IDEMPOTENT);
        let wait = attempts.wait_after(&slow, begun + Duration::from_secs(took));
        assert_eq!(wait.is_some(), expect, "{took} s of 60");
    };
    check(1, true);
    check(25, true);
    check(31, false);
}

#[test]
fn waits_grow_are_partly_random_and_end() {
    let config = RetryConfig {
        attempts_max: 6,
        budget: None,
        ..CONFIG
    };
    let fault = failure(ErrorCategory::ServerError);
    let mut firsts = Vec::new();
    for _ in 0..20 {
        let mut attempts = attempts(&config, IDEMPOTENT);
        let waits: Vec<u128> = std::iter::from_fn(|| attempts.wait_after(&fault))
            .map(|wait| wait.as_millis())
            .collect();
        assert_eq!(waits.len(), 5, "{waits:?}");
        for (wait, least) in waits.iter().zip([500, 1_000, 2_000, 4_000, 5_000]) {
            assert!((least..=2 * least).contains(wait), "{waits:?}");
        }
        assert_eq!(attempts.0.repeated(), Some(6));
        firsts.push(waits[0]);
    }
    firsts.dedup();
    assert!(firsts.len() > 1, "the same wait every time: {firsts:?}");
}

#[test]
fn a_wait_that_was_asked_for_is_kept_or_ends_the_attempts() {
    let asked = |millis| ToolFailure {
        retry_after_ms: Some(millis),
        ..failure(ErrorCategory::RateLimited)
    };
    let wait = attempts(&CONFIG, IDEMPOTENT).wait_after(&asked(7_000));
    assert_eq!(wait, Some(Duration::from_secs(7)));
    // Longer than the budget, and than the call may take.
    let mut beyond = attempts(&CONFIG, IDEMPOTENT);
    assert_eq!(beyond.wait_after(&asked(30_000)), None);
    assert_eq!(beyond.0.repeated(), None);
    let config = RetryConfig {
        budget: None,
        ..CONFIG
    };
    assert!(
        attempts(&config, IDEMPOTENT)
            .wait_after(&asked(30_000))
            .is_some()
    );
    assert_eq!(
        attempts(&config, IDEMPOTENT).wait_after(&asked(60_000)),
        None
    );
}

// Without the cancel it would wait for an hour.
#[tokio::test]
async fn cancelling_ends_a_wait_at_once() {
    let config = RetryConfig {
        budget: None,
        base: Duration::from_secs(3_600),
        longest: Duration::from_secs(3_600),
        ..CONFIG
    };
    let fault = failure(ErrorCategory::NetworkError);
    let (now, time) = (Instant::now(), Duration::from_secs(100_000));
    let mut attempts = Attempts::new(&config, IDEMPOTENT, time, now);
    let wait = attempts.wait_after(&fault, now).expect("another attempt");
    let cancel = Cancel::new();
    let (ended, ()) = tokio::join!(attempts.pause(wait, &fault, (&cancel, None)), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    let cancelled = ended.expect_err("it was cancelled");
    assert_eq!(cancelled.category, ErrorCategory::Cancelled);
}
