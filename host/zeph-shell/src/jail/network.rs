//! The network that the commands of one session share, once one of them runs in the background: a loopback of their own.

use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode as FileMode, OFlags};
use zeph_jail::{HOLD_NETWORK, JOIN_NETWORK, READY};

use zeph_core::user::run_as;

use super::policy::Network;
use super::{Jail, JailLabel};
use crate::spawn::Launch;

/// How long making it may take. On an idle machine it takes three milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of a reason.
const REASON_BYTES_MAX: u64 = 500;

/// A network with nothing but a loopback, and the namespace of users that lets a process enter it. Both end with the last process
/// in them once this is dropped.
#[derive(Debug)]
pub(crate) struct SessionNetwork {
    user: OwnedFd,
    network: OwnedFd,
}

impl Jail {
    /// Makes a network that commands can share. Blocks for some milliseconds. None where commands have none of their own.
    ///
    /// Errors: why it cannot be made, in one line.
    pub(crate) fn make_network(&self) -> Result<Option<SessionNetwork>, String> {
        let label = self.label().map_err(|missing| missing.to_string())?;
        let has_own = self.policy().network != Network::Open && label == JailLabel::Full;
        has_own.then(|| self.hold_network()).transpose()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the program makes the namespaces of commands and ends at once"
    )]
    fn hold_network(&self) -> Result<SessionNetwork, String> {
        let program = super::plan::program().map_err(|error| error.to_string())?;
        let start = || {
            Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
                .arg(HOLD_NETWORK)
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        // Only the user that made a namespace may enter it.
        let started = run_as(self.policy().user.as_ref(), start).flatten();
        let mut holder = started.map_err(|error| error.to_string())?;
        let held = held(&mut holder);
        // It is needed no longer: the descriptors hold what it made.
        drop(holder.kill());
        drop(holder.wait());
        held
    }
}

fn held(holder: &mut std::process::Child) -> Result<SessionNetwork, String> {
    let is_ready = holder
        .stdout
        .as_mut()
        .is_some_and(|stdout| has_input(stdout) && says_ready(stdout));
    if !is_ready {
        let mut reason = String::new();
        // It has ended, or is killed; what it said is in the pipe.
        drop(holder.kill());
        if let Some(stderr) = holder.stderr.take() {
            drop(stderr.take(REASON_BYTES_MAX).read_to_string(&mut reason));
        }
        return Err(reason.trim().to_owned());
    }
    let open = |namespace: &str| {
        let path = format!("/proc/{}/ns/{namespace}", holder.id());
        rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, FileMode::empty())
            .map_err(|error| format!("its namespaces cannot be opened: {error}"))
    };
    Ok(SessionNetwork {
        user: open("user")?,
        network: open("net")?,
    })
}

fn says_ready(stdout: &mut impl std::io::Read) -> bool {
    let mut byte = [0];
    stdout.read_exact(&mut byte).is_ok() && byte == [READY]
}

fn has_input(stdout: &impl std::os::fd::AsFd) -> bool {
    let mut watched = [PollFd::new(stdout, PollFlags::IN)];
    let patience = Timespec::try_from(PATIENCE).ok();
    rustix::event::poll(&mut watched, patience.as_ref()).is_ok_and(|n_ready| n_ready > 0)
}

impl SessionNetwork {
    /// Changes a launch of bubblewrap so that the command gets this network in place of one of its own.
    ///
    /// Errors: why it cannot, in one line.
    pub(crate) fn enter(&self, launch: &mut Launch) -> Result<(), String> {
        let words = &mut launch.arguments;
        let Some(end) = words.iter().position(|word| word == "--") else {
            return Err("the jail is not one of bubblewrap".to_owned());
        };
        // Behind the options of the jail, among which is one that takes the network away.
        words.insert(end, "--share-net".into());
        let clone = |file: &OwnedFd| file.try_clone().map_err(|error| error.to_string());
        let (user, network) = (clone(&self.user)?, clone(&self.network)?);
        let program = super::plan::program().map_err(|error| error.to_string())?;
        let joining = [
            JOIN_NETWORK.into(),
            user.as_raw_fd().to_string().into(),
            network.as_raw_fd().to_string().into(),
            launch.program.clone().into_os_string(),
        ];
        words.splice(0..0, joining);
        launch.program = format!("/proc/self/fd/{}", program.as_raw_fd()).into();
        launch.inherited.extend([user, network, program]);
        Ok(())
    }
}
