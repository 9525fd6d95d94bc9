//! A jail that is made ahead of its command and waits for it.
//!
//! What takes long is made ahead: the namespaces and the mounts. Everything that speaks of the command comes with it, as it is at that
//! moment: the places that must be what the host sees there, the rules, the filter, the limits, the variables, the command itself. The
//! mounts must be those that the command would get now, on the objects that stand there now, and no mount of the host may have come
//! or gone; else the jail is thrown away. What the comparison of names and numbers could miss the inner stage finds when it looks
//! through the finished mounts, before the command begins.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::pipe::PipeFlags;
use zeph_jail::READY;
use zeph_jail::plan::Stage;

use super::aftermath::Aftermath;
use super::explain::RunWalls;
use super::mount::Mount;
use super::own_places::OwnPlaces;
use super::plan::{self, Ends, Numbers, PlanSettings, RC_NUMBER};
use super::private::OpenWatch;
use super::run_setup::{StageReport, Whole};
use super::view::View;
use super::{Guard, Jail, JailError, JailLabel, Job, OpenOutlet, as_user, bare, memory};
use crate::spawn::Launch;

/// How long the inner stage may take to close the doors. On an idle machine it takes half a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);

/// What tells when a mount of the host comes or goes.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The host's end of a jail that waits for its command. Dropping it ends the inner stage, and with it the jail.
#[derive(Debug)]
pub(crate) struct StandingJail {
    shape: MountShape,
    /// Empty until there is a command; the inner stage has it too.
    plan: File,
    /// What the shell reads first, in the same way.
    rc: File,
    /// Where the inner stage hears that both are there.
    go: File,
    told: StageReport,
    group: super::cgroup::Cgroup,
    numbers: Numbers,
    /// Where the host is given the socket of the way out, until there is a command.
    outlet: Option<OwnedFd>,
    /// Has news when a mount of the host has come or gone since it was opened.
    mounts: File,
}

/// The mounts of a view, and the objects of the host that they show or cover. What is copied is compared by its bytes.
#[derive(Debug, PartialEq, Eq)]
struct MountShape {
    mounts: Vec<Mount>,
    objects: Vec<Option<Object>>,
}

/// Which object: the number of its file system, its number there, and when it was made, for numbers come back.
#[derive(Debug, PartialEq, Eq)]
struct Object {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

/// What goes with a command that was let in.
struct Entered {
    aftermath: Aftermath,
    own: OwnPlaces,
    outlet: Option<Box<dyn OpenOutlet>>,
    opened: Option<OpenWatch>,
    walls: RunWalls,
}

impl Jail {
    /// Makes a jail for a command that is not known yet, which will get `files` under their numbers. It stands once what comes back
    /// is started. None where commands run in no full jail, or where their paths are
    /// watched, which begins with the command. Blocks for a few milliseconds.
    ///
    /// Errors: `JailError`.
    pub(crate) fn stand(
        &self,
        mut files: Vec<(OwnedFd, RawFd)>,
    ) -> Result<Option<(Launch, StandingJail)>, JailError> {
        if self.watch.is_some() || self.label() != Ok(JailLabel::Full) {
            return Ok(None);
        }
        let mounts = File::open(MOUNTS).map_err(JailError::system("read the mounts"))?;
        let granted = self.granted.as_ref().map_err(JailError::clone)?;
        // The command looks whether they still are what they were.
        self.system.keep();
        let (view, shape) = as_user(&self.policy, || {
            let roots = granted.now();
            let (_, view) = self.seen_by_me(&roots)?;
            let shape = MountShape::of(&view);
            Ok((view, shape))
        })
        .flatten()?;
        let plan = memory::empty("plan")?;
        let rc = memory::empty("rc")?;
        files.push((clone(&rc)?, RC_NUMBER));
        let ends = Ends::new(self, files)?;
        let (waiting, go) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| JailError::system("make a pipe")(error.into()))?;
        let of_inner = clone(&plan)?;
        let descriptors = [of_inner.as_raw_fd(), waiting.as_raw_fd()];
        let outer = plan::outer(&self.policy, &view, &descriptors)?;
        let mut inherited = ends.inherited;
        inherited.extend(outer.inherited);
        inherited.extend([of_inner, waiting]);
        let launch = Launch {
            program: outer.program,
            arguments: outer.arguments,
            environment: Vec::new(),
            directory: "/".into(),
            inherited,
            input: None,
        };
        let standing = StandingJail {
            shape,
            plan,
            rc,
            go: go.into(),
            told: StageReport::on(ends.status),
            group: ends.group,
            numbers: ends.numbers,
            outlet: ends.outlet,
            mounts,
        };
        Ok(Some((launch, standing)))
    }

