//! What of the jail stands on this machine, what is missing, and how to get it.

use serde::Serialize;

use crate::jail::{ForeignRoot, Jail, JailLabel, JailLimits, Mode, Network, Support};

#[cfg(test)]
mod tests;

/// One layer of the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// What it is, in a word or two.
    pub name: &'static str,
    /// How it is.
    pub state: LayerState,
    /// Which one, where there are several.
    pub version: Option<String>,
    /// What it does, or what is not so because it is missing.
    pub detail: String,
    /// What to do about it, where something can be done.
    pub how_to_get: Option<String>,
}

/// How a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerState {
    /// It stands.
    Ok,
    /// It stands in part, or something else does its work less well.
    Degraded,
    /// It does not stand.
    Missing,
}

/// Ubuntu and its kin forbid namespaces to programs without a profile.
const APPARMOR: &str = "on a system with AppArmor, write `abi <abi/4.0>, include <tunables/global> profile bwrap \
                        /usr/bin/bwrap flags=(unconfined) { userns, }` to `/etc/apparmor.d/bwrap` and run `sudo apparmor_parser -r \
                        /etc/apparmor.d/bwrap`; in a container, allow user namespaces for it";

/// A machine that is busy.
const AGAIN: &str =
    "try again: the machine may have been too busy to tell, or out of processes or memory";

/// The layers around a command of `jail`, from the outermost.
pub fn layers(jail: &Jail) -> Vec<Layer> {
    let support = Jail::support();
    let limits = jail.policy().limits;
    let mut layers = vec![
        whole(jail),
        bubblewrap(&support),
        namespaces(&support),
        network(jail),
        landlock(&support),
        seccomp(&support),
        processes(&support, limits),
        memory(&support, limits),
    ];
    layers.extend(files(jail));
    layers
}

/// Nothing but where commands cannot change their own directory.
fn files(jail: &Jail) -> Option<Layer> {
    let policy = jail.policy();
    if policy.user.is_some() || policy.mode == Mode::Disabled {
        return None;
    }
    let writable = policy.allow_write.as_deref().unwrap_or(&policy.roots);
    let foreign = ForeignRoot::of(writable)?;
    Some(layer("files", LayerState::Degraded, foreign.to_string()))
}

fn layer(name: &'static str, state: LayerState, detail: impl Into<String>) -> Layer {
    Layer {
        name,
        state,
        version: None,
        detail: detail.into(),
        how_to_get: None,
    }
}

impl Layer {
    fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    fn get(mut self, how: impl Into<String>) -> Self {
        self.how_to_get = Some(how.into());
        self
    }
}

fn whole(jail: &Jail) -> Layer {
    match jail.label() {
        Ok(JailLabel::Full) => layer("jail", LayerState::Ok, "commands run in the full jail").version("full"),
        Ok(JailLabel::LandlockOnly) => layer(
            "jail",
            LayerState::Degraded,
            "without namespaces commands can read the command lines, connections and mounts of all processes of the machine that `/proc` shows to \
             this user, and can write protected places in writable directories (what is new there is held back afterwards)",
        )
        .version("landlock-only")
        .get("see `namespaces`"),
        Ok(JailLabel::Seatbelt) => layer(
            "jail",
            LayerState::Degraded,
            "commands run under a profile of Seatbelt; what is new in protected places is held back afterwards, and processes that \
             leave their session are found by descent only",
        )
        .version("seatbelt"),
        Ok(JailLabel::None) if jail.policy().mode == Mode::Disabled => layer(
            "jail",
            LayerState::Missing,
            "commands run without a jail, because `tools.sandbox.disabled` is true",
        )
        .version("none")
        .get("set `tools.sandbox.disabled = false`"),
        Ok(JailLabel::None) => layer("jail", LayerState::Missing, "commands run without a jail"),
        Err(missing) => layer("jail", LayerState::Missing, format!("no command runs: {missing}")).get("see the layers below"),
    }
}

fn bubblewrap(support: &Support) -> Layer {
    match &support.bubblewrap {
        Ok(found) => layer("bubblewrap", LayerState::Ok, format!("`{}` makes the namespaces", found.program.display()))
            .version(found.version.clone()),
        Err(reason) => layer("bubblewrap", LayerState::Missing, reason.clone()).get(match support.lasts() {
            false => AGAIN,
            true => "install the package `bubblewrap` of your system, for example `sudo apt install bubblewrap`",
        }),
    }
}

