//! What is the same with every kind of jail, and with none: the look at a job, and a run without a jail.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::aftermath::Aftermath;
use super::cgroup::Cgroup;
use super::explain::RunWalls;
use super::own_places::OwnPlaces;
use super::policy::{JailPolicy, Network};
use super::run_setup::{StageReport, Whole};
use super::{Guard, JailError, JailLabel, Job, PreparedRun, search};
use crate::environment::{self, Surroundings};

/// Numbers a job may ask for.
const FILE_NUMBERS: std::ops::RangeInclusive<RawFd> = 3..=62;

/// Looks whether a job can be done at all.
///
/// Errors: `JailError::BadJob`.
pub(super) fn check(job: &Job<'_>) -> Result<(), JailError> {
    let mut numbers = HashSet::new();
    let fine = |number: &RawFd| FILE_NUMBERS.contains(number);
    let has_nul = |bytes: &[u8]| bytes.contains(&0);
    let reason = if !job
        .files
        .iter()
        .all(|(_, number)| fine(number) && numbers.insert(*number))
    {
        "a file has a number that cannot be given"
    } else if !job.program.is_absolute() && job.program.components().count() != 1 {
        "its program is neither an absolute path nor a bare name"
    } else if job
        .arguments
        .iter()
        .any(|argument| has_nul(argument.as_bytes()))
    {
        "an argument holds a NUL character"
    } else {
        return Ok(());
    };
    Err(JailError::BadJob { reason })
}

/// No jail at all, as the operator wanted. The environment is scrubbed nevertheless.
///
/// Errors: `NoProgram`.
pub(super) fn prepare(
    policy: &JailPolicy,
    job: &Job<'_>,
    directory: &Path,
) -> Result<PreparedRun, JailError> {
    let home = policy.home.as_deref().unwrap_or(Path::new("/"));
    let surroundings = Surroundings {
        home,
        // Nothing stands between the command and the network, whatever the policy says.
        network: Network::Open,
        visible: None,
    };
    let mut variables = environment::make(&policy.environment, surroundings);
    // The user's own registry can be changed here.
    variables.remove("CARGO_HOME");
    variables.extend(job.variables.clone());
    Ok(PreparedRun {
        program: search::program(job, &variables)?,
        arguments: job.arguments.to_vec(),
        environment: variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect::<Vec<(OsString, OsString)>>(),
        directory: directory.to_owned(),
        inherited: Vec::new(),
        label: JailLabel::None,
        guard: Guard {
            told: StageReport::default(),
            whole: Whole::Unknown,
            group: Cgroup::default(),
            aftermath: Aftermath::default(),
            opened: None,
            own: OwnPlaces::default(),
            user: policy.user.clone(),
            scratch: None,
            walls: RunWalls::default(),
            outlet: None,
        },
    })
}
