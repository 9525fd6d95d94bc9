//! Replacing what differs from moment to moment, by hand: an expression engine would take longer than all the rest.

use std::ops::Range;

/// Writes `line` into `normal` with the time at which it was written, and UUIDs that are named as those of requests and the like,
/// each replaced by one sign.
///
/// Shape:  dates (`2024-01-02`, `2024/01/02`, `02/Jan/2024`), times (`03:04:05.678`), both together with zones, syslog's
///         `Jan  2 03:04:05`, seconds of the kernel's log, UUIDs. Anything else stays, and so do other dates and times: they are what the line
///         tells.
/// Limits: linear, no allocation once `normal` has grown.
pub fn normalise(line: &str, normal: &mut String) {
    write::<false>(line, normal);
}

/// As [`normalise`], with a sign for each UUID, identifier and other time of day, and the magnitude of each duration, too.
///
/// Shape:  identifiers are words of at least eight hexadecimal digits, of which some are digits and some are letters, and numbers
///         of at least five digits, behind a name that says that they are of a request, a thread or the like (`trace=`, `pid `,
///         `request_id=`, `sshd[…]`) and no unit behind them; any other may be what the line tells: an order, a user, a digest.
///         Durations are numbers with `ns`, `us`, `µs`, `ms` or `s`, of which the number of digits stays, so that a slow one is not taken for a fast one.
pub(super) fn normalise_loosely(line: &str, normal: &mut String) {
    write::<true>(line, normal);
}

fn write<const LOOSELY: bool>(line: &str, normal: &mut String) {
    normal.clear();
    let bytes = line.as_bytes();
    let (mut copied, mut at, mut moment_end) = (0, 0, 0);
    let mut written = None;
    while let Some(byte) = bytes.get(at) {
        let class = CLASSES[usize::from(*byte)];
        if class == 0 {
            at += 1;
            continue;
        }
        if class & MOMENT != 0
            && may_be_moment(bytes, at)
            && let Some(end) = moment(bytes, at)
        {
            match role::<LOOSELY>(bytes, at..end, (moment_end, written.clone())) {
                Role::Told => {}
                role => {
                    normal.push_str(&line[copied..at]);
                    normal.push('\u{1}');
                    copied = end;
                    written = match role {
                        Role::Written => Some(at..end),
                        _ => written,
                    };
                }
            }
            (at, moment_end) = (end, end);
            continue;
        }
        if !LOOSELY {
            // The rest of a word holds no beginning; what follows a bracket may.
            at = plain_end(bytes, at).0.max(at + 1);
            continue;
        }
        if class & LOWER != 0
            && let Some(end) = short_word_end(bytes, at)
        {
            at = end;
            continue;
        }
        let (end, has_digit) = word_end(bytes, at);
        if !has_digit {
            at = end.max(at + 1);
            continue;
        }
        let (word, behind) = line[at..].split_at(end - at);
        let fraction = fraction(word, behind);
        let before = &bytes[moment_end..at];
        let kind = kind((word, behind), fraction.is_some(), || {
            is_named(before, behind)
        });
        let start = std::mem::replace(&mut at, end + fraction.unwrap_or(0));
        if kind != Kind::Word {
            normal.push_str(&line[copied..start]);
            push_instead(word, kind, normal);
            copied = at;
        }
    }
    normal.push_str(&line[copied..]);
}

/// What a moment or UUID is to its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The time at which the line was written.
    Written,
    /// None that the line tells.
    Aside,
    /// What the line tells.
    Told,
}

