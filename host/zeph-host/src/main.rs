//! The program `zeph-host`.

/// musl's allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of the allocator's option for how long freed pages stay: `mi_option_purge_delay` of mimalloc 3.
#[cfg(target_env = "musl")]
const PURGE_DELAY: std::ffi::c_int = 15;

/// Milliseconds for which freed pages stay. By default it is a second: until then, outputs of ten megabytes add up.
#[cfg(target_env = "musl")]
const PURGE_DELAY_MS: std::ffi::c_long = 10;

fn main() -> std::process::ExitCode {
    #[cfg(target_env = "musl")]
    purge_soon();
    zeph_host::cli::main()
}

/// Lets the allocator give freed pages back soon.
#[cfg(target_env = "musl")]
#[expect(
    unsafe_code,
    reason = "the crate of the allocator does not offer this option"
)]
fn purge_soon() {
    unsafe extern "C" {
        fn mi_option_set(option: std::ffi::c_int, value: std::ffi::c_long);
    }
    // SAFETY: the allocator is linked; one number is set, which it reads when it next frees, and there are no other threads yet.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
}
