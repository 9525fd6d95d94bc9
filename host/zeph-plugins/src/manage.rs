//! What the commands of `zeph-host plugin` decide and do: which file is meant, what may be granted, what an approval accepts.
//!
//! In reading order: `names` (what is known under a name), `source`, `trial`, `check` with `portable`, and `install` (from a file to the folder), `provenance` (where it was had from), `forget` (and out of the folder again), `selection` (what was asked for, against what is wanted), `wishes` (what the
//! operator wants for it), `revoking`, `holdings` (what a plugin has), `approval`, `carrying` (what was granted, to another pin), `sync` (a folder as its lock says). Nothing
//! here prints or asks: that is the command line's. Whether a call may do something is decided in `rights`, never here.

pub mod approval;
pub mod carrying;
pub mod check;
pub mod error;
pub mod forget;
pub mod holdings;
pub mod install;
pub mod names;
pub mod portable;
mod provenance;
pub mod revocation;
pub mod selection;
pub mod source;
pub mod sync;
pub mod trial;
pub mod wishes;

pub use error::ManageError;

#[cfg(test)]
mod tests;
