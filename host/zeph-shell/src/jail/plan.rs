//! The jails of Linux: a job and a view made into a process that is ready to be started, with namespaces or without.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustix::pipe::PipeFlags;
use tempfile::TempDir;
use zeph_jail::filter::{self, Around, Family, Sockets};
use zeph_jail::plan::{Plan, Stage};

use super::aftermath::Aftermath;
use super::bubblewrap::Options;
use super::cgroup::Group;
use super::policy::{Limits, Network};
use super::prepared::{Told, Whole};
use super::roots::Roots;
use super::survey::Survey;
use super::view::{self, View};
use super::{Guard, Jail, JailError, Job, Label, Prepared, RC_PATH, Support, memory};
use crate::environment::{self, Surroundings};

/// Where the text of a job stands where nothing can be mounted: the number after those of its files.
const RC_NUMBER: RawFd = 63;

/// The version of Landlock from which it keeps signals within a run.
const SIGNALS: u32 = 6;

/// The program of the inner stage, as the build made it.
static PROGRAM: &[u8] = include_bytes!(env!("ZEPH_JAIL_PROGRAM"));

/// Makes everything ready for `job` in the jail that `label` says.
///
/// Errors: `JailError`; nothing has run then.
pub(super) fn prepare(
    jail: &Jail,
    label: Label,
    job: Job<'_>,
    roots: &Roots,
    directory: &Path,
) -> Result<Prepared, JailError> {
    let survey = jail.survey(roots);
    match label {
        Label::Full => {
            let view = view::make(&jail.policy, roots, &survey, job.rc)?;
            full(jail, job, view, &survey, directory)
        }
        _ => {
            let scratch = tempfile::Builder::new().prefix("zeph-run-").tempdir();
            let scratch = scratch.map_err(JailError::system("make a private directory"))?;
            let view = view::alone(&jail.policy, roots, &survey, scratch.path())?;
            alone(jail, job, view, &survey, scratch, directory)
        }
    }
}

/// The inner stage in memory, sealed and ready to be inherited.
pub(super) fn program() -> Result<OwnedFd, JailError> {
    static SEALED: OnceLock<Result<OwnedFd, JailError>> = OnceLock::new();
    let sealed = SEALED.get_or_init(|| memory::program("zeph-jail", PROGRAM));
    let sealed = sealed.as_ref().map_err(JailError::clone)?;
    sealed
        .try_clone()
        .map_err(JailError::system("share the inner stage"))
}

/// The full jail: bubblewrap around the inner stage.
fn full(
    jail: &Jail,
    job: Job<'_>,
    view: View,
    survey: &Arc<Survey>,
    directory: &Path,
) -> Result<Prepared, JailError> {
    let policy = &jail.policy;
    let bubblewrap = Support::of_this_machine().usable();
    let bubblewrap = bubblewrap.ok_or_else(|| JailError::Unavailable {
        missing: "bubblewrap is gone".to_owned(),
    })?;
    // A named socket of the host could be reached wherever it can be seen. The host's nameless ones live in its network, from which
    // only new kernels keep a command that shares it.
    let apart = policy.network == Network::Loopback || Support::of_this_machine().landlock >= 6;
    let unix = match !survey.sockets && survey.complete && apart {
        true => Family::Allowed,
        false => Family::Refused,
    };
    let sockets = Sockets {
        internet: Family::Allowed,
        unix,
    };
    let mut made = Made::new(jail, Stage::Inside, sockets, job, &view)?;
    let mut options = Options::namespaces(policy.network);
    for mount in &view.mounts {
        options.mount(mount)?;
    }
    let plan = made.plan()?;
    let program = program()?;
    let (arguments, files) = options.finish(directory, &program, &plan)?;
    made.inherited.extend(files);
    made.inherited.extend([plan, program]);
    Ok(Prepared {
        program: bubblewrap.program.clone(),
        arguments,
        environment: Vec::new(),
        directory: "/".into(),
        inherited: made.inherited,
        label: Label::Full,
        guard: Guard {
            told: Told::on(made.status),
            whole: Whole::ByTheKernel,
            group: made.group,
            aftermath: Aftermath::new(view, survey, &jail.told),
            scratch: None,
        },
    })
}

/// The inner stage without namespaces around it.
fn alone(
    jail: &Jail,
    mut job: Job<'_>,
    view: View,
    survey: &Arc<Survey>,
    scratch: TempDir,
    directory: &Path,
) -> Result<Prepared, JailError> {
    let (stage, internet) = match jail.policy.network {
        Network::Loopback => (Stage::AloneWithoutNetwork, Family::Refused),
        Network::Open => (Stage::Alone, Family::Allowed),
    };
    let sockets = Sockets {
        internet,
        unix: Family::Refused,
    };
    // Nothing can be mounted here: the text comes as a descriptor.
    if let Some(rc) = job.rc.take() {
        job.files.push((memory::sealed("rc", rc)?, RC_NUMBER));
    }
    let mut made = Made::new(jail, stage, sockets, job, &view)?;
    made.alone(&view.home, jail.policy.home.as_deref());
    let plan = made.plan()?;
    let program = program()?;
    let path = format!("/proc/self/fd/{}", program.as_raw_fd());
    let arguments = vec![plan.as_raw_fd().to_string().into()];
    made.inherited.extend([plan, program]);
    Ok(Prepared {
        program: path.into(),
        arguments,
        environment: Vec::new(),
        directory: directory.to_owned(),
        inherited: made.inherited,
        label: Label::LandlockOnly,
        guard: Guard {
            told: Told::on(made.status),
            whole: Whole::ByTheInnerStage,
            group: made.group,
            aftermath: Aftermath::new(view, survey, &jail.told),
            scratch: Some(scratch),
        },
    })
}

