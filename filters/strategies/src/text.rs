//! What is asked of nearly every line of every output, by bytes. Where it comes to what is not ASCII, the standard library
//! answers.

/// Whether a byte is white space, as [`char::is_whitespace`] tells it of ASCII.
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// Whether it is nothing but digits, at least one.
pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// How far in a line stands, in bytes.
pub(crate) fn depth(line: &str) -> usize {
    line.len() - trim_start(line).len()
}

/// As [`str::trim_start`].
#[inline]
pub(crate) fn trim_start(line: &str) -> &str {
    // Most lines have none.
    match line.as_bytes().first() {
        Some(first) if first.is_ascii_graphic() => line,
        _ => trim_spaces(line),
    }
}

fn trim_spaces(line: &str) -> &str {
    let n_spaces = line.bytes().position(|byte| !is_space(byte));
    let rest = &line[n_spaces.unwrap_or(line.len())..];
    match rest.as_bytes().first() {
        Some(first) if !first.is_ascii() => rest.trim_start(),
        _ => rest,
    }
}

/// As [`str::trim_end`].
#[inline]
pub(crate) fn trim_end(line: &str) -> &str {
    let last = line.bytes().rposition(|byte| !is_space(byte));
    match last {
        None => "",
        Some(last) if line.as_bytes()[last].is_ascii() => &line[..=last],
        Some(_) => line.trim_end(),
    }
}

/// As [`str::trim`].
#[inline]
pub(crate) fn trim(line: &str) -> &str {
    trim_end(trim_start(line))
}

/// Whether a line has nothing but white space.
#[inline]
pub fn is_blank(line: &str) -> bool {
    // Many lines begin with blanks, and nearly all end with a sign.
    let is_plain = line.as_bytes().last().is_some_and(u8::is_ascii_graphic);
    !is_plain && trim_start(line).is_empty()
}

/// Whether a line holds a few bytes. For so few, preparing a proper search takes longer.
#[inline]
pub(crate) fn has<const N: usize>(line: &str, part: &[u8; N]) -> bool {
    line.as_bytes().array_windows().any(|there| there == part)
}

/// Where a line holds `part`, of which the byte at `rare` is one that few lines hold: preparing a proper search for each line takes
/// longer than looking at those.
#[inline]
pub(crate) fn find<const N: usize>(line: &str, part: &[u8; N], rare: usize) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut found = memchr::memchr_iter(part[rare], bytes);
    found.find_map(|at| {
        let start = at.checked_sub(rare)?;
        bytes[start..].starts_with(part).then_some(start)
    })
}

/// A line without the signs of ASCII that frame it.
pub(crate) fn unframed(line: &str, sign: u8) -> &str {
    // Frames are long: many signs are compared at once.
    let many = [sign; 16];
    let mut inner = line.as_bytes();
    while let Some(rest) = inner.strip_prefix(&many) {
        inner = rest;
    }
    let start = line.len() - inner.len();
    while let Some(rest) = inner.strip_suffix(&many) {
        inner = rest;
    }
    let is_other = |byte: &u8| *byte != sign;
    let (first, last) = (
        inner.iter().position(is_other),
        inner.iter().rposition(is_other),
    );
    match (first, last) {
        (Some(first), Some(last)) => &line[start + first..=start + last],
        _ => "",
    }
}

#[cfg(test)]
mod tests;
