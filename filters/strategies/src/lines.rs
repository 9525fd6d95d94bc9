//! Taking a text apart into lines.
//!
//! Every output is, several times, and its lines are short: what the standard library pays for each line is more than reading
//! it costs. Eight bytes are looked at together.

/// The lines of a text without their ends, as [`str::lines`] tells them.
///
/// Limits: linear; allocates once, 16 bytes a line.
pub fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::with_capacity(n_line_ends(text.as_bytes()) + 1);
    let mut start = 0;
    for end in line_ends(text.as_bytes()) {
        let line = &text[start..end];
        lines.push(line.strip_suffix('\r').unwrap_or(line));
        start = end + 1;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// How many `\n` there are.
pub fn n_line_ends(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    let in_words = words
        .iter()
        .map(|word| ends_in(*word).count_ones() as usize);
    let in_rest = rest.iter().filter(|byte| **byte == b'\n').count();
    in_words.sum::<usize>() + in_rest
}

/// The places of all `\n`.
pub fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let (words, rest) = bytes.as_chunks();
    let rest_at = bytes.len() - rest.len();
    let mut words = words.iter().zip((0..).step_by(WORD_BYTES));
    let (mut ends, mut at) = (0, 0);
    let in_words = std::iter::from_fn(move || {
        while ends == 0 {
            let (word, word_at) = words.next()?;
            (ends, at) = (ends_in(*word), word_at);
        }
        let end = at + (ends.trailing_zeros() / u8::BITS) as usize;
        ends &= ends - 1;
        Some(end)
    });
    let in_rest = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    in_words.chain(in_rest.map(move |(idx, _)| rest_at + idx))
}

const WORD_BYTES: usize = 8;

/// One bit, the highest, of each byte that is a line end; the first byte is the lowest.
fn ends_in(word: [u8; WORD_BYTES]) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; WORD_BYTES]);
    const ENDS: u64 = u64::from_le_bytes([b'\n'; WORD_BYTES]);
    let other = u64::from_le_bytes(word) ^ ENDS;
    // Adding to seven bits carries into the eighth unless all are zero, and never beyond it.
    !(((other & LOW) + LOW) | other | LOW)
}

#[cfg(test)]
mod tests;
