//! What checkers print, read into diagnostics. Pure; what cannot be read is passed over, since a program that is newer than its parser
//! still tells most of what it has to tell.

pub mod cargo;
pub mod go;
pub mod lines;
pub mod ruff;

/// What a program printed.
#[derive(Debug, Default)]
pub struct Printout {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}
