//! When: a pattern of cron in a time zone, or one moment.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::{Deserialize, Serialize};

/// Characters of a pattern at most.
const CRON_CHARS_MAX: usize = 64;

/// Seconds between two runs at least.
const PERIOD_MIN: i64 = 10;

/// Occurrences that are looked at for that.
const LOOKED_AT: usize = 120;

/// How far ahead one moment may be: what is later is a slip.
const AHEAD_MAX: SignedDuration = SignedDuration::from_hours(24 * 366 * 10);

/// When something is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Times {
    /// Again and again.
    Periodic {
        /// Five fields, or six with seconds first.
        cron: String,
        /// The name of the time zone.
        time_zone: String,
    },
    /// Once.
    Once {
        /// In Unix milliseconds.
        at_ms: i64,
    },
}

impl Times {
    /// A pattern in a time zone, `default` where none is named.
    ///
    /// Errors: what is wrong with it, in a sentence.
    pub(crate) fn periodic(
        cron: &str,
        time_zone: Option<&str>,
        default: &TimeZone,
        now_ms: i64,
    ) -> Result<Self, String> {
        let cron = cron.split_whitespace().collect::<Vec<_>>().join(" ");
        let zone = match time_zone.map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => zone(name)?,
            None => default.clone(),
        };
        let time_zone = zone.iana_name().unwrap_or("UTC").to_owned();
        let pattern = Pattern::read(&cron, zone)?;
        pattern.is_seldom_enough(now_ms)?;
        Ok(Self::Periodic { cron, time_zone })
    }

    /// One moment: ISO 8601 with an offset or without one, in `zone` then; `+1h30m`; `in 5 minutes`; `today 14:00`, `tomorrow 09:30`.
    ///
    /// Errors: what is wrong with it, in a sentence.
    pub(crate) fn once(text: &str, zone: &TimeZone, now_ms: i64) -> Result<Self, String> {
        let now = moment(now_ms, zone).ok_or("the clock of this machine is wrong")?;
        let text = text.trim();
        let at = relative(text, &now)
            .or_else(|| day(text, &now))
            .or_else(|| absolute(text, zone));
        let at = at.ok_or_else(|| {
            format!(
                "`at`: \"{}\" is not a time; write \"2027-03-01T09:00:00Z\", \"2027-03-01T09:00:00\", \"+1h30m\", \"in 5 minutes\" or \"tomorrow 09:30\"",
                zeph_core::failure::one_line(text, 60)
            )
        })?;
        if at <= now.timestamp() {
            return Err("`at` must be in the future".to_owned());
        }
        if at.duration_since(now.timestamp()) > AHEAD_MAX {
            return Err("`at` is more than ten years ahead".to_owned());
        }
        Ok(Self::Once {
            at_ms: at.as_millisecond(),
        })
    }

    /// The first time after a moment; none when there is no such time.
    pub(crate) fn next(&self, after_ms: i64) -> Option<i64> {
        match self {
            Self::Once { at_ms } => (*at_ms > after_ms).then_some(*at_ms),
            Self::Periodic { .. } => self.pattern()?.next(after_ms),
        }
    }

    /// The last `n` times at or before a moment, and after another; earliest first.
    pub(crate) fn last(&self, (after_ms, until_ms): (i64, i64), n: usize) -> Vec<i64> {
        let mut times = match self {
            Self::Once { at_ms } => vec![*at_ms],
            Self::Periodic { .. } => {
                let pattern = self.pattern();
                pattern.map_or_else(Vec::new, |pattern| pattern.last(until_ms, n))
            }
        };
        times.retain(|at_ms| *at_ms > after_ms && *at_ms <= until_ms);
        times.sort_unstable();
        let n_more = times.len().saturating_sub(n);
        times.split_off(n_more)
    }

    /// In a few words.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Periodic { cron, time_zone } => format!("{cron} ({time_zone})"),
            Self::Once { .. } => "once".to_owned(),
        }
    }

    fn pattern(&self) -> Option<Pattern> {
        let Self::Periodic { cron, time_zone } = self else {
            return None;
        };
        Pattern::read(cron, zone(time_zone).ok()?).ok()
    }
}

/// A pattern of cron that was read.
struct Pattern {
    cron: croner::Cron,
    zone: TimeZone,
}

impl Pattern {
    fn read(cron: &str, zone: TimeZone) -> Result<Self, String> {
        let shown = zeph_core::failure::one_line(cron, CRON_CHARS_MAX);
        if cron.chars().count() > CRON_CHARS_MAX {
            return Err(format!(
                "`cron`: \"{shown}\" is longer than {CRON_CHARS_MAX} characters"
            ));
        }
        let n_fields = cron.split(' ').count();
        if !(5..=6).contains(&n_fields) {
            return Err(format!(
                "`cron`: \"{shown}\" has {n_fields} fields; write five (minute hour day month weekday), or six with seconds first"
            ));
        }
        let read: Result<croner::Cron, _> = cron.parse();
        match read {
            Ok(cron) => Ok(Self { cron, zone }),
            Err(error) => Err(format!("`cron`: \"{shown}\": {error}")),
        }
    }

