//! The tables that unwinding reads, packed: they are a seventh of the program that is handed out, and only a panic reads them.
//!
//! [`pack`] replaces them in a finished program, [`unpack_on_panic`] puts them back in a running one. In the file, the segment that ends
//! with the tables is shorter than in memory; the rest of their place is memory that nothing touches. What stands there until a panic is
//! an index without entries, so that a backtrace that is asked for is empty, and behind it the packed tables.
//!
//! Programs that were not packed are left alone, in the file and in memory.

mod columns;
mod pack;
#[cfg(target_os = "linux")]
mod unpack;

pub use pack::{PackError, pack};
#[cfg(target_os = "linux")]
pub use unpack::unpack_on_panic;

/// What an index of tables begins with: its version, and how the three kinds of numbers in it are written, as all linkers do.
/// Source: the Linux Standard Base, `.eh_frame_hdr`.
const INDEX_FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Bytes of an index before its entries: its form, where the tables begin, and how many entries there are.
const INDEX_BYTES: usize = 12;

/// What stands behind the index when the tables are packed.
const MAGIC: [u8; 8] = *b"zephunw1";

/// Bytes before the packed tables: the index, [`MAGIC`], and how many bytes the tables have packed and unpacked, each in eight bytes.
const HEAD_BYTES: usize = INDEX_BYTES + MAGIC.len() + 16;

/// Nothing is packed for other systems.
#[cfg(not(target_os = "linux"))]
pub fn unpack_on_panic() {}
