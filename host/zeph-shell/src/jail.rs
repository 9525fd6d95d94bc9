//! The jail: what a command may see, change and reach, made into a process that is ready to be started.
//!
//! It decides nothing about commands and starts none: `prepare` gives a program with arguments, descriptors and a guard, and whoever
//! starts processes starts it. Three walls stand one behind the other: the namespaces and mounts of bubblewrap, then Landlock
//! and the system call filter that the inner stage (`zeph-jail`) puts on before it becomes the command.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "mounts, rules and groups are of Linux")
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

mod aftermath;
#[cfg(target_vendor = "apple")]
mod apple;
mod bare;
#[cfg(target_os = "linux")]
mod bubblewrap;
mod cgroup;
mod command_note;
mod commits;
mod doors;
mod explain;
mod git;
mod gitconfig;
mod gitruns;
mod host_writes;
#[cfg(target_os = "linux")]
mod memory;
mod mount;
mod names;
#[cfg_attr(target_vendor = "apple", path = "jail/network/apple.rs")]
mod network;
mod new_repositories;
mod news;
mod outlet;
mod own_places;
mod path_rules;
mod place;
mod place_state;
#[cfg(target_os = "linux")]
mod plan;
mod policy;
mod private;
mod probe;
mod rebase;
mod roots;
mod run_setup;
mod search;
#[cfg(any(target_vendor = "apple", test))]
mod seatbelt;
mod sockets;
#[cfg_attr(target_vendor = "apple", path = "jail/standing_jail/apple.rs")]
mod standing_jail;
mod support;
mod survey;
mod sweep;
mod system;
mod told;
mod toolchain;
mod tracked;
mod trial;
mod trusted;
mod view;
mod watch;

#[cfg(test)]
pub(crate) mod tests;

pub use aftermath::AftermathFinding;
pub use cgroup::{CgroupKind, Cgroups, Parent as CgroupParent};
pub use explain::{ForeignRoot, RunWalls, explain};
pub(crate) use explain::{explain_kept, explain_offline, explain_sanitizer};
pub use host_writes::HostWrite;
pub(crate) use network::SessionNetwork;
pub use outlet::{OpenOutlet, OutletDoor, Outlets};
pub use policy::{EnvironmentPolicy, JailLimits, JailPolicy, Mode, Network, OwnDirectories};
pub use run_setup::{Guard, PreparedRun, Start};
pub(crate) use standing_jail::StandingJail;
pub use support::{Bubblewrap, Support};
pub use trial::NoNamespaces;
pub use watch::{DeniedPath, PathWatch, is_private};

#[cfg(target_vendor = "apple")]
use apple as system_jail;
#[cfg(target_os = "linux")]
use plan as system_jail;

use command_note::CommandNote;
use new_repositories::NewRepositories;
use private::OpenWatch;
use roots::{GrantedPaths, Roots};
use survey::{Survey, SurveyScope};
use system::SystemMounts;
use told::Told;
use zeph_core::user::run_as;
use zeph_jail::plan::MadeFile;

/// How much of the jail stands around a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum JailLabel {
    /// Nothing; only where the operator switched the jail off. Every result says so.
    None,
    /// Landlock and the system call filter, without namespaces. Every result says so.
    LandlockOnly,
    /// The profile of macOS. Every result says so.
    Seatbelt,
    /// Namespaces and mounts, Landlock, the system call filter.
    Full,
}

impl JailLabel {
    /// The word that results and reports carry: `full`, `landlock-only`, `seatbelt` or `none`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::LandlockOnly => "landlock-only",
            Self::Seatbelt => "seatbelt",
            Self::None => "none",
        }
    }
}

/// One command to be run in the jail.
#[derive(Debug)]
pub struct Job<'a> {
    /// The program: an absolute path as seen inside the jail, for example `/bin/bash`, or a bare name, which is looked for on the
    /// search path that the command gets.
    pub program: &'a Path,
    /// Its arguments, without its name. Nobody else on the machine can read them from the jail's command line.
    pub arguments: &'a [OsString],
    /// Where it starts; beneath a root of the policy.
    pub directory: &'a Path,
    /// Variables set on top of the scrubbed environment. They win over it, but injectors among them are dropped.
    pub variables: &'a BTreeMap<String, String>,
    /// Descriptors the command gets besides its standard streams, with the number each has inside: 3 to 62, each once.
    pub files: Vec<(OwnedFd, RawFd)>,
    /// What a shell reads first: a file that nobody can change, which `BASH_ENV` names and which is closed at its end.
    pub rc: Option<&'a [u8]>,
    /// A file that is made for the command in the full jail, in a place of its own; elsewhere it is not made.
    pub made: Option<MadeFile>,
}

