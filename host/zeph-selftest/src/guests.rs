//! The hostile components of the self-test, compiled from `guests/*.wat` by the build script.
//!
//! Each offers one tool, `go`, that misbehaves in the way its name says; which variant of it is the first character of the argument
//! `n`, from `a` on. A few already misbehave while they are loaded.

/// Name and binary of every guest, sorted by name.
pub static GUESTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// The guest with this name.
pub fn guest(name: &str) -> Option<&'static [u8]> {
    let found = GUESTS.binary_search_by(|(known, _)| (*known).cmp(name));
    found.ok().map(|idx| GUESTS[idx].1)
}
