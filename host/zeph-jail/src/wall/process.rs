//! What the process may still do: privileges, resources, system calls; and the step into the command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;

use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use zeph_jail::filter;
use zeph_jail::plan::Plan;

use super::{Failure, failed};

/// More capabilities than any kernel has.
const CAPABILITIES: u32 = 63;

/// Makes sure that no privilege is left and that none comes back.
pub(super) fn give_up_privileges() -> Result<(), Failure> {
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| failed("giving up new privileges")(error.into()))?;
    let held = rustix::thread::capabilities(None)
        .map_err(|error| failed("reading capabilities")(error.into()))?;
    match (held.effective | held.permitted).is_empty() {
        true => Ok(()),
        false => Err(Failure {
            step: "giving up capabilities",
            reason: "some are left".to_owned(),
        }),
    }
}

/// Gives up what bubblewrap has taken already where it stands around this stage.
pub(super) fn drop_privileges() -> Result<(), Failure> {
    drop_capabilities().map_err(|error| failed("giving up capabilities")(error.into()))?;
    give_up_privileges()
}

fn drop_capabilities() -> rustix::io::Result<()> {
    // These two need a capability; without it there is nothing to come back from.
    for number in 0..CAPABILITIES {
        let Some(one) = CapabilitySet::from_bits(1 << number) else {
            continue;
        };
        let _ = rustix::thread::remove_capability_from_bounding_set(one);
    }
    let _ = rustix::thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    );
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// What can be limited. C libraries differ in the type of these numbers, so that they are the kernel's own here.
const RESOURCES: [Resource; 5] = [
    Resource::Core,
    Resource::Nofile,
    Resource::Fsize,
    Resource::Data,
    Resource::Nproc,
];

/// Sets every limit, for good.
pub(super) fn limit_resources(limits: &[(u32, u64)]) -> Result<(), Failure> {
    for (number, value) in limits {
        let resource = RESOURCES
            .into_iter()
            .find(|resource| *resource as u32 == *number)
            .ok_or_else(|| Failure {
                step: "limiting resources",
                reason: format!("no resource has the number {number}"),
            })?;
        // A limit that is lower already stays.
        let held = rustix::process::getrlimit(resource).maximum;
        let value = held.map_or(*value, |held| held.min(*value));
        let limit = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        rustix::process::setrlimit(resource, limit)
            .map_err(|error| failed("limiting resources")(error.into()))?;
    }
    Ok(())
}

/// Goes where the command starts; stays where `directory` is empty.
pub(super) fn enter(directory: &[u8]) -> std::io::Result<()> {
    match directory {
        [] => Ok(()),
        directory => std::env::set_current_dir(OsStr::from_bytes(directory)),
    }
}

/// Puts the filter on. From here on the process can make no call the filter refuses.
pub(super) fn filter_calls(filter: &[u8]) -> Result<(), Failure> {
    let failure = |reason: String| Failure {
        step: "filtering system calls",
        reason,
    };
    let program = filter::from_bytes(filter)
        .ok_or_else(|| failure("the filter has half an instruction".to_owned()))?;
    seccompiler::apply_filter(&program).map_err(|error| failure(error.to_string()))
}

/// Becomes the command, which gets the variables of the plan and those it is `told`; comes back only if that fails.
#[expect(
    clippy::disallowed_methods,
    reason = "this program is made to become another one"
)]
pub(super) fn become_command(plan: &Plan, told: &[Vec<u8>]) -> Failure {
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let variables = plan.environment.iter().chain(told).filter_map(|variable| {
        let equals = variable.iter().position(|byte| *byte == b'=')?;
        Some((text(&variable[..equals]), text(&variable[equals + 1..])))
    });
    let error = std::process::Command::new(text(&plan.program))
        .args(plan.arguments.iter().map(|argument| text(argument)))
        .env_clear()
        .envs(variables)
        .exec();
    failed(zeph_jail::NOT_STARTED)(error)
}
