//! How long is waited before a request is sent again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use crate::wire::Failure;

/// The first pause, and the longest that nobody asked for.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// The longest pause that a provider can ask for. Whoever asks for more is not waited for.
pub(crate) const ASKED_MAX: Duration = Duration::from_secs(120);

/// The pause before another attempt; `None` when there is none.
pub(crate) fn pause(failure: &Failure, attempts: u32, retries: u32) -> Option<Duration> {
    if !failure.kind.is_passing() || attempts > retries {
        return None;
    }
    match failure.retry_after {
        Some(asked) => (asked <= ASKED_MAX).then_some(asked),
        None => {
            let doubled = FIRST.saturating_mul(1 << (attempts - 1).min(16));
            Some(jittered(doubled.min(LONGEST)))
        }
    }
}

/// Between a half and the whole, so that many clients do not come back at once.
fn jittered(pause: Duration) -> Duration {
    // Seeded at random for every map of the standard library: chance enough.
    let chance = RandomState::new().hash_one(pause) % 1_000;
    pause / 2 + pause.mul_f64(f64::from(u32::try_from(chance).unwrap_or_default()) / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ProviderErrorKind;

    fn failure(kind: ProviderErrorKind, retry_after: Option<u64>) -> Failure {
        Failure {
            retry_after: retry_after.map(Duration::from_secs),
            ..Failure::new(kind, "")
        }
    }

    #[test]
    fn pauses_grow_and_the_provider_knows_better() {
        let server = failure(ProviderErrorKind::Server, None);
        for attempts in 1..40 {
            let pause = pause(&server, attempts, 100).unwrap();
            let whole = FIRST
                .saturating_mul(1 << (attempts - 1).min(16))
                .min(LONGEST);
            assert!(
                pause >= whole / 2 && pause <= whole,
                "{attempts}: {pause:?}"
            );
        }
        let limited = failure(ProviderErrorKind::RateLimited, Some(7));
        assert_eq!(pause(&limited, 1, 2), Some(Duration::from_secs(7)));
        assert_eq!(pause(&limited, 3, 2), None);
        let long = failure(ProviderErrorKind::RateLimited, Some(3_600));
        assert_eq!(pause(&long, 1, 2), None);
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        for kind in [
            ProviderErrorKind::Billing,
            ProviderErrorKind::Authentication,
            ProviderErrorKind::ContextLength,
            ProviderErrorKind::Request,
        ] {
            assert_eq!(pause(&failure(kind, Some(1)), 1, 9), None);
        }
    }
}
