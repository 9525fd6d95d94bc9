//! What the process that compiles may ask the kernel for: memory, threads, and its streams. A component may come from anybody, and the
//! compiler that reads it is large: where a defect of it can be used, there is nothing to be reached from here.

use std::process;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCmpOp::Eq,
    SeccompCmpOp::MaskedEq, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Calls that are allowed whatever their arguments. None of them names a file, a socket or another process.
const ALWAYS: [i64; 21] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
];

/// Confines this thread and those it starts from now on, for good. Every other call is answered as one that the kernel does not have:
/// libraries then do without, where they can.
///
/// Errors: the kernel has no such filters.
pub(super) fn confine() -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(&filter()?)
}

fn filter() -> Result<BpfProgram, seccompiler::Error> {
    let always = ALWAYS.into_iter().map(|number| (number, Vec::new()));
    let rules = always.chain(judged()?).collect();
    let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, absent, SeccompAction::Allow, architecture)?;
    Ok(filter.try_into()?)
}

/// The calls that are judged by their arguments. One of the rules has to apply.
fn judged() -> Result<[(i64, Vec<SeccompRule>); 8], seccompiler::Error> {
    let outputs = || {
        [libc::STDOUT_FILENO, libc::STDERR_FILENO]
            .into_iter()
            .map(|output| rule([(0, Eq, output)]))
            .collect::<Result<Vec<_>, _>>()
    };
    let data = |argument| (argument, MaskedEq(PROT_EXEC), 0);
    Ok([
        (libc::SYS_read, vec![rule([(0, Eq, libc::STDIN_FILENO)])?]),
        (libc::SYS_write, outputs()?),
        (libc::SYS_writev, outputs()?),
        // No file, and nothing that could run.
        (
            libc::SYS_mmap,
            vec![rule([data(2), has(3, libc::MAP_ANONYMOUS)])?],
        ),
        (libc::SYS_mprotect, vec![rule([data(2)])?]),
        (libc::SYS_clone, vec![rule([has(0, libc::CLONE_THREAD)])?]),
        (libc::SYS_prctl, vec![rule([(0, Eq, libc::PR_SET_NAME)])?]),
        // How a process ends itself that cannot go on.
        (libc::SYS_tgkill, vec![rule([(0, Eq, own_process())])?]),
    ])
}

const PROT_EXEC: u64 = libc::PROT_EXEC.unsigned_abs() as u64;

/// An argument, counted from 0, how it is compared, and with what.
type Condition = (u8, SeccompCmpOp, i32);

/// The argument has this bit.
fn has(argument: u8, bit: i32) -> Condition {
    (argument, MaskedEq(u64::from(bit.unsigned_abs())), bit)
}

fn own_process() -> i32 {
    process::id().cast_signed()
}

/// Applies when all conditions do.
fn rule<const N: usize>(conditions: [Condition; N]) -> Result<SeccompRule, seccompiler::Error> {
    let conditions = conditions.into_iter().map(|(argument, operator, value)| {
        SeccompCondition::new(argument, Dword, operator, u64::from(value.unsigned_abs()))
    });
    Ok(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::os::unix::net::UnixDatagram;
    use std::thread;

    use rustix::process::{getppid, test_kill_process};

    use super::confine;
    use crate::compile::compile_here;

    /// Runs `work` on a thread that is confined.
    fn confined<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            scope
                .spawn(|| {
                    confine().unwrap();
                    work()
                })
                .join()
                .unwrap()
        })
    }

    #[test]
    fn components_compile_behind_it() {
        let component = wat::parse_str("(component (core module (func (export \"f\"))))").unwrap();
        let artifact = confined(|| compile_here(&component).unwrap());
        assert_eq!(artifact, compile_here(&component).unwrap());
    }

    #[test]
    fn files_networks_and_processes_are_out_of_reach() {
        let parent = getppid().unwrap();
        let refused = confined(|| {
            [
                File::open("/proc/self/exe").map(drop),
                fs::read_dir("/").map(drop),
                TcpListener::bind(("127.0.0.1", 0)).map(drop),
                UnixDatagram::unbound().map(drop),
                test_kill_process(parent).map_err(Into::into),
            ]
        });
        let errors = refused.map(|tried| tried.map_err(|error| error.raw_os_error()));
        assert_eq!(errors, [Err(Some(libc::ENOSYS)); 5]);
    }

    #[test]
    fn open_files_are_neither_read_nor_written() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"secret").unwrap();
        let (read, written) = confined(|| {
            let read = file.read(&mut [0; 6]).map_err(|error| error.raw_os_error());
            (read, file.write(b"!").map_err(|error| error.raw_os_error()))
        });
        assert_eq!([read, written], [Err(Some(libc::ENOSYS)); 2]);
    }
}
