//! What the host and the inner stage of the jail say to each other: the plan of a run, and the filter of system calls.
//!
//! The host makes both, since it has the time; the inner stage (`main.rs`) only puts them on. Nothing here touches the system.

pub mod plan;

#[cfg(target_os = "linux")]
pub mod filter;
#[cfg(target_os = "linux")]
pub mod watch;

/// The exit code of the inner stage when the command never ran. A command may end with the same code: the status channel, which
/// no command can write to, is what tells.
pub const REFUSED: i32 = 97;

/// How the reason begins on the status channel when the walls stood and the command could not be started: it, or the interpreter that it
/// names, is not there.
pub const NOT_STARTED: &str = "starting the command";

/// What the inner stage writes to the status channel when every wall stands, just before it becomes the command.
pub const READY: u8 = b'.';

/// What the inner stage writes to the status channel, where it stayed behind, when nothing of the run is left.
pub const WHOLE: u8 = b'!';

/// What the inner stage writes to the status channel with the descriptors of the places that only the command has.
pub const PLACES: u8 = b'#';

/// Most of these places.
pub const PLACES_MAX: usize = 4;

/// The first argument with which the program makes the network of a session and holds it until its standard input ends.
pub const HOLD_NETWORK: &str = "hold-network";

/// The first argument with which the program enters such a network and becomes another one: then come the numbers of the two
/// descriptors, of the namespace of users and of the network, and the program with its arguments.
pub const JOIN_NETWORK: &str = "join-network";
