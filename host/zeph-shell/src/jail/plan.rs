//! The jails of Linux: a job and a view made into a process that is ready to be started, with namespaces or without.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Resource;
use tempfile::TempDir;
use zeph_jail::filter::{self, Family, Reachable, Sockets};
use zeph_jail::plan::{Outlet, Plan, Stage, Watch};

use super::aftermath::Aftermath;
use super::bubblewrap::BwrapOptions;
use super::cgroup::Cgroup;
use super::explain::RunWalls;
use super::own_places::OwnPlaces;
use super::policy::{JailLimits, JailPolicy, Network};
use super::private::OpenWatch;
use super::roots::Roots;
use super::run_setup::{StageReport, Whole};
use super::survey::Survey;
use super::view::{self, View};
use super::watch::{self, Judge};
use super::{
    Guard, Jail, JailError, JailLabel, Job, PreparedRun, Support, as_user, memory, search,
};
use crate::environment::{self, Surroundings};

/// The descriptor of what a shell reads first: the number after those of a job's files.
pub(super) const RC_NUMBER: RawFd = 63;

/// The version of Landlock from which it keeps signals within a run.
const SIGNALS: u32 = 6;

/// The program of the inner stage, as it is: every command waits for it, and unpacking takes longer than starting it.
static PROGRAM: &[u8] = include_bytes!(env!("ZEPH_JAIL_PROGRAM"));

/// Makes everything ready for `job` in the jail that `label` says.
///
/// Errors: `JailError`; nothing has run then.
pub(super) fn prepare(
    jail: &Jail,
    label: JailLabel,
    job: Job<'_>,
    roots: &Roots,
    directory: &Path,
) -> Result<PreparedRun, JailError> {
    match label {
        JailLabel::Full => {
            let (survey, view) = jail.seen(roots)?;
            let judge = Judge::of_root(roots, jail.policy.home.as_deref());
            full(jail, job, (view, judge), &survey, directory)
        }
        _ => {
            let (survey, scratch, view) = as_user(&jail.policy, || {
                let survey = jail.survey(roots);
                let scratch = tempfile::Builder::new().prefix("zeph-run-").tempdir();
                let scratch = scratch.map_err(JailError::system("make a private directory"))?;
                let system = jail.system.now(jail.policy.network);
                let view = view::alone(&jail.policy, system, roots, &survey, scratch.path())?;
                Ok((survey, scratch, view))
            })
            .flatten()?;
            let judge = Judge::of_rules(&view.rules, roots, jail.policy.home.as_deref());
            alone(jail, job, (view, judge), &survey, scratch, directory)
        }
    }
}

impl Jail {
    /// Begins to watch the private files that were found, with the rights of the user that commands run as.
    ///
    /// Errors: `JailError::System`.
    pub(super) fn watch_found(&self, survey: &Survey) -> Result<Option<OpenWatch>, JailError> {
        match self.policy.private.is_empty() {
            true => Ok(None),
            false => as_user(&self.policy, || OpenWatch::begin(&survey.private)),
        }
    }

    /// A look through the writable directories, and what a command sees: both with the rights of the user that it runs as.
    ///
    /// Errors: `JailError`.
    pub(super) fn seen(&self, roots: &Roots) -> Result<(Arc<Survey>, View), JailError> {
        as_user(&self.policy, || self.seen_by_me(roots)).flatten()
    }

    /// The same with the rights of the calling thread, which are those.
    pub(super) fn seen_by_me(&self, roots: &Roots) -> Result<(Arc<Survey>, View), JailError> {
        let survey = self.survey(roots);
        let system = self.system.now(self.policy.network);
        let certificates = self.certificates();
        let view = view::make(&self.policy, system, roots, &survey, certificates)?;
        Ok((survey, view))
    }
}

/// The inner stage in memory, sealed and ready to be inherited.
pub(super) fn program() -> Result<OwnedFd, JailError> {
    static SEALED: OnceLock<OwnedFd> = OnceLock::new();
    let sealed = match SEALED.get() {
        Some(sealed) => sealed,
        // Where it fails, memory or descriptors may have run out for a moment.
        None => {
            let made = memory::program("zeph-jail", PROGRAM)?;
            SEALED.get_or_init(|| made)
        }
    };
    sealed
        .try_clone()
        .map_err(JailError::system("share the inner stage"))
}