/// Why no jail can be made. The texts are fit for a model: they name no path that the job or the policy did not name.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JailError {
    /// The platform offers neither namespaces nor Landlock.
    #[error(
        "this machine cannot jail commands ({missing}); `zeph-host doctor` tells how to get it"
    )]
    Unavailable {
        /// What is missing, in a few words.
        missing: String,
    },
    /// It is not known yet whether the platform offers namespaces.
    #[error(
        "the jail of commands could not be tried on this machine, which may be too busy at the moment ({reason}), so no command runs; try again"
    )]
    NotTried {
        /// What came in between.
        reason: String,
    },
    /// A root is too wide to be given to a command.
    #[error(
        "`{}` is too wide a directory for commands: {reason}; start in a narrower one, or name one with `--root` or in `tools.shell.allowed_paths`; for an MCP server, in `allow_read` or `allow_write` of its own",
        path.display()
    )]
    RootTooWide {
        /// The root of the policy.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// A root does not exist or is not a directory.
    #[error("`{}` is not a directory that commands could work in", path.display())]
    RootMissing {
        /// The root of the policy.
        path: PathBuf,
    },
    /// A root belongs to what commands must not see.
    #[error(
        "`{}` is hidden from commands (`tools.sandbox.hide`, `tools.file.deny_read`, a rule, or the host's own files), so they cannot work in it; start the host in another directory",
        path.display()
    )]
    RootHidden {
        /// The root of the policy.
        path: PathBuf,
    },
    /// A root is another object than the one that was found when the host started.
    #[error(
        "`{}` is not the directory it was when the host started; start the host anew if this one is meant",
        path.display()
    )]
    RootReplaced {
        /// The root of the policy.
        path: PathBuf,
    },
    /// The job's directory lies in no root.
    #[error("`{}` lies outside the directories commands may work in", path.display())]
    DirectoryOutside {
        /// The job's directory.
        path: PathBuf,
    },
    /// Commands may reach hosts, and nothing would keep them from reaching others.
    #[error(
        "`tools.sandbox.allow_hosts` needs a network namespace for each command, which is not available here, so no command runs; \
         `zeph-host doctor` tells what is missing, or remove `allow_hosts`"
    )]
    HostsNeedNamespaces,
    /// A job asked for something impossible.
    #[error("the command cannot be jailed: {reason}")]
    BadJob {
        /// What.
        reason: &'static str,
    },
    /// There is no program of that name on the search path.
    #[error("there is no program `{}` on the search path of commands", name.display())]
    NoProgram {
        /// The bare name.
        name: PathBuf,
    },
    /// More places of the writable directories must be protected than can be.
    #[error(
        "the directories commands may change hold more than {limit} protected places{}; choose a smaller one, or remove or move some of \
         them outside the jail",
        most.as_ref().map(|name| format!(", most of them named `{name}`")).unwrap_or_default()
    )]
    TooMuch {
        /// How many can be.
        limit: usize,
        /// The name that most of them have, where it is known.
        most: Option<String>,
    },
    /// The system refused a step of the preparation.
    #[error("cannot {step} for the jail")]
    System {
        /// The step.
        step: &'static str,
        /// What the system said.
        source: Arc<std::io::Error>,
    },
}

impl JailError {
    pub(crate) fn system(step: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::System {
            step,
            source: Arc::new(source),
        }
    }
}

/// A survey of so many entries is made anew for each run: it takes some 3 ms. A longer one holds for `FRESH_FOR` times what it took, unless
/// something that it would have to name has come since.
const CHEAP_ENTRIES: usize = 2_000;
const FRESH_FOR: u32 = 50;

