//! Telling a user's stack frames from those of a language and its libraries.

use std::sync::LazyLock;

use crate::words::{Case, Words};

/// Parts of paths and symbols that no frame of a user's own code has.
const LIBRARIES: [&str; 18] = [
    "/rustc/",
    "/.cargo/registry/",
    "/library/std/",
    "/library/core/",
    "/rustlib/src/",
    "rust_begin_unwind",
    "core::ops::function::",
    "core::panicking::",
    "std::panicking::",
    "std::sys::",
    "/usr/local/go/src/",
    "/go/src/runtime/",
    "/usr/lib/go",
    "/pkg/mod/",
    "testing.tRunner",
    "created by testing.",
    "/site-packages/",
    "/node_modules/",
];

static WORDS: LazyLock<Words> =
    LazyLock::new(|| Words::new(LIBRARIES.map(|part| (part, Case::Exact))));

/// Whether a frame's line belongs to a library.
pub(super) fn is_library(line: &str) -> bool {
    WORDS.hits(line.as_bytes()).next().is_some()
}
