//! Files of the user's home that a jail copies from. Their names may lead through symbolic links, as where a home is kept in a
//! repository, but through none that a command could have made.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::mount::within_any;
use crate::held_object;

/// Links that are followed; the kernel follows no more either.
const LINKS_MAX: usize = 40;

/// Most bytes of a file of settings.
const BYTES_MAX: u64 = 1 << 20;

/// The text of a file of settings. `None` when there is none, or when a link on the way lies in one of `writable`.
pub(super) fn read(path: &Path, writable: &[PathBuf]) -> Option<String> {
    // Most of them are not there.
    path.symlink_metadata().ok()?;
    let real = resolve(path, writable)?;
    let file = File::from(held_object::open_to_read(&real).ok()?);
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > BYTES_MAX {
        return None;
    }
    let mut text = String::with_capacity(usize::try_from(about.len()).ok()? + 1);
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The path without links and `..`.
fn resolve(path: &Path, writable: &[PathBuf]) -> Option<PathBuf> {
    let mut rest: VecDeque<OsString> = parts(path).collect();
    let mut real = PathBuf::from("/");
    let mut left = LINKS_MAX;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        let Ok(target) = std::fs::read_link(&next) else {
            real = next;
            continue;
        };
        left = left.checked_sub(1)?;
        if within_any(&next, writable) {
            return None;
        }
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(part);
        }
    }
    Some(real)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::read;

    #[test]
    fn links_of_the_user_are_followed_and_links_of_commands_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["home", "work/in", "private"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::fs::write(base.join("private/secret"), "hush").unwrap();
        std::fs::write(base.join("work/in/settings"), "fine").unwrap();
        symlink("../work/in/settings", base.join("home/plain")).unwrap();
        symlink("../private/secret", base.join("home/own")).unwrap();
        symlink("../work/out", base.join("home/out")).unwrap();
        symlink("../private/secret", base.join("work/out")).unwrap();
        symlink("../work/dir/secret", base.join("home/dir")).unwrap();
        symlink("../private", base.join("work/dir")).unwrap();
        symlink("loop", base.join("home/loop")).unwrap();
        let writable = [base.join("work")];
        for (name, expect) in [
            ("home/plain", Some("fine")),
            ("home/own", Some("hush")),
            ("home/out", None),
            ("home/dir", None),
            ("home/loop", None),
            ("home/none", None),
            ("home", None),
        ] {
            let text = read(&base.join(name), &writable);
            assert_eq!(text.as_deref(), expect, "{name}");
        }
    }
}
