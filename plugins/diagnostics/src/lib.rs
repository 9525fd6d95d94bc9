//! `diagnostics`: what compilers and linters say about a project, as one component.
//!
//! `checker` is the table of what is run for which project, as data; `project` finds the project and picks the rows; `parse` reads what
//! the programs print; `report` makes a result of it. Programs run in the host's sandbox (`zeph:plugin/process`) and change nothing in
//! the project.

pub mod checker;
pub mod diagnostic;
pub mod parse;
pub mod project;
pub mod report;
pub mod tool;

zeph_plugin::export!(crate::tool::tools, manifest = "../plugin.toml");
