//! Sixty-four bytes at once: which of them are those looked for, a bit for each.
//!
//! Nearly all of an output is passed over by asking this of it. A loop over bytes would do where the compiler looks at many of them
//! together, but the program that is handed out is optimised for size as a whole, and then it looks at one after the other: that
//! took eight times as long, and half of all that filtering costs.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod word;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use self::vector::Lanes;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use self::word::Lanes;

/// Bytes looked at together.
pub type Block = [u8; BLOCK_BYTES];

/// How many there are.
pub const BLOCK_BYTES: usize = u64::BITS as usize;

/// Bytes of [`Lanes`].
const LANES: usize = 16;

/// The bytes of a block that are `byte`: a bit for each, the first byte is the lowest.
#[inline(always)]
pub fn equal(block: &Block, byte: u8) -> u64 {
    bits(block, |lanes| lanes.equal(byte))
}

/// As above, controls but for `\t`, `\n` and `\r`, and the first byte of controls beyond ASCII.
#[inline(always)]
pub fn may_begin_control(block: &Block) -> u64 {
    bits(block, |lanes| {
        let kept = [b'\t', b'\n', b'\r'].map(|byte| lanes.equal(byte));
        let low = kept.into_iter().fold(lanes.up_to(0x1f), Lanes::without);
        low.or(lanes.equal(0x7f)).or(lanes.equal(0xc2))
    })
}

/// Whether a block has a byte that [`may_begin_control`] tells of, or a `\r`.
#[inline(always)]
pub fn has_control_or_return(block: &Block) -> bool {
    any(block, |lanes| {
        let kept = [b'\t', b'\n'].map(|byte| lanes.equal(byte));
        let low = kept.into_iter().fold(lanes.up_to(0x1f), Lanes::without);
        low.or(lanes.equal(0x7f)).or(lanes.equal(0xc2))
    })
}

/// As above, all controls of ASCII.
#[inline(always)]
pub(crate) fn controls(block: &Block) -> u64 {
    bits(block, |lanes| lanes.up_to(0x1f).or(lanes.equal(0x7f)))
}

/// Letters and digits of ASCII, for [`bits`].
#[inline(always)]
pub(crate) fn alphanumeric(lanes: Lanes) -> Lanes {
    lanes
        .lower()
        .between(b'a', b'z')
        .or(lanes.between(b'0', b'9'))
}

/// The bytes of a block for which `is` holds, as above.
#[inline(always)]
pub(crate) fn bits(block: &Block, is: impl Fn(Lanes) -> Lanes) -> u64 {
    let (parts, _) = block.as_chunks::<LANES>();
    let bits = |part_idx: usize| is(Lanes::of(&parts[part_idx])).bits();
    bits(0) | bits(1) << 16 | bits(2) << 32 | bits(3) << 48
}

/// Whether `is` holds for a byte of a block: less work than which they are.
#[inline(always)]
fn any(block: &Block, is: impl Fn(Lanes) -> Lanes) -> bool {
    let (parts, _) = block.as_chunks::<LANES>();
    let [a, b, c, d] = [0, 1, 2, 3].map(|part_idx: usize| is(Lanes::of(&parts[part_idx])));
    a.or(b).or(c.or(d)).bits() != 0
}

/// As many bytes as fit a block, and others behind them.
pub fn padded(rest: &[u8], behind: u8) -> Block {
    let mut block = [behind; BLOCK_BYTES];
    let n = rest.len().min(BLOCK_BYTES);
    block[..n].copy_from_slice(&rest[..n]);
    block
}

/// The places of the bits that are set, ascending.
#[inline]
pub fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            place as usize
        })
    })
}

#[cfg(test)]
mod tests;
