use proptest::prelude::*;

use super::{fraction, is_named, is_unit, moment, normalise, normalise_loosely};

/// In two steps, byte by byte: moments first, identifiers in what is left.
fn slow(line: &str) -> String {
    let mut normal = String::new();
    let mut at = 0;
    let mut was_word = false;
    while let Some(c) = line[at..].chars().next() {
        let may_begin = (c.is_ascii_alphanumeric() && !was_word) || c == '[';
        match moment(line.as_bytes(), at).filter(|_| may_begin) {
            Some(end) => {
                normal.push('\u{1}');
                at = end;
                was_word = false;
            }
            None => {
                normal.push(c);
                at += c.len_utf8();
                was_word = c.is_ascii_alphanumeric();
            }
        }
    }
    normal
}

fn slow_loosely(line: &str) -> String {
    let normal = slow(line);
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
            loose.push('\u{3}');
        } else {
            loose.push_str(word);
        }
        rest = &behind[part.filter(|_| has_digit).unwrap_or(0)..];
    }
    loose
}

proptest! {
    #[test]
    fn one_pass_finds_what_two_find(parts in prop::collection::vec(prop_oneof![
        "2024-01-0[12]", "2024/01/02T", "03:04:05", "[.,]678", "\\+01:00|Z| ", "Jan  2 ", "\\[ 12\\.345\\]",
        "5f1e0b7a-3c1d-4e7a-9b61-0123456789ab", "[0-9a-f]{7,9}", "[0-9]{1,6}", "\\.[0-9]{1,3}", "µs|µ|ms|s|ns", "[ :.é°a-z\\[-]",
        "id=|pid |trace=|request_|[a-z]\\[|\\]: ",
    ], 0..8)) {
        let line = parts.concat();
        let mut normal = String::new();
        normalise(&line, &mut normal);
        prop_assert_eq!(&normal, &slow(&line));
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
