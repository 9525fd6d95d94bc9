//! The ten file tools as one component.
//!
//! Each tool is one file: a struct of arguments and a function over the granted directories. `tools` is the table of
//! what a model is told about them. Protection is not done here: the host checks every object that is really reached;
//! these tools turn its refusals into plain sentences.

pub mod area;
pub mod copy_path;
pub mod create_directory;
pub mod deadline;
pub mod delete_path;
pub mod diff;
pub mod edit;
pub mod find_path;
#[cfg(test)]
mod fixture;
pub mod grep;
pub mod list_directory;
pub mod magic;
pub mod move_path;
pub mod read;
pub mod refusal;
pub mod replace;
pub mod sys;
pub mod text;
pub mod tools;
pub mod tree;
pub mod write;

zeph_plugin::export!(crate::tools::tools, manifest = "../plugin.toml");