/// The role of a moment, behind the end of the one before it and the time at which the line was written.
fn role<const LOOSELY: bool>(
    bytes: &[u8],
    moment: Range<usize>,
    (last_end, written): (usize, Option<Range<usize>>),
) -> Role {
    const UUID_BYTES: usize = 36;
    let before = &bytes[last_end..moment.start];
    let text = &bytes[moment.clone()];
    if text.len() == UUID_BYTES && text[8] == b'-' {
        let is_aside = LOOSELY || is_named(before, "");
        return if is_aside { Role::Aside } else { Role::Told };
    }
    // Of days alone no log is made, but for one in front.
    let is_clock = memchr::memchr(b':', text).is_some() || text[0] == b'[';
    let is_other = is_clock && !is_measure(before);
    let has_word = |text: &[u8]| text.iter().any(u8::is_ascii_alphanumeric);
    let is_written = match written {
        _ if text[0] == b'[' => true,
        None => is_other || !has_word(&bytes[..moment.start]),
        // The time of a journal, and that of the program behind it.
        Some(first) => {
            let between = &bytes[first.end..moment.start];
            let is_syslog = bytes[first.start].is_ascii_alphabetic();
            let name = between.trim_ascii_end();
            !has_word(between)
                || name.ends_with(b"]:")
                || name.ends_with(b"|")
                || (is_syslog && name.ends_with(b":"))
        }
    };
    match is_written {
        true => Role::Written,
        false if LOOSELY && is_other => Role::Aside,
        false => Role::Told,
    }
}

/// Whether what stands before a time says that it is how long something took.
fn is_measure(before: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [
        b"took",
        b"in",
        b"after",
        b"within",
        b"for",
        b"lasted",
        b"elapsed",
        b"duration",
        b"waited",
    ];
    let is_between = |byte: &u8| matches!(byte, b' ' | b'=' | b':' | b'"' | b'\'');
    let end = before.iter().rposition(|byte| !is_between(byte));
    let name = last_word(&before[..end.map_or(0, |end| end + 1)]);
    WORDS.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// What a byte may begin or belong to.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte: u8 = 0;
    loop {
        let mut class = 0;
        if byte.is_ascii_alphanumeric() {
            class |= WORD;
        }
        if byte.is_ascii_digit() {
            class |= DIGIT;
        }
        if may_begin_moment(byte) {
            class |= MOMENT;
        }
        if byte == MICRO[0] {
            class |= WIDE;
        }
        if byte.is_ascii_lowercase() {
            class |= LOWER;
        }
        classes[byte as usize] = class;
        if byte == u8::MAX {
            break classes;
        }
        byte += 1;
    }
};

/// Letters and digits of ASCII.
const WORD: u8 = 1;

const DIGIT: u8 = 2;

/// The first byte of a moment or UUID.
const MOMENT: u8 = 4;

/// The first byte of `µ`.
const WIDE: u8 = 8;

const LOWER: u8 = 16;

/// `µ`, which of all that is not ASCII belongs to words.
const MICRO: &[u8] = "µ".as_bytes();

/// The end of the letters and digits from `at` on, and whether there is a digit.
fn plain_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let mut all = 0;
    let n = bytes[at..].iter().position(|byte| {
        let class = CLASSES[usize::from(*byte)];
        all |= class & (DIGIT | WORD);
        class & WORD == 0
    });
    (n.map_or(bytes.len(), |n| at + n), all & DIGIT != 0)
}

/// The place behind a short word of lower-case letters, of which one stands at `at`, and what cannot begin anything, as most words are: eight
/// bytes at once.
#[inline]
fn short_word_end(bytes: &[u8], at: usize) -> Option<usize> {
    const TOP: u64 = 0x8080_8080_8080_8080;
    const A: u64 = 0x6161_6161_6161_6161;
    const BEHIND_Z: u64 = 0x7b7b_7b7b_7b7b_7b7b;
    let next = u64::from_le_bytes(*bytes[at..].first_chunk()?);
    // The top bit of each byte: whether it is at least `a`, and not beyond `z`, and ASCII. No byte borrows from the next.
    let is_lower = ((next | TOP) - A) & !((next | TOP) - BEHIND_Z) & !next & TOP;
    let n_lower = ((!is_lower & TOP).trailing_zeros() / u8::BITS) as usize;
    let behind = *bytes.get(at + n_lower)?;
    (n_lower < size_of::<u64>() && CLASSES[usize::from(behind)] == 0).then_some(at + n_lower + 1)
}

