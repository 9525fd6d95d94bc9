//! `Retry-After`: seconds, or a date that is compared with the server's own clock.

use std::time::Duration;

use httpdate::parse_http_date;

/// How long to wait. A date needs the `date` of the same response; one that is over asks for no wait.
pub(super) fn read(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(secs) = value.parse() {
        return Some(Duration::from_secs(secs));
    }
    let (then, now) = (
        parse_http_date(value).ok()?,
        parse_http_date(date?.trim()).ok()?,
    );
    Some(then.duration_since(now).unwrap_or_default())
}
