//! What this machine offers for a jail, found out once by trying.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use zeph_core::user::{ToolUser, run_as};

use super::cgroup::{self, Cgroups};
use super::probe::{self, ProbeResult};

/// Places bubblewrap is looked for. A fixed list: what a search path says is not believed. The first comes first since profiles
/// of AppArmor name it.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// How long a trial may take. On an idle machine it takes five milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);

/// What this machine offers.
#[derive(Debug, Clone)]
pub struct Support {
    /// Bubblewrap, or why there is none.
    pub bubblewrap: Result<Bubblewrap, String>,
    /// Whether it can make namespaces with a `/proc` of their own, or what it says instead.
    pub namespaces: Result<(), String>,
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

impl Support {
    /// Finds out at the first call, within about half a second, and remembers.
    pub fn of_this_machine() -> &'static Self {
        Self::remembered(None, None)
    }

    /// Like `of_this_machine`, but a trial that an earlier process made counts, as long as `folder` has its record and nothing is
    /// different. Namespaces are tried as `user`.
    pub(super) fn remembered(folder: Option<&Path>, user: Option<&ToolUser>) -> &'static Self {
        static SUPPORT: OnceLock<Support> = OnceLock::new();
        SUPPORT.get_or_init(|| Self::find(folder, user))
    }

    fn find(folder: Option<&Path>, user: Option<&ToolUser>) -> Self {
        let (bubblewrap, namespaces) = match find() {
            Ok(program) => match tried(folder, &program, user) {
                Ok(found) => {
                    let version = found.version;
                    let namespaces = found.problem.map_or(Ok(()), Err);
                    (Ok(Bubblewrap { program, version }), namespaces)
                }
                Err(reason) => (Err(reason.clone()), Err(reason)),
            },
            Err(reason) => (
                Err(reason),
                Err("there is no bubblewrap to make them".to_owned()),
            ),
        };
        Self {
            bubblewrap,
            namespaces,
            landlock: landlock(),
            seccomp: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
            cgroups: cgroup::find(),
        }
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
/// Errors: it cannot be tried.
fn tried(
    folder: Option<&Path>,
    program: &Path,
    user: Option<&ToolUser>,
) -> Result<ProbeResult, String> {
    let try_it = || probe::recall(folder, program, || try_out(program));
    run_as(user, try_it).map_err(|error| error.to_string())?
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

/// Starts it twice: to say its version, and to make namespaces.
///
/// Errors: it cannot be started, or does not end.
fn try_out(program: &Path) -> Result<ProbeResult, String> {
    let said = run(program, &["--version"])?;
    Ok(ProbeResult {
        version: said.trim().to_owned(),
        problem: try_namespaces(program).err(),
    })
}

fn try_namespaces(program: &Path) -> Result<(), String> {
    let options = [
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--remount-ro",
        "/proc",
        "--",
        "/bin/true",
    ];
    run(program, &options).map(drop)
}

/// Runs a program that prints little and ends soon.
///
/// Errors: what it wrote to its error stream, or that it did not end.
#[expect(
    clippy::disallowed_methods,
    reason = "the jail tries what the machine offers"
)]
fn run(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            drop(child.kill());
            drop(child.wait());
            return Err(format!("`{}` did not end in time", program.display()));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut text = String::new();
    let stream: &mut dyn std::io::Read =
        match (status.success(), &mut child.stdout, &mut child.stderr) {
            (true, Some(stdout), _) => stdout,
            (_, _, Some(stderr)) => stderr,
            _ => return Ok(text),
        };
    // What fits in a pipe: more is not waited for.
    drop(stream.take(4096).read_to_string(&mut text));
    match status.success() {
        true => Ok(text),
        false => Err(text.trim().to_owned()),
    }
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
