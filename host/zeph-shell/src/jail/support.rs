//! What this machine offers for a jail, found out by trying. What lasts is found out once; a trial that failed because the machine was busy
//! answers nothing, and is made again.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use zeph_core::user::{ToolUser, run_as};

use super::cgroup::{self, Cgroups};
use super::probe::{self, ProbeResult};
use super::trial::{self, NoNamespaces};

/// Places bubblewrap is looked for. A fixed list: what a search path says is not believed. The first comes first since profiles
/// of AppArmor name it.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// How long an answer that may pass holds: the steps of one command ask several times.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What was found, for the whole process.
static OF_THIS_MACHINE: SupportFindings = SupportFindings(Mutex::new(None));

/// What this machine offers.
#[derive(Debug, Clone)]
pub struct Support {
    /// Bubblewrap, or why there is none.
    pub bubblewrap: Result<Bubblewrap, String>,
    /// Whether it can make namespaces with a `/proc` of their own, or what it says instead.
    pub namespaces: Result<(), NoNamespaces>,
    /// The version of Landlock's rules; 0 when there is none.
    pub landlock: u32,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Where groups of processes can be limited.
    pub cgroups: Cgroups,
}

/// The bubblewrap of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bubblewrap {
    /// Where it is.
    pub program: PathBuf,
    /// What it calls itself, for example `bubblewrap 0.8.0`.
    pub version: String,
}

/// What was found, and when.
struct SupportFindings(Mutex<Option<(Arc<Support>, Instant)>>);

impl SupportFindings {
    /// What was found, or what `find` makes of it where there is nothing that lasts and the last trial is `again_after` ago. Others wait
    /// meanwhile.
    fn now(
        &self,
        again_after: Duration,
        find: impl FnOnce(Option<&Support>) -> Support,
    ) -> Arc<Support> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((support, tried)) = &*held
            && (support.lasts() || tried.elapsed() < again_after)
        {
            return Arc::clone(support);
        }
        let before = held.take();
        let support = Arc::new(find(before.as_ref().map(|(support, _)| &**support)));
        *held = Some((Arc::clone(&support), Instant::now()));
        support
    }
}

impl Support {
    /// Finds out at the first call, in a few milliseconds, or some seconds on a machine that is too busy to tell. What lasts is remembered.
    pub fn of_this_machine() -> Arc<Self> {
        Self::remembered(None, None)
    }

    /// Like `of_this_machine`, but a trial that an earlier process made counts, as long as `folder` has its record and nothing is
    /// different. Namespaces are tried as `user`.
    pub(super) fn remembered(folder: Option<&Path>, user: Option<&ToolUser>) -> Arc<Self> {
        OF_THIS_MACHINE.now(AGAIN_AFTER, |before| Self::find(before, folder, user))
    }

    /// `before`: what was found when the namespaces could not be tried.
    fn find(before: Option<&Self>, folder: Option<&Path>, user: Option<&ToolUser>) -> Self {
        let (bubblewrap, namespaces) = match find() {
            Ok(program) => match tried(folder, &program, user) {
                Ok(found) => {
                    let version = found.version;
                    (Ok(Bubblewrap { program, version }), Ok(()))
                }
                Err((version, problem)) => {
                    let bubblewrap = version.map(|version| Bubblewrap { program, version });
                    (
                        bubblewrap.ok_or_else(|| problem.reason.clone()),
                        Err(problem),
                    )
                }
            },
            Err(reason) => (
                Err(reason),
                Err(NoNamespaces::lasting("there is no bubblewrap to make them")),
            ),
        };
        let (landlock, seccomp, cgroups) = match before {
            Some(before) => (before.landlock, before.seccomp, before.cgroups.clone()),
            None => {
                let seccomp = Path::new("/proc/sys/kernel/seccomp/actions_avail").exists();
                (landlock(), seccomp, cgroup::find())
            }
        };
        Self {
            bubblewrap,
            namespaces,
            landlock,
            seccomp,
            cgroups,
        }
    }

    /// Whether another look would find the same.
    pub(crate) fn lasts(&self) -> bool {
        !matches!(&self.namespaces, Err(problem) if problem.may_pass)
    }