/// What both kinds of jail need.
struct Made {
    plan: Plan,
    inherited: Vec<OwnedFd>,
    status: OwnedFd,
    group: Group,
}

impl Made {
    fn new(
        jail: &Jail,
        stage: Stage,
        sockets: Sockets,
        job: Job<'_>,
        view: &View,
    ) -> Result<Self, JailError> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|error| JailError::system("make a pipe")(error.into()))?;
        let limits = jail.policy.limits;
        let mut group = group(limits)?;
        let mut inherited = group.take_entrances();
        let cgroups = inherited.iter().map(|file| file.as_raw_fd()).collect();
        let surroundings = Surroundings {
            home: &view.home,
            network: jail.policy.network,
            visible: Some(&view.visible),
        };
        let mut variables = environment::make(&jail.policy.environment, surroundings);
        variables.extend(job.variables.clone());
        variables.remove("BASH_ENV");
        variables.remove("ENV");
        if job.rc.is_some() {
            variables.insert("BASH_ENV".to_owned(), RC_PATH.to_owned());
        } else if job.files.iter().any(|(_, number)| *number == RC_NUMBER) {
            variables.insert("BASH_ENV".to_owned(), format!("/proc/self/fd/{RC_NUMBER}"));
        }
        let mut files: Vec<(RawFd, RawFd)> = Vec::new();
        for (file, number) in job.files {
            files.push((file.as_raw_fd(), number));
            inherited.push(file);
        }
        let plan = Plan {
            stage,
            keeps_signals: jail.keeps_signals && Support::of_this_machine().landlock >= SIGNALS,
            status: writer.as_raw_fd(),
            cgroups,
            limits: resources(limits, stage),
            checks: view.checks.clone(),
            rules: view.rules.clone(),
            files,
            filters: filter::build(sockets, around(stage)),
            program: job.program.as_os_str().as_bytes().to_vec(),
            arguments: job
                .arguments
                .iter()
                .map(|one| one.as_bytes().to_vec())
                .collect(),
            environment: lines(variables),
        };
        inherited.push(writer);
        Ok(Self {
            plan,
            inherited,
            status: reader,
            group,
        })
    }

    /// The private places of a run that has no mounts of its own: one directory for all of them, and the user's toolchains where
    /// they are.
    fn alone(&mut self, scratch: &Path, home: Option<&Path>) {
        let own = |name: &str| format!("{name}=").into_bytes();
        let variables = &mut self.plan.environment;
        variables.retain(|line| !line.starts_with(&own("TMPDIR")));
        variables.push([own("TMPDIR"), scratch.as_os_str().as_bytes().to_vec()].concat());
        let rustup = home
            .map(|home| home.join(".rustup"))
            .filter(|path| path.is_dir());
        if let Some(rustup) = rustup
            && !variables
                .iter()
                .any(|line| line.starts_with(&own("RUSTUP_HOME")))
        {
            variables.push([own("RUSTUP_HOME"), rustup.as_os_str().as_bytes().to_vec()].concat());
        }
    }

    fn plan(&self) -> Result<OwnedFd, JailError> {
        memory::sealed("plan", &self.plan.encode())
    }
}

fn around(stage: Stage) -> Around {
    match stage {
        Stage::Inside => Around::Nobody,
        Stage::Alone | Stage::AloneWithoutNetwork => Around::Host,
    }
}

fn lines(variables: BTreeMap<String, String>) -> Vec<Vec<u8>> {
    let whole = variables
        .into_iter()
        .map(|(name, value)| format!("{name}={value}").into_bytes());
    whole.filter(|line| !line.contains(&0)).collect()
}

fn group(limits: Limits) -> Result<Group, JailError> {
    let parents = &Support::of_this_machine().cgroups.parents;
    let process = rustix::process::getpid().as_raw_nonzero();
    // The number of a process comes back, so it is not enough after a crash.
    let name = format!("run-{process}-{}", uuid::Uuid::new_v4());
    Group::new(parents, &name, limits).map_err(JailError::system("limit a group of processes"))
}

/// Limits of each process. The number of processes is counted for the user, so it means something only where the user has
/// a namespace of its own; the kernel does not count root's.
fn resources(limits: Limits, stage: Stage) -> Vec<(u32, u64)> {
    let processes = match stage {
        Stage::Inside => limits.processes,
        Stage::Alone | Stage::AloneWithoutNetwork => 0,
    };
    // Of each process by itself, for want of better. What is only reserved does not count, which many runtimes do a lot.
    let memory = match Support::of_this_machine().cgroups.limits_memory() {
        true => 0,
        false => limits.memory_bytes,
    };
    let given = [
        (libc::RLIMIT_NOFILE, limits.open_files),
        (libc::RLIMIT_FSIZE, limits.file_bytes),
        (libc::RLIMIT_NPROC, processes),
        (libc::RLIMIT_DATA, memory),
    ];
    let mut resources: Vec<(u32, u64)> =
        given.into_iter().filter(|(_, value)| *value > 0).collect();
    resources.push((libc::RLIMIT_CORE, 0));
    resources
}
