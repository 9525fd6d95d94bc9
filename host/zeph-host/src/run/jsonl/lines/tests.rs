use super::{InputLine, InputLines, TooLong};

/// The lines of pieces, which go on after each line feed where the line before ended.
fn read<'a>(lines: &mut InputLines, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<InputLine> {
    let mut found = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let (n_used, line) = lines.push(piece);
            piece = &piece[n_used..];
            found.extend(line);
        }
    }
    found.extend(lines.end());
    found
}

/// Reads `input` in pieces of three bytes, so that every boundary falls inside a line somewhere.
fn check(input: &[u8], expect: &[(u64, Result<&str, u64>)]) {
    let found = read(&mut InputLines::new(8), input.chunks(3));
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

/// Input that never ends its first line: only the count may grow.
#[test]
fn a_line_that_is_too_long_is_not_kept() {
    let piece = [b'x'; 1 << 16];
    let found = read(
        &mut InputLines::new(1000),
        std::iter::repeat_n(piece.as_slice(), 1600),
    );
    let n_bytes = 1600 << 16;
    let expect = InputLine {
        number: 1,
        content: Err(TooLong { n_bytes }),
    };
    assert_eq!(found, [expect]);
}
