//! Puts new content in the place of a file, all of it or nothing.
//!
//! The content goes to a hidden file in the same directory, to the disk, and then takes the target's name. A guest cannot
//! set permissions: the host gives a file made in this call the permissions of the file whose place it takes.
//! A directory in which nothing may be created cannot be written to this way, and is refused rather than written in place.
//! The directory is held open from the first look to the last, so that a link on the way there that changes meanwhile does not
//! bring the content of one file into the place of another.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, ErrorKind};

use zeph_plugin::ToolError;

use crate::area::AreaPath;
use crate::refusal::explain;
use crate::sys::{Directory, File, Kind, Links, make_private};
use crate::text::counted;

/// How often a change is made anew because another program changed the file meanwhile.
const TRIES_MAX: usize = 64;

/// How the names of files begin and end that are on their way to a place of their own.
const TEMPORARY_HEAD: &str = ".zeph-";
const TEMPORARY_TAIL: &str = ".tmp";

/// Links followed from one path, as on Linux.
const LINKS_MAX: usize = 40;

/// A name in the directory of `place` that no tool and no person would choose.
pub fn temporary<'a>(place: &AreaPath<'a>) -> AreaPath<'a> {
    let random = RandomState::new().hash_one(place.absolute());
    let name = format!("{TEMPORARY_HEAD}{random:016x}{TEMPORARY_TAIL}");
    match place.parent() {
        Some(parent) => parent.child(&name),
        None => place.child(&name),
    }
}

/// Whether `name` is that of a file on its way to a place of its own, made by [`temporary`].
pub fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(TEMPORARY_HEAD);
    let random = random.and_then(|rest| rest.strip_suffix(TEMPORARY_TAIL));
    random.is_some_and(|random| {
        random.len() == 16 && random.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// What `place` names when its symbolic links are followed, so that the link stays and the file behind it is replaced.
///
/// Errors: `policy_blocked` when a link leads out of the granted directories.
pub fn behind_links<'a>(place: &AreaPath<'a>) -> Result<AreaPath<'a>, ToolError> {
    let mut target = place.clone();
    for _ in 0..LINKS_MAX {
        match target.root().stat(target.relative(), Links::Keep) {
            Ok(stat) if stat.kind == Kind::Symlink => {}
            // What is wrong with it, the caller finds out when it uses it.
            _ => return Ok(target),
        }
        let text = target
            .root()
            .read_link(target.relative())
            .map_err(|error| explain(place, "written", &error))?;
        target = target.link_target(&text).map_err(|_| {
            ToolError::denied(format!(
                "`{}` is a symbolic link out of the allowed directories",
                place.shown()
            ))
        })?;
    }
    let path = place.shown();
    Err(ToolError::permanent(format!(
        "`{path}`: too many symbolic links"
    )))
}

/// A name in an open directory, which may be taken or free.
#[derive(Debug)]
pub struct Slot<'a> {
    place: AreaPath<'a>,
    directory: Directory,
}

impl<'a> Slot<'a> {
    /// Opens the directory of `place`, which is neither a granted directory nor a symbolic link.
    ///
    /// Errors: there is no such directory.
    pub fn open(place: AreaPath<'a>) -> io::Result<Self> {
        let parent = place.parent().ok_or(ErrorKind::IsADirectory)?;
        let directory = parent.root().directory(parent.relative())?;
        Ok(Self { place, directory })
    }

    /// Reads all of the file of at most `bytes_max` bytes; none when it is larger.
    ///
    /// Errors: the file cannot be opened or read.
    pub fn content(&self, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        whole(&self.directory.open(self.place.name())?, bytes_max)
    }

    /// Makes `content` the content of what stands there.
    ///
    /// Shape: `is_there` says whether there is a file to be replaced: then nobody else can read the content before it has that one's
    /// permissions.
    /// Errors: would-block when the file is not what this call read of it any more.
    pub fn replace(&self, content: &[u8], is_there: bool) -> io::Result<()> {
        let new = temporary(&self.place);
        let written = fill(&new, content, is_there).and_then(|()| {
            new.root()
                .rename_into(new.relative(), &self.directory, self.place.name())
        });
        // Best effort: the first error is the one to tell.
        written.inspect_err(|_| drop(new.root().remove_file(new.relative())))
    }
}