/// A jail for the commands of one configuration. A job is prepared without changing it, so it can be shared.
#[derive(Debug)]
pub struct Jail {
    policy: JailPolicy,
    /// What the policy names, found when the jail was made: before anything runs that could lead it elsewhere.
    granted: Result<GrantedPaths, JailError>,
    /// The most of the jail that is used.
    most: JailLabel,
    /// Whether signals are kept within a run where the kernel can.
    keeps_signals: bool,
    /// Found out for the first command: most starts of the program run none. Empty while there is no jail.
    label: OnceLock<JailLabel>,
    /// Protects the last look through the writable directories.
    survey: Mutex<Option<Arc<Survey>>>,
    /// The mounts of the system.
    system: SystemMounts,
    /// What was reported as neither looked at nor compared.
    told: Arc<Told>,
    /// The repositories that commands made.
    made: Arc<NewRepositories>,
    /// That commands run, for the next host.
    commands: Arc<CommandNote>,
    /// What serves the ways out of commands that may reach hosts.
    outlets: Option<Arc<dyn Outlets>>,
    /// What is asked for in vain, where that is wanted.
    watch: Option<PathWatch>,
}

/// Why no command can be run in a jail, or not now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NoJail {
    /// What is missing, or what came between a trial and its end.
    pub reason: String,
    /// Whether it may be otherwise in a moment. Nothing runs meanwhile: with less of a jail, it would do what it may not do in the whole.
    pub may_pass: bool,
}

impl From<NoJail> for JailError {
    fn from(none: NoJail) -> Self {
        let reason = none.reason;
        match none.may_pass {
            true => Self::NotTried { reason },
            false => Self::Unavailable { missing: reason },
        }
    }
}

impl Jail {
    /// Makes a jail of `policy`, whose directories are found and held from now on. The platform is looked at when it is first asked
    /// for, in a process for some milliseconds, or some seconds where the machine is too busy to tell.
    pub fn new(policy: JailPolicy) -> Self {
        Self::at_most(policy, JailLabel::Full)
    }

    fn at_most(policy: JailPolicy, most: JailLabel) -> Self {
        Self {
            granted: as_user(&policy, || GrantedPaths::open(&policy)).flatten(),
            policy,
            most,
            keeps_signals: true,
            label: OnceLock::new(),
            survey: Mutex::new(None),
            system: SystemMounts::default(),
            told: Arc::default(),
            made: Arc::default(),
            commands: Arc::default(),
            outlets: None,
            watch: None,
        }
    }

    /// Has `watch` learn which paths the programs of this jail ask for in vain. Each of their calls that takes a path costs some
    /// microseconds more then; none is refused for it.
    ///
    /// Limits: not where there is no jail, nor on macOS: [`PathWatch::problem`] says so.
    #[must_use]
    pub fn with_watch(mut self, watch: PathWatch) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Like `new`, but never more than Landlock and the filter, as on a machine without user namespaces.
    pub fn without_namespaces(policy: JailPolicy) -> Self {
        Self::at_most(policy, JailLabel::LandlockOnly)
    }

    /// The policy the jail was made from.
    pub fn policy(&self) -> &JailPolicy {
        &self.policy
    }

    /// How much of the jail stands around each run.
    ///
    /// Errors: what is missing, when no command can be run at all, or not now. Each call looks again then.
    pub fn label(&self) -> Result<JailLabel, NoJail> {
        if let Some(label) = self.label.get() {
            return Ok(*label);
        }
        let label = find_label(&self.policy, self.most)?;
        // Without it the caches live as long as the run.
        if let (JailLabel::Full, Some(cache)) = (label, &self.policy.cache) {
            let make = || DirBuilder::new().recursive(true).mode(0o700).create(cache);
            drop(run_as(self.policy.user.as_ref(), make));
        }
        Ok(*self.label.get_or_init(|| label))
    }

    /// What the machine offers.
    pub fn support() -> Arc<Support> {
        Support::of_this_machine()
    }

    /// Makes everything ready for `job`: what is returned has only to be started, on a thread that outlives the run. Blocks for
    /// a few milliseconds.
    ///
    /// Errors: `JailError`; nothing has run then.
    pub fn prepare(&self, job: Job<'_>) -> Result<PreparedRun, JailError> {
        let label = self.label()?;
        bare::check(&job)?;
        let granted = self.granted.as_ref().map_err(JailError::clone)?;
        let wanted = job.directory;
        let (roots, directory) = as_user(&self.policy, || {
            let roots = granted.now();
            let directory = match self.policy.own.holds(wanted) {
                true => wanted.to_owned(),
                false => roots.directory(wanted)?,
            };
            Ok((roots, directory))
        })
        .flatten()?;
        let is_apart = matches!(label, JailLabel::Full | JailLabel::None);
        if self.policy.network == Network::Hosts && !is_apart {
            return Err(JailError::HostsNeedNamespaces);
        }
        if let Some(watch) = &self.watch
            && !matches!(label, JailLabel::Full | JailLabel::LandlockOnly)
        {
            watch.fail("paths are watched in the jails of Linux only".to_owned());
        }
        match label {
            JailLabel::None => {
                let watch = || self.watch_private(&roots);
                let mut prepared = bare::prepare(&self.policy, &job, &directory)?;
                prepared.guard.opened = as_user(&self.policy, watch)?;
                Ok(prepared)
            }
            label => system_jail::prepare(self, label, job, &roots, &directory),
        }
    }

