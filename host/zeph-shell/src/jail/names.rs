//! The names in a directory, read at once: of some hundred names that programs obey nearly none is there, and to ask for each takes
//! longer than to read what is.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Most names that are read. Of more, each is asked for.
const NAMES_MAX: usize = 512;

/// What was in a directory at one moment.
#[derive(Debug)]
pub(super) struct Names {
    directory: PathBuf,
    /// In lower case; none where they are too many, cannot be read, or may be other names as well.
    names: Option<HashSet<Vec<u8>>>,
}

impl Names {
    /// Those in `directory`, which is no symbolic link.
    pub(super) fn of(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            names: read(directory),
        }
    }

    /// Whether it is certain that nothing was at `path`, beneath the directory.
    pub(super) fn lacks(&self, path: &Path) -> bool {
        let (Some(names), Ok(below)) = (&self.names, path.strip_prefix(&self.directory)) else {
            return false;
        };
        match below.components().next() {
            Some(Component::Normal(first)) => {
                !names.contains(&first.as_bytes().to_ascii_lowercase())
            }
            _ => false,
        }
    }
}

/// Where a file system makes no difference between upper and lower case, a name that is not plain may be another spelling of one that
/// is: then nothing is certain.
fn read(directory: &Path) -> Option<HashSet<Vec<u8>>> {
    let mut names = HashSet::new();
    for entry in std::fs::read_dir(directory).ok()? {
        let name = entry.ok()?.file_name();
        if names.len() == NAMES_MAX || !name.as_bytes().is_ascii() {
            return None;
        }
        names.insert(name.as_bytes().to_ascii_lowercase());
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{NAMES_MAX, Names};

    fn lacks(made: &[&str], name: &str) -> bool {
        let directory = tempfile::tempdir().unwrap();
        for name in made {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        Names::of(directory.path()).lacks(&directory.path().join(name))
    }

    #[test]
    fn only_what_cannot_be_there_is_lacking() {
        assert!(lacks(&[], ".vscode"));
        assert!(lacks(&["a"], ".config/mise"));
        assert!(!lacks(&[".vscode"], ".vscode"));
        assert!(!lacks(&[".VSCode"], ".vscode"));
        assert!(!lacks(&[".config"], ".config/mise"));
        // A sign that is a `k` where case makes no difference.
        assert!(!lacks(&[".helix\u{212a}"], ".kiro"));
        assert!(!lacks(&["a"], "../.vscode"));
        assert!(!lacks(&["a"], ""));
    }

    #[test]
    fn of_what_was_not_read_nothing_is_lacking() {
        let many: Vec<String> = (0..=NAMES_MAX).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(!lacks(&many, ".vscode"));
        assert!(lacks(&many[1..], ".vscode"));
        let directory = tempfile::tempdir().unwrap();
        let nothing = directory.path().join("none");
        assert!(!Names::of(&nothing).lacks(&nothing.join(".vscode")));
        assert!(!Names::of(Path::new("/")).lacks(Path::new("elsewhere")));
    }
}