    /// Runs `job` in a jail that stands, if it is the one the job would get. Its files are those the jail was made with. Blocks for
    /// a few milliseconds.
    ///
    /// Errors: the jail, to be thrown away: the job did not run, and needs one of its own.
    pub(crate) fn enter(
        &self,
        mut standing: StandingJail,
        job: &Job<'_>,
    ) -> Result<Guard, Box<StandingJail>> {
        match self.try_to_enter(&mut standing, job) {
            Ok(entered) => Ok(Guard {
                told: standing.told,
                whole: Whole::ByTheKernel,
                group: standing.group,
                aftermath: entered.aftermath,
                own: entered.own,
                user: self.policy.user.clone(),
                scratch: None,
                walls: entered.walls,
                outlet: entered.outlet,
                opened: entered.opened,
            }),
            Err(reason) => {
                tracing::debug!(reason, "a jail that was made ahead is thrown away");
                Err(Box::new(standing))
            }
        }
    }

    fn try_to_enter(&self, standing: &mut StandingJail, job: &Job<'_>) -> Result<Entered, String> {
        let told = |error: JailError| error.to_string();
        bare::check(job).map_err(told)?;
        let granted = self.granted.as_ref().map_err(ToString::to_string)?;
        let wanted = job.directory;
        let (directory, survey, view, shape) = as_user(&self.policy, || {
            let roots = granted.now();
            let directory = roots.directory(wanted)?;
            let (survey, view) = self.seen_by_me(&roots)?;
            let shape = MountShape::of(&view);
            Ok((directory, survey, view, shape))
        })
        .flatten()
        .map_err(told)?;
        if shape != standing.shape {
            return Err("the command would see other mounts".to_owned());
        }
        if has_news(&standing.mounts, PollFlags::PRI, Duration::ZERO) {
            return Err("a mount of the host has come or gone".to_owned());
        }
        let opened = self.open_outlet(standing.outlet.take(), standing.numbers.outlet);
        let sockets = plan::sockets(&self.policy, &view);
        let own = plan::own_places(&view, job);
        let about = PlanSettings {
            stage: Stage::Inside,
            sockets,
            directory: &directory,
            places: own.paths(),
            outlet: opened.told,
            watch: None,
        };
        let plan = plan::make(self, job, &view, about, &standing.numbers);
        let rc = plan::closing(job.rc.unwrap_or_default());
        let watch = self.watch_found(&survey).map_err(told)?;
        standing.tell(&plan.encode(), &rc)?;
        Ok(Entered {
            walls: plan::walls(sockets, &view),
            aftermath: Aftermath::new(view, &survey, &self.told),
            own,
            outlet: opened.served,
            opened: watch,
        })
    }
}

impl StandingJail {
    /// Whether its inner stage has ended, or does within `patience`.
    #[cfg(test)]
    pub(crate) fn has_died(&self, patience: Duration) -> bool {
        let end = self.told.awaited();
        end.is_some_and(|end| has_news(end, PollFlags::HUP, patience))
    }

    /// Hands over a plan and what the shell reads first, and waits until every door is closed.
    fn tell(&mut self, plan: &[u8], rc: &[u8]) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        memory::fill(&self.plan, plan).map_err(text)?;
        memory::fill(&self.rc, rc).map_err(text)?;
        (&self.go).write_all(&[READY]).map_err(text)?;
        let has_more = |told: &StageReport| {
            let end = told.awaited();
            end.is_some_and(|end| has_news(end, PollFlags::IN, PATIENCE))
        };
        while self.told.read().is_empty() && has_more(&self.told) {}
        match self.told.read() {
            [READY] => Ok(()),
            reason => Err(String::from_utf8_lossy(reason).trim().to_owned()),
        }
    }
}

impl MountShape {
    fn of(view: &View) -> Self {
        let shown = view.mounts.iter().filter(|mount| !mount.is_of_its_own());
        let objects = shown.map(|mount| Object::at(mount.source()));
        Self {
            objects: objects.collect(),
            mounts: view.mounts.clone(),
        }
    }
}

impl Object {
    fn at(path: &Path) -> Option<Self> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let about = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
        Some(Self {
            device: (about.stx_dev_major, about.stx_dev_minor),
            inode: about.stx_ino,
            born: (about.stx_btime.tv_sec, about.stx_btime.tv_nsec),
        })
    }
}

fn has_news(file: &impl std::os::fd::AsFd, kind: PollFlags, patience: Duration) -> bool {
    let mut watched = [PollFd::new(file, kind)];
    let patience = Timespec::try_from(patience).ok();
    rustix::event::poll(&mut watched, patience.as_ref()).is_ok_and(|n_ready| n_ready > 0)
}

fn clone(file: &File) -> Result<OwnedFd, JailError> {
    let copy = file.try_clone();
    Ok(copy.map_err(JailError::system("share a file"))?.into())
}
