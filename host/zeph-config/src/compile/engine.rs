//! The compiled components that servers share.

use std::path::PathBuf;

use super::Compiling;
use crate::SharedCacheConfig;
use crate::raw::RawEngine;

const DIR: &str = "engine.shared_cache_dir";
const KEYS: &str = "engine.shared_cache_keys";

impl Compiling<'_> {
    /// Both or neither: without keys, anyone who can write to the directory could have this host run code.
    pub(super) fn shared_cache(&mut self, engine: &RawEngine) -> Option<SharedCacheConfig> {
        let (dir, keys) = (&engine.shared_cache_dir, &engine.shared_cache_keys);
        if dir.is_empty() && keys.is_empty() {
            return None;
        }
        for (key, text, other) in [(DIR, dir, KEYS), (KEYS, keys, DIR)] {
            if text.is_empty() {
                let message =
                    format!("`{key}` is empty; set both the directory and its keys, or neither");
                self.merged.problem(other, &message);
            }
        }
        let (dir, keys) = (self.given_path(DIR, dir), self.given_path(KEYS, keys));
        Some(SharedCacheConfig {
            dir: dir?,
            keys: keys?,
        })
    }

    fn given_path(&mut self, key: &str, text: &str) -> Option<PathBuf> {
        if text.is_empty() {
            return None;
        }
        let path = self.base().absolute(text);
        path.map_err(|message| self.merged.problem(key, &message))
            .ok()
    }
}
