//! Rules of Landlock around what must be hidden. A rule holds for everything beneath its path and nothing takes it back, so a
//! directory with something hidden in it is given entry by entry, and only its names as a whole.

use std::path::Path;

use zeph_jail::plan::{PathAccess, Rule};

use super::JailError;
use super::aftermath::AftermathFinding;
use super::mount::within;
use super::place::{Hold, MountPlace};
use super::roots::Roots;
use super::view::rule;

/// Most rules: some ten milliseconds of a start.
const RULES_MAX: usize = 10_000;

/// Rules in the making.
pub(super) struct PathRules<'a> {
    roots: &'a Roots,
    rules: Vec<Rule>,
    findings: Vec<AftermathFinding>,
}

impl<'a> PathRules<'a> {
    pub(super) fn new(roots: &'a Roots) -> Self {
        Self {
            roots,
            rules: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Gives what is at `path`, but for what is hidden. Follows no symbolic link.
    ///
    /// Errors: there are too many entries to give.
    pub(super) fn give(&mut self, path: &Path, access: PathAccess) -> Result<(), JailError> {
        let hidden = &self.roots.hidden;
        if hidden.iter().any(|hidden| within(path, hidden)) {
            return Ok(());
        }
        let Some(place) = MountPlace::at(path, Hold::Pinned) else {
            return Ok(());
        };
        if self.rules.len() >= RULES_MAX {
            return Err(JailError::TooMuch {
                limit: RULES_MAX,
                most: None,
            });
        }
        let object = self.roots.object(path);
        let object = object.or(Some((place.device, place.inode)));
        let is_whole = !hidden.iter().any(|hidden| within(hidden, path));
        let access_here = match is_whole {
            true => access,
            false => PathAccess::List,
        };
        self.rules.push(Rule {
            object,
            ..rule(path, access_here)
        });
        if is_whole {
            return Ok(());
        }
        if access == PathAccess::Write {
            self.findings.push(AftermathFinding {
                path: path.to_owned(),
                text: format!(
                    "`{}` holds something that is hidden from commands; without user namespaces nothing new can be made directly in it",
                    path.display()
                ),
            });
        }
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries {
            self.give(&entry.path(), access)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> (Vec<Rule>, Vec<AftermathFinding>) {
        (self.rules, self.findings)
    }
}
