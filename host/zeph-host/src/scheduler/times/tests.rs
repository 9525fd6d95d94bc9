use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::Times;

fn ms(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn text(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).unwrap().to_string()
}

fn periodic(cron: &str, zone: &str) -> Times {
    Times::periodic(cron, Some(zone), &TimeZone::UTC, ms("2026-01-01T00:00:00Z")).unwrap()
}

/// The first times of a pattern after a moment.
fn after(times: &Times, from: &str, n: usize) -> Vec<i64> {
    let mut at_ms = ms(from);
    let mut found = Vec::new();
    for _ in 0..n {
        at_ms = times.next(at_ms).unwrap();
        found.push(at_ms);
    }
    found
}

/// The first times of a pattern after a midnight, by a matcher that knows nothing of croner: every day is looked at, field by field.
fn looked_up(cron: &str, midnight: DateTime, n_days: i64) -> Vec<i64> {
    let fields: Vec<&str> = cron.split(' ').collect();
    let (days, months) = (values(fields[2], 1, 31), values(fields[3], 1, 12));
    let mut weekdays = values(fields[4], 0, 7);
    if weekdays.contains(&7) {
        weekdays.insert(0);
    }
    let is_day = |at: DateTime| {
        let is_date = days.contains(&i64::from(at.day()));
        let is_weekday = weekdays.contains(&i64::from(at.weekday().to_sunday_zero_offset()));
        let fits = match (fields[2].starts_with('*'), fields[4].starts_with('*')) {
            (true, _) => is_weekday,
            (false, true) => is_date,
            // Two restricted fields are alternatives.
            (false, false) => is_date || is_weekday,
        };
        fits && months.contains(&i64::from(at.month()))
    };
    let mut found = Vec::new();
    for day in (0..n_days).map(|n| midnight.checked_add(n.days()).unwrap()) {
        for hour in values(fields[1], 0, 23).iter().filter(|_| is_day(day)) {
            for minute in &values(fields[0], 0, 59) {
                let at = day.checked_add((hour * 60 + minute).minutes()).unwrap();
                let at = at.to_zoned(TimeZone::UTC).unwrap();
                found.push(at.timestamp().as_millisecond());
            }
        }
    }
    found
}

fn values(field: &str, first: i64, last: i64) -> BTreeSet<i64> {
    let mut values = BTreeSet::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse().unwrap()),
            None => (part, 1),
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (first, last),
            (_, Some((from, to))) => (from.parse().unwrap(), to.parse().unwrap()),
            (one, None) => (one.parse().unwrap(), one.parse().unwrap()),
        };
        values.extend((from..=to).step_by(step));
    }
    values
}

#[test]
fn patterns_mean_what_a_look_at_every_minute_finds() {
    let patterns = [
        "*/15 * * * *",
        "5-59/5 * * * *",
        "7 3 * * *",
        "0 9-17/2 * * 1-5",
        "30 6 1,15 * *",
        "0 0 29 2 *",
        "15 10 13 * 5",
        "0 12 * 1-6/2 0",
        "0 12 * * 7",
        "59 23 31 * *",
        "1-3,50-58/4 0,12 * 3 *",
    ];
    let midnight: DateTime = "2027-02-20T00:00:00".parse().unwrap();
    for cron in patterns {
        let times = periodic(cron, "UTC");
        let mut expected = looked_up(cron, midnight, 400);
        expected.truncate(60);
        let found = after(&times, "2027-02-19T23:59:59Z", expected.len());
        assert_eq!(found, expected, "{cron}");
    }
}

