//! Failures of the file system in words a model can act on. A message names paths only as the guest sees them.

use std::io::{self, ErrorKind};

use zeph_plugin::ToolError;

use crate::area::AreaPath;
use crate::sys::{Kind, Links, Stat};

/// Least likeness, 0 to 1, of a name worth suggesting. Below it suggestions are noise.
const LIKENESS_MIN: f64 = 0.8;
/// Most names compared for a suggestion, so that a typo in a huge directory stays cheap.
const NAMES_MAX: usize = 10_000;

/// Tells why `place` could not be `done` (read, written, listed …).
pub fn explain(place: &AreaPath<'_>, done: &str, error: &io::Error) -> ToolError {
    let path = place.shown();
    if error.kind() == ErrorKind::WouldBlock {
        return ToolError::permanent(format!(
            "`{path}` was changed by another program meanwhile, so it was not {done}; read it again and repeat the call"
        ));
    }
    let message = match error.kind() {
        ErrorKind::ResourceBusy => {
            format!("`{path}` could not be {done}: another program holds its directory")
        }
        ErrorKind::NotFound => format!("`{path}` does not exist"),
        ErrorKind::PermissionDenied => format!("`{path}` may not be {done}"),
        ErrorKind::AlreadyExists => format!("`{path}` exists already"),
        ErrorKind::NotADirectory => format!("`{path}`: a part of this path is not a directory"),
        ErrorKind::IsADirectory => format!("`{path}` is a directory"),
        ErrorKind::DirectoryNotEmpty => format!("`{path}` is not empty"),
        ErrorKind::StorageFull => {
            format!("`{path}` could not be {done}: no space left on the device")
        }
        ErrorKind::QuotaExceeded => {
            format!("`{path}` could not be {done}: the disk quota is used up")
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("`{path}` could not be {done}: the file system is read-only")
        }
        ErrorKind::TooManyLinks => format!(
            "`{path}` may not be {done}: it has several names (hard links), and there are too many files to find out whether one of \
             them is hidden"
        ),
        ErrorKind::InvalidFilename => format!("`{path}`: the name is too long or not allowed here"),
        _ => format!("`{path}` could not be {done}: {error}"),
    };
    ToolError::io(error.kind(), message)
}

/// Refuses what is neither file nor directory.
pub fn special(place: &AreaPath<'_>, what: &str) -> ToolError {
    ToolError::permanent(format!(
        "`{}` is a {what}, which is never opened",
        place.shown()
    ))
}

/// Looks at a file that is to be `done`, its links followed.
///
/// Errors: when there is none (with a near name), or when it is a directory or a special file.
pub fn existing_file(place: &AreaPath<'_>, done: &str) -> Result<Stat, ToolError> {
    let stat = match place.root().stat(place.relative(), Links::Follow) {
        Ok(stat) => stat,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(place)),
        Err(error) => return Err(explain(place, done, &error)),
    };
    match stat.kind {
        Kind::File => Ok(stat),
        Kind::Directory => Err(ToolError::permanent(format!(
            "`{}` is a directory; `list_directory` shows what it holds",
            place.shown()
        ))),
        Kind::Symlink => Err(special(place, "symbolic link")),
        Kind::Special(what) => Err(special(place, what)),
    }
}

/// Says that `place` does not exist, and which name beside it is like it.
pub fn missing(place: &AreaPath<'_>) -> ToolError {
    let path = place.shown();
    ToolError::not_found(match near_name(place) {
        Some(near) => format!("`{path}` does not exist; did you mean `{near}`?"),
        None => format!("`{path}` does not exist"),
    })
}

fn near_name(place: &AreaPath<'_>) -> Option<String> {
    let parent = place.parent()?;
    let wanted = place.name().to_lowercase();
    let entries = parent.root().list(parent.relative()).ok()?;
    let likeness = |name: &str| strsim::jaro_winkler(&wanted, &name.to_lowercase());
    entries
        .into_iter()
        .take(NAMES_MAX)
        // A name that leads nowhere, or to what is hidden, is there and helps nobody.
        .filter(|entry| entry.name != place.name())
        .map(|entry| (likeness(&entry.name), entry.name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|one, two| one.0.total_cmp(&two.0))
        .map(|(_, name)| parent.child(&name).shown())
}
