//! The heap, told what the process is for, and left as it is at its end.
//!
//! The C library gives each thread an arena of its own, which grows by a page at a time, with a system call each. That pays where many
//! threads allocate at once and for long; a command starts six of them for some milliseconds.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::hint::black_box;
use std::io::Write as _;

/// Bytes by which the heap grows.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const STEP: usize = 1 << 20;

/// Bytes that make the heap grow, unless there is no need: below what the C library maps by itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const NUDGE: usize = 96 << 10;

/// Lets all threads share one heap, which grows in large steps, the first of them now and at once: its pages would otherwise be asked
/// for one by one, at three times the cost. To be called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "no library sets these two, or knows where the heap ends"
)]
pub(crate) fn share() {
    // SAFETY: two numbers are set, which the allocator reads when it next needs memory; no other thread is there to set them too. Then
    // pages at the end of the heap are made present, which changes nothing in them; a kernel that does not know how says so.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_TOP_PAD, i32::try_from(STEP).unwrap_or(i32::MAX));
        let before = libc::sbrk(0);
        // What the compiler sees through, it leaves out.
        let nudges = [NUDGE; 2].map(|bytes| black_box(libc::malloc(bytes)));
        let grown = libc::sbrk(0).addr().saturating_sub(before.addr());
        if grown >= STEP {
            libc::madvise(before, grown, libc::MADV_POPULATE_WRITE);
        }
        for nudge in nudges {
            libc::free(nudge);
        }
    }
}

/// Gives back to the system what was freed, most of which the C library would keep. Takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no library asks for it")]
pub(crate) fn give_back() {
    // SAFETY: the allocator takes its own locks; what is in use stays where it is.
    unsafe { libc::malloc_trim(0) };
}

/// Ends the process with `code` as it is: taking the heap down page by page, which an allocator does when a process ends, takes longer than
/// the kernel needs for all of it. What has to be written has been.
pub(crate) fn leave(code: u8) -> ! {
    // A closed stream leaves nobody to tell.
    drop(std::io::stdout().flush());
    #[expect(
        unsafe_code,
        reason = "the standard library ends a process with all that is registered for its end"
    )]
    // SAFETY: nothing is registered that has to run: streams were flushed, and stores and children are ended by what began them.
    unsafe {
        libc::_exit(i32::from(code))
    }
}

/// The same of the allocator that stands in for musl's: it keeps pages for each thread, so this gives back those of the calling one, and
/// what ended threads have left.
#[cfg(target_env = "musl")]
#[expect(
    unsafe_code,
    reason = "the library of the allocator declares it for another feature"
)]
pub(crate) fn give_back() {
    use mimalloc as _;

    unsafe extern "C" {
        fn mi_collect(force: bool);
    }
    // SAFETY: declared as in `mimalloc.h`; it looks at the pages of this thread, and what is in use stays where it is.
    unsafe { mi_collect(true) };
}

/// Others give it back by themselves, or cannot be asked to.
#[cfg(not(any(target_env = "musl", all(target_os = "linux", target_env = "gnu"))))]
pub(crate) fn give_back() {}

/// Milliseconds for which freed pages stay. By default it is a second: until then, outputs of ten megabytes add up.
const PURGE_DELAY_MS: i32 = 10;

/// Milliseconds for which freed pages stay in a process for one call: longer than most take. What they free they soon need again, and to
/// give a page back and take it anew costs more than to keep it.
const KEPT_MS: i32 = 1_000;

/// Lets the allocator that stands in for musl's give freed pages back soon.
pub(crate) fn purge_soon() {
    purge_after(PURGE_DELAY_MS);
}

/// Lets it keep freed pages for a moment, in a process for one call.
pub(crate) fn keep() {
    purge_after(KEPT_MS);
}

#[cfg(target_env = "musl")]
#[expect(
    unsafe_code,
    reason = "the crate of the allocator does not offer this option"
)]
fn purge_after(ms: i32) {
    use mimalloc as _;

    /// `mi_option_purge_delay` of mimalloc 3.
    const PURGE_DELAY: std::ffi::c_int = 15;

    unsafe extern "C" {
        fn mi_option_set(option: std::ffi::c_int, value: std::ffi::c_long);
    }
    // SAFETY: declared as in `mimalloc.h`; one number is set, which the allocator reads when it next frees.
    unsafe { mi_option_set(PURGE_DELAY, ms.into()) };
}

/// Others have no such option.
#[cfg(not(target_env = "musl"))]
fn purge_after(_: i32) {}

/// Other C libraries have no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share() {}
