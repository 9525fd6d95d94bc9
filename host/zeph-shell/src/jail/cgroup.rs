//! A group of processes for each run, where the kernel lets the host make one: limits that hold for root too, and an end for
//! everything in it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::policy::JailLimits;

/// Where the groups of this host stand below its own group.
const FOLDER: &str = "zeph";

/// How long the removal of a group is tried while its last processes fade.
const FADING: Duration = Duration::from_millis(250);

/// Where groups can be made. Empty: nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// Directories beneath which a group for a run can be made, one of each hierarchy.
    pub parents: Vec<Parent>,
}

/// A place for groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// The directory.
    pub path: PathBuf,
    /// What can be limited there.
    pub kind: CgroupKind,
}

/// What can be limited in a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CgroupKind {
    /// Version 1: the number of processes.
    Pids,
    /// Version 1: memory.
    Memory,
    /// Version 2: both.
    Unified,
}

impl CgroupKind {
    /// The file that takes in a process that writes `0` to it. The inner stage has one thread, so a thread is as good as a process; and to
    /// move a process, the kernel first waits until every processor has passed through the scheduler, which takes 5 to 10 ms.
    fn entrance(self) -> &'static str {
        match self {
            Self::Pids | Self::Memory => "tasks",
            Self::Unified => "cgroup.procs",
        }
    }
}

impl Cgroups {
    /// Whether the number of processes can be limited.
    pub fn limits_processes(&self) -> bool {
        self.has(CgroupKind::Pids)
    }

    /// Whether memory can be limited.
    pub fn limits_memory(&self) -> bool {
        self.has(CgroupKind::Memory)
    }

    fn has(&self, kind: CgroupKind) -> bool {
        let mut parents = self.parents.iter();
        parents.any(|parent| parent.kind == kind || parent.kind == CgroupKind::Unified)
    }
}

/// Finds the places by making them.
pub(super) fn find() -> Cgroups {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let parents = own.lines().filter_map(parent).collect();
    Cgroups { parents }
}

/// The place for one line of `/proc/self/cgroup`: `number:controllers:path`.
fn parent(line: &str) -> Option<Parent> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, own) = (fields.next()?, fields.next()?);
    let own = own.trim_start_matches('/');
    let (mount, kind) = match controllers {
        "pids" => ("/sys/fs/cgroup/pids", CgroupKind::Pids),
        "memory" => ("/sys/fs/cgroup/memory", CgroupKind::Memory),
        "" => ("/sys/fs/cgroup", CgroupKind::Unified),
        _ => return None,
    };
    let path = Path::new(mount).join(own).join(FOLDER);
    if kind == CgroupKind::Unified {
        delegate(&path)?;
    } else {
        make(&path).ok()?;
    }
    sweep(&path);
    let parent = Parent { path, kind };
    // A trial: a host that can make a group and limit it here can do it again.
    let limits = JailLimits {
        processes: 16,
        memory_bytes: 1 << 26,
        ..JailLimits::NONE
    };
    let trial = || {
        let process = rustix::process::getpid().as_raw_nonzero();
        let name = format!("trial-{process}-{}", uuid::Uuid::new_v4());
        Cgroup::new(std::slice::from_ref(&parent), &name, limits)
    };
    // A second time: a host that does not see the processes of this one may have removed the first, which looked forgotten.
    let group = trial().or_else(|_gone| trial()).ok()?;
    (!group.entrances.is_empty()).then_some(parent)
}

/// Removes the groups of hosts that ended without doing so. Their names tell which process made them.
fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.split('-').nth(1));
        let lives = maker.is_none_or(|maker| Path::new("/proc").join(maker).exists());
        if !lives {
            drop(std::fs::remove_dir(entry.path()));
        }
    }
}

/// Lets groups below `folder` be limited; `None` where that is not ours to decide.
fn delegate(folder: &Path) -> Option<()> {
    // Where version 1 is in use, this is an ordinary directory.
    let above = folder.parent()?;
    std::fs::read_to_string(above.join("cgroup.controllers")).ok()?;
    make(folder).ok()?;
    let offered = std::fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    let has = |name| offered.split_whitespace().any(|one| one == name);
    let delegated = has("pids")
        && has("memory")
        && std::fs::write(folder.join("cgroup.subtree_control"), "+pids +memory").is_ok();
    if !delegated {
        drop(std::fs::remove_dir(folder));
    }
    delegated.then_some(())
}

fn make(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The group of one run, in each hierarchy. Dropping it ends whatever is left in it and removes it.
#[derive(Debug, Default)]
pub(super) struct Cgroup {
    folders: Vec<PathBuf>,
    entrances: Vec<OwnedFd>,
}

impl Cgroup {
    /// Makes a group with limits below each parent.
    ///
    /// Errors: a group cannot be made or limited; what was made is removed.
    pub(super) fn new(parents: &[Parent], name: &str, limits: JailLimits) -> io::Result<Self> {
        let mut group = Self::default();
        for parent in parents {
            let folder = parent.path.join(name);
            std::fs::create_dir(&folder)?;
            group.folders.push(folder.clone());
            limit(&folder, parent.kind, limits)?;
            let entrance = OpenOptions::new()
                .write(true)
                .open(folder.join(parent.kind.entrance()))?;
            group.entrances.push(entrance.into());
        }
        Ok(group)
    }

    /// Descriptors that take a process that writes `0` to them into the group. Can be taken once.
    pub(super) fn take_entrances(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.entrances)
    }

    /// Ends every process in the group.
    pub(super) fn kill(&self) {
        for folder in &self.folders {
            if std::fs::write(folder.join("cgroup.kill"), "1").is_ok() {
                continue;
            }
            for process in members(folder) {
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
    }
}

fn limit(folder: &Path, kind: CgroupKind, limits: JailLimits) -> io::Result<()> {
    let memory = limits.memory_bytes;
    let files: &[(&str, u64)] = match kind {
        CgroupKind::Pids => &[("pids.max", limits.processes)],
        CgroupKind::Memory => &[("memory.limit_in_bytes", memory)],
        CgroupKind::Unified => &[("pids.max", limits.processes), ("memory.max", memory)],
    };
    for (file, value) in files {
        if *value > 0 {
            let mut file = File::options().write(true).open(folder.join(file))?;
            file.write_all(value.to_string().as_bytes())?;
        }
    }
    if memory > 0 {
        // Not every kernel counts what is swapped out.
        let swap = match kind {
            CgroupKind::Pids => return Ok(()),
            CgroupKind::Memory => ("memory.memsw.limit_in_bytes", memory.to_string()),
            CgroupKind::Unified => ("memory.swap.max", "0".to_owned()),
        };
        drop(std::fs::write(folder.join(swap.0), swap.1));
    }
    Ok(())
}

fn members(folder: &Path) -> Vec<rustix::process::Pid> {
    let listed = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let numbers = listed.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(rustix::process::Pid::from_raw).collect()
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.entrances.clear();
        let begun = Instant::now();
        for folder in &self.folders {
            while std::fs::remove_dir(folder).is_err() && folder.exists() {
                if begun.elapsed() > FADING {
                    break;
                }
                self.kill();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
