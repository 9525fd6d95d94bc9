//! Runs a command line in a jail and waits for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use rustix::io::FdFlags;
use tempfile::TempDir;
use zeph_core::execution::PrivateFile;
use zeph_core::git_config::GitUser;

use super::super::*;
use crate::left_out::leave_out;

/// A workspace, with a place outside beside it.
pub(crate) struct Room {
    _folder: TempDir,
    pub(crate) work: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) policy: JailPolicy,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) start: Start,
    pub(crate) private_files: Vec<PrivateFile>,
    pub(crate) findings: Vec<AftermathFinding>,
}

impl Room {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("jail")
            .tempdir_in("/var/tmp")
            .unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (work, outside) = (base.join("work"), base.join("outside"));
        std::fs::create_dir(&work).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "hush\n").unwrap();
        let policy = policy(&work);
        Self {
            _folder: folder,
            work,
            outside,
            policy,
        }
    }

    pub(crate) fn jail(&self) -> Jail {
        Jail::new(self.policy.clone())
    }

    pub(crate) fn run(&self, script: &str) -> End {
        run(&self.jail(), &self.work, script)
    }

    /// Runs it and expects it to end well, with this output.
    #[track_caller]
    pub(crate) fn check(&self, script: &str, expect: &str) {
        let end = self.run(script);
        assert_eq!(end.start, Start::Ran, "{script}: {end:#?}");
        assert_eq!(
            (end.code, end.stdout.as_str()),
            (Some(0), expect),
            "{script}: {end:#?}"
        );
    }

    /// Runs something unjailed in the workspace.
    pub(crate) fn host(&self, script: &str) -> String {
        let output = bash(script).current_dir(&self.work).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn policy(work: &Path) -> JailPolicy {
    JailPolicy {
        roots: vec![work.to_owned()],
        spellings: Vec::new(),
        allow_read: None,
        allow_write: None,
        own: OwnDirectories::default(),
        network: Network::Loopback,
        hidden: Vec::new(),
        protected: Vec::new(),
        limits: JailLimits {
            processes: 128,
            memory_bytes: 1 << 30,
            file_bytes: 1 << 30,
            open_files: 1024,
            tmp_bytes: 64 << 20,
            shm_bytes: 16 << 20,
        },
        environment: EnvironmentPolicy {
            host: host_environment(),
            ..EnvironmentPolicy::default()
        },
        home: host_environment().get("HOME").map(PathBuf::from),
        git_user: GitUser::default(),
        cache: None,
        records: None,
        mode: Mode::Enforced,
        private: Arc::default(),
        user: None,
    }
}

fn host_environment() -> BTreeMap<String, String> {
    std::env::vars().collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the jail from outside"
)]
pub(crate) fn bash(script: &str) -> Command {
    let mut command = Command::new("/bin/bash");
    command.args(["-c", script]);
    command
}

pub(crate) fn run(jail: &Jail, directory: &Path, script: &str) -> End {
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
    finish(jail.prepare(job).unwrap())
}

/// One start at a time: descriptors are inheritable meanwhile.
static STARTING: Mutex<()> = Mutex::new(());

#[expect(
    clippy::disallowed_methods,
    reason = "tests start what the jail prepared"
)]
pub(crate) fn finish(prepared: PreparedRun) -> End {
    let mut guard = prepared.guard;
    let mut command = Command::new(&prepared.program);
    command
        .args(&prepared.arguments)
        .env_clear()
        .envs(prepared.environment)
        .current_dir(&prepared.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = {
        let _one = STARTING
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for file in &prepared.inherited {
            rustix::io::fcntl_setfd(file, FdFlags::empty()).unwrap();
        }
        let child = command.spawn().unwrap();
        drop(prepared.inherited);
        child
    };
    let output = child.wait_with_output().unwrap();
    End {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        start: guard.start(),
        private_files: guard.private_files(),
        findings: guard.finish(),
    }
}

/// Where groups of processes are made: the host of an ordinary user may have no such place.
pub(crate) fn cgroup_parents() -> Vec<cgroup::Parent> {
    let parents = Jail::support().cgroups.parents.clone();
    match rustix::process::geteuid().is_root() {
        true => assert!(!parents.is_empty(), "there are no control groups"),
        false if parents.is_empty() => leave_out("no control groups are delegated to this user"),
        false => {}
    }
    parents
}
