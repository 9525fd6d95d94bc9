//! Jails that are made ahead of their command: what happens between the two, and that a command cannot tell.

use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

use super::super::*;
use super::harness::{self, End, Room};
use super::swapped::{self, PROBE, SWAPS};
use crate::spawn::{Child, Spawner};

/// Commands one after the other, each of which has the jail of the next one made beside it, as in a session.
struct Series {
    jail: Jail,
    spawner: Spawner,
    next: Option<(Child, StandingJail)>,
    n_entered: usize,
}

impl Series {
    fn new(policy: JailPolicy) -> Self {
        Self::in_jail(Jail::new(policy))
    }

    fn in_jail(jail: Jail) -> Self {
        let mut series = Self {
            jail,
            spawner: Spawner::new(None).unwrap(),
            next: None,
            n_entered: 0,
        };
        series.next = series.stand();
        series
    }

    fn stand(&self) -> Option<(Child, StandingJail)> {
        let (launch, standing) = self.jail.stand(Vec::new()).ok()??;
        Some((self.spawner.spawn(launch).unwrap(), standing))
    }

    /// The inner stage of the jail that waits, which has all its mounts then. Waits until it begins.
    fn inner_stage(&self) -> Option<Pid> {
        let (child, _) = self.next.as_ref()?;
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if let Some(inner) = inner_stage_of(child.pid) {
                return Some(inner);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// Runs it in the jail that waits, or in one of its own.
    fn run(&mut self, directory: &Path, script: &str) -> Result<End, JailError> {
        let (waiting, next) = (self.next.take(), self.stand());
        self.next = next;
        let variables = BTreeMap::new();
        let arguments: Vec<OsString> = vec!["-c".into(), script.into()];
        let job = Job {
            program: Path::new("/bin/bash"),
            arguments: &arguments,
            directory,
            variables: &variables,
            files: Vec::new(),
            rc: None,
            made: None,
        };
        if let Some((child, standing)) = waiting {
            match self.jail.enter(standing, &job) {
                Ok(guard) => {
                    self.n_entered += 1;
                    return Ok(end_of(child, guard));
                }
                Err(standing) => thrown_away(child, *standing),
            }
        }
        Ok(harness::finish(self.jail.prepare(job)?))
    }

    fn told(&mut self, room: &Room, script: &str) -> String {
        match self.run(&room.work, script) {
            Ok(end) => format!("{}{:?}", end.stdout, end.findings),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Series {
    fn drop(&mut self) {
        if let Some((child, standing)) = self.next.take() {
            thrown_away(child, standing);
        }
    }
}

fn thrown_away(child: Child, standing: StandingJail) {
    let _ = child.process.signal(Signal::KILL);
    let _ = wait(&child);
    drop(standing);
}

/// Whether a process below `parent` runs from a file that has no name: the inner stage.
fn inner_stage_of(parent: Pid) -> Option<Pid> {
    let parent = parent.as_raw_pid();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    children.ok()?.split_whitespace().find_map(|child| {
        let command = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let child = Pid::from_raw(child.parse().unwrap())?;
        let is_inner = command.starts_with(b"/proc/self/fd/");
        is_inner.then_some(child).or_else(|| inner_stage_of(child))
    })
}

fn wait(child: &Child) -> Option<WaitIdStatus> {
    rustix::process::waitid(WaitId::Pid(child.pid), WaitIdOptions::EXITED).unwrap()
}

fn end_of(child: Child, mut guard: Guard) -> End {
    let status = wait(&child);
    let read = |file: OwnedFd| {
        rustix::io::ioctl_fionbio(&file, false).unwrap();
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).unwrap();
        text
    };
    End {
        code: status.and_then(|status| status.exit_status()),
        stdout: read(child.stdout),
        stderr: read(child.stderr),
        start: guard.start(),
        private_files: guard.private_files(),
        findings: guard.finish(),
    }
}

#[test]
fn a_command_that_swaps_a_named_directory_gets_nothing_by_a_jail_made_ahead() {
    for swap in SWAPS {
        for policy in swapped::N_POLICIES {
            let room = swapped::room();
            let before = swapped::outside(&room);
            let mut series = Series::new(swapped::policies(&room).swap_remove(policy));
            for script in [swap, PROBE, swap, PROBE] {
                let told = series.told(&room, script);
                assert!(!told.contains("hush"), "{swap} under {policy}: {told}");
            }
            assert_eq!(swapped::outside(&room), before, "{swap} under {policy}");
        }
    }
}

#[test]
fn a_named_directory_that_somebody_swaps_is_not_given_by_a_jail_made_ahead() {
    for swap in &SWAPS[..8] {
        for policy in swapped::N_POLICIES {
            let room = swapped::room();
            let before = swapped::outside(&room);
            let mut series = Series::new(swapped::policies(&room).swap_remove(policy));
            room.host(&format!("({swap}) 2>/dev/null; true"));
            let told = series.told(&room, PROBE);
            assert!(!told.contains("hush"), "{swap} under {policy}: {told}");
            assert_eq!(swapped::outside(&room), before, "{swap} under {policy}");
        }
    }
}

/// Whatever changes between the making and the command, the command ends as in a jail that was made after the change.
#[test]
fn what_changed_since_is_in_the_jail_of_the_command() {
    const CHANGES: [&str; 15] = [
        "true",
        "echo x > .envrc",
        "mkdir -p sub/.git/hooks && echo '[core]' > sub/.git/config && echo ref: refs/heads/main > sub/.git/HEAD && mkdir sub/.git/objects sub/.git/refs",
        "git init -q .; rm -rf .git/hooks; mkdir .git/hooks",
        "cp known/.git/config c && mv c known/.git/config",
        "rm -rf known/.git/hooks && mkdir known/.git/hooks",
        "mv key other && echo hush > key",
        "rm key && echo hush > key",
        "ln key again && rm key && mv again key",
        "mv dir gone && mkdir dir && echo hush > dir/in",
        "rm -rf dir && mkdir dir && echo hush > dir/in",
        "rm fixed && echo fine > fixed",
        "ln fixed again && rm fixed && mv again fixed",
        "echo other > ../outside/other && ln ../outside/other linked",
        "echo '[user]' > ../outside/home/.gitconfig; mkdir -p ../outside/home/.cargo/bin; echo echo tool > ../outside/home/.cargo/bin/tool; chmod +x ../outside/home/.cargo/bin/tool",
    ];
    const LOOK: &str = "cat ~/.gitconfig; tool=~/.cargo/bin/tool; $tool; grep -rh hush . ; for f in .envrc sub/.git/config sub/.git/hooks/x .git/hooks/x known/.git/config known/.git/hooks/x fixed linked; do echo evil >> $f && echo $f written; done 2>/dev/null; ls -A . dir";
    let made = || {
        let mut room = Room::new();
        room.host("git init -q known && echo hush > key && mkdir dir && echo hush > dir/in && echo fine > fixed && mkdir ../outside/home");
        room.policy.hidden = vec![room.work.join("key"), room.work.join("dir")];
        room.policy.protected = vec![room.work.join("fixed")];
        room.policy.home = Some(room.outside.join("home"));
        room
    };
    let mut n_entered = 0;
    for change in CHANGES {
        let (fresh, ahead) = (made(), made());
        // Both know what stood there before.
        let jail = fresh.jail();
        let mut series = Series::new(ahead.policy.clone());
        // What removes a place of its mounts while they are made would have it back.
        assert!(series.inner_stage().is_some());
        for room in [&fresh, &ahead] {
            room.host(change);
        }
        let expect = harness::run(&jail, &fresh.work, LOOK);
        let end = series.run(&ahead.work, LOOK).unwrap();
        assert!(!end.stdout.contains("hush"), "{change}: {end:#?}");
        assert_eq!(end.stdout, expect.stdout, "{change}: {end:#?}");
        let texts = |end: &End, room: &Room| -> Vec<String> {
            let work = room.work.display().to_string();
            let texts = end.findings.iter();
            texts.map(|one| one.text.replace(&work, "")).collect()
        };
        assert_eq!(texts(&end, &ahead), texts(&expect, &fresh), "{change}");
        n_entered += series.n_entered;
        let look = "cat key other again dir/in gone/in fixed 2>/dev/null; true";
        assert_eq!(ahead.host(look), fresh.host(look), "{change}");
    }
    assert!(n_entered < CHANGES.len() / 2, "{n_entered}");
}

#[test]
fn each_command_of_a_session_is_watched() {
    let room = Room::new();
    room.host("mkdir used; echo x > used/file");
    let watch = PathWatch::of_used();
    let mut series = Series::in_jail(room.jail().with_watch(watch.clone()));
    for n_before in 0..3 {
        let end = series.run(&room.work, "cat used/file").unwrap();
        assert_eq!(end.stdout, "x\n", "{end:#?}");
        let used = watch.take_used();
        let is_told = used.iter().any(|(path, _)| path.ends_with("used"));
        assert!(is_told, "after {n_before}: {used:?}");
    }
}

#[test]
fn a_command_cannot_tell_that_its_jail_was_made_ahead() {
    let room = Room::new();
    room.host("git init -q . && mkdir sub && echo x > sub/file");
    let looks = [
        "env | sort; pwd; ulimit -a; umask; id; hostname; tty",
        "sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/(shared|master):[0-9]+//' /proc/self/mountinfo",
        "grep -E 'Cap|NoNew|Seccomp|Groups' /proc/self/status; cat /proc/self/uid_map; ls -l /proc/self/fd | wc -l",
        "ls -lA --time-style=+ / /run /etc /dev ~ | sed -E 's/^(total|d[^ ]*) +[0-9]+//'; ls /proc >/tmp/processes; grep '^[0-9]' /tmp/processes; readlink /proc/self/ns/* | wc -l",
        "echo x > new; echo x > .git/config; echo x > .git/hooks/x; cat ../outside/secret; mount -t tmpfs none /mnt; exit 7",
    ];
    let fresh = room.jail();
    let mut series = Series::new(room.policy.clone());
    for look in looks {
        let expect = harness::run(&fresh, &room.work, look);
        let end = series.run(&room.work, look).unwrap();
        assert_eq!(
            (end.code, &end.stdout, &end.stderr),
            (expect.code, &expect.stdout, &expect.stderr),
            "{look}"
        );
    }
    assert_eq!(series.n_entered, looks.len());
}

#[test]
fn a_jail_that_died_is_replaced() {
    let room = Room::new();
    let mut series = Series::new(room.policy.clone());
    let inner = series.inner_stage().unwrap();
    let (child, standing) = series.next.take().unwrap();
    // The inner stage, not the process that watches it: bubblewrap may not have tied the one to the other yet.
    rustix::process::kill_process(inner, Signal::KILL).unwrap();
    assert!(standing.has_died(Duration::from_secs(20)));
    series.next = Some((child, standing));
    for _ in 0..2 {
        let end = series.run(&room.work, "echo here").unwrap();
        assert_eq!((end.code, end.stdout.as_str()), (Some(0), "here\n"));
    }
    assert_eq!(series.n_entered, 1);
}

/// A job in another directory, a directory that is gone, one outside.
#[test]
fn the_directory_is_that_of_the_command() {
    let room = Room::new();
    room.host("mkdir sub");
    let mut series = Series::new(room.policy.clone());
    let end = series.run(&room.work.join("sub"), "pwd").unwrap();
    let sub = format!("{}/sub\n", room.work.display());
    assert_eq!((end.code, end.stdout), (Some(0), sub));
    room.host("rmdir sub");
    assert!(series.run(&room.work.join("sub"), "pwd").is_err());
    assert!(series.run(&room.outside, "pwd").is_err());
    let end = series.run(&room.work, "pwd").unwrap();
    assert_eq!(end.code, Some(0), "{end:#?}");
}
