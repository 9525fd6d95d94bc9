//! Why a command failed, where the jail is the reason.
//!
//! It judges by words alone and never looks at the file system, so it cannot tell a command what exists outside.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::mount::within_any;
use super::policy::{JailPolicy, Network};
use super::tracked;

/// Most bytes that are looked at, from the end.
const TAIL_BYTES_MAX: usize = 16 * 1024;

/// What programs print when they cannot reach anybody, or are told that they cannot.
const NETWORK: [&str; 19] = [
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "EAI_AGAIN",
    "ENETUNREACH",
    "ENOTFOUND",
    "failed to lookup address",
    // npm, pnpm, yarn
    "ENOTCACHED",
    "_NO_OFFLINE_",
    "YN0080",
    // Cargo, Composer, Maven, Hugging Face, RubyGems
    "offline mode",
    "--offline",
    "disabled network",
    "network is disabled",
    "Network connectivity is disabled",
    // pip, Go, Corepack
    "No matching distribution found",
    "GOPROXY=off",
    "COREPACK_ENABLE_NETWORK",
];

/// What programs print when a file stands in the way, and what it means.
const FILES: [(&str, JailRefusal); 9] = [
    ("Read-only file system", JailRefusal::Write),
    ("read-only file system", JailRefusal::Write),
    ("EROFS", JailRefusal::Write),
    ("Device or resource busy", JailRefusal::Busy),
    ("EBUSY", JailRefusal::Busy),
    ("Permission denied", JailRefusal::Access),
    ("EACCES", JailRefusal::Access),
    ("No such file or directory", JailRefusal::Absent),
    ("ENOENT", JailRefusal::Absent),
];

/// Programs that make calls no command may make.
const CALLERS: [&str; 8] = [
    "unshare", "mount", "umount", "chroot", "ptrace", "strace", "gdb", "nsenter",
];

/// Where everything is visible or private: a missing file there is missing.
const SEEN: [&str; 8] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev", "/tmp",
];

/// What every command has of its own, and fills.
const FILLED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What programs print when a system call was refused.
const REFUSED: [&str; 2] = ["Operation not permitted", "operation not permitted"];

/// What programs print beside that when it was a Unix socket that they wanted to make.
const SOCKETS: [&str; 2] = ["AF_UNIX", "listen EPERM"];

/// What programs print when nobody serves a port or a socket.
const SILENT: [&str; 3] = ["Connection refused", "connection refused", "ECONNREFUSED"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum JailRefusal {
    Write,
    Busy,
    Access,
    Absent,
}

/// What stood in the way of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunWalls {
    /// Whether it could make no named socket.
    pub are_refused: bool,
    /// Named sockets of others that were served and covered.
    pub covered: Arc<[PathBuf]>,
    /// What it could not change, with all in it, although it lies in a directory that it may change.
    pub kept: Arc<[PathBuf]>,
    /// What it could neither rename nor remove.
    pub pinned: Arc<[PathBuf]>,
    /// Whether it ran without namespaces, so that there was no `/tmp` of its own.
    pub is_alone: bool,
    /// A directory that it may change and whose owner is another than the host, which is root: the command has no rights of root.
    pub foreign: Option<ForeignRoot>,
}

/// A writable directory that another user owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRoot {
    /// The directory.
    pub path: PathBuf,
    /// Its owner.
    pub owner: u32,
}

impl ForeignRoot {
    /// The first of `roots` that another user than root owns, if root is who commands run as.
    pub(crate) fn of(roots: &[PathBuf]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        roots.iter().find_map(|root| {
            let owner = root.metadata().ok()?.uid();
            (owner != 0).then(|| Self {
                path: root.clone(),
                owner,
            })
        })
    }
}

