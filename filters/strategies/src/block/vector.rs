//! Sixteen bytes in a register.

use wide::u8x16;

use super::LANES;

/// Sixteen bytes; of an answer, each is all ones or all zeros.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes(u8x16);

impl Lanes {
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8; LANES]) -> Self {
        Self(u8x16::new(*bytes))
    }

    /// Those that are `byte`.
    #[inline(always)]
    pub(crate) fn equal(self, byte: u8) -> Self {
        Self(self.0.simd_eq(u8x16::splat(byte)))
    }

    /// Those that are `byte` or less.
    #[inline(always)]
    pub(crate) fn up_to(self, byte: u8) -> Self {
        Self(self.0.simd_le(u8x16::splat(byte)))
    }

    /// Those from one byte to another of ASCII.
    #[inline(always)]
    pub(crate) fn between(self, first: u8, last: u8) -> Self {
        self.up_to(last).without(self.up_to(first - 1))
    }

    /// These bytes, letters of ASCII in lower case; others change too.
    #[inline(always)]
    pub(crate) fn lower(self) -> Self {
        Self(self.0 | u8x16::splat(0x20))
    }

    /// Those of either answer.
    #[inline(always)]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not among the others.
    #[inline(always)]
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// A bit for each, the first is the lowest.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0.to_bitmask())
    }
}
