//! Unpacking the tables of the running program, when a panic is about to read them.

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{panic, ptr, slice};

use crate::columns;
use crate::{HEAD_BYTES, INDEX_BYTES, MAGIC};

/// Has the first panic of the process unpack the tables, before it is reported and unwinds. To be called before anything can panic; other
/// hooks are to call the one that they replace.
///
/// Where the tables cannot be unpacked because memory runs out, a panic ends the process.
pub fn unpack_on_panic() {
    static UNPACKED: Once = Once::new();
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // A second thread that panics waits until the tables are there.
        UNPACKED.call_once(|| {
            // What could not be unpacked, unwinders say.
            let _is_unpacked = unpack().is_some();
        });
        report(info);
    }));
}

/// Unpacks the tables. None when they are not packed, or cannot be unpacked.
#[expect(unsafe_code, reason = "what is mapped of the program is replaced")]
fn unpack() -> Option<()> {
    let place = place()?;
    // SAFETY: the index of the tables is mapped, for this many bytes at least, and nothing has written to it.
    let head = unsafe { slice::from_raw_parts(place, HEAD_BYTES) };
    let [n_packed, n_unpacked] = lengths(head)?;
    // SAFETY: `pack` put that many bytes there.
    let packed = unsafe { slice::from_raw_parts(place.add(HEAD_BYTES), n_packed) };
    let tables = columns::join(&zstd::decode_all(packed).ok()?, n_unpacked)?;
    protect(place, n_unpacked, libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: the segment has that many bytes in memory from the index to its end, and they can be written to now.
    unsafe { put(&tables, place) };
    protect(place, n_unpacked, libc::PROT_READ)
}

/// Puts the tables in their place, the index last: another thread, which may be looking for a backtrace, finds no tables or all.
///
/// # Safety
///
/// `place` must be that of the index, with as many bytes that can be written to, which nothing but unwinders reads.
#[expect(unsafe_code, reason = "what is mapped of the program is replaced")]
unsafe fn put(tables: &[u8], place: *mut u8) {
    let entries = &tables[INDEX_BYTES..];
    let field = |at: usize| {
        let bytes = tables
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    };
    // SAFETY: as above; an index is aligned to its fields, of four bytes each.
    unsafe {
        ptr::copy_nonoverlapping(entries.as_ptr(), place.add(INDEX_BYTES), entries.len());
        for at in [4, 8] {
            AtomicU32::from_ptr(place.add(at).cast()).store(field(at), Ordering::Release);
        }
    }
}

/// How many bytes the tables have packed and unpacked. None when they are not packed.
fn lengths(head: &[u8]) -> Option<[usize; 2]> {
    let lengths = head.get(INDEX_BYTES..)?.strip_prefix(&MAGIC)?;
    let (packed, rest) = lengths.split_first_chunk()?;
    let (unpacked, _) = rest.split_first_chunk()?;
    let [packed, unpacked] = [*packed, *unpacked].map(u64::from_le_bytes);
    Some([packed.try_into().ok()?, unpacked.try_into().ok()?])
}

/// Where the index of the tables of the program is in memory.
#[expect(unsafe_code, reason = "no library walks over the segments")]
fn place() -> Option<*mut u8> {
    let mut place = ptr::null_mut::<u8>();
    // SAFETY: the function is called with what is passed here, and keeps none of it.
    unsafe { libc::dl_iterate_phdr(Some(of_program), (&raw mut place).cast()) };
    (!place.is_null()).then_some(place)
}

/// Called for the program first, and ends the walk there.
#[expect(unsafe_code, reason = "called by the C library")]
unsafe extern "C" fn of_program(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    place: *mut libc::c_void,
) -> c_int {
    // SAFETY: the C library passes a description that is valid during the call, whose headers are those of the program.
    let (start, headers) = unsafe {
        let object = &*object;
        let headers = slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
        (object.dlpi_addr, headers)
    };
    let index = headers.iter().find(|header| {
        header.p_type == libc::PT_GNU_EH_FRAME && header.p_memsz >= HEAD_BYTES as u64
    });
    if let Some(index) = index {
        let index = usize::try_from(start + index.p_vaddr).unwrap_or_default();
        // SAFETY: `place` above passes a pointer to such a pointer.
        unsafe { *place.cast::<*mut u8>() = ptr::with_exposed_provenance_mut(index) };
    }
    1
}

/// Sets what may be done with these bytes and the rest of their pages. None when the system refuses.
#[expect(unsafe_code, reason = "what is mapped of the program is replaced")]
fn protect(place: *mut u8, n_bytes: usize, may: c_int) -> Option<()> {
    // SAFETY: asks for the size of a page.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    let before = place.addr() % page;
    // SAFETY: the pages hold the tables and, before them, constants of the same segment, which can be read all the while.
    let answer = unsafe { libc::mprotect(place.byte_sub(before).cast(), before + n_bytes, may) };
    (answer == 0).then_some(())
}
