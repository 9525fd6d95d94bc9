//! What the commands of `zeph-host plugin` decide and do: which file is meant, what may be granted, what an approval accepts.
//!
//! In reading order: `names` (what is known under a name), `source`, `trial`, `check` with `portable`, and `install` (from a file to the folder), `forget` (and out of it
//! again), `selection` (what was asked for, against what is wanted), `wishes` (what the
//! operator wants for it), `revoking`, `holdings` (what a plugin has), `approval`. Nothing
//! here prints or asks: that is the command line's. Whether a call may do something is decided in `rights`, never here.

pub(crate) mod approval;
pub(crate) mod check;
pub(crate) mod error;
pub(crate) mod forget;
pub(crate) mod holdings;
pub(crate) mod install;
pub(crate) mod names;
pub(crate) mod portable;
pub(crate) mod revoking;
pub(crate) mod selection;
pub(crate) mod source;
pub(crate) mod trial;
pub(crate) mod wishes;

pub(crate) use error::ManageError;

#[cfg(test)]
mod tests;
