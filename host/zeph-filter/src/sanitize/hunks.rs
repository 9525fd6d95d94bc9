//! What stands in the hunks of a diff and would be lost with control sequences and line ends: words that only their colours tell from
//! those that took their places, and a `\r` that only some lines have.

use std::borrow::Cow;

use super::ESC;

/// What every hunk begins with, in a header of its own.
const HEADER: &[u8] = b"@@ -";

/// An output with the hunks of its diffs written so that nothing is lost: words as `git diff --word-diff=plain` writes them, `[-old-]`
/// and `{+new+}`, and a `\r` as `^M` where other lines of the hunk have none.
///
/// Limits: linear; borrows where there is no hunk, else takes one copy.
pub(super) fn told(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(raw, HEADER).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut told = Vec::with_capacity(raw.len());
    let mut hunk = Vec::new();
    let mut is_inside = false;
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let text = without_colours(line);
        let is_header = text.starts_with(HEADER);
        if is_header || text.starts_with(b"diff --") {
            write(&hunk, &mut told);
            hunk.clear();
            is_inside = is_header;
        }
        match is_inside {
            true => hunk.push(line),
            false => told.extend_from_slice(line),
        }
    }
    write(&hunk, &mut told);
    Cow::Owned(told)
}

/// Writes a hunk, and what stands behind it up to the next header.
fn write(hunk: &[&[u8]], out: &mut Vec<u8>) {
    let Some((header, rest)) = hunk.split_first() else {
        return;
    };
    out.extend_from_slice(header);
    // A line that ends otherwise than the header does ends in a `\r` of the file.
    let is_of_hunk = |line: &&&[u8]| {
        matches!(
            without_colours(line).first(),
            Some(b' ' | b'+' | b'-' | b'\\')
        )
    };
    let by_header = n_signed(header, rest);
    let n_signed = by_header.unwrap_or_else(|| rest.iter().take_while(is_of_hunk).count());
    let signed = rest.iter().take(n_signed);
    let n_returns = signed.filter(|line| return_at(line).is_some()).count();
    let is_mixed = return_at(header).is_none() && (1..n_signed).contains(&n_returns);
    for (line_idx, line) in rest.iter().enumerate() {
        if is_mixed
            && line_idx < n_signed
            && let Some(at) = return_at(line)
        {
            out.extend_from_slice(&line[..at]);
            out.extend_from_slice(b"^M");
            out.extend_from_slice(&line[at + 1..]);
        } else if by_header.is_none() && has_words(line) {
            write_words(line, out);
        } else {
            out.extend_from_slice(line);
        }
    }
}

/// How many lines a hunk has by its header; `None` where their signs are others, as in one of words, which has none.
fn n_signed(header: &[u8], rest: &[&[u8]]) -> Option<usize> {
    let mut left = counts(header)?;
    let mut signs = rest.iter().map(|line| without_colours(line).first());
    let (mut n_lines, mut is_changed) = (0, false);
    while left != [0, 0] {
        let [old, new] = match signs.next()?? {
            b'-' => [1, 0],
            b'+' => [0, 1],
            b' ' | b'\r' | b'\n' => [1, 1],
            b'\\' => [0, 0],
            _ => return None,
        };
        is_changed |= old != new;
        left = [left[0].checked_sub(old)?, left[1].checked_sub(new)?];
        n_lines += 1;
    }
    // Words in lines that are all indented look like lines that stay.
    is_changed.then_some(n_lines)
}

/// How many lines a header tells of, before and after: `@@ -1,3 +1 @@`.
fn counts(header: &[u8]) -> Option<[usize; 2]> {
    let header = without_colours(header).strip_prefix(HEADER)?;
    let end = header.windows(3).position(|part| part == b" @@")?;
    let (old, new) = str::from_utf8(&header[..end]).ok()?.split_once(" +")?;
    let count = |side: &str| match side.split_once(',') {
        Some((_, n)) => n.parse().ok(),
        None => Some(1),
    };
    Some([count(old)?, count(new)?])
}

/// Where the `\r` stands before the end of a line and the colours before that.
fn return_at(line: &[u8]) -> Option<usize> {
    let mut end = line.strip_suffix(b"\n")?;
    loop {
        if end.ends_with(b"\r") {
            return Some(end.len() - 1);
        }
        let start = memchr::memrchr(ESC, end)?;
        let (_, behind) = colour(&end[start..])?;
        end = end.get(..start).filter(|_| behind.is_empty())?;
    }
}

/// The parameters of the colour that a text begins with, and what is behind it.
fn colour(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let behind = text.strip_prefix(b"\x1b[")?;
    let is_parameter = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    let n = behind.iter().take_while(|byte| is_parameter(byte)).count();
    let (parameters, end) = behind.split_at(n);
    Some((parameters, end.strip_prefix(b"m")?))
}

/// A line from behind the colours that it begins with.
fn without_colours(mut line: &[u8]) -> &[u8] {
    while let Some((_, behind)) = colour(line) {
        line = behind;
    }
    line
}

/// What becomes of the words behind a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Old,
    New,
    Kept,
}

