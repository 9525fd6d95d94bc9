//! The table of tools: what a model is told about each. No logic.

use zeph_plugin::{Annotations, Kind, Tool};

use crate::area::Area;
use crate::{
    copy_path, create_directory, delete_path, edit, find_path, grep, list_directory, move_path,
    read, write,
};

/// Makes something new and never touches what is there.
const ADDS: Annotations = Annotations {
    read_only: false,
    destructive: false,
    idempotent: false,
    open_world: false,
};
/// Replaces or removes what is there.
const DESTROYS: Annotations = Annotations {
    destructive: true,
    ..ADDS
};

/// The plugin's tools.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("read", |args, _| read::run(&Area::granted(), &args))
            .title("Read a file")
            .describe(
                "Reads a text file and returns its lines with their numbers. Long files come in pages: the result says \
                 how many lines are left and which `offset` continues. Use it before `edit`, and `grep` to find where \
                 to look. Binary files are refused with their type and size.",
            )
            .kind(Kind::Read)
            .read_only()
            .returns::<read::Page>(),
        Tool::new("write", |args, _| write::run(&Area::granted(), &args))
            .title("Write a file")
            .describe(
                "Creates a file or replaces its whole content, in one step: on failure the old content stays. Missing \
                 directories are created. To change a part of a file use `edit`.",
            )
            .kind(Kind::Edit)
            .annotations(Annotations { idempotent: true, ..DESTROYS })
            .returns::<write::WriteResult>(),
        Tool::new("edit", |args, _| edit::run(&Area::granted(), &args))
            .title("Edit a file")
            .describe(
                "Replaces one piece of text in a file and returns the change as a diff. `old_string` must stand in the \
                 file exactly once, character by character including indentation; otherwise nothing is written and the \
                 result says how often and where it stands. Read the file first.",
            )
            .kind(Kind::Edit)
            .annotations(DESTROYS)
            .returns::<edit::EditResult>(),
        Tool::new("grep", |args, context| grep::run(&Area::granted(), &args, context))
            .title("Search in files")
            .describe(
                "Searches file contents with a regular expression and returns `path:line: text` for each matching \
                 line, with the total. Use it to find where something is defined or used. Hidden, ignored \
                 (.gitignore) and binary files are omitted.",
            )
            .kind(Kind::Search)
            .read_only()
            .returns::<grep::Matches>(),
        Tool::new("find_path", |args, _| find_path::run(&Area::granted(), &args))
            .title("Find files by name")
            .describe(
                "Finds files and directories by a glob over their names, at any depth. Use it when you know a name or \
                 an extension; use `grep` for contents. Hidden and ignored (.gitignore) entries are omitted unless \
                 asked for; symbolic links are listed but not followed.",
            )
            .kind(Kind::Search)
            .read_only()
            .returns::<find_path::Paths>(),
        Tool::new("list_directory", |args, _| list_directory::run(&Area::granted(), &args))
            .title("List a directory")
            .describe(
                "Lists what one directory holds: directories, then files with their sizes, then symbolic links, hidden \
                 ones included. Use `find_path` to look through a whole tree.",
            )
            .kind(Kind::Read)
            .read_only()
            .returns::<list_directory::Listing>(),
        Tool::new("create_directory", |args, _| create_directory::run(&Area::granted(), &args))
            .title("Create a directory")
            .describe(
                "Creates a directory and the missing ones above it. It is no error when it exists already. `write` \
                 creates the directories it needs itself.",
            )
            .kind(Kind::Edit)
            .annotations(Annotations { idempotent: true, ..ADDS })
            .returns::<create_directory::CreateDirectoryResult>(),
        Tool::new("delete_path", |args, context| delete_path::run(&Area::granted(), &args, context))
            .title("Delete a file or directory")
            .describe(
                "Deletes a file, a symbolic link (not what it points to) or an empty directory; with `recursive` a \
                 directory and all it holds. This cannot be undone. The result says how much was deleted.",
            )
            .kind(Kind::Delete)
            .annotations(DESTROYS)
            .returns::<delete_path::Deleted>(),
        Tool::new("move_path", |args, context| move_path::run(&Area::granted(), &args, context))
            .title("Move or rename")
            .describe(
                "Moves or renames a file or directory. `destination` is the new name itself and must not exist yet; \
                 missing directories above it are created.",
            )
            .kind(Kind::Move)
            .annotations(DESTROYS)
            .returns::<move_path::MovePathResult>(),
        Tool::new("copy_path", |args, context| copy_path::run(&Area::granted(), &args, context))
            .title("Copy a file or directory")
            .describe(
                "Copies a file, or a directory with all it holds. `destination` is the name of the copy itself and must \
                 not exist yet; missing directories above it are created. On failure nothing is left behind.",
            )
            .kind(Kind::Edit)
            .annotations(ADDS)
            .returns::<copy_path::Copy>(),
    ]
}

#[cfg(test)]
mod tests;