    /// Whether programs see what the host has at a path: it belongs to the system, to a toolchain or to what the policy names. Reads some
    /// files.
    pub fn shows(&self, path: &Path) -> bool {
        let Ok(granted) = &self.granted else {
            return false;
        };
        let visible = as_user(&self.policy, || {
            let system = self.system.now(self.policy.network);
            view::visible(&self.policy, system, &granted.now())
        });
        visible.is_ok_and(|visible| mount::within_any(path, &visible))
    }

    /// Begins to watch the private files, where no jail needs a survey.
    fn watch_private(&self, roots: &Roots) -> Option<OpenWatch> {
        let has_private = !self.policy.private.is_empty();
        has_private.then(|| OpenWatch::begin(&self.survey(roots).private))?
    }

    /// A look through the writable directories that is recent enough.
    fn survey(&self, roots: &Roots) -> Arc<Survey> {
        let mut held = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(survey) = &*held {
            let fresh = survey.taken.elapsed() < survey.cost * FRESH_FOR;
            let is_same = survey.roots == roots.writable;
            let may_hold = survey.n_entries > CHEAP_ENTRIES && fresh && is_same;
            if may_hold && !news::has_news(survey, &self.policy.private) {
                return Arc::clone(survey);
            }
        }
        let before = held.take();
        let before = before.filter(|before| before.roots == roots.writable);
        let scope = SurveyScope {
            writable: &roots.writable,
            read_only: &roots.readable,
            made: &self.made,
            private: &self.policy.private,
        };
        let survey = Arc::new(survey::take(scope, before.as_deref()));
        *held = Some(Arc::clone(&survey));
        survey
    }
}

/// Does `work` with the rights of the user that commands run as.
///
/// Errors: the system refuses that; then nothing was done.
fn as_user<T: Send>(policy: &JailPolicy, work: impl FnOnce() -> T + Send) -> Result<T, JailError> {
    run_as(policy.user.as_ref(), work).map_err(JailError::system("become the user of commands"))
}

fn find_label(policy: &JailPolicy, most: JailLabel) -> Result<JailLabel, NoJail> {
    match policy.mode {
        Mode::Disabled => Ok(JailLabel::None),
        Mode::Enforced => of_the_system(policy, most),
    }
}

#[cfg(target_os = "linux")]
fn of_the_system(policy: &JailPolicy, most: JailLabel) -> Result<JailLabel, NoJail> {
    let (folder, user) = (policy.records.as_deref(), policy.user.as_ref());
    if let Some(folder) = folder {
        let make = || DirBuilder::new().recursive(true).mode(0o700).create(folder);
        // Without it the machine is looked at each time.
        drop(run_as(user, make));
    }
    label_of(&Support::remembered(folder, user), most)
}

/// How much of a jail of at most `most` there is with what the machine offers.
#[cfg(target_os = "linux")]
fn label_of(support: &Support, most: JailLabel) -> Result<JailLabel, NoJail> {
    if support.landlock == 0 || !support.seccomp {
        return Err(NoJail {
            reason: "the kernel lacks Landlock or the system call filter".to_owned(),
            may_pass: false,
        });
    }
    match &support.namespaces {
        Err(problem) if problem.may_pass && most == JailLabel::Full => Err(NoJail {
            reason: problem.reason.clone(),
            may_pass: true,
        }),
        Ok(()) if support.bubblewrap.is_ok() => Ok(most),
        _ => Ok(JailLabel::LandlockOnly.min(most)),
    }
}

#[cfg(target_vendor = "apple")]
fn of_the_system(_: &JailPolicy, most: JailLabel) -> Result<JailLabel, NoJail> {
    match apple::is_there() {
        true => Ok(JailLabel::Seatbelt.min(most)),
        false => Err(NoJail {
            reason: "`/usr/bin/sandbox-exec` is not there".to_owned(),
            may_pass: false,
        }),
    }
}
