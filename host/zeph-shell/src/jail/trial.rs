//! The trial of bubblewrap: it says its version and makes namespaces, or tells why not. Whether that lasts is told apart from what passes:
//! without namespaces commands have less of a jail, which a machine that is busy for a moment must not decide.

use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::probe::ProbeResult;

/// How long each trial may take until there is another one. On an idle machine one takes five milliseconds.
pub(super) const PATIENCE: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// How long another trial is put off: what the machine ran out of may be there again.
const PAUSE: Duration = Duration::from_millis(100);

/// What the system says when it has no room at the moment, and the words of its C libraries for that. `ENOSPC` is none of them: in a jail or
/// a container it says that there may never be more namespaces.
const PASSING: [(Errno, &[&str]); 6] = [
    (Errno::AGAIN, &["Resource temporarily unavailable"]),
    (Errno::NOMEM, &["Cannot allocate memory", "Out of memory"]),
    (
        Errno::MFILE,
        &["Too many open files", "No file descriptors available"],
    ),
    (Errno::NFILE, &["Too many open files in system"]),
    (Errno::INTR, &["Interrupted system call"]),
    // It is just being replaced.
    (Errno::TXTBSY, &["Text file busy"]),
];

/// Signals with which others end a program, among them a kernel that is short of memory. A filter of system calls has one of its own.
const FROM_OTHERS: [i32; 5] = [
    libc::SIGKILL,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
];

/// Why no namespaces can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoNamespaces {
    /// What bubblewrap or the system said.
    pub reason: String,
    /// Whether it may be otherwise in a moment.
    pub may_pass: bool,
}

impl NoNamespaces {
    pub(super) fn lasting(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            may_pass: false,
        }
    }

    /// The system refused to start something.
    pub(super) fn of_system(error: &io::Error) -> Self {
        let errno = Errno::from_io_error(error);
        Self {
            reason: error.to_string(),
            may_pass: PASSING.iter().any(|(passing, _)| errno == Some(*passing)),
        }
    }

    /// A program ended with `status` and said why.
    fn of_end(status: ExitStatus, said: &str) -> Self {
        // Bubblewrap ends as what it started did, which shells tell in this way too.
        let of_child = status.code().map(|code| code - 128);
        let signal = status.signal().or(of_child);
        let is_of_others = signal.is_some_and(|signal| FROM_OTHERS.contains(&signal));
        let mut words = PASSING.iter().flat_map(|(_, words)| *words);
        Self {
            reason: match said {
                "" => format!("it ended with {status}"),
                said => said.to_owned(),
            },
            may_pass: is_of_others || words.any(|words| said.ends_with(words)),
        }
    }
}

/// Tries `program` as often as there are times in `patience`, for as long as what fails may pass.
///
/// Errors: why it makes no namespaces, with its version where it told that.
pub(super) fn of(
    program: &Path,
    patience: &[Duration],
) -> Result<ProbeResult, (Option<String>, NoNamespaces)> {
    let mut left = patience.iter();
    loop {
        let until = Instant::now() + left.next().copied().unwrap_or_default();
        let found = once(program, until);
        match &found {
            Err((_, problem)) if problem.may_pass && !left.as_slice().is_empty() => {
                tracing::debug!(reason = problem.reason, "namespaces are tried again");
                std::thread::sleep(PAUSE);
            }
            _ => return found,
        }
    }
}

/// Starts it twice: to say its version, and to make namespaces.
fn once(program: &Path, until: Instant) -> Result<ProbeResult, (Option<String>, NoNamespaces)> {
    let version = run(program, &["--version"], until).map_err(|problem| (None, problem))?;
    let version = version.trim().to_owned();
    match run(program, &NAMESPACES, until) {
        Ok(_) => Ok(ProbeResult { version }),
        Err(problem) => Err((Some(version), problem)),
    }
}

