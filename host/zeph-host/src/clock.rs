//! The one clock of the product. Rooms below get the time as an argument.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time, in milliseconds since the Unix epoch.
#[expect(
    clippy::disallowed_methods,
    reason = "the one clock of the product: rooms below get the time as an argument"
)]
pub(crate) fn now_ms() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
