//! What macOS tells of processes.

use rustix::process::Pid;

use super::ProcessStat;

/// A process that has ended and was not waited for, as the system numbers states.
const ZOMBIE: u32 = 5;

/// More than the system lets run at one time.
const PROCESSES_MAX: usize = 100_000;

#[expect(unsafe_code, reason = "no library lists processes")]
pub(super) fn processes() -> Vec<ProcessStat> {
    let mut numbers: Vec<libc::pid_t> = vec![0; PROCESSES_MAX];
    let n_bytes = i32::try_from(size_of_val(numbers.as_slice())).unwrap_or(i32::MAX);
    // SAFETY: the system writes at most so many bytes into the numbers.
    let n_numbers = unsafe { libc::proc_listallpids(numbers.as_mut_ptr().cast(), n_bytes) };
    numbers.truncate(usize::try_from(n_numbers).unwrap_or(0));
    let numbers = numbers.into_iter().filter_map(Pid::from_raw);
    numbers.filter_map(read_process).collect()
}

#[expect(unsafe_code, reason = "no library reads about processes")]
pub(super) fn read_process(pid: Pid) -> Option<ProcessStat> {
    let number = pid.as_raw_pid();
    // SAFETY: all of it is numbers, for which zero is a value.
    let mut about: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
    let n_bytes = i32::try_from(size_of_val(&about)).ok()?;
    // SAFETY: the system writes at most so many bytes into the structure.
    let n_written = unsafe {
        libc::proc_pidinfo(
            number,
            libc::PROC_PIDTBSDINFO,
            0,
            (&raw mut about).cast(),
            n_bytes,
        )
    };
    if n_written != n_bytes {
        return None;
    }
    let session = rustix::process::getsid(Some(pid)).ok()?;
    Some(ProcessStat {
        pid,
        parent: i32::try_from(about.pbi_ppid).ok()?,
        group: i32::try_from(about.pbi_pgid).ok()?,
        session: session.as_raw_pid(),
        started: about.pbi_start_tvsec * 1_000_000 + about.pbi_start_tvusec,
        is_dead: about.pbi_status == ZOMBIE,
    })
}
