//! The memory of a process that idles, mostly beside others: what its start took and nothing uses any more goes back to the system.

use crate::heap;

/// Bytes of the stack below the caller that stay: the frames of what it calls.
#[cfg(target_os = "linux")]
const FRAMES: usize = 16 << 10;

/// Gives back what the process freed, as far as its allocator can tell, and what the calling thread's stack was used for. Takes some
/// milliseconds.
pub(crate) fn give_back() {
    heap::give_back();
    give_back_stack();
}

/// Gives back the part of the calling thread's stack that nothing uses any more: reading the command line and the configuration takes
/// some hundred kilobytes, and a stack never shrinks.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library knows where a stack ends")]
fn give_back_stack() {
    let frame = 0_u8;
    // SAFETY: the attributes are made by the first call and read by the second, which is only made when the first succeeded. What is given
    // back is whole pages between the lowest address of the stack and some way below this frame: no frame is there, and pages
    // that a later one needs are made anew. Where a part is not mapped, the kernel says so.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return;
        }
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(FRAMES);
        let (mut lowest, mut n_bytes) = (std::ptr::null_mut(), 0);
        let known =
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut n_bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        let unused = std::ptr::from_ref(&frame)
            .addr()
            .saturating_sub(lowest.addr() + FRAMES);
        if known == 0 && unused < n_bytes {
            libc::madvise(lowest, unused / page * page, libc::MADV_DONTNEED);
        }
    }
}

/// Others keep it.
#[cfg(not(target_os = "linux"))]
fn give_back_stack() {}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::hint::black_box;

    use super::give_back;

    const DEEP: usize = 4 << 20;

    /// Kilobytes that the process holds now.
    fn resident() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    #[inline(never)]
    fn used_once() {
        black_box([1_u8; DEEP]);
    }

    /// Each test is a process of its own, so nothing else grows or shrinks meanwhile.
    #[test]
    fn what_the_stack_was_used_for_is_given_back() {
        let work = || {
            let kept = black_box([7_u8; 4096]);
            used_once();
            let before = resident();
            give_back();
            let given = before.saturating_sub(resident());
            assert!(given > (DEEP as u64 / 1024) / 2, "{given} of {before} kB");
            assert!(kept.iter().all(|byte| *byte == 7));
            used_once();
        };
        let thread = std::thread::Builder::new().stack_size(4 * DEEP);
        thread.spawn(work).unwrap().join().unwrap();
    }
}
