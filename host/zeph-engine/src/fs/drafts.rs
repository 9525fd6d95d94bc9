//! Directories that a call fills under a temporary name before it gives them the one they are for.
//!
//! Nothing obeys what stands below such a name, so whether it may be made is decided when the directory takes its own: there the name
//! is known that rules and approvals are about.

use std::path::{Path, PathBuf};

/// How a temporary name begins and ends, as the file tools choose it; between stand [`RANDOM_DIGITS`] hexadecimal digits.
const HEAD: &str = ".zeph-";
const TAIL: &str = ".tmp";
const RANDOM_DIGITS: usize = 16;

/// Most directories of a call that count. `copy_path` makes one.
const DRAFTS_MAX: usize = 16;

/// The directories of one call.
#[derive(Debug, Default)]
pub(super) struct Drafts(Vec<Draft>);

#[derive(Debug)]
struct Draft {
    path: PathBuf,
    /// The first name on the list that was made in it.
    obeyed: Option<&'static str>,
}

impl Drafts {
    /// Notes the directory with the real path `path`, which the call has just made.
    pub(super) fn begin(&mut self, path: PathBuf) {
        let leaf = path.file_name().and_then(|leaf| leaf.to_str());
        if self.0.len() < DRAFTS_MAX && leaf.is_some_and(is_temporary) {
            self.0.push(Draft { path, obeyed: None });
        }
    }

    /// Whether the decision about the real path `path`, which is or is inside of `obeyed` of the list, waits for the name of its directory.
    pub(super) fn postpone(&mut self, path: &Path, obeyed: &'static str) -> bool {
        let mut drafts = self.0.iter_mut();
        let Some(draft) = drafts.find(|draft| path.starts_with(&draft.path)) else {
            return false;
        };
        draft.obeyed.get_or_insert(obeyed);
        true
    }

    /// Whether the real path `path` is one of the directories, or in one.
    pub(super) fn contain(&self, path: &Path) -> bool {
        self.of(path).is_some()
    }

    /// What was made in the directory of `path` that waits for a decision.
    pub(super) fn postponed(&self, path: &Path) -> Option<&'static str> {
        self.of(path)?.obeyed
    }

    fn of(&self, path: &Path) -> Option<&Draft> {
        let mut drafts = self.0.iter();
        drafts.find(|draft| path.starts_with(&draft.path))
    }
}

fn is_temporary(leaf: &str) -> bool {
    let random = leaf.strip_prefix(HEAD);
    let random = random.and_then(|rest| rest.strip_suffix(TAIL));
    random.is_some_and(|random| {
        random.len() == RANDOM_DIGITS && random.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}
