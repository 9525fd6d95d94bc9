//! Copies of the crates that hold all they are made of: what lies elsewhere in the repository comes into a folder of theirs, and the paths to it
//! are rewritten.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::program::program;
use crate::release::output;

/// The folder in a crate for what it is made of besides its own files.
const SHARED: &str = "shared";

/// What only tests and measurements use in a crate: folders and files of these names, whatever stands above them.
const LEFT_OUT: [&str; 5] = [
    "benches",
    "examples",
    "proptest-regressions",
    "tests",
    "tests.rs",
];

/// How the names of folders with recorded outputs end, which only tests read too.
const CASES: &str = ".cases";

/// Lines with one of these name files; in others a path is text.
const NAMING: [&str; 4] = [
    "include_str!",
    "include_bytes!",
    "path",
    "CARGO_MANIFEST_DIR",
];

/// One level up, as paths in sources are written.
const UP: &str = "../";

/// The files of the repository, relative to its root. Files that git ignores are none of them.
pub(crate) fn tracked(root: &Path) -> Result<Vec<String>> {
    let mut git = program("git");
    git.current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let names = output(&mut git)?;
    let names = names.split('\0').filter(|name| !name.is_empty());
    Ok(names
        .filter(|name| root.join(name).is_file())
        .map(str::to_owned)
        .collect())
}

/// Copies the crate in `folder` (relative to `root`) to the same place below `to`, with what it names of other folders.
///
/// Errors: when a file cannot be read or written.
pub(crate) fn stage(root: &Path, folder: &Path, to: &Path) -> Result<()> {
    let mut shared = BTreeSet::new();
    for file in files_below(&root.join(folder), &LEFT_OUT)? {
        let path = folder.join(&file);
        let bytes = std::fs::read(root.join(&path)).with_context(|| path.display().to_string())?;
        let staged = to.join(&path);
        match std::str::from_utf8(&bytes) {
            Ok(text) if path.extension().is_some_and(|end| end == "rs") => {
                let (text, named) = rewritten(root, folder, &path, text);
                shared.extend(named);
                put(&staged, text.as_bytes())?;
            }
            _ => put(&staged, &bytes)?,
        }
    }
    let own = to.join(folder).join(SHARED);
    for named in shared {
        let from = root.join(&named);
        if from.is_file() {
            put(&own.join(&named), &std::fs::read(&from)?)?;
            continue;
        }
        for file in files_below(&from, &[])? {
            put(
                &own.join(&named).join(&file),
                &std::fs::read(from.join(&file))?,
            )?;
        }
    }
    Ok(())
}

/// Writes a file, with the folders above it.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(path, bytes).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The files that a build may need, relative to `folder`, in order: not those with hidden names or the given ones.
pub(crate) fn files_below(folder: &Path, left_out: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read `{}`", folder.display()))?
        .collect::<Result<_, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let name = entry.file_name();
        let shown = name.to_string_lossy();
        if shown.starts_with('.') || shown.ends_with(CASES) || left_out.contains(&&*shown) {
            continue;
        }
        if entry.path().is_dir() {
            let below = files_below(&entry.path(), left_out)?;
            files.extend(below.into_iter().map(|file| Path::new(&name).join(file)));
        } else {
            files.push(PathBuf::from(name));
        }
    }
    Ok(files)
}

/// The text with each path that leads out of the crate leading into its own folder, and where those led, relative to the root.
pub(crate) fn rewritten(
    root: &Path,
    folder: &Path,
    file: &Path,
    text: &str,
) -> (String, Vec<PathBuf>) {
    let mut named = Vec::new();
    let lines = text.split_inclusive('\n').map(|line| {
        if !NAMING.iter().any(|naming| line.contains(naming)) {
            return line.to_owned();
        }
        let Some((before, path, after)) = path_upwards(line) else {
            return line.to_owned();
        };
        // From the file, as `include_str!` has it, or from the crate, as macros and build scripts do.
        let bases = [file.parent().unwrap_or(folder), folder];
        let outside = bases.into_iter().find_map(|base| {
            let led = normal(&base.join(path))?;
            let is_outside = !led.starts_with(folder) && !led.as_os_str().is_empty();
            (is_outside && root.join(&led).exists()).then_some((base, led))
        });
        let Some((base, led)) = outside else {
            return line.to_owned();
        };
        let depth = base.components().count() - folder.components().count();
        let slash = if path.ends_with('/') { "/" } else { "" };
        let inside = format!("{}{SHARED}/{}{slash}", UP.repeat(depth), led.display());
        named.push(led);
        format!("{before}{inside}{after}")
    });
    (lines.collect(), named)
}

/// The first path in a line that leads upwards, up to where a name is filled in, and what stands around it.
fn path_upwards(line: &str) -> Option<(&str, &str, &str)> {
    let start = line.find(UP)?;
    let rest = line.get(start..)?;
    let end = rest.find(['"', '{'])?;
    Some((line.get(..start)?, rest.get(..end)?, rest.get(end..)?))
}

/// Without `..`; `None` for a path above the root.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if !normal.pop() => {
                return None;
            }
            Component::Normal(name) => normal.push(name),
            _ => {}
        }
    }
    Some(normal)
}
