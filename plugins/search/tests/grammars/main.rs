//! Trees made with our tables and scanners are those made with the published grammars.
#![expect(unsafe_code, reason = "the originals come as pointers to C structs")]

mod original;
mod samples;
