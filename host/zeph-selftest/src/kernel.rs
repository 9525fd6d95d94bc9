//! The walls that Linux offers, tried on threads that end right after: what they give up they cannot get back.
//!
//! No process is started. The native shell and its jail will stand on these; the components do not need them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{Verdict, Wall};

/// Tries them all. `dir` is a directory for the attempts.
pub(crate) fn walls(dir: &Path, search_path: &[PathBuf]) -> Vec<Wall> {
    let wall = |name, tried, verdict: &dyn Fn() -> Verdict| {
        let started = Instant::now();
        Wall {
            name,
            tried,
            verdict: verdict(),
            duration: started.elapsed(),
        }
    };
    vec![
        wall(
            "kernel: Landlock",
            "opening a file outside the one directory a thread has left itself",
            &|| linux::landlock(dir),
        ),
        wall(
            "kernel: seccomp",
            "making a socket on a thread that has given up that system call",
            &linux::seccomp,
        ),
        wall(
            "kernel: user namespaces",
            "whether a user may make them",
            &linux::user_namespaces,
        ),
        wall("program: bwrap", "whether it is installed", &|| {
            bubblewrap(search_path)
        }),
    ]
}

fn bubblewrap(search_path: &[PathBuf]) -> Verdict {
    if cfg!(not(target_os = "linux")) {
        return Verdict::unavailable("it is a program of Linux");
    }
    match search_path
        .iter()
        .any(|folder| folder.join("bwrap").is_file())
    {
        true => Verdict::Holds,
        false => Verdict::unavailable("missing: install the package `bubblewrap`"),
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::net::UdpSocket;
    use std::path::{Path, PathBuf};
    use std::thread;

    use landlock::{
        ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
        RulesetError, RulesetStatus, path_beneath_rules,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    use crate::Verdict;

    /// `socket` in the kernel's table of the processor.
    ///
    /// Source: Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
    const SOCKET: Option<i64> = if cfg!(target_arch = "x86_64") {
        Some(41)
    } else if cfg!(target_arch = "aarch64") {
        Some(198)
    } else {
        None
    };

    /// Runs `probe` on a thread of its own, which ends with what it gave up.
    fn on_a_thread(probe: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
        let thread = thread::Builder::new()
            .name("zeph-selftest".to_owned())
            .spawn(probe);
        match thread.map(thread::JoinHandle::join) {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_panic)) => Verdict::broken("the thread of the probe panicked"),
            Err(error) => Verdict::unavailable(format!("no thread can be started: {error}")),
        }
    }

    pub(crate) fn landlock(dir: &Path) -> Verdict {
        let (inside, outside) = (dir.join("inside"), dir.join("outside"));
        let made = fs::create_dir_all(&inside)
            .and_then(|()| fs::write(inside.join("file"), "inside"))
            .and_then(|()| fs::write(&outside, "outside"));
        match made {
            Ok(()) => on_a_thread(move || landlocked(inside, &outside)),
            Err(error) => Verdict::unavailable(format!("no file to probe: {error}")),
        }
    }

    fn landlocked(inside: PathBuf, outside: &Path) -> Verdict {
        match restrict(&inside) {
            Err(error) => return Verdict::broken(format!("it cannot be turned on: {error}")),
            Ok(RulesetStatus::NotEnforced) => {
                return Verdict::unavailable(
                    "this kernel does not have it, or it is turned off: Linux 5.13 with `landlock` in `lsm=`",
                );
            }
            Ok(_) => {}
        }
        if let Err(error) = fs::read(inside.join("file")) {
            return Verdict::broken(format!("it refuses what it should allow: {error}"));
        }
        refused("the file outside was opened", fs::read(outside))
    }

    fn restrict(inside: &Path) -> Result<RulesetStatus, RulesetError> {
        let access = AccessFs::from_all(ABI::V1);
        let restricted = Ruleset::default()
            .handle_access(access)?
            .create()?
            .add_rules(path_beneath_rules([inside], access))?
            .restrict_self()?;
        Ok(restricted.ruleset)
    }

    pub(crate) fn seccomp() -> Verdict {
        let Some(socket) = SOCKET else {
            return Verdict::unavailable("not tried on this processor");
        };
        on_a_thread(move || match filter(socket) {
            Err(error) => Verdict::unavailable(format!("it cannot be turned on: {error}")),
            Ok(()) => refused("a socket was made", UdpSocket::bind("127.0.0.1:0")),
        })
    }

    fn filter(socket: i64) -> Result<(), Box<dyn std::error::Error>> {
        let refuse = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().cast_unsigned());
        let filter = SeccompFilter::new(
            [(socket, Vec::new())].into_iter().collect(),
            SeccompAction::Allow,
            refuse,
            std::env::consts::ARCH.try_into()?,
        )?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)?;
        Ok(())
    }

    fn refused<T>(otherwise: &str, result: io::Result<T>) -> Verdict {
        match result {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Verdict::Holds,
            Err(error) => Verdict::broken(format!("another error than a refusal: {error}")),
            Ok(_) => Verdict::broken(otherwise),
        }
    }

    pub(crate) fn user_namespaces() -> Verdict {
        let setting = |name: &str| {
            let text = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        if setting("user/max_user_namespaces").is_none_or(|most| most == 0) {
            return Verdict::unavailable(
                "none may be made: `sysctl user.max_user_namespaces=15000`",
            );
        }
        // Debian's switch, and Ubuntu's; other kernels do not have them.
        if setting("kernel/unprivileged_userns_clone") == Some(0) {
            return Verdict::unavailable(
                "only root may make them: `sysctl kernel.unprivileged_userns_clone=1`",
            );
        }
        if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
            return Verdict::unavailable(
                "AppArmor restricts them: `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or a profile",
            );
        }
        Verdict::Holds
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::path::Path;

    use crate::Verdict;

    pub(crate) fn landlock(_: &Path) -> Verdict {
        elsewhere()
    }

    pub(crate) fn seccomp() -> Verdict {
        elsewhere()
    }

    pub(crate) fn user_namespaces() -> Verdict {
        elsewhere()
    }

    fn elsewhere() -> Verdict {
        Verdict::unavailable("this is a wall of Linux")
    }
}