fn namespaces(support: &Support) -> Layer {
    match &support.namespaces {
        Ok(()) => layer(
            "namespaces",
            LayerState::Ok,
            "commands have files, processes, users, a network and a name of their own",
        ),
        Err(problem) => {
            let missing = layer("namespaces", LayerState::Missing, problem.reason.clone());
            missing.get(match support.bubblewrap {
                _ if problem.may_pass => AGAIN,
                Ok(_) => APPARMOR,
                Err(_) => "see `bubblewrap`",
            })
        }
    }
}

fn network(jail: &Jail) -> Layer {
    match (jail.policy().network, jail.label()) {
        (Network::Open, _) => layer(
            "network",
            LayerState::Degraded,
            "commands reach everything that this machine reaches, local services included, because `tools.sandbox.allow_network` is true",
        ),
        (Network::Hosts, Ok(JailLabel::Full)) => layer(
            "network",
            LayerState::Ok,
            "commands have a loopback of their own, and reach the hosts of `tools.sandbox.allow_hosts` through the host",
        ),
        (Network::Hosts, _) => layer(
            "network",
            LayerState::Missing,
            "no command runs, because `tools.sandbox.allow_hosts` needs a network namespace for each",
        )
        .get("see `namespaces`, or remove `tools.sandbox.allow_hosts`"),
        (Network::Loopback, Ok(JailLabel::Full)) => layer(
            "network",
            LayerState::Ok,
            "commands have a loopback of their own and nothing else",
        ),
        (Network::Loopback, _) => layer(
            "network",
            LayerState::Degraded,
            "commands can make no sockets at all, not even for local servers",
        )
        .get("see `namespaces`"),
    }
}

fn landlock(support: &Support) -> Layer {
    match support.landlock {
        0 => layer(
            "landlock",
            LayerState::Missing,
            "the kernel does not restrict files by rules",
        )
        .get("boot a kernel from 5.13 on with `landlock` in its `lsm=` list"),
        abi @ 1..=5 => layer(
            "landlock",
            LayerState::Degraded,
            "files are restricted by rules; abstract sockets and signals are not",
        )
        .version(format!("ABI {abi}"))
        .get("a kernel from 6.12 on"),
        abi => layer(
            "landlock",
            LayerState::Ok,
            "files, abstract sockets and signals are restricted by rules",
        )
        .version(format!("ABI {abi}")),
    }
}

fn seccomp(support: &Support) -> Layer {
    match support.seccomp {
        true => layer("seccomp", LayerState::Ok, "system calls are filtered"),
        false => layer(
            "seccomp",
            LayerState::Missing,
            "system calls cannot be filtered",
        )
        .get("a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

/// How cgroups come to be writable.
const DELEGATE: &str = "start the host where it may make cgroups, for example with `systemd-run --user --scope -p Delegate=yes zeph-host …`";

fn processes(support: &Support, limits: JailLimits) -> Layer {
    let root = rustix::process::geteuid().is_root();
    match (limits.processes, support.cgroups.limits_processes()) {
        (0, _) => layer(
            "processes",
            LayerState::Degraded,
            "not limited, because `tools.sandbox.max_processes` is 0",
        ),
        (most, true) => layer(
            "processes",
            LayerState::Ok,
            format!("at most {most} of one command, by a cgroup"),
        ),
        (most, false) if !root && support.namespaces.is_ok() => layer(
            "processes",
            LayerState::Ok,
            format!("at most {most} of one command, by a resource limit"),
        ),
        (_, false) => layer(
            "processes",
            LayerState::Missing,
            "the kernel does not limit them here: a command can make too many",
        )
        .get(DELEGATE),
    }
}

fn memory(support: &Support, limits: JailLimits) -> Layer {
    match (limits.memory_bytes, support.cgroups.limits_memory()) {
        (0, _) => layer(
            "memory",
            LayerState::Degraded,
            "not limited, because `tools.sandbox.max_memory_bytes` is 0",
        ),
        (most, true) => layer(
            "memory",
            LayerState::Ok,
            format!("at most {most} bytes of one command, by a cgroup"),
        ),
        (most, false) => layer(
            "memory",
            LayerState::Degraded,
            format!(
                "at most {most} bytes of each process, by a resource limit; all of a command together are not limited"
            ),
        )
        .get(DELEGATE),
    }
}