/// What has it make every namespace that commands get.
const NAMESPACES: [&str; 17] = [
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

/// Runs a program that prints little and ends soon.
///
/// Errors: what it wrote to its error stream, or that it did not end.
#[expect(
    clippy::disallowed_methods,
    reason = "the jail tries what the machine offers"
)]
fn run(program: &Path, arguments: &[&str], until: Instant) -> Result<String, NoNamespaces> {
    let of_system = |error: io::Error| NoNamespaces::of_system(&error);
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(of_system)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(of_system)? {
            break status;
        }
        if Instant::now() > until {
            drop(child.kill());
            drop(child.wait());
            return Err(NoNamespaces {
                reason: format!("`{}` did not end in time", program.display()),
                may_pass: true,
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut text = String::new();
    let stream: &mut dyn io::Read = match (status.success(), &mut child.stdout, &mut child.stderr) {
        (true, Some(stdout), _) => stdout,
        (_, _, Some(stderr)) => stderr,
        _ => return Ok(text),
    };
    // What fits in a pipe: more is not waited for.
    drop(stream.take(4096).read_to_string(&mut text));
    match status.success() {
        true => Ok(text),
        false => Err(NoNamespaces::of_end(status, text.trim())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn what_lasts_is_told_from_what_passes() {
        let ended = |script: &str, patience: Duration| {
            let until = Instant::now() + patience;
            run(Path::new("/bin/sh"), &["-c", script], until).expect_err(script)
        };
        let failed = |words: &str| {
            format!("echo 'bwrap: Creating new namespace failed: {words}' >&2; exit 1")
        };
        for (script, may_pass) in [
            (failed("Resource temporarily unavailable"), true),
            (failed("Cannot allocate memory"), true),
            (failed("Too many open files in system"), true),
            ("kill -KILL $$".to_owned(), true),
            ("kill -TERM $$".to_owned(), true),
            ("exit 137".to_owned(), true),
            (failed("Operation not permitted"), false),
            (failed("No space left on device"), false),
            ("kill -SYS $$".to_owned(), false),
            ("kill -SEGV $$".to_owned(), false),
            ("exit 1".to_owned(), false),
            ("exit 159".to_owned(), false),
        ] {
            let problem = ended(&script, Duration::from_secs(60));
            assert_eq!(problem.may_pass, may_pass, "{script}: {problem:?}");
            assert_ne!(problem.reason, "", "{script}");
        }
        let problem = ended("exec sleep 60", SHORT);
        assert!(problem.may_pass, "{problem:?}");
        for (errno, may_pass) in [
            (Errno::AGAIN, true),
            (Errno::MFILE, true),
            (Errno::ACCESS, false),
            (Errno::NOENT, false),
        ] {
            let problem = NoNamespaces::of_system(&errno.into());
            assert_eq!(problem.may_pass, may_pass, "{problem:?}");
        }
    }

    /// A program that fails so often in this way, and how often it was to make namespaces.
    fn tried(n_failures: usize, reason: &str) -> (Option<NoNamespaces>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let (program, log) = (folder.path().join("bwrap"), folder.path().join("log"));
        let log_path = log.display();
        let script = format!(
            "#!/bin/bash\n[ \"$1\" = --version ] && exec echo 'bubblewrap 1'\necho >> {log_path}\n\
             mapfile lines < {log_path}\n[ ${{#lines[@]}} -gt {n_failures} ] && exit 0\necho 'bwrap: {reason}' >&2\nexit 1\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let found = of(&program, &[Duration::from_secs(60); 3]);
        let n_tried = fs::read_to_string(log).unwrap().lines().count();
        match found {
            Ok(found) => {
                assert_eq!(found.version, "bubblewrap 1");
                (None, n_tried)
            }
            Err((version, problem)) => {
                assert_eq!(version.as_deref(), Some("bubblewrap 1"));
                (Some(problem), n_tried)
            }
        }
    }

    #[test]
    fn a_busy_machine_is_tried_again() {
        let busy = "Creating new namespace failed: Resource temporarily unavailable";
        assert_eq!(tried(0, busy), (None, 1));
        assert_eq!(tried(2, busy), (None, 3));
        let (problem, n_tried) = tried(9, busy);
        assert!(n_tried == 3 && problem.is_some_and(|problem| problem.may_pass));
        let (problem, n_tried) = tried(9, "No permissions to create new namespace");
        assert!(n_tried == 1 && problem.is_some_and(|problem| !problem.may_pass));
    }
}
