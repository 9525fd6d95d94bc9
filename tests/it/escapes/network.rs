//! A network of its own for one attack, in which the metadata service of a cloud has its address.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where clouds keep what identifies a machine.
pub(super) const METADATA: &str = "169.254.169.254";

/// Makes the network, says so, and holds it until its input ends.
const HOLD: &str =
    "ip link set lo up && ip address add 169.254.169.254 dev lo && printf . && read -r _";

/// Puts this thread and all that it starts into a network that has nothing but a loopback, with [`METADATA`] on it. Where that is not
/// allowed the thread stays where it is, and no service has that address.
#[expect(
    clippy::disallowed_methods,
    reason = "a network is made as people do it"
)]
pub(super) fn enter() {
    let holder = Command::new("unshare")
        .args(["--net", "sh", "-c", HOLD])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut holder) = holder else { return };
    let is_made = |holder: &mut std::process::Child| {
        let stdout = holder.stdout.as_mut();
        stdout.is_some_and(|stdout| stdout.read_exact(&mut [0]).is_ok())
    };
    if is_made(&mut holder) {
        let network = File::open(format!("/proc/{}/ns/net", holder.id())).unwrap();
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }
    drop(holder.stdin.take());
    drop(holder.wait());
}