#[test]
fn what_is_no_pattern_says_why() {
    let refused = |cron: &str| {
        let now = ms("2026-01-01T00:00:00Z");
        Times::periodic(cron, None, &TimeZone::UTC, now).unwrap_err()
    };
    for (cron, words) in [
        ("", "1 fields; write five"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * 2030", "has 7 fields"),
        ("@daily", "has 1 fields"),
        ("5/5 * * * *", "single number steps"),
        ("/5 * * * *", "omitting the starting point"),
        ("*/0 * * * *", "`cron`"),
        ("60 * * * *", "`cron`"),
        ("* 24 * * *", "`cron`"),
        ("* * 0 * *", "`cron`"),
        ("* * * 13 *", "`cron`"),
        ("* * * * 8", "`cron`"),
        ("9-5 * * * *", "`cron`"),
        ("a b c d e", "`cron`"),
        ("0 0 30 2 *", "no date fits"),
        ("* * * * * *", "10 seconds apart"),
        ("*/5 * * * * *", "10 seconds apart"),
        ("\u{661} * * * *", "`cron`"),
    ] {
        let refused = refused(cron);
        assert!(refused.contains(words), "{cron}: {refused}");
    }
    let long = format!("{} * * * *", "1,".repeat(60));
    assert!(
        refused(&long).contains("longer than 64"),
        "{}",
        refused(&long)
    );
    let zone = Times::periodic("* * * * *", Some("Mars/Base"), &TimeZone::UTC, 0);
    assert!(zone.unwrap_err().contains("no time zone \"Mars/Base\""));
}

#[test]
fn six_fields_have_seconds_and_blanks_do_not_matter() {
    let times = periodic("  30   0 12 * *   * ", "UTC");
    assert_eq!(
        times.next(ms("2026-05-01T12:00:30Z")).map(text).unwrap(),
        "2026-05-02T12:00:30Z"
    );
    let seldom = periodic("*/10 * * * * *", "UTC");
    assert_eq!(
        seldom.next(ms("2026-05-01T12:00:01Z")).map(text).unwrap(),
        "2026-05-01T12:00:10Z"
    );
}

#[test]
fn a_time_of_the_day_comes_once_a_day_whatever_the_clock_does() {
    // In spring 02:30 does not exist in Berlin; in autumn it comes twice.
    let daily = periodic("30 2 * * *", "Europe/Berlin");
    for (from, days) in [
        (
            "2027-03-26T12:00:00Z",
            ["2027-03-27", "2027-03-28", "2027-03-29"],
        ),
        (
            "2027-10-29T12:00:00Z",
            ["2027-10-30", "2027-10-31", "2027-11-01"],
        ),
    ] {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let found = after(&daily, from, 3);
        let dates: Vec<String> = found
            .iter()
            .map(|at_ms| {
                let at = Timestamp::from_millisecond(*at_ms).unwrap();
                at.to_zoned(zone.clone()).date().to_string()
            })
            .collect();
        assert_eq!(dates, days, "{from}");
        assert!(found.windows(2).all(|two| two[0] < two[1]), "{from}");
    }
    // An hourly pattern goes on through both hours.
    let hourly = periodic("0 * * * *", "Europe/Berlin");
    let found = after(&hourly, "2027-10-30T22:30:00Z", 6);
    assert!(
        found.windows(2).all(|two| two[1] - two[0] == 3_600_000),
        "{found:?}"
    );
}

#[test]
fn the_last_times_are_found_without_looking_at_all() {
    let minutely = periodic("* * * * *", "UTC");
    let (from, until) = (ms("2025-01-01T00:00:00Z"), ms("2026-01-01T00:00:00Z"));
    let last = minutely.last((from, until), 3);
    let shown: Vec<String> = last.into_iter().map(text).collect();
    assert_eq!(
        shown,
        [
            "2025-12-31T23:58:00Z",
            "2025-12-31T23:59:00Z",
            "2026-01-01T00:00:00Z"
        ]
    );
    assert!(minutely.last((until, until), 3).is_empty());
}

#[test]
fn a_moment_is_written_in_many_ways() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let now = ms("2027-06-01T10:00:00Z");
    let at = |text: &str, zone: &TimeZone| match Times::once(text, zone, now) {
        Ok(Times::Once { at_ms }) => Timestamp::from_millisecond(at_ms).unwrap().to_string(),
        other => format!("{other:?}"),
    };
    for (written, expected) in [
        ("2027-07-01T09:00:00Z", "2027-07-01T09:00:00Z"),
        ("2027-07-01T09:00:00+05:30", "2027-07-01T03:30:00Z"),
        ("2027-07-01T09:00:00", "2027-07-01T09:00:00Z"),
        ("2027-07-01 09:00", "2027-07-01T09:00:00Z"),
        ("+1h30m", "2027-06-01T11:30:00Z"),
        ("90s", "2027-06-01T10:01:30Z"),
        ("in 5 minutes", "2027-06-01T10:05:00Z"),
        ("in 1 day", "2027-06-02T10:00:00Z"),
        ("today 23:15", "2027-06-01T23:15:00Z"),
        ("tomorrow 09:30", "2027-06-02T09:30:00Z"),
        ("2027-06-02T09:30:00[Europe/Berlin]", "2027-06-02T07:30:00Z"),
        (
            "2027-06-02T09:30:00+02:00[Europe/Berlin]",
            "2027-06-02T07:30:00Z",
        ),
    ] {
        assert_eq!(at(written, &TimeZone::UTC), expected, "{written}");
    }
    assert_eq!(at("2027-07-01T09:00:00", &berlin), "2027-07-01T07:00:00Z");
    assert_eq!(at("tomorrow 00:10", &berlin), "2027-06-01T22:10:00Z");
    for (written, words) in [
        ("2027-06-01T10:00:00Z", "in the future"),
        ("today 08:00", "in the future"),
        ("+0s", "is not a time"),
        ("in 0 minutes", "is not a time"),
        ("in many minutes", "is not a time"),
        ("99999999999h", "is not a time"),
        ("2027-02-30T00:00:00Z", "is not a time"),
        ("", "is not a time"),
        ("soon", "is not a time"),
        ("2999-01-01T00:00:00Z", "ten years"),
    ] {
        let refused = at(written, &TimeZone::UTC);
        assert!(refused.contains(words), "{written}: {refused}");
    }
}
