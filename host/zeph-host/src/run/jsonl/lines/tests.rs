use std::io::BufReader;

use super::{InputLine, InputLines, TooLong};

/// Reads `input` through a buffer of three bytes, so that every boundary falls inside a line somewhere.
fn check(input: &[u8], expect: &[(u64, Result<&str, u64>)]) {
    let mut lines = InputLines::new(BufReader::with_capacity(3, input), 8);
    let mut found = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        found.push(line);
    }
    let expect: Vec<InputLine> = expect
        .iter()
        .map(|(number, content)| InputLine {
            number: *number,
            content: match content {
                Ok(text) => Ok(text.as_bytes().to_vec()),
                Err(n_bytes) => Err(TooLong { n_bytes: *n_bytes }),
            },
        })
        .collect();
    assert_eq!(found, expect, "{:?}", String::from_utf8_lossy(input));
}

#[test]
fn lines_are_cut_numbered_and_bounded() {
    check(b"", &[]);
    check(b"\n\n \t\r\n", &[]);
    check(b"a\nbc\n", &[(1, Ok("a")), (2, Ok("bc"))]);
    check(b"a\n\nbc", &[(1, Ok("a")), (3, Ok("bc"))]);
    check(b"a\r\n", &[(1, Ok("a\r"))]);
    check(b"\xEF\xBB\xBFa\n", &[(1, Ok("a"))]);
    check(b"\xEF\xBB\xBF\na\n", &[(2, Ok("a"))]);
    check(b"12345678\n", &[(1, Ok("12345678"))]);
    check(b"123456789\nb\n", &[(1, Err(9)), (2, Ok("b"))]);
    check(b"a\n1234567890123", &[(1, Ok("a")), (2, Err(13))]);
    check(b"              \nb", &[(2, Ok("b"))]);
}

/// A reader that never ends its first line: only the count may grow.
#[test]
fn a_line_that_is_too_long_is_not_kept() {
    let endless = std::io::Read::take(std::io::repeat(b'x'), 100_000_000);
    let mut lines = InputLines::new(BufReader::with_capacity(1 << 16, endless), 1000);
    let line = lines.next_line().unwrap().unwrap();
    assert_eq!(
        line.content,
        Err(TooLong {
            n_bytes: 100_000_000
        })
    );
    assert_eq!(lines.next_line().unwrap(), None);
}
