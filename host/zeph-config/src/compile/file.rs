//! `tools.file`: the directories of tools and what is hidden in them; and directories and patterns for other sections.

use std::path::{Component, Path, PathBuf};

use zeph_core::capability::{FsGrant, FsRights, FsRoot};

use super::Compiling;
use crate::environment::{COMMAND_DIRECTORIES, is_root};
use crate::origin::ValueOrigin;
use crate::own::OwnFiles;
use crate::paths::PathBase;
use crate::raw::{RawFile, RawRight};

impl Compiling<'_> {
    pub(super) fn file(&mut self, raw: &RawFile, mut own: OwnFiles) -> Option<FsGrant> {
        let n_before = self.merged.problems.len();
        let roots = self.roots(&raw.allowed_paths, rights(&raw.rights));
        let allow_read = self.patterns("tools.file.allow_read", &raw.allow_read, |base, text| {
            base.allow(text).map(|glob| vec![glob])
        });
        let mut deny_read = self.patterns("tools.file.deny_read", &raw.deny_read, |base, text| {
            base.deny(text)
        });
        own.add_project_folders(self.surroundings, &roots);
        self.merged
            .warnings
            .extend(own.warnings(&roots, &allow_read));
        deny_read.extend(own.patterns());
        deny_read.sort();
        deny_read.dedup();
        let unharmed = self.merged.problems.len() == n_before;
        unharmed.then_some(FsGrant {
            spelled: self.spelled(&raw.allowed_paths),
            roots,
            deny_read,
            allow_read,
        })
    }

    fn roots(&mut self, texts: &[String], rights: FsRights) -> Vec<FsRoot> {
        self.directories("tools.file.allowed_paths", texts)
            .into_iter()
            .map(|path| FsRoot { path, rights })
            .collect()
    }

    /// The roots, and the working directory, as they were written where that leads through symbolic links.
    fn spelled(&self, texts: &[String]) -> Vec<(PathBuf, PathBuf)> {
        let written = texts
            .iter()
            .filter_map(|text| self.base().absolute(text).ok());
        let written = written.chain(self.surroundings.typed_directory.clone());
        let spelled = written.filter_map(|path| {
            let real = path.canonicalize().ok()?;
            let is_plain = path.components().all(|part| part != Component::ParentDir);
            (is_plain && real != path).then_some((path, real))
        });
        spelled.collect()
    }

    /// Existing directories, each once; the working directory when none is named.
    pub(super) fn directories(&mut self, key: &str, texts: &[String]) -> Vec<PathBuf> {
        let working_directory = [".".to_owned()];
        let texts = if texts.is_empty() {
            &working_directory[..]
        } else {
            texts
        };
        let of_project = self.said_by_project(key);
        let mut found: Vec<PathBuf> = Vec::new();
        for text in texts {
            match self.base().directory(text) {
                // A project's roots were resolved when they were compared with the granted ones.
                Ok(path) if of_project && path != Path::new(text) => {
                    self.directory_problem(
                        key,
                        "a directory changed while the configuration was read",
                    );
                }
                Ok(path) if found.contains(&path) => {}
                Ok(path) => found.push(path),
                Err(message) => self.directory_problem(key, &message),
            }
        }
        for text in texts {
            if let Some(message) = self.leads_out(text) {
                self.directory_problem(key, &message);
            }
        }
        found
    }

    /// What is wrong with a directory of `--root` is reported for file tools, and once.
    fn directory_problem(&mut self, key: &str, message: &str) {
        let entry = self.merged.entries.get(key);
        let origin = entry.and_then(|entry| entry.origins.last());
        if key != COMMAND_DIRECTORIES || !origin.is_some_and(is_root) {
            self.merged.problem(key, message);
        }
    }

    /// Those of some directories that there are; what is wrong with the others is said elsewhere.
    pub(super) fn existing(&self, texts: &[String]) -> Vec<PathBuf> {
        let base = self.base();
        match texts {
            [] => base.directory(".").into_iter().collect(),
            texts => {
                let found = texts.iter().map(|text| base.directory(text));
                found.filter_map(Result::ok).collect()
            }
        }
    }

    pub(super) fn said_by_project(&self, key: &str) -> bool {
        let origins = self
            .merged
            .entries
            .get(key)
            .map(|entry| entry.origins.as_slice());
        matches!(origins, Some([.., ValueOrigin::Project { .. }]))
    }

    pub(super) fn patterns(
        &mut self,
        key: &str,
        texts: &[String],
        compile: impl Fn(PathBase<'_>, &str) -> Result<Vec<String>, String>,
    ) -> Vec<String> {
        let mut globs = Vec::new();
        for text in texts {
            match compile(self.base(), text) {
                Ok(some) => globs.extend(some),
                Err(message) => self.merged.problem(key, &message),
            }
        }
        globs
    }
}

fn rights(raw: &[RawRight]) -> FsRights {
    FsRights {
        read: raw.contains(&RawRight::Read),
        write: raw.contains(&RawRight::Write),
        create: raw.contains(&RawRight::Create),
        delete: raw.contains(&RawRight::Delete),
    }
}
