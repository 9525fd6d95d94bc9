//! Compares the folders with what is known of them, and loads what is new.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Keeper, Key, WatchedFile};
use crate::folder::{self, FileStamp, FolderEntry};
use crate::load::{self, LoadResult};
use crate::record::RecordVerdict;
use crate::set::{CandidateState, PluginCandidate};

impl Keeper {
    /// Compares the folders with what is known of them.
    pub(super) fn look(&mut self) {
        let had_fresh = std::mem::take(&mut self.has_fresh);
        let problems = std::mem::take(&mut self.problems);
        let mut seen = BTreeMap::new();
        for (folder_idx, folder) in self.options.folders.iter().enumerate() {
            match folder::scan(folder) {
                Ok(found) => seen.extend(
                    found
                        .into_iter()
                        .map(|found| ((folder_idx, found.name.clone()), found)),
                ),
                Err(problem) => self.problems.push(format!(
                    "the plugins in `{}` are not used: {problem}",
                    folder.display()
                )),
            }
        }
        let n_before = self.files.len();
        self.files.retain(|key, _| seen.contains_key(key));
        self.is_stale |= self.files.len() != n_before
            || self.problems != problems
            || self.locks != self.lock_stamps()
            || self.signatures != self.signature_stamps();
        for (key, found) in seen {
            self.look_at(key, found);
        }
        self.is_stale |= had_fresh != self.has_fresh;
    }

    fn look_at(&mut self, key: Key, found: FolderEntry) {
        let stamp = match found.stamp {
            Ok(stamp) => stamp,
            Err(reason) => {
                let known = self.files.get(&key).map(|file| &file.candidate.state);
                if !matches!(known, Some(CandidateState::Bad(known)) if *known == reason) {
                    self.settle(&key, found.path, None, CandidateState::Bad(reason));
                }
                return;
            }
        };
        let known = self.files.get(&key);
        let is_known = known.is_some_and(|file| {
            file.candidate.stamp.as_ref() == Some(&stamp) || file.loading.as_ref() == Some(&stamp)
        });
        if is_known {
            return;
        }
        if self.options.watch && stamp.is_fresh((self.options.clock)()) {
            self.has_fresh = true;
            self.await_load(key, found.path, None);
            return;
        }
        match self.records.recall(&found.path, &stamp) {
            Some(verdict) => {
                let state = load::recalled(&self.options.engine, &key.1, &found.path, verdict);
                self.settle(&key, found.path, Some(stamp), state);
            }
            None => {
                self.await_load(key.clone(), found.path.clone(), Some(stamp.clone()));
                self.load(key, found.path, stamp);
            }
        }
    }

    fn load(&mut self, key: Key, path: PathBuf, stamp: FileStamp) {
        let (engine, limits) = (self.options.engine.clone(), self.options.limits);
        self.loads.spawn(async move {
            let loaded = load::load(&engine, &key.1, &path, &stamp, limits).await;
            (key, stamp, loaded)
        });
    }

    pub(super) fn loaded(&mut self, key: &Key, stamp: &FileStamp, loaded: LoadResult) {
        // Whatever came of it, there is one load less: the set may be settled now.
        self.is_stale = true;
        let Some(file) = self.files.get_mut(key) else {
            return;
        };
        if file.loading.as_ref() != Some(stamp) {
            // It changed again meanwhile; the newer state is being loaded.
            return;
        }
        file.loading = None;
        let path = file.candidate.path.clone();
        match loaded {
            LoadResult::Again => {
                self.has_fresh = true;
                if !self.options.watch {
                    let reason = "it changed while it was read".to_owned();
                    self.settle(key, path, Some(stamp.clone()), CandidateState::Bad(reason));
                }
            }
            LoadResult::Good(good, verdict) => {
                self.records.keep(&path, stamp, &verdict);
                self.settle(key, path, Some(stamp.clone()), CandidateState::Good(good));
            }
            LoadResult::Bad(reason) => {
                self.records
                    .keep(&path, stamp, &RecordVerdict::Bad(reason.clone()));
                self.settle(key, path, Some(stamp.clone()), CandidateState::Bad(reason));
            }
        }
    }

    /// A version that serves goes on serving until the next one is ready.
    fn await_load(&mut self, key: Key, path: PathBuf, loading: Option<FileStamp>) {
        let file = self
            .files
            .entry(key)
            .or_insert_with_key(|(folder_idx, name)| WatchedFile {
                candidate: PluginCandidate {
                    name: name.clone(),
                    path,
                    folder_idx: *folder_idx,
                    stamp: None,
                    state: CandidateState::Loading,
                    signature: None,
                },
                loading: None,
            });
        file.loading = loading;
        self.is_stale = true;
        if matches!(file.candidate.state, CandidateState::Bad(_)) {
            file.candidate.state = CandidateState::Loading;
        }
    }

    fn settle(
        &mut self,
        key: &Key,
        path: PathBuf,
        stamp: Option<FileStamp>,
        state: CandidateState,
    ) {
        let (folder_idx, name) = key.clone();
        let candidate = PluginCandidate {
            name,
            path,
            folder_idx,
            stamp,
            state,
            signature: None,
        };
        let file = WatchedFile {
            candidate,
            loading: None,
        };
        self.files.insert(key.clone(), file);
        self.is_stale = true;
    }
}
