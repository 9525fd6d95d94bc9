//! Which layers of the sandbox are not around a server, in words: what is reported as enforced is enforced.

use zeph_shell::jail::{Jail, JailLabel, JailPolicy};

/// Around which programs nothing is.
const NOTHING: &str = "there is no sandbox (`tools.sandbox.disabled`): the server can read, change and reach what you can";

/// Without bubblewrap.
const NO_NAMESPACES: &str = "there are no namespaces (`zeph-host doctor` tells what is missing): the server sees the names of the \
                             system's processes and directories, shares the temporary directory of the machine by name, and reaches no \
                             hosts, not even those of `hosts`";

/// On macOS.
const SEATBELT: &str =
    "the sandbox is the profile of macOS: memory and processes of the server are not limited";

/// Without a cgroup.
const NO_GROUPS: &str = "no cgroup can be made: memory is limited for each process of the server, not for all of them together";

/// Without a cgroup, where the kernel does not count the processes of a namespace.
const NO_COUNT: &str = "no cgroup can be made: the number of processes of the server is not limited (`zeph-host doctor` tells how to get one)";

/// Switched off.
const NO_MEMORY_LIMIT: &str =
    "memory of the server is not limited (`tools.sandbox.max_memory_bytes` is 0)";
const NO_PROCESS_LIMIT: &str =
    "the number of processes of the server is not limited (`tools.sandbox.max_processes` is 0)";

/// The layers that `label` lacks on this machine with the limits of `policy`, one sentence each.
pub(super) fn missing(label: JailLabel, policy: &JailPolicy) -> Vec<String> {
    let of_label = match label {
        JailLabel::None => return vec![NOTHING.to_owned()],
        JailLabel::Seatbelt => return vec![SEATBELT.to_owned()],
        JailLabel::LandlockOnly => Some(NO_NAMESPACES),
        JailLabel::Full => None,
    };
    let support = Jail::support();
    let of_memory = match policy.limits.memory_bytes {
        0 => Some(NO_MEMORY_LIMIT),
        _ => (!support.cgroups.limits_memory()).then_some(NO_GROUPS),
    };
    let is_counted = label == JailLabel::Full && support.limits_processes(policy.user.as_ref());
    let of_processes = match policy.limits.processes {
        0 => Some(NO_PROCESS_LIMIT),
        _ => (!is_counted && !support.cgroups.limits_processes()).then_some(NO_COUNT),
    };
    let missing = of_label.into_iter().chain(of_memory).chain(of_processes);
    missing.map(str::to_owned).collect()
}
