//! A draft that never got its name. What was not decided in it, since that name was to decide, is decided now: programs obey it where it
//! stands, and nobody gave leave for that. It is renamed, never deleted.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use zeph_core::obeyed::{self, ANYWHERE, KEPT_BY_TOOLS, WHERE_PRESENT};
use zeph_core::text::plain_line;

use super::{Draft, has_temporary_name};
use crate::fs::laid_open::{is_head, is_laid_open};
use crate::fs::obeyed::GIT;
use crate::fs::policy::FsPolicy;
use crate::fs::stop::StopSwitch;
use crate::fs::sweep::{Sight, Sweep, SweepEnd};
use crate::fs::sys::{self, Kernel, Meta};

/// Put behind the name of what is held back.
const ASIDE: &str = "held-back";

/// Most tries to find a name that is free.
const TRIES: u32 = 100;

/// Most names that are looked at: a second at most. A larger draft is shut. Smaller in tests, which would otherwise spend seconds on
/// making files.
const ENTRIES_MAX: usize = if cfg!(test) { 1_000 } else { 1_000_000 };

/// Most of them that are renamed.
const HELD_MAX: usize = 10_000;

/// Characters of a path in a sentence.
const PATH_CHARS_MAX: usize = 160;

/// What became of what programs obey in a draft.
struct Judged {
    /// The first that was renamed.
    first: Option<PathBuf>,
    n_held: usize,
    /// Whether that was all.
    is_whole: bool,
}

/// Looks through the draft, whose call ends, if it still has a temporary name. One sentence if something had to be done.
pub(super) fn judge(policy: &FsPolicy, draft: Draft) -> Option<String> {
    // From now on the looks after commands see it as well.
    let is_passed_over = draft.live.end();
    let path = policy.kernel().name(&draft.handle).ok()?;
    if !has_temporary_name(&path) {
        return replaced(&draft.path, &path);
    }
    let top = policy.governing(&path);
    let top = top.map(|root| Path::new(&policy.root(root).path));
    let below = top.and_then(|top| path.strip_prefix(top).ok());
    let below = below.unwrap_or(&path);
    // What a command put there, the leave of the call is not for.
    let covers =
        |inner: &Path, name| !is_passed_over && policy.leave().covers(&path.join(inner), name);
    let (found, saw_all) = look(policy, draft.handle.as_fd(), |sight| {
        let name = name_of(&below.join(sight.path), sight);
        name.is_some_and(|name| !covers(sight.path, name))
    });
    let judged = hold_back(policy.kernel(), draft.handle.as_fd(), &found, saw_all);
    if !judged.is_whole {
        policy
            .kernel()
            .set_mode(&draft.handle, Mode::empty())
            .inspect_err(
                |error| tracing::warn!(%error, path = %path.display(), "cannot shut a draft"),
            )
            .ok();
    }
    judged.told(&path)
}

/// The name on the list that an entry is obeyed by where it stands; `whole` is its path below the root.
fn name_of(whole: &Path, sight: &Sight<'_>) -> Option<&'static str> {
    let names = ANYWHERE.into_iter().chain(WHERE_PRESENT);
    let found = obeyed::name_at(whole, names.chain(KEPT_BY_TOOLS));
    let redirected = || obeyed::name_from(whole).filter(|_| sight.kind == FileType::Symlink);
    // Without it git takes the directory for none of its own.
    let heads = || (is_head(sight.leaf) && is_laid_open(sight.dir)).then_some(GIT);
    found.or_else(redirected).or_else(heads)
}

/// What in the draft is to be held back, each directory before what it holds, and whether all could be looked at.
fn look(
    policy: &FsPolicy,
    draft: BorrowedFd<'_>,
    is_held: impl Fn(&Sight<'_>) -> bool,
) -> (Vec<PathBuf>, bool) {
    // The call has ended: nobody stops this.
    let (stop, mut found) = (StopSwitch::default(), Vec::new());
    let mut sweep = Sweep::new(policy.kernel(), &stop, ENTRIES_MAX);
    let swept = sweep.run(draft, |sight| {
        if is_held(sight) {
            found.push(sight.path.to_owned());
        }
        match found.len() < HELD_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    let saw_all = matches!(swept, Ok(SweepEnd::All)) && sweep.saw_all();
    (found, saw_all)
}

fn hold_back(kernel: &Kernel, draft: BorrowedFd<'_>, found: &[PathBuf], saw_all: bool) -> Judged {
    let mut judged = Judged {
        first: None,
        n_held: 0,
        is_whole: saw_all,
    };
    // What lies deeper comes first: its path is the old one.
    for path in found.iter().rev() {
        match set_aside(kernel, draft, path) {
            Ok(()) => {
                judged.n_held += 1;
                judged.first = Some(path.clone());
            }
            Err(Errno::NOENT) => {}
            Err(_) => judged.is_whole = false,
        }
    }
    judged
}

/// Renames what stands at `path` in the draft to a name that is free.
fn set_aside(kernel: &Kernel, draft: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    let old = path.file_name().ok_or(Errno::INVAL)?;
    let above = path.parent().filter(|above| *above != Path::new(""));
    let directory = kernel.open_any_beneath(draft, above.unwrap_or(Path::new(".")))?;
    let numbered = (2..TRIES).map(|number| format!(".{ASIDE}-{number}"));
    for end in std::iter::once(format!(".{ASIDE}")).chain(numbered) {
        let mut new = OsString::from(old);
        new.push(end);
        match sys::rename_free(directory.as_fd(), old, directory.as_fd(), new.as_os_str()) {
            Err(Errno::EXIST) => {}
            done => return done,
        }
    }
    Err(Errno::EXIST)
}

/// Says that another directory stands where the draft was made, which is `now` elsewhere.
fn replaced(draft: &Path, now: &Path) -> Option<String> {
    let stands = Meta::at(CWD, draft).is_ok();
    stands.then(|| {
        format!(
            "something else took the place of `{}` while the call filled it: what the call made is `{}` now",
            shown(draft),
            shown(now)
        )
    })
}

impl Judged {
    fn told(&self, draft: &Path) -> Option<String> {
        let path = shown(draft);
        if !self.is_whole {
            return Some(format!(
                "`{path}` was left behind and is shut (`chmod u+rwx` opens it): not all that programs outside obey in it could be held \
                 back; look at what is in it before you use it"
            ));
        }
        let first = shown(self.first.as_ref()?);
        let more = match self.n_held - 1 {
            0 => String::new(),
            more => format!(" (and {more} more like it)"),
        };
        Some(format!(
            "`{path}` was left behind; in it, `{first}`{more}, which programs outside obey, was renamed to `*.{ASIDE}`: rename it back \
             if you want it"
        ))
    }
}

fn shown(path: &Path) -> String {
    plain_line(&path.display().to_string(), PATH_CHARS_MAX)
}