/// The end of the word that begins at `at`, and whether it has a digit. A moment behind `µ` is not part of it.
fn word_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let (mut end, mut has_digit) = plain_end(bytes, at);
    while bytes[end..].starts_with(MICRO) {
        let next = end + MICRO.len();
        let (next_end, next_has_digit) = plain_end(bytes, next);
        if next_end > next && may_begin_moment(bytes[next]) && moment(bytes, next).is_some() {
            return (next, has_digit);
        }
        end = next_end;
        has_digit |= next_has_digit;
    }
    (end, has_digit)
}

/// The length of `.345ms` behind whole digits.
fn fraction(word: &str, behind: &str) -> Option<usize> {
    if behind.as_bytes().first() != Some(&b'.') {
        return None;
    }
    let digits_and_unit = &behind[1..];
    let n_digits = digits(digits_and_unit.as_bytes(), 0);
    let unit = &digits_and_unit[n_digits..];
    let n_unit = unit
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(unit.len());
    let is_whole = || word.bytes().all(|byte| byte.is_ascii_digit());
    (n_digits > 0 && is_whole() && is_unit(&unit[..n_unit])).then_some(1 + n_digits + n_unit)
}

fn is_unit(text: &str) -> bool {
    text.len() <= "µs".len() && matches!(text, "ns" | "us" | "µs" | "ms" | "s")
}

/// What a word with digits is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// None of the others.
    Word,
    Identifier,
    /// A number with so many digits, and a unit behind them or behind a fraction.
    Duration(usize),
}

fn kind((word, behind): (&str, &str), has_fraction: bool, is_named: impl Fn() -> bool) -> Kind {
    const IDENTIFIER_CHARS: usize = 8;
    const NUMBER_DIGITS: usize = 5;
    let n_digits = word.bytes().take_while(u8::is_ascii_digit).count();
    if has_fraction || (n_digits > 0 && is_unit(&word[n_digits..])) {
        return Kind::Duration(n_digits);
    }
    // It has a digit; if that is not all, it is one among letters.
    let is_number = n_digits == word.len();
    let n_chars_min = if is_number {
        NUMBER_DIGITS
    } else {
        IDENTIFIER_CHARS
    };
    let is_hex = || word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if word.len() < n_chars_min || !(is_number || is_hex()) || !is_named() {
        return Kind::Word;
    }
    match measured(behind).filter(|_| is_number) {
        Some(unit) if is_unit(unit) => Kind::Duration(n_digits),
        Some(_) => Kind::Word,
        None => Kind::Identifier,
    }
}

/// The unit behind a number, which is none of a request then but tells how long it took, or how much it was: `request 204800 bytes`.
fn measured(behind: &str) -> Option<&str> {
    const UNITS: [&str; 42] = [
        "ns",
        "us",
        "µs",
        "ms",
        "msec",
        "millis",
        "milliseconds",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minutes",
        "h",
        "hours",
        "days",
        "b",
        "kb",
        "mb",
        "gb",
        "tb",
        "kib",
        "mib",
        "gib",
        "byte",
        "bytes",
        "bits",
        "chars",
        "characters",
        "tokens",
        "rows",
        "items",
        "lines",
        "files",
        "records",
        "entries",
        "messages",
        "requests",
        "times",
        "percent",
    ];
    if behind.starts_with(['%', '‰']) {
        return Some("%");
    }
    let behind = match behind.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => behind,
    };
    let rest = behind.strip_prefix(' ')?;
    if rest.starts_with('%') {
        return Some("%");
    }
    let end = rest.find(|c: char| !c.is_alphabetic());
    let unit = &rest[..end.unwrap_or(rest.len())];
    UNITS
        .iter()
        .any(|known| unit.eq_ignore_ascii_case(known))
        .then_some(unit)
}

