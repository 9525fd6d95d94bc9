//! Whether `tools.file.rights` leaves a file tool what it needs at the paths it names. The guard of files decides again, on what is really
//! reached; here it is known before the call is made, or explained.

use std::path::Path;

use serde_json::{Map, Value};
use zeph_core::capability::{FsRights, FsRoot};

use super::{given, resolve};

/// Why the file tool called `tool` can do nothing with a path among its arguments, in a sentence. It may look whether a path exists.
pub(crate) fn lacking(
    tool: &str,
    arguments: &Map<String, Value>,
    roots: &[FsRoot],
) -> Option<String> {
    let first = roots.first()?;
    if roots.iter().all(|root| root.rights == FsRights::ALL) {
        return None;
    }
    // A search without a path is one of the first directory.
    let named: Vec<(&str, &str)> = given(arguments).collect();
    let named = match named.as_slice() {
        [] => &[("path", ".")][..],
        named => named,
    };
    named.iter().find_map(|(argument, given)| {
        let path = resolve(&first.path.join(given));
        let mut holding = roots.iter().filter(|root| path.starts_with(&root.path));
        let root = holding.next()?;
        let lacks = needs(tool, argument, &path)?.without(root.rights);
        let verb = verb(lacks)?;
        Some(format!(
            "plugin `file` may not {verb} in `{}`: `tools.file.rights` does not allow it to any tool",
            root.path.display()
        ))
    })
}

/// What a tool does with the path in `argument`; `None` for a tool that is not known.
fn needs(tool: &str, argument: &str, path: &Path) -> Option<FsRights> {
    let exists = || path.symlink_metadata().is_ok();
    let (write, create, delete) = match (tool, argument) {
        ("read" | "grep" | "find_path" | "list_directory", _) | ("copy_path", "source") => {
            (false, false, false)
        }
        ("edit", _) => (true, true, false),
        ("write", _) => (exists(), true, false),
        ("create_directory", _) => (false, !exists(), false),
        ("delete_path", _) | ("move_path", "source") => (false, false, true),
        ("copy_path" | "move_path", _) => (false, true, false),
        _ => return None,
    };
    Some(FsRights {
        read: true,
        write,
        create,
        delete,
    })
}

/// The first of the rights, in the order in which the guard asks for them.
fn verb(rights: FsRights) -> Option<&'static str> {
    let verbs = [
        (rights.read, "read"),
        (rights.create, "create"),
        (rights.write, "write"),
        (rights.delete, "delete"),
    ];
    verbs
        .into_iter()
        .find(|(lacks, _)| *lacks)
        .map(|(_, verb)| verb)
}
