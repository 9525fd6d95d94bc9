//! Trees made with our tables and scanners are those made with the published grammars.
#![expect(
    unsafe_code,
    clippy::unwrap_used,
    reason = "the originals come as pointers to C structs; a failure is a failed test"
)]

mod original;
mod samples;