/// Whether what stands before a word names it as the identifier of something that comes and goes, or it stands behind a program's name
/// as the number of its process.
fn is_named(before: &[u8], behind: &str) -> bool {
    const NAMES: [&[u8]; 12] = [
        b"pid",
        b"ppid",
        b"tid",
        b"req",
        b"request",
        b"session",
        b"thread",
        b"process",
        b"trace",
        b"span",
        b"txn",
        b"correlation",
    ];
    const BETWEEN_MAX: usize = 3;
    let is_between = |byte: &&u8| matches!(byte, b' ' | b'=' | b':' | b'"' | b'\'' | b'#' | b'[');
    let between = before.iter().rev().take(BETWEEN_MAX);
    let n_between = between.take_while(is_between).count();
    let (named, between) = before.split_at(before.len() - n_between);
    let name = last_word(named);
    let is_process = || between == b"[" && !name.is_empty() && behind.starts_with(']');
    let is_name = || {
        let is_known = |name: &[u8]| NAMES.iter().any(|known| name.eq_ignore_ascii_case(known));
        // `requestId`, `traceID`, `request_id`
        let joined = name
            .strip_suffix(b"Id")
            .or_else(|| name.strip_suffix(b"ID"));
        let apart = || match named[..named.len() - name.len()].split_last() {
            Some((b'_' | b'-' | b'.', stem)) if name.eq_ignore_ascii_case(b"id") => last_word(stem),
            _ => name,
        };
        is_known(joined.filter(|stem| !stem.is_empty()).unwrap_or_else(apart))
    };
    n_between > 0 && (is_name() || is_process())
}

/// The letters and digits that a text ends with.
fn last_word(text: &[u8]) -> &[u8] {
    let start = text
        .iter()
        .rposition(|byte| CLASSES[usize::from(*byte)] & WORD == 0);
    &text[start.map_or(0, |start| start + 1)..]
}

fn push_instead(word: &str, kind: Kind, normal: &mut String) {
    match kind {
        Kind::Word => normal.push_str(word),
        Kind::Identifier => normal.push('\u{3}'),
        Kind::Duration(n_digits) => {
            (0..n_digits).for_each(|_| normal.push('\u{2}'));
            normal.push_str(&word[n_digits..]);
        }
    }
}

/// Digits, and the first letters of UUIDs and months.
const fn may_begin_moment(first: u8) -> bool {
    matches!(first, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b'J' | b'M' | b'N' | b'O' | b'S' | b'[')
}

/// Whether more than the first byte may be that of a moment: nearly every word and number is ruled out.
#[inline]
fn may_be_moment(bytes: &[u8], at: usize) -> bool {
    let behind = |n: usize| bytes.get(at + n).copied().unwrap_or_default();
    let is_begun = match bytes[at] {
        b'[' => true,
        b'0'..=b'9' => matches!(behind(2), b':' | b'/') || matches!(behind(4), b'-' | b'/'),
        b'A'..=b'Z' => behind(1).is_ascii_lowercase(),
        _ => false,
    };
    is_begun || behind(8) == b'-'
}

/// The end of the timestamp or UUID that begins at `at`.
fn moment(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes[at] {
        b'[' => kernel(bytes, at),
        b'0'..=b'9' => uuid(bytes, at).or_else(|| numeric(bytes, at)),
        // Nearly all words: none that is a UUID, and none that is a month.
        _ if bytes.get(at + 8) == Some(&b'-') => uuid(bytes, at).or_else(|| syslog(bytes, at)),
        b'A'..=b'Z' => syslog(bytes, at),
        _ => None,
    }
}

/// A date, a time, or both.
fn numeric(bytes: &[u8], at: usize) -> Option<usize> {
    match digits(bytes, at) {
        n @ (2 | 4) => match date(bytes, at, n) {
            Some(date) => {
                let is_joined = matches!(bytes.get(date), Some(b'T' | b't' | b' ' | b':' | b'_'));
                let clock = is_joined.then(|| clock(bytes, date + 1)).flatten();
                Some(clock.map_or(date, |end| zone(bytes, end)))
            }
            None => clock(bytes, at).map(|end| zone(bytes, end)),
        },
        _ => None,
    }
}

/// `[ 1234.567890]`, seconds since the start.
fn kernel(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    while bytes.get(end) == Some(&b' ') {
        end += 1;
    }
    let whole = digits(bytes, end);
    if whole == 0 || bytes.get(end + whole) != Some(&b'.') {
        return None;
    }
    end += whole + 1;
    let part = digits(bytes, end);
    let is_time = part >= 3 && bytes.get(end + part) == Some(&b']');
    is_time.then_some(end + part + 1)
}

