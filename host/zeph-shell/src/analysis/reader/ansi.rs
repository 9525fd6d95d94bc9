//! The escapes of `$'…'`.

/// Undoes the escapes, as bash does: a NUL ends the text. `None` when the text is no UTF-8, or another one from locale to locale.
pub(super) fn unescape(raw: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut depends_on_locale = false;
    let mut rest = raw.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        match rest.next() {
            None => bytes.push(b'\\'),
            Some('a') => bytes.push(0x07),
            Some('b') => bytes.push(0x08),
            Some('e' | 'E') => bytes.push(0x1b),
            Some('f') => bytes.push(0x0c),
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('t') => bytes.push(b'\t'),
            Some('v') => bytes.push(0x0b),
            Some(c @ ('\\' | '\'' | '"' | '?')) => push(&mut bytes, c),
            Some('c') => {
                let control = rest.next().unwrap_or_default();
                // Two backslashes are one here.
                if control == '\\' {
                    rest.next_if_eq(&'\\');
                }
                bytes.push(match control {
                    '?' => 0x7f,
                    control => low_byte(u32::from(control) & 0x1f),
                });
                depends_on_locale |= !control.is_ascii();
            }
            Some(c @ '0'..='7') => {
                let first = c.to_digit(8).unwrap_or_default();
                let value = digits(&mut rest, 8, 2, first).unwrap_or(first);
                bytes.push(low_byte(value));
            }
            Some('x') => match braced_or_digits(&mut rest) {
                Some(value) => bytes.push(low_byte(value)),
                None => bytes.extend_from_slice(b"\\x"),
            },
            Some(kind @ ('u' | 'U')) => {
                let most = if kind == 'u' { 4 } else { 8 };
                match digits(&mut rest, 16, most, 0) {
                    Some(value) => {
                        depends_on_locale |= value > 0x7f;
                        push(&mut bytes, char::from_u32(value).unwrap_or('\u{fffd}'));
                    }
                    None => bytes.extend_from_slice(if kind == 'u' { b"\\u" } else { b"\\U" }),
                }
            }
            Some(c) => {
                bytes.push(b'\\');
                push(&mut bytes, c);
            }
        }
    }
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    let text = String::from_utf8(bytes).ok();
    text.filter(|_| !depends_on_locale)
}

type Rest<'t> = std::iter::Peekable<std::str::Chars<'t>>;

/// `\xHH` and `\x{H…}`.
fn braced_or_digits(rest: &mut Rest<'_>) -> Option<u32> {
    if rest.next_if_eq(&'{').is_none() {
        return digits(rest, 16, 2, 0);
    }
    let value = digits(rest, 16, 8, 0);
    rest.next_if_eq(&'}');
    value
}

/// Up to `most` digits after `value`; `None` when there is none.
fn digits(rest: &mut Rest<'_>, radix: u32, most: usize, value: u32) -> Option<u32> {
    let mut value = value;
    let mut count = 0;
    while count < most {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        rest.next();
        value = value.wrapping_mul(radix).wrapping_add(digit);
        count += 1;
    }
    (count > 0).then_some(value)
}

fn low_byte(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
