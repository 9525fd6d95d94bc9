//! The shell of the whole product: what must work in the jail, what must not get out of it, and what is left when a command ends.
//!
//! One program instance serves a table of commands, one after another. After each of them everything outside the workspace is compared
//! with what it was, and a harmless command must still run. Each table runs as root, when the tests do, and as an ordinary user.

mod bench;
mod escape;
mod everyday;
mod lifecycle;
mod world;

use bench::Setting;

use crate::left_out::leave_out;

/// As root and as an ordinary user, without the network and with it. A user who is not root tests as himself.
fn everyone() -> Vec<Setting> {
    let users: &[bench::User] = match rustix::process::geteuid().is_root() {
        true => &[bench::User::Root, bench::User::Plain],
        false => {
            leave_out("only root can run commands as another user");
            &[bench::User::Own]
        }
    };
    let networks = [bench::Network::Off, bench::Network::On];
    let pairs = users
        .iter()
        .flat_map(|user| networks.map(|network| (*user, network)));
    pairs
        .map(|(user, network)| Setting::new(user, network))
        .collect()
}

/// The same without the network, which is the default.
fn each_user() -> Vec<Setting> {
    let mut all = everyone();
    all.retain(|setting| setting.network == bench::Network::Off);
    all
}

/// Runs `work` for all users at once: for tests that mostly wait.
fn beside_each_other(work: impl Fn(Setting) + Sync) {
    std::thread::scope(|scope| {
        for setting in each_user() {
            scope.spawn(|| work(setting));
        }
    });
}