fn fill(new: &AreaPath<'_>, content: &[u8], private: bool) -> io::Result<()> {
    let file = match private {
        true => {
            make_private(&new.absolute(), false)?;
            new.root().open_own(new.relative())?
        }
        false => new.root().create(new.relative())?,
    };
    file.write_at(0, content)?;
    file.sync()
}

/// Says that a file that was replaced had other names, which still stand for what it was; nothing when it had none.
pub fn parted(links: u64) -> Option<String> {
    let n_others = links.checked_sub(1).filter(|n_others| *n_others > 0)?;
    let others = counted(n_others, "other name", "other names");
    Some(format!(
        "\n[the file had {others} (hard links), where it is unchanged]"
    ))
}

/// Makes a change of `place` that reads it first, and once more as long as another program changes it in between.
///
/// Shape: `change` reads, decides and calls [`Slot::replace`]; its inner error is what that said.
/// Errors: those of `change`; a failure that says so when others change the file all the time.
pub fn changed<T>(
    place: &AreaPath<'_>,
    mut change: impl FnMut() -> Result<io::Result<T>, ToolError>,
) -> Result<T, ToolError> {
    for _ in 1..TRIES_MAX {
        match change()? {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            done => return done.map_err(|error| explain(place, "written", &error)),
        }
    }
    change()?.map_err(|error| explain(place, "written", &error))
}

/// Reads all of a file of at most `bytes_max` bytes; none when it is larger.
///
/// Errors: the file cannot be opened or read.
pub fn content(place: &AreaPath<'_>, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    whole(&place.root().open(place.relative())?, bytes_max)
}

fn whole(file: &File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = file.read_at(0, bytes_max + 1)?;
    // One read may return less than is there: the end is where nothing comes.
    loop {
        if bytes.len() as u64 > bytes_max {
            return Ok(None);
        }
        let more = file.read_at(bytes.len() as u64, bytes_max + 1 - bytes.len() as u64)?;
        if more.is_empty() {
            return Ok(Some(bytes));
        }
        bytes.extend_from_slice(&more);
    }
}

/// Directories made on the way to a place, so that a failure can take them back.
#[derive(Debug, Default)]
pub struct Parents<'a>(Vec<AreaPath<'a>>);

impl<'a> Parents<'a> {
    /// Makes the missing directories above `place`.
    ///
    /// Errors: one of them cannot be made; those made before are removed again.
    pub fn make(place: &AreaPath<'a>) -> Result<Self, ToolError> {
        let mut missing = Vec::new();
        let mut next = place.parent();
        while let Some(directory) = next {
            match directory.root().stat(directory.relative(), Links::Follow) {
                Ok(stat) if stat.kind == Kind::Directory => break,
                Ok(_) => {
                    return Err(explain(
                        &directory,
                        "used",
                        &ErrorKind::NotADirectory.into(),
                    ));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    next = directory.parent();
                    missing.push(directory);
                }
                Err(error) => return Err(explain(&directory, "used", &error)),
            }
        }
        let mut made = Self::default();
        while let Some(directory) = missing.pop() {
            match directory.root().create_directory(directory.relative()) {
                Ok(()) => made.0.push(directory),
                // Another program made it meanwhile.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    made.take_back();
                    return Err(explain(&directory, "created", &error));
                }
            }
        }
        Ok(made)
    }

    /// How many were made.
    pub fn n_made(&self) -> usize {
        self.0.len()
    }

    /// Removes them again, as far as they are empty.
    pub fn take_back(self) {
        for directory in self.0.iter().rev() {
            directory.root().remove_directory(directory.relative()).ok();
        }
    }
}

#[cfg(test)]
mod tests;
