//! Small pieces of text that several tools print.

use std::borrow::Cow;

/// Characters shown of one line. A longer one is machine-made and would crowd out everything else.
pub const LINE_CHARS_MAX: usize = 2_000;

/// `number` with a comma between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (idx, digit) in digits.chars().enumerate() {
        if idx > 0 && (digits.len() - idx).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 line`, `1,234 lines`.
pub fn counted(number: u64, singular: &str, plural: &str) -> String {
    match number {
        1 => format!("1 {singular}"),
        number => format!("{} {plural}", grouped(number)),
    }
}

/// Says that directories could not be entered.
pub fn closed(number: u64) -> String {
    let directories = counted(number, "directory", "directories");
    format!("[{directories} could not be entered: the host has no permission]")
}

/// `1 byte`, `1,234 bytes`.
pub fn bytes(number: u64) -> String {
    counted(number, "byte", "bytes")
}

/// A name or path as one that forges no entry of a list and steers no terminal: what is invisible is written as an escape.
pub fn name(path: &str) -> String {
    if !path.chars().any(is_deceptive) {
        return path.to_owned();
    }
    let mut text = String::with_capacity(path.len() + 8);
    for letter in path.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            letter if is_deceptive(letter) => text.extend(letter.escape_default()),
            letter => text.push(letter),
        }
    }
    text
}

/// The note for a list with names that are not UTF-8.
pub const ESCAPED_NAMES: &str =
    "[a name with \\xNN is not UTF-8; no file tool can open it, but a command can]";

/// Whether the host wrote the last part of this path, of an entry that is neither file, directory nor link, with an escape.
pub fn is_escaped(path: &str) -> bool {
    let leaf = path.rsplit('/').next().unwrap_or(path);
    leaf.match_indices("\\x").any(|(at, _)| {
        let digits = leaf.as_bytes().get(at + 2..at + 4);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Whether a character steers, reorders or hides text: control characters, separators of lines, marks of direction, what has no width.
fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A line as text: unreadable bytes become `�`, and what is longer than `chars_max` is cut and says so.
///
/// Shape: `head` is the line without its end, or enough of a huge one; `len` is the length of the whole line.
pub fn line(head: &[u8], len: u64, chars_max: usize) -> Cow<'_, str> {
    // Four bytes hold any character, so converting more than this could not show more.
    let head = &head[..head.len().min(chars_max * 4 + 4)];
    // The general conversion looks at each byte by itself. Most lines are UTF-8, and that is seen some bytes at a time.
    let text = match str::from_utf8(head) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(head),
    };
    // A text has no more characters than bytes: most lines need not be counted.
    let cut = match text.len() > chars_max {
        true => text.char_indices().nth(chars_max),
        false => None,
    };
    match cut {
        None => text,
        Some((end, _)) => {
            let left = bytes(len.saturating_sub(end as u64));
            format!("{}… (cut, {left} more)", &text[..end]).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, "match", "matches"), "1 match");
        assert_eq!(bytes(2_048), "2,048 bytes");
    }

    #[test]
    fn names_forge_no_lines() {
        for (given, expected) in [
            ("a b/ü.rs", "a b/ü.rs"),
            ("a\\b", "a\\b"),
            ("a\nb", "a\\nb"),
            ("a\r\u{1b}[1m", "a\\r\\u{1b}[1m"),
            ("x\u{202e}y\\", "x\\u{202e}y\\\\"),
        ] {
            assert_eq!(name(given), expected);
        }
    }

    #[test]
    fn long_lines_say_how_much_is_missing() {
        let check = |text: &[u8], chars_max, expected| {
            assert_eq!(line(text, text.len() as u64, chars_max), expected);
        };
        check(b"short", 10, "short");
        check("äöü".as_bytes(), 3, "äöü");
        check("äöüß!".as_bytes(), 3, "äöü… (cut, 3 bytes more)");
        check(b"a\xff", 10, "a\u{fffd}");
    }
}