/// The full jail: bubblewrap around the inner stage.
fn full(
    jail: &Jail,
    job: Job<'_>,
    (view, judge): (View, Judge),
    survey: &Arc<Survey>,
    directory: &Path,
) -> Result<PreparedRun, JailError> {
    let named = search::program(&job, &variables(jail, &job, &view))?;
    let mut job = Job {
        program: &named,
        ..job
    };
    let ends = Ends::of_job(jail, &mut job)?;
    let sockets = sockets(&jail.policy, &view);
    let walls = walls(sockets, &view);
    let opened = jail.open_outlet(ends.outlet, ends.numbers.outlet);
    let mut inherited = ends.inherited;
    let own = own_places(&view, &job);
    let about = PlanSettings {
        stage: Stage::Inside,
        sockets,
        directory,
        places: own.paths(),
        outlet: opened.told,
        watch: begin_to_watch(jail, judge, &mut inherited)?,
    };
    let plan = make(jail, &job, &view, about, &ends.numbers);
    let plan = memory::sealed("plan", &plan.encode())?;
    let outer = outer(&jail.policy, &view, &[plan.as_raw_fd()])?;
    inherited.extend(outer.inherited);
    inherited.push(plan);
    Ok(PreparedRun {
        program: outer.program,
        arguments: outer.arguments,
        environment: Vec::new(),
        directory: "/".into(),
        inherited,
        label: JailLabel::Full,
        guard: Guard {
            told: StageReport::on(ends.status),
            whole: Whole::ByTheKernel,
            group: ends.group,
            opened: jail.watch_found(survey)?,
            own,
            aftermath: Aftermath::new(view, survey, &jail.told),
            user: jail.policy.user.clone(),
            scratch: None,
            walls,
            outlet: opened.served,
        },
    })
}

/// The places that `job` has to itself in a view with mounts.
pub(super) fn own_places(view: &View, job: &Job<'_>) -> OwnPlaces {
    let made = job.made.as_ref().map(|made| OsStr::from_bytes(&made.path));
    OwnPlaces::of(view).with(made.map(Path::new))
}

/// The outer stage: bubblewrap, which makes a view and starts the inner stage in it.
pub(super) struct Outer {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) inherited: Vec<OwnedFd>,
}

/// The outer stage for a view; the inner one is told the numbers of `descriptors`.
///
/// Errors: `JailError`.
pub(super) fn outer(
    policy: &JailPolicy,
    view: &View,
    descriptors: &[RawFd],
) -> Result<Outer, JailError> {
    let support = Support::of_this_machine();
    let bubblewrap = support.usable().ok_or_else(|| JailError::Unavailable {
        missing: "bubblewrap is gone".to_owned(),
    })?;
    let mut options = BwrapOptions::namespaces(policy.network);
    for mount in &view.mounts {
        options.mount(mount)?;
    }
    let program = program()?;
    let (arguments, mut inherited) = options.finish(&program, descriptors)?;
    inherited.push(program);
    Ok(Outer {
        program: bubblewrap.program.clone(),
        arguments,
        inherited,
    })
}

/// Which sockets a command may make in the full jail.
pub(super) fn sockets(policy: &JailPolicy, view: &View) -> Sockets {
    // A named socket of the host could be reached wherever it can be seen and is not covered. The host's nameless ones live in its
    // network, from which only new kernels keep a command that shares it.
    let apart = policy.network != Network::Open || Support::of_this_machine().landlock >= 6;
    let unix = match view.makes_sockets && apart {
        true => Family::Allowed,
        false => Family::Refused,
    };
    Sockets {
        internet: Family::Allowed,
        unix,
    }
}

/// What a run was refused, had covered or could not change, to explain its errors.
pub(super) fn walls(sockets: Sockets, view: &View) -> RunWalls {
    RunWalls {
        kept: Arc::clone(&view.kept_files),
        pinned: Arc::clone(&view.pinned),
        are_refused: sockets.unix == Family::Refused,
        covered: Arc::clone(&view.covered_sockets),
        is_alone: false,
        foreign: view.foreign.clone(),
    }
}

