//! The ten file tools as one component.
//!
//! Each tool is one file: a struct of arguments and a function over the granted directories. This file is the table of
//! what a model is told about them. Protection is not done here: the host checks every object that is really reached;
//! these tools turn its refusals into plain sentences.

use zeph_plugin::{Kind, Tool};

pub mod area;
pub mod list_directory;
pub mod magic;
pub mod read;
pub mod refusal;
pub mod sys;
pub mod text;

use area::Area;

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
        Tool::new("list_directory", |args, _| list_directory::run(&Area::granted(), &args))
            .title("List a directory")
            .describe(
                "Lists what one directory holds: directories, then files with their sizes, then symbolic links, hidden \
                 ones included. Use `find_path` to look through a whole tree.",
            )
            .kind(Kind::Read)
            .read_only()
            .returns::<list_directory::Listing>(),
    ]
}

zeph_plugin::export!(tools);
