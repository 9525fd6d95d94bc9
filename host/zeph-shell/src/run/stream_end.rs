//! The end of a stream, which others can read while it goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The last bytes of a stream. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct StreamEnd {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    bytes_max: usize,
}

impl StreamEnd {
    /// Of a stream that has not begun, of which `bytes_max` bytes are kept.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Arc::default(),
            bytes_max,
        }
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(self.bytes_max)..];
        let mut held = self.held();
        let n_over = (held.len() + kept.len()).saturating_sub(self.bytes_max);
        held.drain(..n_over);
        held.extend(kept);
    }

    /// Whole lines, where there are some: what was cut at its beginning is omitted up to the first line.
    pub(crate) fn text(&self) -> String {
        let held = self.held();
        let bytes: Vec<u8> = held.iter().copied().collect();
        let is_cut = bytes.len() == self.bytes_max;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match text.split_once('\n').filter(|_| is_cut) {
            Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
            _ => text,
        }
    }

    fn held(&self) -> MutexGuard<'_, VecDeque<u8>> {
        // Each change leaves it usable.
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::StreamEnd;

    #[test]
    fn the_last_bytes_are_kept_and_begin_with_a_line() {
        let end = StreamEnd::new(10);
        assert_eq!(end.text(), "");
        end.push(b"one\n");
        end.push(b"two");
        assert_eq!(end.text(), "one\ntwo");
        end.push(b"\nthree\n");
        assert_eq!(end.text(), "three\n");
        end.push(&[b'x'; 100]);
        assert_eq!(end.text(), "xxxxxxxxxx");
        end.push(b"\xff");
        assert_eq!(end.text(), "xxxxxxxxx\u{fffd}");
    }
}