/// The inner stage without namespaces around it.
fn alone(
    jail: &Jail,
    job: Job<'_>,
    (view, judge): (View, Judge),
    survey: &Arc<Survey>,
    scratch: TempDir,
    directory: &Path,
) -> Result<PreparedRun, JailError> {
    let (stage, internet) = match jail.policy.network {
        Network::Loopback | Network::Hosts => (Stage::AloneWithoutNetwork, Family::Refused),
        Network::Open => (Stage::Alone, Family::Allowed),
    };
    let sockets = Sockets {
        internet,
        unix: Family::Refused,
    };
    let walls = RunWalls {
        is_alone: true,
        ..walls(sockets, &view)
    };
    let named = search::program(&job, &variables(jail, &job, &view))?;
    let mut job = Job {
        program: &named,
        ..job
    };
    let ends = Ends::of_job(jail, &mut job)?;
    let mut inherited = ends.inherited;
    let about = PlanSettings {
        stage,
        sockets,
        directory,
        places: Vec::new(),
        outlet: None,
        watch: begin_to_watch(jail, judge, &mut inherited)?,
    };
    let mut plan = make(jail, &job, &view, about, &ends.numbers);
    private_places(&mut plan, &view.home, jail.policy.home.as_deref());
    let plan = memory::sealed("plan", &plan.encode())?;
    let program = program()?;
    let path = format!("/proc/self/fd/{}", program.as_raw_fd());
    let arguments = vec![plan.as_raw_fd().to_string().into()];
    inherited.extend([plan, program]);
    Ok(PreparedRun {
        program: path.into(),
        arguments,
        environment: Vec::new(),
        directory: directory.to_owned(),
        inherited,
        label: JailLabel::LandlockOnly,
        guard: Guard {
            told: StageReport::on(ends.status),
            whole: Whole::ByTheInnerStage,
            group: ends.group,
            opened: jail.watch_found(survey)?,
            own: OwnPlaces::of_scratch(scratch.path()),
            aftermath: Aftermath::new(view, survey, &jail.told),
            user: jail.policy.user.clone(),
            scratch: Some(scratch),
            walls,
            outlet: None,
        },
    })
}

/// Begins to watch a run where that is wanted: what the inner stage is told, which gets its end of the channel with `inherited`.
///
/// Errors: `JailError::System`.
fn begin_to_watch(
    jail: &Jail,
    judge: Judge,
    inherited: &mut Vec<OwnedFd>,
) -> Result<Option<Watch>, JailError> {
    let Some(watch) = &jail.watch else {
        return Ok(None);
    };
    let (channel, of_inner) = super::outlet::channel()?;
    watch::begin(channel, watch.clone(), judge).map_err(JailError::system("start a thread"))?;
    let told = Watch {
        channel: of_inner.as_raw_fd(),
        filter: filter::watching(),
    };
    inherited.push(of_inner);
    Ok(Some(told))
}

/// What the host and the inner stage hold of each other, and the group of a run.
pub(super) struct Ends {
    /// To be inherited by what is started.
    pub(super) inherited: Vec<OwnedFd>,
    /// Where the inner stage tells how it goes. Never blocks.
    pub(super) status: OwnedFd,
    pub(super) group: Cgroup,
    pub(super) numbers: Numbers,
    /// Where the host is given the socket of the way out, where there is one.
    pub(super) outlet: Option<OwnedFd>,
}

/// The numbers under which the inner stage finds its descriptors.
#[derive(Debug)]
pub(super) struct Numbers {
    status: RawFd,
    cgroups: Vec<RawFd>,
    files: Vec<(RawFd, RawFd)>,
    pub(super) outlet: Option<RawFd>,
}

impl Numbers {
    /// Without that of what a shell reads first, where the job has none.
    fn of_job(&self, job: &Job<'_>) -> Vec<(RawFd, RawFd)> {
        let mut files = self.files.clone();
        files.retain(|(_, number)| *number != RC_NUMBER || job.rc.is_some());
        files
    }
}

impl Ends {
    fn of_job(jail: &Jail, job: &mut Job<'_>) -> Result<Self, JailError> {
        let mut files = std::mem::take(&mut job.files);
        if let Some(rc) = job.rc {
            files.push((memory::sealed("rc", &closing(rc))?, RC_NUMBER));
        }
        Self::new(jail, files)
    }

    /// Of a run that gets `files`.
    ///
    /// Errors: `JailError::System`.
    pub(super) fn new(jail: &Jail, files: Vec<(OwnedFd, RawFd)>) -> Result<Self, JailError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (status, writer) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(|error| JailError::system("make a pair of sockets")(error.into()))?;
        let mut group = group(jail.policy.limits)?;
        let (outlet, of_inner) = jail.outlet_ends()?.unzip();
        let mut inherited = group.take_entrances();
        let numbers = Numbers {
            status: writer.as_raw_fd(),
            cgroups: inherited.iter().map(|file| file.as_raw_fd()).collect(),
            files: files
                .iter()
                .map(|(file, number)| (file.as_raw_fd(), *number))
                .collect(),
            outlet: of_inner.as_ref().map(|end| end.as_raw_fd()),
        };
        inherited.extend(of_inner);
        inherited.extend(files.into_iter().map(|(file, _)| file));
        inherited.push(writer);
        Ok(Self {
            inherited,
            status,
            group,
            numbers,
            outlet,
        })
    }
}

