//! That bubblewrap can make namespaces here: tried once, and remembered for as long as nothing that decides it is different.
//!
//! The trial starts two processes, which takes longer than a short command in its jail. What is remembered grants nothing: where it
//! is wrong, bubblewrap fails and the command does not run. That it makes none is never remembered: where that is wrong, the commands of
//! every later process would run with less of a jail.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file in the directory of the host's caches.
const FILE: &str = "namespaces.json";

/// Most bytes of it. A reason is at most 4 KiB long.
const BYTES_MAX: u64 = 64 * 1024;

/// Settings of the kernel that forbid namespaces to some programs.
const SETTINGS: [&str; 4] = [
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
];

/// What of a process decides whether it may make namespaces.
const STATUS: [&str; 4] = ["CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];

/// What a trial found that made namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProbeResult {
    /// What the program calls itself.
    pub(super) version: String,
}

#[derive(Serialize, Deserialize)]
struct ProbeRecord {
    /// What was so when it was tried.
    surroundings: String,
    made_by: ProbeResult,
}

/// What an earlier trial of `program` found, or what `try_it` finds now. `folder` is where that is remembered; nothing is without one.
///
/// Errors: those of `try_it`; they are not remembered.
pub(super) fn recall<E>(
    folder: Option<&Path>,
    program: &Path,
    try_it: impl FnOnce() -> Result<ProbeResult, E>,
) -> Result<ProbeResult, E> {
    let Some(file) = folder.map(|folder| folder.join(FILE)) else {
        return try_it();
    };
    let surroundings = surroundings(program);
    if let Some(record) = read(&file).filter(|record| record.surroundings == surroundings) {
        return Ok(record.made_by);
    }
    let found = try_it()?;
    let record = ProbeRecord {
        surroundings,
        made_by: found.clone(),
    };
    // Without it the next start tries again.
    if let Err(error) = write(&file, &record) {
        tracing::debug!(%error, "what the trial of namespaces found cannot be remembered");
    }
    Ok(found)
}

fn read(file: &Path) -> Option<ProbeRecord> {
    let about = fs::symlink_metadata(file).ok()?;
    let mine = rustix::process::geteuid().as_raw();
    let is_ours = about.is_file() && about.uid() == mine && about.mode() & 0o022 == 0;
    if !is_ours || about.len() > BYTES_MAX {
        return None;
    }
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn write(file: &Path, record: &ProbeRecord) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    temporary.write_all(&serde_json::to_vec(record)?)?;
    temporary.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Everything that decides what a trial finds, as text.
fn surroundings(program: &Path) -> String {
    let mut lines = Vec::new();
    if let Ok(about) = program.metadata() {
        lines.push(format!(
            "{} {} {} {} {}.{} {}",
            program.display(),
            about.dev(),
            about.ino(),
            about.len(),
            about.ctime(),
            about.ctime_nsec(),
            about.mode()
        ));
    }
    lines.push(format!(
        "{} {}",
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw()
    ));
    for namespace in ["user", "mnt", "pid", "net"] {
        let link = fs::read_link(format!("/proc/self/ns/{namespace}"));
        lines.push(link.unwrap_or_default().display().to_string());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let decides = |line: &&str| STATUS.iter().any(|name| line.starts_with(name));
    lines.extend(status.lines().filter(decides).map(str::to_owned));
    for file in SETTINGS.into_iter().chain(["/proc/self/attr/current"]) {
        let text = fs::read_to_string(file).unwrap_or_default();
        lines.push(text.trim_end_matches(['\n', '\0']).to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::{FILE, ProbeResult, recall};

    fn found(version: &str) -> ProbeResult {
        ProbeResult {
            version: version.to_owned(),
        }
    }

    #[test]
    fn a_trial_is_made_once_for_one_program_and_kernel() {
        let folder = tempfile::tempdir().expect("a directory");
        let program = folder.path().join("bwrap");
        fs::write(&program, "one").expect("writes");
        let ask = |version: &str| {
            let try_it = || Ok::<_, String>(found(version));
            recall(Some(folder.path()), &program, try_it).expect("it is found")
        };
        assert_eq!(ask("1"), found("1"));
        assert_eq!(ask("2"), found("1"));
        fs::write(&program, "another").expect("writes");
        assert_eq!(ask("3"), found("3"));
        // What another user could have written is not believed.
        let file = folder.path().join(FILE);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("sets");
        assert_eq!(ask("4"), found("4"));
        fs::write(&file, "{").expect("writes");
        assert_eq!(ask("5"), found("5"));
        // Earlier versions remembered failures as well.
        let record = fs::read_to_string(&file).expect("reads");
        let failed = record
            .replace("made_by", "found")
            .replace("\"}}", "\",\"problem\":\"busy\"}}");
        assert_ne!(failed, record);
        fs::write(&file, failed).expect("writes");
        assert_eq!(ask("6"), found("6"));
    }

    #[test]
    fn a_trial_that_failed_is_made_again() {
        let folder = tempfile::tempdir().expect("a directory");
        let failed = || Err("no process can be started".to_owned());
        assert!(recall(Some(folder.path()), Path::new("/bin/true"), failed).is_err());
        let again = recall(Some(folder.path()), Path::new("/bin/true"), || {
            Ok::<_, String>(found("1"))
        });
        assert_eq!(again, Ok(found("1")));
        let nowhere = recall(None, Path::new("/bin/true"), || Ok::<_, String>(found("2")));
        assert_eq!(nowhere, Ok(found("2")));
    }
}
