//! Which process this host is, and whether the one that a record names still runs.
//!
//! The number of a process is given out again, so the moment of its start goes with it, and the boot and the list of processes
//! (the namespace) in which both mean something. Where the system tells none of this, the number alone has to do.

use std::fs;

use rustix::process::{Pid, getpid, test_kill_process};
use zeph_store::HostProcess;

/// What is known of a process that a record names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It runs.
    Running,
    /// It has ended.
    Ended,
    /// It is of another boot of a machine with this name: of this one, where it has ended, or of another that is called the same. Names are
    /// given twice, so only who knows that there is one machine may take it for ended.
    OtherBoot,
    /// It is of another machine or of another container: this one cannot tell.
    Elsewhere,
}

/// This process.
pub(crate) fn own() -> HostProcess {
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    HostProcess {
        pid,
        start: format!(
            "{}/{}",
            PidScope::own(),
            started("self").unwrap_or_default()
        ),
    }
}

/// Makes a file that grows beyond what this process may write (`ulimit -f`) a failure of the write: the signal that comes with it would end
/// the process without a word. Programs that it starts do not inherit that.
#[expect(
    unsafe_code,
    reason = "no library does it without a thread that waits for the signal"
)]
pub(crate) fn outlive_file_limit() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: the structure is plain numbers, for which zeros are valid; the handler does nothing at all.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// The name of this machine.
pub(crate) fn machine() -> String {
    PidScope::own().machine
}

/// Whether the process of a record runs, by what the system says now.
pub(crate) fn liveness(process: &HostProcess) -> Liveness {
    let place = PidScope::own();
    let Some((recorded, start)) = process.start.rsplit_once('/') else {
        return Liveness::Elsewhere;
    };
    match place.relation(recorded) {
        Relation::Same => {}
        Relation::OtherBoot => return Liveness::OtherBoot,
        Relation::Other => return Liveness::Elsewhere,
    }
    let is_it = match started(&process.pid.to_string()) {
        Some(now) => now == start,
        // Without a list of processes the number has to do.
        None => start.is_empty() && exists(process.pid),
    };
    match is_it {
        true => Liveness::Running,
        false => Liveness::Ended,
    }
}

fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| {
        let sent = test_kill_process(pid);
        matches!(sent, Ok(()) | Err(rustix::io::Errno::PERM))
    })
}

/// When a process was started, in ticks since the boot; `None` when there is none of this number, or no list of processes.
///
/// Source: proc_pid_stat(5), field 22. The second field is a name in parentheses that may hold anything.
fn started(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    // A process that nobody has waited for has ended all the same.
    let has_ended = matches!(state, "Z" | "X");
    fields.nth(18).filter(|_| !has_ended).map(str::to_owned)
}

/// Where the number of a process means something.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PidScope {
    machine: String,
    boot: String,
    namespace: String,
}

/// How a recorded place is to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Same,
    /// The machine has the same name, and another boot.
    OtherBoot,
    Other,
}

impl PidScope {
    fn own() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid");
        Self {
            machine: word(&read("/proc/sys/kernel/hostname")),
            boot: word(&read("/proc/sys/kernel/random/boot_id")),
            namespace: word(&namespace.unwrap_or_default().to_string_lossy()),
        }
    }

    fn relation(&self, recorded: &str) -> Relation {
        let mut words = recorded.split('/');
        let (machine, boot, namespace) = (words.next(), words.next(), words.next());
        if machine != Some(&self.machine) {
            return Relation::Other;
        }
        match boot == Some(&self.boot) {
            false => Relation::OtherBoot,
            true if namespace == Some(&self.namespace) => Relation::Same,
            true => Relation::Other,
        }
    }
}

impl std::fmt::Display for PidScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.machine, self.boot, self.namespace)
    }
}

/// A text without what separates it from others.
fn word(text: &str) -> String {
    let is_of_a_word = |c: &char| c.is_ascii_alphanumeric() || "-_.:[]".contains(*c);
    text.chars().filter(is_of_a_word).take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use zeph_store::HostProcess;

    use super::{Liveness, PidScope, Relation, exists, liveness, own};

    #[test]
    fn this_process_runs_and_one_that_had_its_number_does_not() {
        assert_eq!(liveness(&own()), Liveness::Running);
        let mut earlier = own();
        earlier.start.push('1');
        assert_eq!(liveness(&earlier), Liveness::Ended);
        assert!(exists(own().pid));
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a process to look at, outside of any jail"
    )]
    fn a_process_that_ended_is_told_from_one_that_runs() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let start = super::started(&child.id().to_string()).unwrap();
        let process = HostProcess {
            pid: child.id(),
            start: format!("{}/{start}", PidScope::own()),
        };
        assert_eq!(liveness(&process), Liveness::Running);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(liveness(&process), Liveness::Ended);
    }

    #[test]
    fn what_is_recorded_elsewhere_is_not_judged() {
        let here = PidScope::own();
        let of = |place: &PidScope| here.relation(&place.to_string());
        assert_eq!(of(&here), Relation::Same);
        let boot = "an-earlier-one".to_owned();
        assert_eq!(
            of(&PidScope {
                boot,
                ..here.clone()
            }),
            Relation::OtherBoot
        );
        let machine = "another".to_owned();
        assert_eq!(
            of(&PidScope {
                machine,
                ..here.clone()
            }),
            Relation::Other
        );
        let namespace = "pid:[1]".to_owned();
        assert_eq!(
            of(&PidScope {
                namespace,
                ..here.clone()
            }),
            Relation::Other
        );
        let process = HostProcess {
            pid: 1,
            start: "nonsense".to_owned(),
        };
        assert_eq!(liveness(&process), Liveness::Elsewhere);
        let process = HostProcess {
            pid: 1,
            start: format!("{}/an-earlier-one/pid:[1]/7", here.machine),
        };
        assert_eq!(liveness(&process), Liveness::OtherBoot);
    }
}