/// What a shell reads first, and the end of it: whatever the command starts need not have the descriptor.
pub(super) fn closing(rc: &[u8]) -> Vec<u8> {
    [rc, format!("\nexec {RC_NUMBER}<&-\n").as_bytes()].concat()
}

/// What a plan says that is neither of the job nor of the view.
pub(super) struct PlanSettings<'a> {
    pub(super) stage: Stage,
    pub(super) sockets: Sockets,
    pub(super) directory: &'a Path,
    /// Directories that only the command has.
    pub(super) places: Vec<Vec<u8>>,
    pub(super) outlet: Option<Outlet>,
    pub(super) watch: Option<Watch>,
}

/// The plan for a job in a view.
pub(super) fn make(
    jail: &Jail,
    job: &Job<'_>,
    view: &View,
    about: PlanSettings<'_>,
    numbers: &Numbers,
) -> Plan {
    let PlanSettings {
        stage,
        sockets,
        directory,
        places,
        outlet,
        watch,
    } = about;
    Plan {
        stage,
        keeps_signals: jail.keeps_signals && Support::of_this_machine().landlock >= SIGNALS,
        status: numbers.status,
        cgroups: numbers.cgroups.clone(),
        limits: resources(jail.policy.limits, stage),
        checks: view.checks.clone(),
        places,
        directory: directory.as_os_str().as_bytes().to_vec(),
        rules: view.rules.clone(),
        files: numbers.of_job(job),
        outlet,
        watch,
        made: job.made.clone().filter(|_| stage == Stage::Inside),
        filter: filter::build(sockets, around(stage)),
        program: job.program.as_os_str().as_bytes().to_vec(),
        arguments: job
            .arguments
            .iter()
            .map(|one| one.as_bytes().to_vec())
            .collect(),
        environment: lines(variables(jail, job, view)),
    }
}

fn variables(jail: &Jail, job: &Job<'_>, view: &View) -> BTreeMap<String, String> {
    let policy = &jail.policy;
    let surroundings = Surroundings {
        home: &view.home,
        network: policy.network,
        visible: Some(&view.visible),
    };
    let mut variables = environment::make(&policy.environment, surroundings);
    let temporary = view.temporary.as_ref();
    variables.extend(temporary.map(|path| ("TMPDIR".to_owned(), path.display().to_string())));
    if jail.certificates().is_some() {
        variables.extend(environment::of_certificates(view::CERTIFICATES));
    }
    variables.extend(jail.outlet_variables());
    variables.extend(job.variables.clone());
    variables.remove("BASH_ENV");
    variables.remove("ENV");
    if job.rc.is_some() {
        variables.insert("BASH_ENV".to_owned(), format!("/proc/self/fd/{RC_NUMBER}"));
    }
    variables
}

/// The private places of a run that has no mounts of its own: one directory for all of them, and the user's toolchains where
/// they are.
fn private_places(plan: &mut Plan, scratch: &Path, home: Option<&Path>) {
    let own = |name: &str| format!("{name}=").into_bytes();
    let variables = &mut plan.environment;
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

fn around(stage: Stage) -> Reachable {
    match stage {
        Stage::Inside => Reachable::Nobody,
        Stage::Alone | Stage::AloneWithoutNetwork => Reachable::Host,
    }
}

fn lines(variables: BTreeMap<String, String>) -> Vec<Vec<u8>> {
    let whole = variables
        .into_iter()
        .map(|(name, value)| format!("{name}={value}").into_bytes());
    whole.filter(|line| !line.contains(&0)).collect()
}

fn group(limits: JailLimits) -> Result<Cgroup, JailError> {
    let parents = &Support::of_this_machine().cgroups.parents;
    let process = rustix::process::getpid().as_raw_nonzero();
    // The number of a process comes back, so it is not enough after a crash.
    let name = format!("run-{process}-{}", uuid::Uuid::new_v4());
    Cgroup::new(parents, &name, limits).map_err(JailError::system("limit a group of processes"))
}

/// Limits of each process. The number of processes is counted for the user, so it means something only where the user has
/// a namespace of its own; the kernel does not count root's.
fn resources(limits: JailLimits, stage: Stage) -> Vec<(u32, u64)> {
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
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, processes),
        (Resource::Data, memory),
    ];
    let set = given.into_iter().filter(|(_, value)| *value > 0);
    set.chain([(Resource::Core, 0)])
        .map(|(resource, value)| (resource as u32, value))
        .collect()
}
