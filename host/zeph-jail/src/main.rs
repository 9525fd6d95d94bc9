//! The inner stage of the jail. It runs inside the namespaces, closes the last doors behind itself, and becomes the command.
//!
//! One straight line, each step of which either holds or ends the run: nothing is tried and then done without. It says how
//! that went on the status channel. Its argument is the number of the descriptor its plan is read from; a second one is that of a pipe
//! on which it waits first, when the jail is made ahead of its command.
//!
//! With other words it prepares what stands around that: the network of a session (`network`).

#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod wall;

#[cfg(target_os = "linux")]
fn main() {
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    let error = match first.as_deref().and_then(std::ffi::OsStr::to_str) {
        Some(zeph_jail::HOLD_NETWORK) => network::hold().err(),
        Some(zeph_jail::JOIN_NETWORK) => Some(network::join(words)),
        _ => return wall::close_and_become_the_command(),
    };
    if let Some(error) = error {
        // The host that started it reads its error stream, or has gone.
        drop(std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("the network of the session: {error}\n"),
        ));
        std::process::exit(zeph_jail::REFUSED);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
