//! Directories that a call fills under a temporary name before it gives them the one they are for.
//!
//! Nothing obeys what stands below such a name, so whether the call may make it is decided when it leaves the draft: there the name is
//! known that rules and approvals are about. A draft is the very directory that the call made, for as long as that has a temporary
//! name. What other calls fill, or left, stays where it is, so that no draft gets another name while its call fills it.

use std::path::{Component, Path, PathBuf};

use rustix::fs::CWD;
use zeph_core::draft::LiveDraft;

use super::FsCtx;
use super::error::FsOutcome;
use super::obeyed::refused;
use super::policy::{FsPolicy, RootId};
use super::resolve::ResolvedName;
use super::sys::Meta;

/// How a temporary name begins and ends, as the file tools choose it; between stand [`RANDOM_DIGITS`] hexadecimal digits.
const HEAD: &str = ".zeph-";
const TAIL: &str = ".tmp";
const RANDOM_DIGITS: usize = 16;

/// How drafts are named in a refusal.
const DRAFT: &str = ".zeph-*.tmp";

/// Most directories of a call that are announced at one time. `copy_path` makes one.
const LIVE_MAX: usize = 16;

impl FsCtx {
    /// Remembers the directory `entry` with the real path `name`, made a moment ago under a temporary name, as a draft. What looks for
    /// changes of commands leaves it alone until the call ends.
    pub(super) fn begin_draft(&mut self, entry: &ResolvedName<'_>, name: PathBuf) {
        self.created.note_draft(entry.dir(), entry.leaf);
        if self.drafts.len() < LIVE_MAX {
            self.drafts.push(LiveDraft::begin(name));
        }
    }

    /// Whether what has the real path `name`, below the root `top`, lies in a draft of this call.
    pub(super) fn is_in_draft(&self, top: &Path, name: &Path) -> bool {
        let above = name.parent();
        above.is_some_and(|above| temporary(top, above).any(|path| self.is_draft(path)))
    }

    /// Whether the real path `name` is a draft of this call.
    pub(super) fn is_draft(&self, name: &Path) -> bool {
        let text = name.to_str().filter(|_| has_temporary_name(name));
        let found = text.and_then(|path| Some((path, Meta::at(CWD, path).ok()?)));
        found.is_some_and(|(path, meta)| self.created.has_draft_at(CWD, path, &meta))
    }

    /// Whether what has the real path `name` may get or lose it as far as drafts go.
    ///
    /// Errors: it is, or lies in, a directory with a temporary name that this call did not make, without leave.
    pub(super) fn may_move_draft(
        &self,
        policy: &FsPolicy,
        root: RootId,
        name: &Path,
    ) -> FsOutcome<()> {
        let top = Path::new(&policy.root(root).path);
        let is_foreign = |path: &Path| self.is_directory_of_others(path);
        match temporary(top, name).any(is_foreign) && !policy.leave().covers(name, DRAFT) {
            true => Err(refused(name, DRAFT)),
            false => Ok(()),
        }
    }

    fn is_directory_of_others(&self, path: &Path) -> bool {
        let Ok(meta) = Meta::at(CWD, path) else {
            return false;
        };
        let is_own = |path| self.created.has_at(CWD, path, &meta);
        meta.is_dir() && !path.to_str().is_some_and(is_own)
    }
}

/// Whether the text of a symbolic link names a draft on its way: it would give what stands in there a name that programs obey.
pub(super) fn names_draft(target: &str) -> bool {
    let parts = Path::new(target).components();
    let mut names = parts.filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    names.any(|name| {
        // As the most lenient file system compares names.
        let ascii = name.chars().filter(char::is_ascii);
        is_temporary(&ascii.collect::<String>().to_ascii_lowercase())
    })
}

/// The directories with a temporary name among `name` and those above it, below the root `top`.
fn temporary<'a>(top: &'a Path, name: &'a Path) -> impl Iterator<Item = &'a Path> {
    let inside = move |path: &&Path| *path != top && path.starts_with(top);
    let within = name.ancestors().take_while(inside);
    within.filter(|path| has_temporary_name(path))
}

/// Whether a directory of the real path `path` has such a name as a draft has.
pub(super) fn has_temporary_name(path: &Path) -> bool {
    let leaf = path.file_name().and_then(|leaf| leaf.to_str());
    leaf.is_some_and(is_temporary)
}

fn is_temporary(leaf: &str) -> bool {
    let random = leaf.strip_prefix(HEAD);
    let random = random.and_then(|rest| rest.strip_suffix(TAIL));
    random.is_some_and(|random| {
        random.len() == RANDOM_DIGITS && random.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}
