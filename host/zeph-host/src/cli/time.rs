//! Moments as people write and read them. Pure: now is an argument.

use std::time::Duration;

use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime};

use crate::clock;

/// A moment as `2026-11-20T08:00:00Z`; milliseconds since the Unix epoch when no calendar has it.
pub(super) fn shown(at_ms: i64) -> String {
    clock::moment(at_ms)
}

/// Reads `90s`, `15m`, `2h`, `3d` (ago), a date (its first moment in UTC), or a moment of RFC 3339.
///
/// Units: Unix milliseconds.
/// Errors: one line with the forms.
pub(super) fn read(text: &str, now_ms: i64) -> Result<i64, String> {
    let ago = || ago(text).map(|ago| now_ms.saturating_sub(ago));
    let date = || {
        let date = Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
        Some(date.midnight().assume_utc())
    };
    let moment = || OffsetDateTime::parse(text, &Rfc3339).ok();
    ago()
        .or_else(|| date().or_else(moment).map(unix_ms))
        .ok_or_else(|| {
            let text = zeph_core::failure::one_line(text, 60);
            format!("`{text}` is not a valid time; write `2h`, `3d`, `2026-11-20` or `2026-11-20T08:00:00Z`")
        })
}

/// Reads when something ends: a date means the end of that day in UTC, or a moment of RFC 3339.
///
/// Units: Unix milliseconds.
/// Errors: one line, also when it is past.
pub(super) fn end(text: &str, now_ms: i64) -> Result<i64, String> {
    let date = || {
        let date = Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
        Some(date.next_day()?.midnight().assume_utc())
    };
    let moment = || OffsetDateTime::parse(text, &Rfc3339).ok();
    let shown = zeph_core::failure::one_line(text, 60);
    match date().or_else(moment).map(unix_ms) {
        None => Err(format!(
            "`{shown}` is not a valid time; write `2026-12-31` (the end of that day in UTC) or `2026-12-31T12:00:00Z`"
        )),
        Some(at_ms) if at_ms <= now_ms => Err(format!("`{shown}` is past")),
        Some(at_ms) => Ok(at_ms),
    }
}

/// Reads when something expires: `30m`, `12h`, `30d` from now, or an end as [`end`] reads it.
///
/// Units: Unix milliseconds.
/// Errors: one line, also when it is past.
pub(super) fn expiry(text: &str, now_ms: i64) -> Result<i64, String> {
    let Some(later) = ago(text) else {
        let other = end(text, now_ms);
        return other
            .map_err(|problem| problem.replace("write `2026", "write `30d`, `12h`, `2026"));
    };
    match later {
        0 => Err(format!("`{text}` is past")),
        later => {
            let at_ms = now_ms.saturating_add(later);
            match OffsetDateTime::from_unix_timestamp(at_ms.div_euclid(1_000)) {
                Ok(_) => Ok(at_ms),
                // No calendar has it.
                Err(_) => Err(format!(
                    "`{text}` is too far away: it is after the year 9999"
                )),
            }
        }
    }
}

fn unix_ms(moment: OffsetDateTime) -> i64 {
    i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or(i64::MAX)
}

fn ago(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u32 = text[..text.len() - 1].parse().ok()?;
    let ago = Duration::from_secs(u64::from(number) * seconds);
    i64::try_from(ago.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::{end, expiry, read, shown};

    #[test]
    fn moments_are_read_and_shown() {
        let now = 1_800_000_000_000;
        let table = [
            ("0s", Some(now)),
            ("90s", Some(now - 90_000)),
            ("15m", Some(now - 900_000)),
            ("2h", Some(now - 7_200_000)),
            ("3d", Some(now - 259_200_000)),
            ("2026-11-20", Some(1_795_132_800_000)),
            ("2026-11-20T08:00:00Z", Some(1_795_161_600_000)),
            ("2026-11-20T08:00:00.5+01:00", Some(1_795_158_000_500)),
            ("", None),
            ("h", None),
            ("-2h", None),
            ("yesterday", None),
            ("2026-13-01", None),
            ("5000000000d", None),
            ("é", None),
        ];
        for (text, expect) in table {
            assert_eq!(read(text, now).ok(), expect, "{text}");
        }
        assert_eq!(shown(1_795_161_600_999), "2026-11-20T08:00:00Z");
        assert_eq!(shown(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn ends_are_read() {
        // The morning of 15 January 2027.
        let now = 1_800_000_000_000;
        let table = [
            ("2027-12-31", Ok("2028-01-01T00:00:00Z")),
            ("2027-12-31T12:00:00+02:00", Ok("2027-12-31T10:00:00Z")),
            ("2027-01-15", Ok("2027-01-16T00:00:00Z")),
            ("2027-01-14", Err("past")),
            ("2027-01-15T07:00:00Z", Err("past")),
            ("2h", Err("not a valid time")),
            ("", Err("not a valid time")),
        ];
        for (text, expect) in table {
            match (end(text, now), expect) {
                (Ok(at_ms), Ok(moment)) => assert_eq!(shown(at_ms), moment, "{text}"),
                (Err(problem), Err(words)) => assert!(problem.contains(words), "{text}: {problem}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn expiries_are_read() {
        let now = 1_800_000_000_000;
        let table = [
            ("30d", Ok(now + 30 * 86_400_000)),
            ("1s", Ok(now + 1_000)),
            ("2028-01-01T00:00:00Z", Ok(1_830_297_600_000)),
            ("0d", Err("past")),
            ("99999999d", Err("too far away")),
            ("2000000d", Ok(now + 2_000_000 * 86_400_000)),
            ("2026-01-01", Err("past")),
            ("-1d", Err("`30d`, `12h`")),
            ("soon", Err("`30d`, `12h`")),
        ];
        for (text, expect) in table {
            match (expiry(text, now), expect) {
                (Ok(at_ms), Ok(moment)) => assert_eq!(at_ms, moment, "{text}"),
                (Err(problem), Err(words)) => assert!(problem.contains(words), "{text}: {problem}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
