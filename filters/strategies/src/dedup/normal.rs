//! Replacing what differs from moment to moment, by hand: an expression engine would take longer than all the rest.

/// Writes `line` into `normal` with each timestamp and UUID replaced by one sign.
///
/// Shape:  dates (`2024-01-02`, `2024/01/02`, `02/Jan/2024`), times (`03:04:05.678`), both together with zones, syslog's
///         `Jan  2 03:04:05`, seconds of the kernel's log, UUIDs. Anything else stays.
/// Limits: linear, no allocation once `normal` has grown.
pub fn normalise(line: &str, normal: &mut String) {
    normal.clear();
    let bytes = line.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let is_start = bytes[at].is_ascii_alphanumeric() || bytes[at] == b'[';
        if !is_start {
            at += 1;
            continue;
        }
        if may_begin_moment(bytes[at])
            && let Some(end) = moment(bytes, at)
        {
            normal.push_str(&line[copied..at]);
            normal.push('\u{1}');
            copied = end;
            at = end;
            continue;
        }
        // The rest of a word holds no beginning; what follows a bracket may.
        let is_bracket = bytes[at] == b'[';
        at += 1;
        while !is_bracket && at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
    }
    normal.push_str(&line[copied..]);
}

/// Writes a normal line into `loose` with a sign for each identifier and the magnitude of each duration.
///
/// Shape:  identifiers are words of at least eight hexadecimal digits, of which some are digits and some are letters, and numbers
///         of at least five digits; durations are numbers with `ns`, `us`, `µs`, `ms` or `s`, of which the number of digits
///         stays, so that a slow one is not taken for a fast one.
pub(super) fn without_identifiers(normal: &str, loose: &mut String) {
    loose.clear();
    let (mut copied, mut at) = (0, 0);
    while at < normal.len() {
        let (n, has_digit) = word(&normal.as_bytes()[at..]);
        if !has_digit {
            at += n.max(1);
            continue;
        }
        loose.push_str(&normal[copied..at]);
        let (word, behind) = normal[at..].split_at(n);
        let fraction = fraction(word, behind);
        push_word(word, fraction.is_some(), loose);
        at += n + fraction.unwrap_or(0);
        copied = at;
    }
    loose.push_str(&normal[copied..]);
}

/// The length of the word that a text begins with, and whether it has a digit. Of what is not ASCII, `µ` belongs to words.
fn word(bytes: &[u8]) -> (usize, bool) {
    let (mut n, mut has_digit) = (0, false);
    loop {
        match bytes.get(n) {
            Some(b'0'..=b'9') => has_digit = true,
            Some(b'a'..=b'z' | b'A'..=b'Z') => {}
            Some(0xc2) if bytes.get(n + 1) == Some(&0xb5) => n += 1,
            _ => return (n, has_digit),
        }
        n += 1;
    }
}

/// The length of `.345ms` behind whole digits.
fn fraction(word: &str, behind: &str) -> Option<usize> {
    let digits_and_unit = behind.strip_prefix('.')?;
    let n_digits = digits(digits_and_unit.as_bytes(), 0);
    let unit = &digits_and_unit[n_digits..];
    let n_unit = unit
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(unit.len());
    let is_whole = word.bytes().all(|byte| byte.is_ascii_digit());
    (is_whole && n_digits > 0 && is_unit(&unit[..n_unit])).then_some(1 + n_digits + n_unit)
}

fn is_unit(text: &str) -> bool {
    matches!(text, "ns" | "us" | "µs" | "ms" | "s")
}

fn push_word(word: &str, has_fraction: bool, loose: &mut String) {
    let n_digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let unit = &word[n_digits..];
    if has_fraction || (n_digits > 0 && is_unit(unit)) {
        loose.extend(std::iter::repeat_n('\u{2}', n_digits));
        loose.push_str(unit);
        return;
    }
    const IDENTIFIER_CHARS: usize = 8;
    const NUMBER_DIGITS: usize = 5;
    let is_mixed = n_digits < word.len() && word.bytes().any(|byte| byte.is_ascii_digit());
    let is_hex =
        word.len() >= IDENTIFIER_CHARS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = n_digits == word.len() && n_digits >= NUMBER_DIGITS;
    if (is_hex && is_mixed) || is_number {
        loose.push('\u{3}');
    } else {
        loose.push_str(word);
    }
}

/// Digits, and the first letters of UUIDs and months.
fn may_begin_moment(first: u8) -> bool {
    matches!(first, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b'J' | b'M' | b'N' | b'O' | b'S' | b'[')
}

/// The end of the timestamp or UUID that begins at `at`.
fn moment(bytes: &[u8], at: usize) -> Option<usize> {
    let first = bytes[at];
    if first == b'[' {
        return kernel(bytes, at);
    }
    if let Some(end) = uuid(bytes, at) {
        return Some(end);
    }
    if first.is_ascii_alphabetic() {
        return syslog(bytes, at);
    }
    if let Some(date) = date(bytes, at) {
        let is_joined = matches!(bytes.get(date), Some(b'T' | b't' | b' ' | b':' | b'_'));
        let clock = if is_joined {
            clock(bytes, date + 1)
        } else {
            None
        };
        return Some(clock.map_or(date, |end| zone(bytes, end)));
    }
    clock(bytes, at).map(|end| zone(bytes, end))
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

fn date(bytes: &[u8], at: usize) -> Option<usize> {
    match digits(bytes, at) {
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
