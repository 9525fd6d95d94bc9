//! Commits of commands that are without what the user's own configuration of git adds to each: hooks that check it, a signature. The user is
//! told once.

use std::path::PathBuf;

use zeph_core::git_config::settings;
use zeph_core::text::plain_line;

use super::aftermath::AftermathFinding;
use super::gitconfig::Missing;
use super::{git, place_state};

/// What every commit writes into the git directory.
const MESSAGE: &str = "COMMIT_EDITMSG";

/// Most characters of a folder in a note.
const PATH_CHARS_MAX: usize = 160;

/// Commits as they were before a run.
#[derive(Debug, Clone, Default)]
pub(super) struct CommitWatch {
    missing: Missing,
    /// Git directories, with what changes when a commit is made.
    messages: Vec<(PathBuf, Option<u64>)>,
}

impl CommitWatch {
    /// Begins to watch the git directories `gits`, if commits there are without something.
    pub(super) fn begin(missing: Missing, gits: &[PathBuf]) -> Self {
        let gits = match missing == Missing::default() {
            true => &[],
            false => gits,
        };
        let messages = gits.iter().map(|git| (git.clone(), print(git)));
        Self {
            messages: messages.collect(),
            missing,
        }
    }

    /// What to say of commits that were made since.
    pub(super) fn told(&self) -> Option<AftermathFinding> {
        let mut made = self.messages.iter();
        let (git, _) = made.find(|(git, before)| print(git) != *before)?;
        // Those of the repository take the place of the user's.
        let config = git::small(&git.join("config")).unwrap_or_default();
        let mut own = settings(&config).into_iter();
        let has_own = own.any(|setting| setting.name == "core.hookspath");
        let hooks = self.missing.hooks.as_ref().filter(|_| !has_own);
        let hooks = hooks.map(|folder| {
            let folder = plain_line(folder, PATH_CHARS_MAX);
            format!("your hooks in `{folder}` (`core.hooksPath`) did not run")
        });
        let signature = self.missing.is_signature;
        let signature = signature.then(|| "it is not signed (`commit.gpgsign`)".to_owned());
        let what: Vec<String> = hooks.into_iter().chain(signature).collect();
        (!what.is_empty()).then(|| AftermathFinding {
            path: git.clone(),
            text: format!(
                "a commit was made in the jail, where your own configuration of git does not hold as a whole: {}; look at what commands \
                 committed before you push it",
                what.join(", and ")
            ),
        })
    }
}

fn print(git: &std::path::Path) -> Option<u64> {
    place_state::print(&git.join(MESSAGE))
}
