//! Events as `go test` writes them: a few fields in one order. Reading them so takes a third of what a parser of JSON takes; what looks
//! otherwise is left to one.

use std::borrow::Cow;

use memchr::memchr2;

use super::Event;

/// The event of a line in the usual form. Where it gives one, a parser of JSON gives the same.
pub(super) fn event(line: &str) -> Option<Event<'_>> {
    let mut rest = line.strip_prefix('{')?;
    // No text of JSON holds a control character as it is. Without leaving early: this way several bytes are compared at once.
    if line
        .bytes()
        .fold(false, |found, byte| found | (byte < b' '))
    {
        return None;
    }
    bare(&mut rest, "\"Time\":\"")?;
    let action = bare(&mut rest, ",\"Action\":\"")?;
    let package = text(&mut rest, ",\"Package\":\"")?.unwrap_or_default();
    let test = text(&mut rest, ",\"Test\":\"")?;
    if let Some(after) = rest.strip_prefix(",\"Elapsed\":") {
        rest = after_number(after)?;
    }
    let output = text(&mut rest, ",\"Output\":\"")?;
    (rest == "}").then_some(Event {
        action,
        package,
        test,
        output,
    })
}

/// A text without escapes after its name.
fn bare<'a>(rest: &mut &'a str, name: &str) -> Option<&'a str> {
    match text(rest, name)? {
        Some(Cow::Borrowed(text)) => Some(text),
        _ => None,
    }
}

/// A text after its name; `Some(None)` where another field stands.
fn text<'a>(rest: &mut &'a str, name: &str) -> Option<Option<Cow<'a, str>>> {
    let Some(after) = rest.strip_prefix(name) else {
        return Some(None);
    };
    let end = memchr2(b'"', b'\\', after.as_bytes())?;
    let (text, after) = if after.as_bytes()[end] == b'"' {
        (Cow::Borrowed(&after[..end]), &after[end + 1..])
    } else {
        let (text, after) = unescaped(after)?;
        (Cow::Owned(text), after)
    };
    *rest = after;
    Some(Some(text))
}

/// A text up to its quote, and what is behind that.
fn unescaped(text: &str) -> Option<(String, &str)> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let end = memchr2(b'"', b'\\', rest.as_bytes())?;
        plain.push_str(&rest[..end]);
        let after = &rest[end + 1..];
        if rest.as_bytes()[end] == b'"' {
            return Some((plain, after));
        }
        let (letter, n_bytes) = match after.as_bytes().first()? {
            b'n' => ('\n', 1),
            b't' => ('\t', 1),
            b'"' => ('"', 1),
            b'\\' => ('\\', 1),
            // `<`, `>`, `&` and single controls are written so; half of a pair stands for nothing.
            b'u' => {
                let digits = after.get(1..5)?;
                let is_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_digits)?;
                (char::from_u32(code)?, 5)
            }
            _ => return None,
        };
        plain.push(letter);
        rest = &after[n_bytes..];
    }
}

/// What follows a plain number.
fn after_number(text: &str) -> Option<&str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let after = text.trim_start_matches(is_digit);
    let whole = &text[..text.len() - after.len()];
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let Some(digits) = after.strip_prefix('.') else {
        return Some(after).filter(|after| !after.starts_with(['e', 'E']));
    };
    let rest = digits.trim_start_matches(is_digit);
    (rest.len() < digits.len() && !rest.starts_with(['e', 'E'])).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::{Event, event};

    fn parsed(line: &str) -> Option<Event<'_>> {
        serde_json::from_str(line).ok()
    }

    fn shown(event: &Event<'_>) -> String {
        let Event {
            action,
            package,
            test,
            output,
        } = event;
        format!("{action} {package:?} {test:?} {output:?}")
    }

    #[test]
    fn usual_events_are_read() {
        for line in [
            r#"{"Time":"2024-01-01T00:00:00Z","Action":"start","Package":"example.org/shop"}"#,
            r#"{"Time":"t","Action":"run","Package":"p","Test":"TestA/b_c"}"#,
            r#"{"Time":"t","Action":"output","Package":"p","Test":"T","Output":"=== RUN   T\n"}"#,
            r#"{"Time":"t","Action":"pass","Package":"p","Test":"T","Elapsed":0.01}"#,
            r#"{"Time":"t","Action":"fail","Package":"p","Elapsed":0}"#,
            r#"{"Time":"t","Action":"output","Package":"p","Output":"\tä \"q\" \\ \u003cb\u003e \u001b[0m\n"}"#,
        ] {
            let read = event(line).expect("it is usual");
            assert_eq!(shown(&read), shown(&parsed(line).expect("it is JSON")));
        }
    }

    /// Whatever a line is changed to: what is read so, is read the same by a parser.
    #[test]
    fn no_other_event_is_read_than_a_parser_reads() {
        let line = r#"{"Time":"t","Action":"output","Package":"p/q","Test":"T","Elapsed":0.25,"Output":"a\u003c\n"}"#;
        let pieces = [
            "\"", "\\", "\\u", "\\ud800", "\\n", "{", "}", ",", ":", "0", "00", ".", "e1", "-",
            "\t", "\u{1}", "ä", " ", "\\q", "\\/", "\\u+041",
        ];
        let mut n_read = 0;
        for at in (0..=line.len()).filter(|at| line.is_char_boundary(*at)) {
            for piece in pieces {
                for n_cut in 0..3 {
                    let Some(rest) = line.get(at + n_cut..) else {
                        continue;
                    };
                    let changed = format!("{}{piece}{rest}", &line[..at]);
                    if let Some(read) = event(&changed) {
                        n_read += 1;
                        let parsed = parsed(&changed);
                        let parsed = parsed.unwrap_or_else(|| panic!("{changed}"));
                        assert_eq!(shown(&read), shown(&parsed), "{changed}");
                    }
                }
            }
        }
        assert!(n_read > 100, "{n_read}");
    }
}
