//! Many patterns that are matched at once, compiled when something is first compared with them.
//!
//! A process for one call compares few paths or none, and to compile patterns takes it longer than all the rest of reading them.

use std::path::Path;
use std::sync::OnceLock;

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Patterns that were read. Made without compiling them.
#[derive(Debug, Default)]
pub struct LazyGlobs {
    globs: Vec<Glob>,
    /// None inside: together they are more than can be compiled.
    set: OnceLock<Option<GlobSet>>,
}

impl LazyGlobs {
    /// The patterns; one that can be read by itself compiles.
    pub fn new(globs: Vec<Glob>) -> Self {
        Self {
            globs,
            set: OnceLock::new(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether one of them matches `path`; `otherwise` when all together are too many to be compiled: the caller says which answer is
    /// the safe one.
    pub fn is_match(&self, path: &Path, otherwise: bool) -> bool {
        if self.globs.is_empty() {
            return false;
        }
        match self.set.get_or_init(|| compile(&self.globs)) {
            Some(set) => set.is_match(path),
            None => otherwise,
        }
    }
}

fn compile(globs: &[Glob]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(glob.clone());
    }
    set.build().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use globset::Glob;

    use super::LazyGlobs;

    #[test]
    fn what_cannot_be_compiled_answers_as_is_safe() {
        let glob = |text: &str| Glob::new(text).expect("a pattern");
        let good = LazyGlobs::new(vec![glob("/a/*"), glob("**/b")]);
        for (path, expected) in [("/a/x", true), ("/c/b", true), ("/c", false)] {
            for otherwise in [true, false] {
                assert_eq!(
                    good.is_match(Path::new(path), otherwise),
                    expected,
                    "{path}"
                );
            }
        }
        // Each is small; together they are beyond what the compiler takes.
        let large = vec![glob(&format!("/{}*", "[α-ω]?".repeat(2_000))); 200];
        let bad = LazyGlobs::new(large);
        assert!(bad.is_match(Path::new("/a"), true));
        assert!(!bad.is_match(Path::new("/a"), false));
        assert!(LazyGlobs::default().is_empty());
        assert!(!LazyGlobs::default().is_match(Path::new("/a"), true));
    }
}
