//! What a guest may take, and what no grant can raise.

use std::time::{Duration, Instant};

use wasmtime::ResourceLimiter as _;
use zeph_core::capability::LimitName;
use zeph_core::limit::CallLimits;

use super::{GuestStop, LIMITS_MAX, Limiter, ceiling, within_max};
use crate::cancel::Cancel;

const LIMITS: CallLimits = CallLimits {
    wall_clock: Duration::from_secs(60),
    cpu: Duration::from_secs(60),
    memory_bytes: 1_000,
    table_elements: 100,
    output_bytes: 1_000,
    log_bytes: 1_000,
    host_calls: 1_000,
    handles: 10,
};

fn limiter() -> Limiter {
    Limiter::start(LIMITS, Cancel::new(), Instant::now() + LIMITS.wall_clock)
}

fn stopped(result: wasmtime::Result<bool>) -> Option<GuestStop> {
    result.err()?.downcast().ok()
}

#[test]
fn memories_and_tables_count_together() {
    let mut limiter = limiter();
    assert!(limiter.memory_growing(0, 600, None).expect("room"));
    let second = limiter.memory_growing(0, 500, None);
    assert_eq!(stopped(second), Some(GuestStop::Memory(1_000)));
    assert!(limiter.memory_growing(600, 1_000, None).expect("room"));
    assert!(limiter.table_growing(0, 60, None).expect("room"));
    let second = limiter.table_growing(0, 50, None);
    assert_eq!(stopped(second), Some(GuestStop::Table(100)));
}

#[test]
fn a_growth_beyond_the_guests_own_maximum_takes_nothing() {
    let mut limiter = limiter();
    assert!(limiter.memory_growing(0, 400, Some(500)).expect("room"));
    assert!(limiter.table_growing(0, 40, Some(50)).expect("room"));
    for _ in 0..100 {
        // The engine refuses these itself, and tells the guest.
        limiter.memory_growing(400, 600, Some(500)).expect("told");
        limiter.table_growing(40, 60, Some(50)).expect("told");
        limiter
            .memory_grow_failed(wasmtime::Error::msg("maximum"))
            .expect("told");
        limiter
            .table_grow_failed(wasmtime::Error::msg("maximum"))
            .expect("told");
    }
    assert!(
        limiter
            .memory_growing(0, 600, None)
            .expect("room for the rest")
    );
    assert!(
        limiter
            .table_growing(0, 60, None)
            .expect("room for the rest")
    );
    // Nor does a failed growth give anything back.
    limiter
        .memory_grow_failed(wasmtime::Error::msg("too large"))
        .expect("told");
    let more = limiter.memory_growing(600, 601, None);
    assert_eq!(stopped(more), Some(GuestStop::Memory(1_000)));
}

#[test]
fn no_grant_goes_beyond_the_ceilings() {
    let mut limits = LIMITS;
    for name in LimitName::ALL {
        name.raise(&mut limits, u64::MAX);
    }
    assert_eq!(within_max(limits), LIMITS_MAX);
    assert_eq!(within_max(LIMITS), LIMITS);
    let mut raised = LIMITS;
    for name in LimitName::ALL {
        name.raise(&mut raised, ceiling(name));
    }
    assert_eq!(raised, LIMITS_MAX);
}
