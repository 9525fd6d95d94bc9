//! Ending a tree of processes so that nothing of it survives.
//!
//! In the full jail the kernel does it: when the first process of a namespace ends, all others are killed. Without namespaces the
//! inner stage of the jail does it, to which all orphans of the command come. Without a jail the tree is found in `/proc`: by
//! descent, by session and group, and by a mark in the environment for what left all three. A process that has removed the mark,
//! its session and its parents too is not found.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::platform;

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_vendor = "apple")]
use apple::{processes, read_process};
#[cfg(target_os = "linux")]
use linux::{processes, read_process};

/// How long killed processes may take to be gone, when they must be looked for.
const SWEEP: Duration = Duration::from_secs(3);

/// Between two looks.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// What belongs to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    /// All of a process namespace, made by the program that was started, which is outside of it and ends with it.
    Namespace,
    /// What descends from the process, which ends all of it when it is asked to. Should it be killed itself, what is left is looked
    /// for like a session.
    Guarded {
        /// `NAME=value`.
        mark: String,
    },
    /// What descends from the process, shares its session or group, or has this entry in its environment.
    Session {
        /// `NAME=value`.
        mark: String,
    },
}

/// The first process of a namespace.
#[derive(Debug)]
pub(crate) struct First {
    pid: Pid,
    /// Becomes readable when all of the namespace is gone.
    pub(crate) process: platform::Process,
}

impl First {
    fn of(process: ProcessStat) -> Option<Self> {
        Some(Self {
            pid: process.pid,
            process: pinned(process)?,
        })
    }

    /// Whether nothing else is left in the namespace: all that lost its parent there is a child of the first process. Its own
    /// end takes milliseconds more, for the mounts go with it, and nobody has to wait for those.
    pub(crate) fn is_alone(&self) -> bool {
        let pid = self.pid.as_raw_pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.is_ok_and(|children| children.trim().is_empty())
    }
}

/// What the system tells of one process.
#[derive(Debug, Clone, Copy)]
struct ProcessStat {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// Tells a process from a later one of the same number.
    started: u64,
    is_dead: bool,
}

impl Tree {
    /// Asks everything in the tree of `root` to end, stopped processes too.
    pub(crate) fn ask(&self, root: Pid) {
        for process in self.members(root) {
            let is_outside = !matches!(self, Self::Session { .. }) && process.pid == root;
            if !is_outside {
                signal(process, Signal::TERM);
                signal(process, Signal::CONT);
            }
        }
    }

    /// The first process of the namespace of `root`. It becomes readable when all of the namespace is gone. Costs as good as
    /// nothing; nothing comes back where the kernel does not list children.
    pub(crate) fn first(&self, root: Pid) -> Option<First> {
        if *self != Self::Namespace {
            return None;
        }
        let pid = root.as_raw_pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let first = children.split_ascii_whitespace().next()?;
        let first = read_process(Pid::from_raw(first.parse().ok()?)?)?;
        (first.parent == pid).then(|| First::of(first))?
    }

    /// The same, where the kernel does not list children: looks at all processes.
    pub(crate) fn look_for_first(&self, root: Pid) -> Option<First> {
        if *self != Self::Namespace {
            return None;
        }
        let is_first = |process: &ProcessStat| process.parent == root.as_raw_pid();
        processes().into_iter().find(is_first).and_then(First::of)
    }

    /// Kills the tree of `root`, which has not been waited for. What comes back becomes readable when all of it is gone.
    pub(crate) fn kill(&self, root: Pid) -> Option<First> {
        match self {
            Self::Namespace => {
                let first = self.first(root).or_else(|| self.look_for_first(root));
                if let Some(first) = &first {
                    let _ = first.process.signal(Signal::KILL);
                }
                let _ = rustix::process::kill_process(root, Signal::KILL);
                first
            }
            Self::Guarded { .. } => {
                let _ = rustix::process::kill_process(root, Signal::TERM);
                None
            }
            Self::Session { .. } => {
                let _ = rustix::process::kill_process(root, Signal::KILL);
                self.sweep(root);
                None
            }
        }
    }

    /// Kills what is left when `root` has ended by itself and has not been waited for.
    pub(crate) fn sweep(&self, root: Pid) {
        if *self == Self::Namespace {
            return;
        }
        let end = Instant::now() + SWEEP;
        while Instant::now() < end {
            // A group dies as one, before any of it can fork again.
            let _ = rustix::process::kill_process_group(root, Signal::KILL);
            let mut alive = self.members(root);
            alive.retain(|process| process.pid != root);
            if alive.is_empty() {
                return;
            }
            let leaders = alive
                .iter()
                .filter(|process| process.group == process.pid.as_raw_pid());
            for leader in leaders {
                let _ = rustix::process::kill_process_group(leader.pid, Signal::KILL);
            }
            for process in alive {
                signal(process, Signal::KILL);
            }
            std::thread::sleep(SWEEP_PAUSE);
        }
        tracing::warn!("some processes of a run could not be ended in time");
    }

    /// The living processes of the tree, `root` first.
    fn members(&self, root: Pid) -> Vec<ProcessStat> {
        let all = processes();
        let root = root.as_raw_pid();
        let own = std::process::id();
        let mut members: HashSet<i32> = HashSet::from([root]);
        for process in &all {
            if self.is_marked(process, root) {
                members.insert(process.pid.as_raw_pid());
            }
        }
        // Children may stand before their parents: repeat until nothing is added. Trees are as deep as they are, not deeper.
        loop {
            let n_before = members.len();
            for process in &all {
                if members.contains(&process.parent) {
                    members.insert(process.pid.as_raw_pid());
                }
            }
            if members.len() == n_before {
                break;
            }
        }
        let mut members: Vec<_> = all
            .into_iter()
            .filter(|process| {
                let pid = process.pid.as_raw_pid();
                let is_own = u32::try_from(pid).is_ok_and(|pid| pid == own);
                members.contains(&pid) && !process.is_dead && !is_own && pid != 1
            })
            .collect();
        members.sort_by_key(|process| process.pid.as_raw_pid() != root);
        members
    }

    fn is_marked(&self, process: &ProcessStat, root: i32) -> bool {
        let (Self::Session { mark } | Self::Guarded { mark }) = self else {
            return false;
        };
        if process.session == root || process.group == root {
            return true;
        }
        let environ = format!("/proc/{}/environ", process.pid.as_raw_pid());
        fs::read(environ).is_ok_and(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
    }
}

/// Sends a signal to exactly this process.
fn signal(process: ProcessStat, signal: Signal) {
    if let Some(process) = pinned(process) {
        // It may have ended meanwhile, which is all that is wanted.
        let _ = process.signal(signal);
    }
}

/// A hold on exactly this process; none when it has ended.
fn pinned(process: ProcessStat) -> Option<platform::Process> {
    let held = platform::Process::hold(process.pid).ok()?;
    let now = read_process(process.pid)?;
    (now.started == process.started).then_some(held)
}
