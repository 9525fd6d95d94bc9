//! The jail of macOS: `sandbox-exec` with a profile for one command. It has no mounts and no namespaces, so a run has one private
//! directory, and what it changed is looked at afterwards.

use std::ffi::OsString;
use std::path::Path;

use super::aftermath::Aftermath;
use super::cgroup::Cgroup;
use super::explain::RunWalls;
use super::own_places::OwnPlaces;
use super::roots::Roots;
use super::run_setup::{StageReport, Whole};
use super::{Guard, Jail, JailError, JailLabel, Job, PreparedRun, search, seatbelt, view};
use crate::environment::{self, Surroundings};

/// The program that puts a profile on and becomes the command. A fixed path: what a search path says is not believed.
const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Whether commands can be jailed at all.
pub(super) fn is_there() -> bool {
    Path::new(PROGRAM).exists()
}

/// Makes everything ready for `job`. Its files and its text are for the caller that starts it.
///
/// Errors: `JailError`; nothing has run then.
pub(super) fn prepare(
    jail: &Jail,
    _label: JailLabel,
    job: Job<'_>,
    roots: &Roots,
    directory: &Path,
) -> Result<PreparedRun, JailError> {
    let policy = &jail.policy;
    let scratch = tempfile::Builder::new().prefix("zeph-run-").tempdir();
    let scratch = scratch.map_err(JailError::system("make a private directory"))?;
    // The profile speaks of real paths, and the temporary folder of this system is reached through a link.
    let private = scratch.path().canonicalize();
    let private = private.map_err(JailError::system("find the private directory"))?;
    let survey = jail.survey(roots);
    let view = view::looked_at(
        policy,
        jail.system.now(policy.network),
        roots,
        &survey,
        &private,
    );
    let surroundings = Surroundings {
        home: &private,
        network: policy.network,
        visible: Some(&view.visible),
    };
    let mut variables = environment::make(&policy.environment, surroundings);
    variables.insert("TMPDIR".to_owned(), private.display().to_string());
    variables.extend(job.variables.clone());
    let program = search::program(&job, &variables)?;
    let profile = seatbelt::profile(policy, roots, &program, &private);
    let mut arguments: Vec<OsString> = vec!["-p".into(), profile.into(), program.into()];
    arguments.extend_from_slice(job.arguments);
    Ok(PreparedRun {
        program: PROGRAM.into(),
        arguments,
        environment: variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        directory: directory.to_owned(),
        inherited: Vec::new(),
        label: JailLabel::Seatbelt,
        guard: Guard {
            told: StageReport::default(),
            whole: Whole::Unknown,
            group: Cgroup::default(),
            opened: None,
            own: OwnPlaces::default(),
            aftermath: Aftermath::new(view, &survey, &jail.told),
            user: None,
            scratch: Some(scratch),
            walls: RunWalls::default(),
            outlet: None,
        },
    })
}
