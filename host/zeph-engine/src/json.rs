//! Reads the JSON of a guest, which may be made to cost the host many times its length: a map of one entry, six bytes of text,
//! takes seven hundred in memory. So the cost is reckoned first, in one pass over the text, and bounded.

use serde_json::Value;

/// Most bytes of memory that one text may come to: half of what a call has by default. Ordinary results of 8 MB stay below.
const MEMORY_BYTES_MAX: usize = 128 << 20;

/// What a value costs in the array or map that holds it: its own bytes, twice, because arrays grow ahead.
const SLOT_BYTES: usize = 64;

/// What the first entries of an array cost, which come four at a time.
const ARRAY_BYTES: usize = 160;

/// What the first entries of a map cost, which come eleven at a time.
const MAP_BYTES: usize = 700;

/// What a text costs besides its bytes.
const STRING_BYTES: usize = 32;

/// Reads `text`. Nesting is bounded by the parser (128 levels).
///
/// Errors: what is wrong with it, or that it would take too much memory.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let cost = cost(text);
    if cost > MEMORY_BYTES_MAX {
        return Err(format!(
            "it holds so many values that it would take some {} MB of memory; the limit is {} MB",
            cost >> 20,
            MEMORY_BYTES_MAX >> 20
        ));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The bytes of memory that reading `text` takes, about and rather more; of what is no JSON, anything.
fn cost(text: &str) -> usize {
    let mut cost = text.len();
    let mut in_string = false;
    let mut is_escaped = false;
    for byte in text.bytes() {
        match (in_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => {
                in_string = true;
                cost += STRING_BYTES;
            }
            (false, b',' | b':') => cost += SLOT_BYTES,
            (false, b'[') => cost += ARRAY_BYTES,
            (false, b'{') => cost += MAP_BYTES,
            (false, _) => {}
        }
    }
    cost
}

#[cfg(test)]
mod tests;
