//! Paths and patterns of the configuration, resolved against the real file system.
//!
//! Grants are compared with what the kernel calls an object, so everything here ends as an absolute path or as a glob
//! over absolute paths. A pattern that could never match is an error: a rule that silently does nothing is worse than none.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use globset::escape;
use zeph_core::failure::one_line;
use zeph_core::globs;

/// Characters of a path that a message shows.
const SHOWN_CHARS_MAX: usize = 200;

/// Most patterns that the braces at the beginning of one stand for, and most of these braces.
const ALTERNATIVES_MAX: usize = 64;

/// What relative paths and `~` stand for.
#[derive(Debug, Clone, Copy)]
pub struct PathBase<'a> {
    /// Absolute.
    pub directory: &'a Path,
    /// Absolute; without it, `~` is an error.
    pub home: Option<&'a Path>,
}

impl PathBase<'_> {
    /// The absolute path of `text`, not resolved: `~`, `~/…`, absolute, or relative to the base directory.
    ///
    /// Errors: one sentence, for a NUL character, for `~` without a home and for `~name`.
    pub fn absolute(&self, text: &str) -> Result<PathBuf, String> {
        if text.contains('\0') {
            return Err("a path cannot contain a NUL character".to_owned());
        }
        match text.strip_prefix('~') {
            // Putting it together anew drops `.` and closing slashes.
            None => Ok(self.directory.join(text).components().collect()),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Ok(self.home()?.join(rest.trim_start_matches('/')))
            }
            Some(_) => Err(format!(
                "`{}` begins with `~`; only `~` and `~/…` are understood (write `./~…` for a name that begins with it)",
                shown(text)
            )),
        }
    }

    /// The canonical path of an existing directory.
    ///
    /// Errors: as [`absolute`](Self::absolute), and for what is empty, missing, unreadable or no directory.
    pub fn directory(&self, text: &str) -> Result<PathBuf, String> {
        if text.is_empty() {
            return Err("an empty path; write `.` for the working directory".to_owned());
        }
        let path = self.absolute(text)?;
        let canonical = std::fs::canonicalize(&path)
            .map_err(|error| format!("`{}` cannot be used: {error}", shown(text)))?;
        if !canonical.is_dir() {
            return Err(format!("`{}` is not a directory", shown(text)));
        }
        Ok(canonical)
    }

    /// The globs that hide what `text` names. What is hidden hides all that is below it.
    ///
    /// Shape: the fixed beginning of a pattern may lead through symlinks, while matching sees resolved paths; so there is
    /// a glob for the path as written and, when it differs, one for the path as it resolves now.
    pub(crate) fn deny(&self, text: &str) -> Result<Vec<String>, String> {
        let Pattern { fixed, glob } = self.pattern(text)?;
        let spelt = spellings(&fixed);
        Ok(spelt.iter().map(|fixed| join_glob(fixed, &glob)).collect())
    }

    /// The glob of an exception. Its symlinks are not followed: an exception must not be widened by whoever can
    /// place a symlink on its way.
    pub(crate) fn allow(&self, text: &str) -> Result<String, String> {
        let pattern = self.pattern(text)?;
        Ok(join_glob(&pattern.fixed, &pattern.glob))
    }

    fn pattern(&self, text: &str) -> Result<Pattern, String> {
        let (start, rest) = match text {
            _ if text.starts_with("**/") => (PathBuf::new(), text),
            _ if text.starts_with('/') => (PathBuf::from("/"), text),
            _ => match (text.strip_prefix("~/"), text.strip_prefix("./")) {
                (Some(rest), _) => (self.home()?.to_owned(), rest),
                (_, Some(rest)) => (self.directory.to_owned(), rest),
                _ => return Err(relative_pattern(text)),
            },
        };
        let pattern = Pattern::split(start, rest);
        if rest.split('/').any(|part| part == "." || part == "..") {
            return Err(format!(
                "`{}` contains `.` or `..`; write the path without them",
                shown(text)
            ));
        }
        if pattern.fixed == Path::new("/") && pattern.glob.is_empty() {
            return Err(
                "`/` names everything; use `allowed_paths` to say what may be touched".to_owned(),
            );
        }
        match globs::check(&join_glob(&pattern.fixed, &pattern.glob)) {
            Ok(()) => Ok(pattern),
            Err(error) => Err(format!(
                "`{}` is not a pattern: {}",
                shown(text),
                error.kind()
            )),
        }
    }

    fn home(&self) -> Result<&Path, String> {
        self.home
            .ok_or_else(|| "`~` is used but there is no home directory".to_owned())
    }
}

