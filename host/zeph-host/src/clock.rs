//! The one clock of the product. Rooms below get the time as an argument.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A moment as `2026-11-20T08:00:00Z`; milliseconds since the Unix epoch when no calendar has it.
pub(crate) fn moment(at_ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp(at_ms.div_euclid(1000))
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| at_ms.to_string())
}

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