/// 8-4-4-4-12 hexadecimal digits, not part of a longer word.
fn uuid(bytes: &[u8], at: usize) -> Option<usize> {
    const LENGTH: usize = 36;
    if bytes.get(at + 8) != Some(&b'-') {
        return None;
    }
    if bytes.get(at + 13) != Some(&b'-') {
        return None;
    }
    let text = bytes.get(at..at + LENGTH)?;
    let is_uuid = text.iter().enumerate().all(|(idx, byte)| match idx {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let ends = !bytes
        .get(at + LENGTH)
        .is_some_and(u8::is_ascii_alphanumeric);
    (is_uuid && ends).then_some(at + LENGTH)
}

/// `Jan  2 03:04:05`.
fn syslog(bytes: &[u8], at: usize) -> Option<usize> {
    // Every word is looked at: the first letter rules out nearly all.
    let may_be_month = matches!(
        bytes[at],
        b'J' | b'F' | b'M' | b'A' | b'S' | b'O' | b'N' | b'D'
    );
    (may_be_month && is_month(bytes.get(at..at + 3)?)).then_some(())?;
    let mut end = at + 3;
    while bytes.get(end) == Some(&b' ') && end < at + 5 {
        end += 1;
    }
    let day = digits(bytes, end);
    if !(1..=2).contains(&day) || bytes.get(end + day) != Some(&b' ') {
        return None;
    }
    clock(bytes, end + day + 1)
}

/// A date that begins with so many digits.
fn date(bytes: &[u8], at: usize, n_digits: usize) -> Option<usize> {
    match n_digits {
        4 => {
            let separator = *bytes.get(at + 4)?;
            let is_date = matches!(separator, b'-' | b'/')
                && digits(bytes, at + 5) == 2
                && bytes.get(at + 7) == Some(&separator)
                && digits_at_least(bytes, at + 8, 2);
            (is_date && !bytes.get(at + 10).is_some_and(u8::is_ascii_digit)).then_some(at + 10)
        }
        2 if bytes.get(at + 2) == Some(&b'/') => {
            let month = bytes.get(at + 3..at + 6)?;
            let is_date =
                is_month(month) && bytes.get(at + 6) == Some(&b'/') && digits(bytes, at + 7) == 4;
            is_date.then_some(at + 11)
        }
        _ => None,
    }
}

/// `03:04:05`, with parts of a second.
fn clock(bytes: &[u8], at: usize) -> Option<usize> {
    // Most numbers are none.
    if bytes.get(at + 2) != Some(&b':') {
        return None;
    }
    let is_clock = digits(bytes, at) == 2
        && bytes.get(at + 2) == Some(&b':')
        && digits(bytes, at + 3) == 2
        && bytes.get(at + 5) == Some(&b':')
        && digits(bytes, at + 6) == 2;
    if !is_clock {
        return None;
    }
    let end = at + 8;
    let is_fraction = matches!(bytes.get(end), Some(b'.' | b',')) && digits(bytes, end + 1) > 0;
    Some(if is_fraction {
        end + 1 + digits(bytes, end + 1)
    } else {
        end
    })
}

/// `Z`, `+01:00`, ` +0000` after a time.
fn zone(bytes: &[u8], at: usize) -> usize {
    let sign = if bytes.get(at) == Some(&b' ') {
        at + 1
    } else {
        at
    };
    match bytes.get(sign) {
        Some(b'Z') if sign == at => at + 1,
        Some(b'+' | b'-') if digits(bytes, sign + 1) == 4 => sign + 5,
        Some(b'+' | b'-')
            if digits(bytes, sign + 1) == 2
                && bytes.get(sign + 3) == Some(&b':')
                && digits(bytes, sign + 4) == 2 =>
        {
            sign + 6
        }
        _ => at,
    }
}

fn is_month(word: &[u8]) -> bool {
    const MONTHS: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    MONTHS.iter().any(|month| *month == word)
}

fn digits(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn digits_at_least(bytes: &[u8], at: usize, n: usize) -> bool {
    bytes
        .get(at..at + n)
        .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests;
