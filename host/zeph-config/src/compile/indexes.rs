//! `plugins.index`: where lists of plugins come from.

use zeph_core::failure::one_line;

use super::super::raw::RawPlugins;
use super::Compiling;
use super::plugins::is_full;
use crate::IndexLocation;

/// The key.
const KEY: &str = "plugins.index";

impl Compiling<'_> {
    /// The indexes, in the order of the file, each once.
    pub(super) fn indexes(&mut self, raw: &RawPlugins) -> Vec<IndexLocation> {
        let mut indexes: Vec<IndexLocation> = Vec::new();
        for text in &raw.index {
            match self.index(text) {
                Ok(index) if indexes.contains(&index) => {}
                Ok(index) => indexes.push(index),
                Err(message) => self.merged.problem(KEY, &message),
            }
        }
        indexes
    }

    /// Errors: what is wrong, in one sentence.
    fn index(&self, text: &str) -> Result<IndexLocation, String> {
        let shown = one_line(text, 200);
        if text.starts_with("https://") || text.starts_with("http://") {
            return match text.bytes().all(|byte| byte.is_ascii_graphic()) {
                true => Ok(IndexLocation::Url(text.to_owned())),
                false => Err(format!(
                    "`{shown}` is not a URL: blanks and other characters are written as `%20`"
                )),
            };
        }
        if !is_full(text) {
            return Err(format!(
                "`{shown}` is neither a URL (`https://…`) nor a file with its whole path"
            ));
        }
        self.base().absolute(text).map(IndexLocation::File)
    }
}