impl std::fmt::Display for ForeignRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` belongs to the user with the number {}, and commands of a host that runs as root have no privileges: they cannot change the \
             files of other users; start the host as that user, or set `tools.scope.run_as_user`, or give the files to root",
            self.path.display(),
            self.owner
        )
    }
}

/// Most kept places that one sentence names.
const KEPT_SHOWN_MAX: usize = 3;

/// How a line begins in which git tells of a file that it could not replace and goes on without.
const GIT_GOES_ON: [&str; 3] = [
    "error: unable to unlink old",
    "warning: unable to unlink",
    "error: unable to create file",
];

/// Says in one sentence what of the jail a command ran into, judging by the end of what it wrote to its error stream. Names
/// only paths that stand in `tail` already, as they are or by their ends. `walls` are those of the run.
///
/// Shape:  `None` when nothing in `tail` looks like the jail's doing.
/// Limits: looks at the last 16 KiB.
pub fn explain(tail: &str, policy: &JailPolicy, walls: &RunWalls) -> Option<String> {
    let tail = end_of(tail);
    let of_lines = lines(tail).rev().find_map(|line| {
        let is_kept = kept_in(line, walls, policy.roots.first()).is_some();
        match is_kept {
            true => explain_kept(tail, policy, walls),
            false => of_owner(line, walls).or_else(|| of_line(line, policy, walls)),
        }
    });
    of_lines.or_else(|| of_sockets(tail, walls))
}

/// Says so when the sanitizer that looks for leaks gave up, wherever it prints that: its own words speak of a debugger, and a command may
/// end well all the same.
pub(crate) fn explain_sanitizer(tail: &str) -> Option<String> {
    let gave_up = end_of(tail).contains("LeakSanitizer has encountered a fatal error");
    gave_up.then(|| {
        "LeakSanitizer looks for leaks with `ptrace`, which the jail refuses; no debugger is at work. `ASAN_OPTIONS=detect_leaks=0` (with \
         `-fsanitize=leak`: `LSAN_OPTIONS=detect_leaks=0`) runs the program without that search, and finds all other errors"
            .to_owned()
    })
}

/// The same of what the jail keeps as it is alone: a program that may go on without, as git does, says so and ends well.
pub(crate) fn explain_kept(tail: &str, policy: &JailPolicy, walls: &RunWalls) -> Option<String> {
    let (mut kept, mut of_git): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for line in lines(end_of(tail)) {
        let Some(path) = kept_in(line, walls, policy.roots.first()) else {
            continue;
        };
        let goes_on = GIT_GOES_ON.iter().any(|begin| line.starts_with(begin));
        if goes_on && !of_git.contains(&path) {
            of_git.push(path.clone());
        }
        if !kept.contains(&path) {
            kept.push(path);
        }
    }
    let shown = kept.iter().take(KEPT_SHOWN_MAX);
    let shown: Vec<String> = shown.map(|path| format!("`{}`", path.display())).collect();
    let mut text = match (kept.len(), kept.len() - shown.len()) {
        (0, _) => return None,
        (1, _) => format!(
            "the jail keeps {} as it is, because programs outside the jail obey or share it; it can only be changed outside the jail",
            shown.join(", ")
        ),
        (_, n_more) => {
            let more = match n_more {
                0 => String::new(),
                n_more => format!(" and {n_more} more"),
            };
            format!(
                "the jail keeps {}{more} as they are, because programs outside the jail obey or share them; they can only be changed \
                 outside the jail",
                shown.join(", ")
            )
        }
    };
    if !of_git.is_empty() {
        text.push_str(". Git takes what it could not replace for changed now: ");
        text.push_str(&tracked::left_out_of_commits(&of_git));
    }
    Some(text)
}

/// The kept place that a line with a refusal is about: the longest word that names one, or something in one. Relative words are taken
/// from wherever the program stood; where that leaves more than one place, one of them in `root`, or the word as far as they agree.
fn kept_in(line: &str, walls: &RunWalls, root: Option<&PathBuf>) -> Option<PathBuf> {
    let (_, refusal) = FILES.iter().find(|(words, _)| line.contains(words))?;
    if !matches!(refusal, JailRefusal::Write | JailRefusal::Busy) {
        return None;
    }
    let named = words(line).filter_map(|word| kept_by(word, walls, root));
    let longest = named.max_by_key(|(length, _)| *length);
    longest.map(|(_, path)| path)
}

/// The kept place that a word names, and the length of the word.
fn kept_by(word: &str, walls: &RunWalls, root: Option<&PathBuf>) -> Option<(usize, PathBuf)> {
    let parts = Path::new(word).components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    path.file_name()?;
    let named = |name: &Path, places: &[PathBuf]| -> Option<PathBuf> {
        let mut found = places.iter().filter(|place| place.ends_with(name));
        let (first, second) = (found.next()?, found.next());
        let in_root = root.map(|root| root.join(name));
        let in_root = in_root.filter(|path| places.contains(path));
        match second {
            None => Some(first.clone()),
            Some(_) => Some(in_root.unwrap_or_else(|| name.to_owned())),
        }
    };
    let above = path.ancestors().filter(|above| above.file_name().is_some());
    let mut kept = above.filter_map(|above| match path.is_absolute() {
        true => walls
            .kept
            .contains(&above.to_path_buf())
            .then(|| above.to_owned()),
        false => named(above, &walls.kept),
    });
    let place = kept.next().or_else(|| named(&path, &walls.pinned))?;
    Some((word.len(), place))
}

fn end_of(tail: &str) -> &str {
    let start = tail.len().saturating_sub(TAIL_BYTES_MAX);
    let start = (start..=tail.len()).find(|at| tail.is_char_boundary(*at));
    &tail[start.unwrap_or(0)..]
}

/// Lines, and what a program that shows its progress writes over one.
fn lines(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(['\n', '\r'])
}

/// Says so when the system call that makes a Unix socket was refused, or nobody answered at one that is covered. The line that says for what
/// may be another one; that of a connection names the socket, since ports are refused with the same words.
fn of_sockets(tail: &str, walls: &RunWalls) -> Option<String> {
    let is_covered = |word: &&str| {
        let name = Path::new(word).file_name();
        name.is_some() && walls.covered.iter().any(|path| path.file_name() == name)
    };
    if has(tail, &SILENT)
        && let Some(name) = words(tail).find(is_covered)
    {
        return Some(format!(
            "the jail covers `{name}`, as it does every Unix socket that was served when a command begins, those of earlier commands as \
             well: commands reach a server that goes on in the background by a port of the loopback"
        ));
    }
    let mut refused = tail.lines().filter(|line| has(line, &REFUSED)).peekable();
    let is_named = |line: &str| words(line).any(|word| word.ends_with(".sock"));
    let is_socket = refused.peek().is_some() && (has(tail, &SOCKETS) || refused.any(is_named));
    (walls.are_refused && is_socket).then(|| {
        "the jail lets a command make Unix sockets only where it can cover those of other programs: here there are too many, or they \
         may lie in directories that hold too much to be looked through; use a port of the loopback instead"
            .to_owned()
    })
}

fn has(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// Says so when a command failed for want of the network, judging by the end of what it printed: some package managers report errors
/// on standard output.
pub(crate) fn explain_offline(tail: &str, policy: &JailPolicy) -> Option<String> {
    let reason = match policy.network {
        Network::Loopback => {
            "the jail has no network but a loopback of its own; hosts are opened with `tools.sandbox.allow_hosts`, everything with \
             `tools.sandbox.allow_network = true`"
        }
        Network::Hosts => {
            "the jail reaches hosts of `tools.sandbox.allow_hosts` only, through the proxy that `HTTPS_PROXY` names; programs that do \
             not use it have no network and no name server"
        }
        Network::Open => return None,
    };
    let is_offline = tail
        .lines()
        .any(|line| NETWORK.iter().any(|words| line.contains(words)));
    is_offline.then(|| reason.to_owned())
}

/// Says so when the files of another user could not be changed, or git does not trust a repository of another user.
fn of_owner(line: &str, walls: &RunWalls) -> Option<String> {
    const REFUSED: [&str; 3] = ["Permission denied", "EACCES", "dubious ownership"];
    let foreign = walls.foreign.as_ref()?;
    let names_other_place = || {
        let mut named =
            words(line).filter(|word| word.starts_with('/') && !word.ends_with("/bash"));
        named.any(|word| !Path::new(word).starts_with(&foreign.path))
    };
    (has(line, &REFUSED) && !names_other_place()).then(|| foreign.to_string())
}

fn of_line(line: &str, policy: &JailPolicy, walls: &RunWalls) -> Option<String> {
    if let Some(offline) = explain_offline(line, policy) {
        return Some(offline);
    }
    if line.contains("Operation not permitted")
        && CALLERS.iter().any(|caller| line.contains(caller))
    {
        return Some(
            "the jail refuses system calls that act on other processes, mounts or the machine"
                .to_owned(),
        );
    }
    if line.contains("not a git repository (or any") {
        let root = policy.roots.first()?;
        return Some(format!(
            "commands see nothing above `{}`: if the repository begins above it, start the host in the uppermost directory of the \
             repository, or name that with `--root`",
            root.display()
        ));
    }
    if line.contains("Invalid cross-device link") || line.contains("EXDEV") {
        return Some(
            "a directory that holds something the jail keeps as it is cannot be left in one step: copy what is to be moved, then delete it"
                .to_owned(),
        );
    }
    let (at, refusal) = FILES
        .iter()
        .find_map(|(words, refusal)| Some((line.find(words)?, *refusal)))?;
    let path = path_in(&line[..at]).or_else(|| path_in(&line[at..]))?;
    of_path(path, refusal, policy, walls)
}

fn of_path(
    path: &str,
    refusal: JailRefusal,
    policy: &JailPolicy,
    walls: &RunWalls,
) -> Option<String> {
    let place = Path::new(path);
    let named = [&policy.allow_write, &policy.allow_read];
    let named = || {
        policy
            .roots
            .iter()
            .chain(named.into_iter().flatten().flatten())
    };
    let inside = place.is_relative() || within_any(place, named());
    // A relative path that is refused may just not be a program.
    let is_write =
        refusal == JailRefusal::Write || (refusal == JailRefusal::Access && place.is_absolute());
    if is_write && inside && !is_writable(place, policy) {
        return Some(format!(
            "`{path}` lies outside what commands may change; it is allowed with `tools.sandbox.allow_write`"
        ));
    }
    let is_filled = FILLED.iter().any(|filled| place.starts_with(filled));
    let is_left = is_filled && FILLED.iter().all(|filled| place != Path::new(filled));
    if walls.is_alone && is_filled && !inside {
        return Some(
            "without user namespaces commands have no `/tmp` of their own and do not reach that of the machine: temporary files belong in \
             `$TMPDIR`, which ends with the command"
                .to_owned(),
        );
    }
    let seen = SEEN.iter().any(|seen| place.starts_with(seen));
    match refusal {
        JailRefusal::Write | JailRefusal::Busy if inside => Some(
            "what was to be changed is kept by the jail as it is, because programs outside the jail obey or share it; it can only be \
             changed outside the jail"
                .to_owned(),
        ),
        JailRefusal::Write | JailRefusal::Busy => Some(format!(
            "the jail denied writing `{path}`; it is allowed with `tools.sandbox.allow_write`"
        )),
        JailRefusal::Access if !inside => Some(format!(
            "the jail denied `{path}`; it is allowed with `tools.sandbox.allow_read`, or `tools.sandbox.allow_write` to change it"
        )),
        JailRefusal::Absent if !inside && is_left => Some(
            "every command has a `/tmp` of its own, which ends with it: what a later command needs belongs in the working directory"
                .to_owned(),
        ),
        JailRefusal::Absent if !inside && !seen => Some(format!(
            "the jail shows nothing at `{path}`; if it exists, it is shown with `tools.sandbox.allow_read`"
        )),
        JailRefusal::Access | JailRefusal::Absent => None,
    }
}

/// Whether the policy lets commands change a path, by its words alone; a relative one is taken from where commands start.
fn is_writable(place: &Path, policy: &JailPolicy) -> bool {
    let from_root = policy.roots.first().map(|root| root.join(place));
    let place = from_root.as_deref().unwrap_or(place);
    let writable = policy.allow_write.as_ref().unwrap_or(&policy.roots);
    let parts = place.components().filter(|part| *part != Component::CurDir);
    within_any(&parts.collect::<PathBuf>(), writable)
}

/// The last word that looks like a path: quoted, or between a colon or space and a colon.
fn path_in(text: &str) -> Option<&str> {
    words(text).rev().find(|word| {
        word.contains('/') && word.len() > 1 && !word.contains("://") && !word.ends_with("/bash")
    })
}

/// What stands between blanks, quotes, brackets and commas, without colons around it. Some are empty.
fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let is_border = |c: char| {
        matches!(
            c,
            '\'' | '"' | '`' | '‘' | '’' | '(' | ')' | '[' | ']' | ','
        ) || c.is_whitespace()
    };
    text.split(is_border).map(|word| word.trim_matches(':'))
}
