//! Sixteen bytes in two words, for processors of any kind.

use super::LANES;

/// Sixteen bytes; of an answer, the highest bit of each tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes([u64; 2]);

/// The highest bit of each byte.
const HIGHEST: u64 = splat(0x80);

impl Lanes {
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8; LANES]) -> Self {
        let (words, _) = bytes.as_chunks();
        Self([0, 1].map(|idx| u64::from_le_bytes(words[idx])))
    }

    /// Those that are `byte`.
    #[inline(always)]
    pub(crate) fn equal(self, byte: u8) -> Self {
        // Adding to seven bits carries into the eighth unless they are zeros, and never into the next byte.
        Self(self.0.map(|word| {
            let differs = word ^ splat(byte);
            !(((differs & !HIGHEST) + !HIGHEST) | differs) & HIGHEST
        }))
    }

    /// Those that are `byte` or less, of ASCII.
    #[inline(always)]
    pub(crate) fn up_to(self, byte: u8) -> Self {
        let more = splat(0x7f - byte.min(0x7f));
        Self(
            self.0
                .map(|word| !(((word & !HIGHEST) + more) | word) & HIGHEST),
        )
    }

    /// Those from one byte to another of ASCII.
    #[inline(always)]
    pub(crate) fn between(self, first: u8, last: u8) -> Self {
        self.up_to(last).without(self.up_to(first - 1))
    }

    /// These bytes, letters of ASCII in lower case; others change too.
    #[inline(always)]
    pub(crate) fn lower(self) -> Self {
        Self(self.0.map(|word| word | splat(0x20)))
    }

    /// Those of either answer.
    #[inline(always)]
    pub(crate) fn or(self, other: Self) -> Self {
        Self([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    /// Those that are not among the others.
    #[inline(always)]
    pub(crate) fn without(self, other: Self) -> Self {
        Self([self.0[0] & !other.0[0], self.0[1] & !other.0[1]])
    }

    /// A bit for each, the first is the lowest.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        // Moves the lowest bit of each byte into the highest byte, next to each other.
        let [low, high] = self
            .0
            .map(|word| ((word & HIGHEST) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56);
        low | high << 8
    }
}

const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}