    fn next(&self, after_ms: i64) -> Option<i64> {
        let after = moment(after_ms, &self.zone)?;
        let next = self.cron.find_next_occurrence(&after, false).ok()?;
        let next_ms = next.timestamp().as_millisecond();
        // Where a change of the clock could lead back, time goes on nevertheless.
        (next_ms > after_ms).then_some(next_ms)
    }

    fn last(&self, until_ms: i64, n: usize) -> Vec<i64> {
        // What is looked at are seconds, and the last of them counts.
        let Some(until) = moment(until_ms.saturating_add(1_000), &self.zone) else {
            return Vec::new();
        };
        let before = self.cron.iter_before(until).take(n + 1);
        before.map(|at| at.timestamp().as_millisecond()).collect()
    }

    /// Whether there is a time at all, and enough of it between two.
    fn is_seldom_enough(&self, now_ms: i64) -> Result<(), String> {
        let Some(mut at_ms) = self.next(now_ms) else {
            return Err("`cron`: no date fits the pattern".to_owned());
        };
        for _ in 0..LOOKED_AT {
            let Some(next_ms) = self.next(at_ms) else {
                return Ok(());
            };
            if next_ms - at_ms < PERIOD_MIN * 1_000 {
                return Err(format!(
                    "`cron`: runs have to be at least {PERIOD_MIN} seconds apart"
                ));
            }
            at_ms = next_ms;
        }
        Ok(())
    }
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_unknown| {
        format!(
            "there is no time zone \"{}\"; write a name such as \"Europe/Berlin\" or \"UTC\"",
            zeph_core::failure::one_line(name, 60)
        )
    })
}

fn moment(at_ms: i64, zone: &TimeZone) -> Option<Zoned> {
    let at = Timestamp::from_millisecond(at_ms).ok()?;
    Some(at.to_zoned(zone.clone()))
}

/// A moment as people read it.
pub(crate) fn shown(at_ms: i64, zone: &TimeZone) -> String {
    let at = moment(at_ms, zone);
    at.map_or_else(
        || at_ms.to_string(),
        |at| at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    )
}

fn absolute(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    // The zone in brackets counts; without this it would be passed over.
    if text.contains('[') {
        return Some(text.parse::<Zoned>().ok()?.timestamp());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    let local: DateTime = text.parse().ok()?;
    Some(local.to_zoned(zone.clone()).ok()?.timestamp())
}

/// `today HH:MM`, `tomorrow HH:MM`, in the time zone of `now`.
fn day(text: &str, now: &Zoned) -> Option<Timestamp> {
    let (word, time) = text.split_once(' ')?;
    let date = match word.to_ascii_lowercase().as_str() {
        "today" => now.date(),
        "tomorrow" => now.date().tomorrow().ok()?,
        _ => return None,
    };
    let time = Time::strptime("%H:%M", time.trim()).ok()?;
    let local = date.to_datetime(time).to_zoned(now.time_zone().clone());
    Some(local.ok()?.timestamp())
}

/// `+1h30m`, `1h30m`, `in 5 minutes`.
fn relative(text: &str, now: &Zoned) -> Option<Timestamp> {
    let seconds = match text.strip_prefix("in ") {
        Some(words) => {
            let (number, unit) = words.trim().split_once(' ')?;
            let unit = unit.trim().to_ascii_lowercase();
            amount(number.trim(), unit.strip_suffix('s').unwrap_or(&unit))?
        }
        None => compact(text.strip_prefix('+').unwrap_or(text))?,
    };
    // A time of nothing is a slip.
    let wait = SignedDuration::from_secs(seconds).checked_add(SignedDuration::ZERO)?;
    now.timestamp()
        .checked_add(wait)
        .ok()
        .filter(|_| seconds > 0)
}

/// `1h30m` in seconds.
fn compact(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let unit = rest[end..].chars().next()?;
        sum = sum.checked_add(amount(&rest[..end], &unit.to_string())?)?;
        rest = &rest[end + unit.len_utf8()..];
    }
    (!text.is_empty()).then_some(sum)
}

fn amount(number: &str, unit: &str) -> Option<i64> {
    let number: u32 = number.parse().ok()?;
    let seconds: i64 = match unit {
        "s" | "second" => 1,
        "m" | "minute" => 60,
        "h" | "hour" => 3_600,
        "d" | "day" => 86_400,
        _ => return None,
    };
    Some(i64::from(number) * seconds)
}

#[cfg(test)]
mod tests;
