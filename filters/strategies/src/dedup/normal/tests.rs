use proptest::prelude::*;

use super::{
    Role, fraction, is_named, is_unit, measured, moment, normalise, normalise_loosely, role,
};

/// In two steps, byte by byte: moments first, identifiers in what is left. Those that the line tells get a sign of their own.
fn slow<const LOOSELY: bool>(line: &str) -> (String, Vec<&str>) {
    let (mut normal, mut told) = (String::new(), Vec::new());
    let (mut at, mut last_end, mut written) = (0, 0, None);
    let mut was_word = false;
    while let Some(c) = line[at..].chars().next() {
        let may_begin = (c.is_ascii_alphanumeric() && !was_word) || c == '[';
        match moment(line.as_bytes(), at).filter(|_| may_begin) {
            Some(end) => {
                let role = role::<LOOSELY>(line.as_bytes(), at..end, (last_end, written.clone()));
                if role == Role::Told {
                    normal.push('\u{4}');
                    told.push(&line[at..end]);
                } else {
                    normal.push('\u{1}');
                }
                if role == Role::Written {
                    written = Some(at..end);
                }
                (at, last_end) = (end, end);
                was_word = false;
            }
            None => {
                normal.push(c);
                at += c.len_utf8();
                was_word = c.is_ascii_alphanumeric();
            }
        }
    }
    (normal, told)
}

fn with_told(mut normal: String, told: Vec<&str>) -> String {
    for text in told {
        normal = normal.replacen('\u{4}', text, 1);
    }
    normal
}

fn slow_loosely(line: &str) -> String {
    let (normal, told) = slow::<true>(line);
    let mut loose = String::new();
    let mut rest = normal.as_str();
    while let Some(c) = rest.chars().next() {
        let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == 'µ';
        let n = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        if n == 0 {
            loose.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (word, behind) = rest.split_at(n);
        let before = &normal[..normal.len() - rest.len()];
        let n_digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let part = fraction(word, behind);
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if has_digit && (part.is_some() || (n_digits > 0 && is_unit(&word[n_digits..]))) {
            loose.push_str(&"\u{2}".repeat(n_digits));
            loose.push_str(&word[n_digits..]);
        } else if ((n_digits == word.len() && n_digits >= 5)
            || (has_digit && n_digits < word.len() && is_hex && word.len() >= 8))
            && is_named(before.as_bytes(), behind)
        {
            match measured(behind).filter(|_| n_digits == word.len()) {
                Some(unit) if is_unit(unit) => loose.push_str(&"\u{2}".repeat(n_digits)),
                Some(_) => loose.push_str(word),
                None => loose.push('\u{3}'),
            }
        } else {
            loose.push_str(word);
        }
        rest = &behind[part.filter(|_| has_digit).unwrap_or(0)..];
    }
    with_told(loose, told)
}

proptest! {
    #[test]
    fn one_pass_finds_what_two_find(parts in prop::collection::vec(prop_oneof![
        "2024-01-0[12]", "2024/01/02T", "03:04:05", "[.,]678", "\\+01:00|Z| ", "Jan  2 ", "\\[ 12\\.345\\]",
        "5f1e0b7a-3c1d-4e7a-9b61-0123456789ab", "[0-9a-f]{7,9}", "[0-9]{1,6}", "\\.[0-9]{1,3}", "µs|µ|ms|s|ns", "[ :.é°a-z\\[-]",
        "id=|pid |trace=|request_|[a-z]\\[|\\]: ", " ms| kB|%| rows", " took | of ",
    ], 0..8)) {
        let line = parts.concat();
        let mut normal = String::new();
        normalise(&line, &mut normal);
        let (slow, told) = slow::<false>(&line);
        prop_assert_eq!(&normal, &with_told(slow, told));
        normalise_loosely(&line, &mut normal);
        prop_assert_eq!(&normal, &slow_loosely(&line));
    }
}

#[test]
fn only_what_is_named_so_is_an_identifier() {
    let normal = |line: &str| {
        let mut normal = String::new();
        normalise_loosely(line, &mut normal);
        normal.replace('\u{3}', "I")
    };
    for (line, expect) in [
        (
            "shipped order 10430 to customer 88120",
            "shipped order 10430 to customer 88120",
        ),
        (
            "paid 12000 cents, valid: 55555",
            "paid 12000 cents, valid: 55555",
        ),
        (
            "request_id=10430 orderID: 10431 traceID: 93cf1a42",
            "request_id=I orderID: 10431 traceID: I",
        ),
        (
            "{\"pid\": 10430, \"userId\":88120, \"requestId\":\"93cf1a42\"}",
            "{\"pid\": I, \"userId\":88120, \"requestId\":\"I\"}",
        ),
        (
            "order id=48218, card declined",
            "order id=48218, card declined",
        ),
        (
            "deleted user e5fa44f2b31c sha256:93cf1a42202bc917",
            "deleted user e5fa44f2b31c sha256:93cf1a42202bc917",
        ),
        (
            "request 93cf1a42 X-Request-Id: 93cf1a42",
            "request I X-Request-Id: I",
        ),
        ("sshd[48112]: Request #48113", "sshd[I]: Request #I"),
        (
            "sizes [48112] 93cf1a42202bc917 id 7",
            "sizes [48112] 93cf1a42202bc917 id 7",
        ),
    ] {
        assert_eq!(normal(line), expect, "{line}");
    }
}

#[test]
fn what_is_measured_is_no_identifier() {
    let normal = |line: &str| {
        let mut normal = String::new();
        normalise_loosely(line, &mut normal);
        normal.replace('\u{3}', "I").replace('\u{2}', "0")
    };
    for (line, expect) in [
        ("slow request: 10007 ms", "slow request: 00000 ms"),
        ("slow request: 950000 ms", "slow request: 000000 ms"),
        ("slow request: 950000.5 ms", "slow request: 000000.5 ms"),
        ("request 204800 bytes sent", "request 204800 bytes sent"),
        (
            "session: 86400 Rows, thread 10430%",
            "session: 86400 Rows, thread 10430%",
        ),
        (
            "process 10430 started, pid 93421087 ms",
            "process I started, pid 00000000 ms",
        ),
        ("request 10430 msgs", "request I msgs"),
    ] {
        assert_eq!(normal(line), expect, "{line}");
    }
}