    /// Whether the number of processes of one run is limited in the full jail: by a cgroup, or by the kernel, which counts those of a user in
    /// a namespace but not root's. `user`: who programs run as; the host's own without one.
    pub fn limits_processes(&self, user: Option<&ToolUser>) -> bool {
        let is_root = user.is_none() && rustix::process::geteuid().is_root();
        self.cgroups.limits_processes() || (self.namespaces.is_ok() && !is_root)
    }

    /// Bubblewrap, where it works.
    pub(super) fn usable(&self) -> Option<&Bubblewrap> {
        self.namespaces.as_ref().ok()?;
        self.bubblewrap.as_ref().ok()
    }
}

/// What a trial of `program` finds, now or earlier.
///
/// Errors: why it makes no namespaces, with its version where it told that.
fn tried(
    folder: Option<&Path>,
    program: &Path,
    user: Option<&ToolUser>,
) -> Result<ProbeResult, (Option<String>, NoNamespaces)> {
    let try_it = || probe::recall(folder, program, || trial::of(program, &trial::PATIENCE));
    run_as(user, try_it).map_err(|error| (None, NoNamespaces::of_system(&error)))?
}

fn find() -> Result<PathBuf, String> {
    let program = PLACES.iter().map(Path::new).find(|path| path.exists());
    let program = program.ok_or("bubblewrap is not installed")?;
    let about = program.metadata().map_err(|error| error.to_string())?;
    // Another user's program would be the host's.
    let mine = rustix::process::geteuid().as_raw();
    if ![0, 65534, mine].contains(&about.uid()) || about.mode() & 0o022 != 0 {
        return Err(format!("`{}` can be changed by others", program.display()));
    }
    Ok(program.to_owned())
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> u32 {
    0
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no library only asks for the version")]
fn landlock() -> u32 {
    const ASK_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call reads no memory and makes nothing.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            ASK_VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(namespaces: Result<(), NoNamespaces>) -> Support {
        let version = String::new();
        Support {
            bubblewrap: Ok(Bubblewrap {
                program: PLACES[0].into(),
                version,
            }),
            namespaces,
            landlock: 6,
            seccomp: true,
            cgroups: Cgroups::default(),
        }
    }

    /// A machine that could not be tried is not taken for one that has no namespaces.
    #[test]
    #[cfg(target_os = "linux")]
    fn less_of_a_jail_is_used_only_where_there_is_no_more() {
        use crate::jail::{JailLabel, label_of};

        let never = NoNamespaces::lasting("never");
        let busy = NoNamespaces {
            may_pass: true,
            ..never.clone()
        };
        for (namespaces, most, expect) in [
            (Ok(()), JailLabel::Full, Some(JailLabel::Full)),
            (
                Ok(()),
                JailLabel::LandlockOnly,
                Some(JailLabel::LandlockOnly),
            ),
            (Err(never), JailLabel::Full, Some(JailLabel::LandlockOnly)),
            (Err(busy.clone()), JailLabel::Full, None),
            (
                Err(busy),
                JailLabel::LandlockOnly,
                Some(JailLabel::LandlockOnly),
            ),
        ] {
            let label = label_of(&support(namespaces), most);
            assert!(label.as_ref().err().is_none_or(|none| none.may_pass));
            assert_eq!(label.ok(), expect);
        }
    }

    /// What was found only because the machine was busy is no answer for the life of the process.
    #[test]
    fn what_may_pass_is_looked_at_again() {
        let busy = NoNamespaces {
            reason: "busy".to_owned(),
            may_pass: true,
        };
        let never = NoNamespaces::lasting("never");
        for (first, second, n_found) in [
            (Err(busy.clone()), Ok(()), 2),
            (Err(busy.clone()), Err(never.clone()), 2),
            (Err(busy.clone()), Err(busy), 3),
            (Err(never), Ok(()), 1),
            (Ok(()), Ok(()), 1),
        ] {
            let findings = SupportFindings(Mutex::new(None));
            let mut n = 0;
            for _ in 0..3 {
                findings.now(Duration::ZERO, |before| {
                    assert_eq!(before.is_some(), n > 0);
                    n += 1;
                    support(if n == 1 {
                        first.clone()
                    } else {
                        second.clone()
                    })
                });
            }
            assert_eq!(n, n_found, "{first:?}, {second:?}");
            let found = findings.now(Duration::MAX, |_| support(Ok(())));
            let last = if n_found == 1 { first } else { second };
            assert_eq!(found.namespaces, last, "nothing is tried twice at once");
        }
    }
}
