//! Directories that a call fills under a temporary name before it gives them the one they are for.
//!
//! Whether the call may make what programs obey below such a name is decided when that leaves the draft: there the name is known that
//! rules and approvals are about. Nothing is to obey it until then, so what stays behind under a temporary name is looked through when
//! the call ends, however it ends (`left`). A draft is the very directory that the call made, for as long as that has a temporary
//! name. What other calls fill, or left, stays where it is, so that no draft gets another name while its call fills it.

mod left;

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::CWD;
use zeph_core::capability::FsRights;
use zeph_core::draft::LiveDraft;

use super::FsCtx;
use super::error::{Code, FsOutcome};
use super::handle::DirHandle;
use super::obeyed::refused;
use super::path::GuestPath;
use super::policy::{FsPolicy, RootId};
use super::resolve::ResolvedName;
use super::sys::{FileId, Meta};

/// How a temporary name begins and ends, as the file tools choose it; between stand [`RANDOM_DIGITS`] hexadecimal digits.
const HEAD: &str = ".zeph-";
const TAIL: &str = ".tmp";
const RANDOM_DIGITS: usize = 16;

/// How drafts are named in a refusal.
const DRAFT: &str = ".zeph-*.tmp";

/// Most drafts of a call; further directories with such a name are none. `copy_path` makes one.
const DRAFTS_MAX: usize = 16;

/// The drafts of a call. What stays behind of them is judged once: when they end, or when this is dropped.
#[derive(Debug)]
pub(super) struct Drafts {
    policy: Arc<FsPolicy>,
    begun: Vec<Draft>,
}

#[derive(Debug)]
struct Draft {
    /// Held, so that no other directory gets its number.
    handle: OwnedFd,
    id: FileId,
    /// The real path it was made at.
    path: PathBuf,
    live: LiveDraft,
}

impl Drafts {
    /// None so far.
    pub(super) fn new(policy: Arc<FsPolicy>) -> Self {
        Self {
            policy,
            begun: Vec::new(),
        }
    }

    /// Judges the drafts left behind. Returns one sentence for each that the caller has to know about.
    ///
    /// Limits: a second of looking for each draft; larger ones are shut.
    pub(super) fn end(&mut self) -> Vec<String> {
        let ended = std::mem::take(&mut self.begun).into_iter();
        let told = ended.filter_map(|draft| left::judge(&self.policy, draft));
        // The call may be past hearing it.
        told.inspect(|told| tracing::warn!("{told}")).collect()
    }

    fn has(&self, id: FileId) -> bool {
        self.begun.iter().any(|draft| draft.id == id)
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        self.end();
    }
}

impl FsCtx {
    /// Remembers the directory `entry` with the real path `name`, made a moment ago under a temporary name, as a draft. What looks for
    /// changes of commands leaves it alone until the call ends.
    pub(super) fn begin_draft(&mut self, entry: &ResolvedName<'_>, name: PathBuf) {
        self.created.note_at(entry.dir(), entry.leaf);
        let opened = self
            .policy
            .kernel()
            .open_beneath(entry.dir(), entry.leaf, false);
        let Ok(handle) = opened else {
            return;
        };
        let meta = Meta::of(&handle);
        let own = meta.ok().filter(|meta| self.created.has(&handle, meta));
        let Some(id) = own.map(|meta| meta.id) else {
            return;
        };
        if self.drafts.begun.len() < DRAFTS_MAX {
            self.drafts.begun.push(Draft {
                handle,
                id,
                live: LiveDraft::begin(name.clone(), (id.dev, id.ino)),
                path: name,
            });
        }
    }

    /// Ends the drafts of the call: [`Drafts::end`].
    pub(crate) fn end_drafts(&mut self) -> Vec<String> {
        self.drafts.end()
    }

    /// Whether what has the real path `name`, below the root `top`, lies in a draft of this call.
    pub(super) fn is_in_draft(&self, top: &Path, name: &Path) -> bool {
        let above = name.parent();
        above.is_some_and(|above| temporary(top, above).any(|path| self.is_draft(path)))
    }

    /// Whether the real path `name` is a draft of this call.
    pub(super) fn is_draft(&self, name: &Path) -> bool {
        let found = || Meta::at(CWD, name).is_ok_and(|meta| self.drafts.has(meta.id));
        has_temporary_name(name) && found()
    }

    /// Whether something else stands in the place of a draft of this call.
    pub(super) fn has_lost_drafts(&self) -> bool {
        self.drafts.begun.iter().any(|draft| self.is_lost(draft))
    }

    /// Whether `path` leads to what others have put in the place of a draft of this call.
    pub(super) fn is_lost_at(&self, dir: &DirHandle, path: GuestPath<'_>) -> bool {
        let policy = &*self.policy;
        let entry = policy.entry(dir.asking(FsRights::READ), path);
        let name = entry.and_then(|entry| entry.real_name(policy));
        name.is_ok_and(|name| self.is_in_lost_draft(&name))
    }

    /// Whether what has the real path `name` is, or lies in, what others have put in the place of a draft of this call.
    fn is_in_lost_draft(&self, name: &Path) -> bool {
        let mut over = self.drafts.begun.iter();
        over.any(|draft| name.starts_with(&draft.path) && self.is_lost(draft))
    }

    fn is_lost(&self, draft: &Draft) -> bool {
        let Ok(meta) = Meta::at(CWD, &*draft.path) else {
            return false;
        };
        // The call may use a name again.
        meta.id != draft.id && !self.has_made(&draft.path, &meta)
    }

    /// Whether what has the real path `name` may be made, changed or removed as far as drafts go.
    ///
    /// Errors: not-permitted in what others have put in the place of one.
    pub(super) fn may_fill(&self, name: &Path) -> FsOutcome<()> {
        match self.is_in_lost_draft(name) {
            true => Err(Code::NotPermitted.into()),
            false => Ok(()),
        }
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
        meta.is_dir() && !self.has_made(path, &meta)
    }

    /// Whether the call made what stands at `path`, described by `meta`.
    fn has_made(&self, path: &Path, meta: &Meta) -> bool {
        let is_own = |path| self.created.has_at(CWD, path, meta);
        path.to_str().is_some_and(is_own)
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
