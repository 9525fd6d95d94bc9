//! Real commands in the real jail of this machine. Each test has directories of its own and a jail of its own.

mod ahead;
mod alone;
mod border;
mod doors;
mod git;
pub(crate) mod harness;
mod narrow;
mod nobody;
mod ordinary;
pub(crate) mod outlet;
mod private;
mod swapped;
mod walls;
mod watch;