/// The patterns that one over paths stands for: one for each alternative of the braces it begins with, which may each begin in another place.
///
/// Errors: one sentence, for more than 64.
pub(crate) fn unbraced(text: &str) -> Result<Vec<String>, String> {
    let (mut open, mut found) = (vec![text.to_owned()], Vec::new());
    let mut n_braces = 0;
    while let Some(text) = open.pop() {
        let Some((alternatives, rest)) = globs::leading_brace(&text) else {
            found.push(text);
            continue;
        };
        n_braces += 1;
        let n_found = open.len() + found.len() + alternatives.len();
        if n_found.max(n_braces) > ALTERNATIVES_MAX {
            return Err(format!(
                "`{}` begins with more than {ALTERNATIVES_MAX} alternatives; write several patterns",
                shown(&text)
            ));
        }
        let alternatives = alternatives.iter().rev();
        open.extend(alternatives.map(|alternative| format!("{alternative}{rest}")));
    }
    Ok(found)
}

/// A pattern, cut where its first wildcard is.
struct Pattern {
    /// Literal leading folders.
    fixed: PathBuf,
    /// The rest, from the first part with a wildcard.
    glob: String,
}

impl Pattern {
    fn split(mut fixed: PathBuf, rest: &str) -> Self {
        let mut parts = rest.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next_if(|part| !part.contains(['*', '?', '[', '{', '\\'])) {
            fixed.push(part);
        }
        let glob = parts.collect::<Vec<_>>().join("/");
        Self { fixed, glob }
    }
}

/// A path as written and as it resolves now; one when they agree. A spelling with `..` is left out: paths are compared by their names.
pub(crate) fn spellings(path: &Path) -> Vec<PathBuf> {
    let resolved = resolve(path);
    if resolved == path || has_parent(path) {
        vec![resolved]
    } else {
        vec![path.to_owned(), resolved]
    }
}

/// Resolves `path` if it contains `..`, because paths are compared by their names; any other path is returned unchanged.
pub(crate) fn without_parents(path: PathBuf) -> PathBuf {
    match has_parent(&path) {
        true => resolve(&path),
        false => path,
    }
}

fn has_parent(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

thread_local! {
    /// Where the folders on the way lead that were looked at while a configuration is read, `None` where nothing is. By their spelling: to hash
    /// a path takes it apart.
    static SEEN: RefCell<Option<HashMap<OsString, Option<PathBuf>>>> = const { RefCell::new(None) };
}

/// Runs `work`, for which every folder leads where it led when it was first looked at: a configuration names dozens of paths below a few
/// folders, and to follow each of them takes a system call for each of its parts.
pub(crate) fn looking_once<T>(work: impl FnOnce() -> T) -> T {
    /// What was seen counts no longer, whatever `work` came to.
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            SEEN.set(None);
        }
    }
    SEEN.set(Some(HashMap::new()));
    let _forget = Forget;
    work()
}

/// The canonical path of what is at `path`, if something is.
fn followed(path: &Path) -> Option<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return std::fs::canonicalize(path).ok();
    };
    // Without a closing `/` or `/.`, which would have a link followed.
    let plain = parent.join(name);
    // Most of these paths are not there; to find that out by resolving them takes a system call for each of their parts.
    let about = std::fs::symlink_metadata(&plain).ok()?;
    // The name of what is no link is that of the object, but where the system tells upper from lower case only when it lists.
    if about.is_symlink() || path.is_relative() || cfg!(target_os = "macos") {
        return std::fs::canonicalize(plain).ok();
    }
    Some(seen(parent)?.join(name))
}

/// Like [`followed`], but each path is looked up once: later calls return what the first one found.
fn seen(path: &Path) -> Option<PathBuf> {
    let known = SEEN.with_borrow(|seen| seen.as_ref()?.get(path.as_os_str()).cloned());
    if let Some(known) = known {
        return known;
    }
    let found = followed(path);
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.insert(path.into(), found.clone());
        }
    });
    found
}