impl Words {
    /// `None` for a colour that says nothing of it. Red and green are those of `git`, bright or not.
    fn of(parameters: &[u8]) -> Option<Self> {
        let mut words = None;
        for parameter in parameters.split(|byte| *byte == b';') {
            words = match parameter {
                b"31" | b"91" => Some(Self::Old),
                b"32" | b"92" => Some(Self::New),
                b"" | b"0" | b"39" => Some(Self::Kept),
                _ => words,
            };
        }
        words
    }

    fn marks(self) -> [&'static [u8]; 2] {
        match self {
            Self::Old => [b"[-", b"-]"],
            Self::New => [b"{+", b"+}"],
            Self::Kept => [b"", b""],
        }
    }
}

/// Whether a line has words of their own colour: it is coloured, and not from its sign on.
fn has_words(line: &[u8]) -> bool {
    let text = without_colours(line);
    let is_sign = text.len() < line.len() && matches!(text.first(), Some(b'+' | b'-'));
    let mut colours = memchr::memchr_iter(ESC, line).filter_map(|at| colour(&line[at..]));
    let is_told = |(parameters, _): (&[u8], &[u8])| {
        matches!(Words::of(parameters), Some(Words::Old | Words::New))
    };
    !is_sign && colours.any(is_told)
}

fn write_words(line: &[u8], out: &mut Vec<u8>) {
    let mut words = Words::Kept;
    let mut rest = line;
    while let Some(first) = rest.first() {
        if let Some((parameters, behind)) = colour(rest) {
            if let Some(next) = Words::of(parameters).filter(|next| *next != words) {
                out.extend_from_slice(words.marks()[1]);
                out.extend_from_slice(next.marks()[0]);
                words = next;
            }
            rest = behind;
            continue;
        }
        if matches!(first, b'\r' | b'\n') {
            out.extend_from_slice(words.marks()[1]);
            words = Words::Kept;
        }
        out.push(*first);
        rest = &rest[1..];
    }
    out.extend_from_slice(words.marks()[1]);
}

#[cfg(test)]
mod tests {
    use super::told;
    use crate::sanitize::{clean, clean_whole};

    fn check(raw: &str, expect: &str) {
        for text in [clean(raw.as_bytes()).text, clean_whole(raw.as_bytes()).text] {
            assert_eq!(text, expect, "{raw:?}");
        }
        assert_eq!(told(expect.as_bytes()), expect.as_bytes(), "a second time");
    }

    #[test]
    fn words_that_colours_tell_apart_are_marked() {
        check(
            "\x1b[1mdiff --git a/w b/w\x1b[m\n\x1b[36m@@ -1,3 +1,3 @@\x1b[m\nthe quick \x1b[31mbrown\x1b[m\x1b[32mred\x1b[m fox\n- costs \x1b[1;31m10\x1b[0m\x1b[1;32m20\x1b[0m EUR\n\x1b[31mgone\x1b[m\nplain\n",
            "diff --git a/w b/w\n@@ -1,3 +1,3 @@\nthe quick [-brown-]{+red+} fox\n- costs [-10-]{+20+} EUR\n[-gone-]\nplain\n",
        );
        // Signs tell of lines, and what stands in no hunk is no diff.
        check(
            "\x1b[31mred\x1b[m\n\x1b[36m@@ -1 +1 @@\x1b[m\n\x1b[31m-a\x1b[m\n\x1b[32m+\x1b[m\x1b[32mb\x1b[m\n",
            "red\n@@ -1 +1 @@\n-a\n+b\n",
        );
        // Colours of what comes behind the hunk are none of its words.
        check(
            "\x1b[36m@@ -1 +1 @@\x1b[m\n\x1b[31m-a\x1b[m\n\x1b[32m+\x1b[m\x1b[32mb\x1b[m\n\n\x1b[33mcommit 12 (\x1b[m\x1b[1;32mfeature\x1b[m\x1b[33m)\x1b[m\n\x1b[1;31merror\x1b[m: x\n",
            "@@ -1 +1 @@\n-a\n+b\n\ncommit 12 (feature)\nerror: x\n",
        );
    }

    #[test]
    fn returns_are_shown_where_other_lines_have_none() {
        check(
            "@@ -1,2 +1,2 @@\n-one\r\n-two\r\n+one\n+two\n",
            "@@ -1,2 +1,2 @@\n-one^M\n-two^M\n+one\n+two\n",
        );
        check(
            "\x1b[36m@@ -1 +1 @@\x1b[m\n\x1b[31m-one\r\x1b[m\n\x1b[32m+one\x1b[m\n",
            "@@ -1 +1 @@\n-one^M\n+one\n",
        );
        // Every line of the file, or of the output, ends so.
        check("@@ -1 +1 @@\n-one\r\n+two\r\n", "@@ -1 +1 @@\n-one\n+two\n");
        check(
            "@@ -1 +1 @@\r\n-one\r\n+two\r\nmore\n",
            "@@ -1 +1 @@\n-one\n+two\nmore\n",
        );
    }
}
