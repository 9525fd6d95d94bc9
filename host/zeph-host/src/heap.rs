//! The heap, told what the process is for.
//!
//! The C library gives each thread an arena of its own, which grows by a page at a time, with a system call each. That pays where many
//! threads allocate at once and for long; a command starts six of them for some milliseconds.

/// Bytes by which the heap grows.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const STEP: libc::c_int = 1 << 20;

/// Lets all threads share one heap, which grows in large steps. To be called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no library sets these two")]
pub(crate) fn share() {
    // SAFETY: two numbers are set, which the allocator reads when it next needs memory; no other thread is there to set them too.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_TOP_PAD, STEP);
    }
}

/// Gives back to the system what was freed: compiling a component takes some hundred megabytes for a moment, and the C library would
/// keep most of them. Takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no library asks for it")]
pub(crate) fn give_back() {
    // SAFETY: the allocator takes its own locks; what is in use stays where it is.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries give it back by themselves, or cannot be asked to.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

/// Other C libraries have no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share() {}