/// The canonical path of the longest part that exists, with the rest appended.
fn resolve(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        let Some(mut resolved) = seen(ancestor) else {
            continue;
        };
        for part in path
            .strip_prefix(ancestor)
            .into_iter()
            .flat_map(Path::components)
        {
            match part {
                Component::Normal(name) => resolved.push(name),
                // Nothing is there yet, so no symlink can make `..` mean another folder.
                Component::ParentDir => drop(resolved.pop()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        return resolved;
    }
    path.to_owned()
}

/// A glob that begins with a literal path; with an empty `glob`, the path alone.
pub(crate) fn join_glob(fixed: &Path, glob: &str) -> String {
    let fixed = escape(&fixed.to_string_lossy());
    match (fixed.as_str(), glob) {
        ("", _) => glob.to_owned(),
        (_, "") => fixed,
        ("/", _) => format!("/{glob}"),
        _ => format!("{fixed}/{glob}"),
    }
}

fn relative_pattern(text: &str) -> String {
    let text = shown(text);
    format!(
        "`{text}` begins with neither `/`, `~/`, `./` nor `**/`; write `**/{text}` for that name in any folder"
    )
}

fn shown(text: &str) -> String {
    one_line(text, SHOWN_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{looking_once, resolve, unbraced};

    #[test]
    fn a_pattern_stands_for_the_alternatives_it_begins_with() {
        for (text, expect) in [
            ("src/{a,b}", &["src/{a,b}"][..]),
            ("{~/a,b}/c", &["~/a/c", "b/c"]),
            ("{{a,/b},}{c,d}", &["a{c,d}", "/b{c,d}"]),
            ("{[,}],b}", &["[,}]", "b"]),
            ("{a", &["{a"]),
            ("{}/a", &["{}/a"]),
            ("", &[""]),
        ] {
            assert_eq!(unbraced(text).unwrap(), expect, "{text}");
        }
        for many in [
            "{a,b}".replace('a', &"a,".repeat(64)),
            "{".repeat(65) + "a" + &"}".repeat(65),
        ] {
            assert!(
                unbraced(&many).unwrap_err().contains("more than 64"),
                "{many}"
            );
        }
    }

    #[test]
    fn a_path_leads_where_the_system_says_however_often_its_folders_were_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/file"), "").unwrap();
        symlink("a", base.join("to_a")).unwrap();
        symlink(base.join("a/b/file"), base.join("a/to_file")).unwrap();
        symlink("nowhere", base.join("a/dangling")).unwrap();
        let table = [
            ("a/b/file", "a/b/file"),
            ("to_a/b/file", "a/b/file"),
            ("to_a/b", "a/b"),
            ("to_a", "a"),
            ("to_a/", "a"),
            ("to_a/.", "a"),
            ("to_a/./b/./", "a/b"),
            ("to_a/to_file", "a/b/file"),
            ("a/b/../b/file", "a/b/file"),
            ("to_a/b/..", "a"),
            ("to_a/../to_a/b/missing/more", "a/b/missing/more"),
            ("a/dangling", "a/dangling"),
            ("a/dangling/more", "a/dangling/more"),
            ("missing", "missing"),
            ("", ""),
        ];
        let check = |path: &str, expect: &str| {
            let real = base.join(path).canonicalize();
            let expect = base.join(expect);
            assert!(
                real.is_err() || real.is_ok_and(|real| real == expect),
                "{path}"
            );
            assert_eq!(resolve(&base.join(path)), expect, "{path}");
        };
        table.iter().for_each(|(path, expect)| check(path, expect));
        looking_once(|| {
            for (path, expect) in table.iter().chain(table.iter().rev()) {
                check(path, expect);
            }
        });
        assert_eq!(resolve(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn what_was_seen_counts_for_one_look() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let place = base.join("place");
        fs::create_dir(base.join("one")).unwrap();
        symlink("one", &place).unwrap();
        looking_once(|| {
            assert_eq!(resolve(&place.join("x")), base.join("one/x"));
            fs::remove_file(&place).unwrap();
            symlink("two", &place).unwrap();
            assert_eq!(resolve(&place.join("y")), base.join("one/y"));
        });
        assert_eq!(resolve(&place.join("x")), place.join("x"));
        fs::create_dir(base.join("two")).unwrap();
        assert_eq!(resolve(&place.join("x")), base.join("two/x"));
    }
}
