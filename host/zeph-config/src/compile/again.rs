//! `tools.result_cache` and `tools.retry`: results that are used again, calls that are made again.

use std::time::Duration;

use crate::raw::{RawResultCache, RawRetry};
use crate::{ResultCacheConfig, RetryConfig};

pub(super) fn result_cache(raw: &RawResultCache) -> Option<ResultCacheConfig> {
    raw.enabled.then(|| ResultCacheConfig {
        ttl: seconds(raw.ttl_secs),
        bytes_max: raw.max_bytes,
    })
}

pub(super) fn retry(raw: &RawRetry) -> RetryConfig {
    RetryConfig {
        attempts_max: raw.max_attempts,
        budget: seconds(raw.budget_secs),
        base: Duration::from_millis(raw.base_ms.into()),
        longest: Duration::from_millis(raw.max_ms.into()),
    }
}

/// A time in seconds; none when it is 0, which means no limit.
fn seconds(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
