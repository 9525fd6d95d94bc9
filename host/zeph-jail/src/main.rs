//! The inner stage of the jail. It runs inside the namespaces, closes the last doors behind itself, and becomes the command.
//!
//! One straight line, each step of which either holds or ends the run: nothing is tried and then done without. It says how
//! that went on the status pipe. Its only argument is the number of the descriptor its plan is read from.

#[cfg(target_os = "linux")]
mod wall;

#[cfg(target_os = "linux")]
fn main() {
    wall::close_and_become_the_command();
}

#[cfg(not(target_os = "linux"))]
fn main() {}
