//! Which layers of the sandbox are not around a server, in words: what is reported as enforced is enforced.

use zeph_shell::jail::{Jail, JailLabel};

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

/// The layers that `label` lacks on this machine, one sentence each.
pub(crate) fn missing(label: JailLabel) -> Vec<String> {
    let of_label = match label {
        JailLabel::None => return vec![NOTHING.to_owned()],
        JailLabel::LandlockOnly => Some(NO_NAMESPACES),
        JailLabel::Seatbelt => return vec![SEATBELT.to_owned()],
        JailLabel::Full => None,
    };
    let limits_memory = Jail::support().cgroups.limits_memory();
    let of_groups = (!limits_memory).then_some(NO_GROUPS);
    of_label
        .into_iter()
        .chain(of_groups)
        .map(str::to_owned)
        .collect()
}
