//! Real commands in the real jail of this machine. Each test has directories of its own and a jail of its own.

mod git;
mod harness;
mod ordinary;
mod walls;
