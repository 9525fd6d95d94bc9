//! The jail of commands: what one in the product's own jail reaches, does and leaves behind.
//!
//! Each probe is a line for bash that prints what it must not get, and a look from outside afterwards. The workspace is a directory
//! of the self-test; limits and protections are those of a host without a configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall, TurnContext};
use zeph_core::category::ErrorCategory;
use zeph_core::failure::ToolFailure;
use zeph_core::git_config::GitUser;
use zeph_core::lifetime::Lifetime;
use zeph_core::policy::{Decision, Policy, SessionFacts, authorise_with};
use zeph_shell::analysis::analyse;
use zeph_shell::hooks::Hooks;
use zeph_shell::jail::{
    EnvironmentPolicy, Jail, JailLabel, JailLimits, JailPolicy, Mode, Network, NoJail,
    OwnDirectories,
};
use zeph_shell::program::{ProgramEnd, ProgramJob, ProgramOutcome};
use zeph_shell::shell::{
    FLOOD_BYTES_MAX, RunControl, Shell, ShellConfig, ShellEnd, ShellSession, ShellWork,
};
use zeph_shell::tools;

use crate::{CheckResult, ProductParts, Wall, hosts, secrets};

/// A secret of the host's environment, by a name that nobody allows.
const SECRET: (&str, &str) = ("AWS_SECRET_ACCESS_KEY", "the-secret-of-the-self-test");

/// Time for a command that ends by itself.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One probe: its name, what it tries, and how.
struct Probe {
    name: &'static str,
    tried: &'static str,
    /// The line, with `PORT`, `HOST` and `MARK` for [`OutsideFiles`].
    line: &'static str,
    /// What it prints when the jail holds.
    expect: &'static str,
    /// What is seen from outside when it does not.
    broken: fn(&OutsideFiles) -> Option<&'static str>,
}

const PROBES: [Probe; 7] = [
    Probe {
        name: "jail: files",
        tried: "reading and making a file beside the workspace of a command, which must work in it",
        line: "cat ../outside/secret; : > ../outside/new; echo kept > inside; cat inside",
        expect: "kept\n",
        broken: |outside| outside.has("outside/new").then_some("a file was made outside"),
    },
    Probe {
        name: "jail: network",
        tried: "connecting to a server of the host on loopback",
        line: "exec 3<>/dev/tcp/127.0.0.1/PORT && echo connected",
        expect: "",
        broken: |outside| outside.was_reached().then_some("it was connected to"),
    },
    Probe {
        name: "jail: system calls and privileges",
        tried: "running without a filter, with a capability, or with set-user-ID programs",
        line: "while read -r name value; do
                   case $name in NoNewPrivs: | Seccomp: | CapEff: | CapPrm:) echo $name $value;; esac
               done </proc/self/status",
        expect: "CapPrm: 0000000000000000\nCapEff: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n",
        broken: |_| None,
    },
    Probe {
        name: "jail: processes of the host",
        tried: "signalling the host's process and reading its environment",
        line: "kill -0 HOST && echo signalled; cat /proc/HOST/environ",
        expect: "",
        broken: |_| None,
    },
    Probe {
        name: "jail: processes left behind",
        tried: "leaving processes behind, in the session and out of it",
        line: "setsid -f sleep MARK; sleep MARK & echo begun",
        expect: "begun\n",
        broken: |outside| outside.is_running().then_some("a process is left"),
    },
    Probe {
        name: "jail: environment",
        tried: "reading a credential from the host's environment",
        line: "echo \"${AWS_SECRET_ACCESS_KEY-none}\"",
        expect: "none\n",
        broken: |_| None,
    },
    Probe {
        name: "jail: what programs run by themselves",
        tried: "writing a hook of the repository",
        line: "echo true >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
        expect: "",
        broken: |outside| {
            outside
                .has("workspace/.git/hooks/pre-commit")
                .then_some("it stayed there")
        },
    },
];

/// Tried with a jail that has a way out to hosts.
const HOSTS: Probe = Probe {
    name: "jail: hosts",
    tried: "reaching hosts that are not allowed, addresses, this machine and name servers by the way out to an allowed host",
    line: hosts::LINE,
    expect: hosts::EXPECT,
    broken: |outside| {
        outside
            .was_reached()
            .then_some("a server of the host was connected to")
    },
};

/// What a command must not touch.
struct OutsideFiles {
    directory: tempfile::TempDir,
    server: TcpListener,
    mark: String,
}

impl OutsideFiles {
    fn new() -> io::Result<Self> {
        // Not in `/tmp`, of which a command has its own.
        let directory = tempfile::Builder::new()
            .prefix("zeph-selftest-")
            .tempdir_in("/var/tmp")?;
        fs::create_dir_all(directory.path().join("workspace/.git/hooks"))?;
        fs::create_dir(directory.path().join("outside"))?;
        fs::write(directory.path().join("outside/secret"), SECRET.1)?;
        let server = TcpListener::bind("127.0.0.1:0")?;
        server.set_nonblocking(true)?;
        let mark = format!("86400.{}", uuid::Uuid::new_v4().as_u128());
        Ok(Self {
            directory,
            server,
            mark,
        })
    }

    fn has(&self, path: &str) -> bool {
        self.directory.path().join(path).exists()
    }

    fn was_reached(&self) -> bool {
        self.server.accept().is_ok()
    }

    /// Whether a process has the mark among its arguments.
    fn is_running(&self) -> bool {
        let is_it = |entry: fs::DirEntry| {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&self.mark)
        };
        let processes = fs::read_dir("/proc").into_iter().flatten();
        processes.filter_map(Result::ok).any(is_it)
    }

    /// The text of a probe with what it stands for.
    fn filled(&self, text: &str) -> String {
        let port = self.server.local_addr().map_or(0, |address| address.port());
        text.replace("PORT", &port.to_string())
            .replace("HOST", &std::process::id().to_string())
            .replace("MARK", &self.mark)
    }
}

/// A shell whose commands run in the jail, and what lies around it.
pub(crate) struct JailLab {
    outside: OutsideFiles,
    shell: Shell,
    session: ShellSession,
    label: JailLabel,
}

/// Tries the jail and tells about each wall as it is done.
pub(crate) async fn walls(
    search_path: &[PathBuf],
    parts: &ProductParts,
    mut tell: impl FnMut(Wall),
) {
    let lab = JailLab::new(search_path, |policy| Ok(Jail::new(policy)));
    let of_hosts = JailLab::new(search_path, |policy| hosts::jail(policy, parts));
    let of_hosts = of_hosts.and_then(JailLab::in_full);
    let probes = PROBES.iter().map(|probe| (probe, &lab));
    for (probe, lab) in probes.chain([(&HOSTS, &of_hosts)]) {
        let started = Instant::now();
        let verdict = match lab {
            Ok(lab) => lab.verdict(probe).await,
            Err(verdict) => verdict.clone(),
        };
        tell(Wall {
            name: probe.name,
            tried: probe.tried,
            verdict,
            duration: started.elapsed(),
        });
    }
    let started = Instant::now();
    tell(Wall {
        name: secrets::OF_COMMANDS,
        tried: "looking for a secret that its requests get: in variables, files, processes, and in answers that repeat it",
        verdict: secrets::of_commands(search_path, parts).await,
        duration: started.elapsed(),
    });
    let started = Instant::now();
    let verdict = match &lab {
        Ok(lab) => lab.program().await,
        Err(verdict) => verdict.clone(),
    };
    tell(Wall {
        name: "jail: programs of plugins",
        tried: "running on after the time limit with processes outside the session, writing where the call may only read",
        verdict,
        duration: started.elapsed(),
    });
    let started = Instant::now();
    let verdict = match &lab {
        Ok(lab) => lab.time_limit().await,
        Err(verdict) => verdict.clone(),
    };
    tell(Wall {
        name: "jail: time",
        tried: "running on after the time limit, deaf to signals",
        verdict,
        duration: started.elapsed(),
    });
}

impl JailLab {
    /// Errors: why nothing can be tried here.
    pub(crate) fn new(
        search_path: &[PathBuf],
        jail: impl FnOnce(JailPolicy) -> io::Result<Jail>,
    ) -> Result<Self, CheckResult> {
        let no_lab =
            |error: io::Error| CheckResult::unavailable(format!("nothing to try it on: {error}"));
        let outside = OutsideFiles::new().map_err(no_lab)?;
        let workspace = outside.directory.path().join("workspace");
        let workspace = workspace.canonicalize().map_err(no_lab)?;
        let jail = jail(policy(workspace, search_path)).map_err(no_lab)?;
        let no_jail =
            |missing: NoJail| CheckResult::unavailable(format!("no command runs: {missing}"));
        let label = jail.label().map_err(no_jail)?;
        let shell = Shell::new(config(), Arc::new(jail)).map_err(no_lab)?;
        let turn = TurnContext {
            turn_id: outside.mark.clone(),
            goal_id: None,
            skill_name: None,
            timestamp_ms: 0,
        };
        let session = ShellSession::new(&shell, turn);
        Ok(Self {
            outside,
            shell,
            session,
            label,
        })
    }

    /// Errors: commands have no network of their own here.
    pub(crate) fn in_full(self) -> Result<Self, CheckResult> {
        match self.label {
            JailLabel::Full => Ok(self),
            _ => Err(CheckResult::unavailable(
                "commands have no network of their own here, so none that may reach hosts runs",
            )),
        }
    }

    async fn verdict(&self, probe: &Probe) -> CheckResult {
        let end = match self.bash(&self.outside.filled(probe.line), TIMEOUT).await {
            Ok(end) => end,
            Err(failure) => return CheckResult::broken(failure.message),
        };
        if let Some(why) = (probe.broken)(&self.outside) {
            return CheckResult::broken(why);
        }
        let expect = self.outside.filled(probe.expect);
        match stdout(&end) {
            Some(shown) if shown == expect => CheckResult::Holds,
            Some(shown) => {
                CheckResult::broken(format!("it printed {shown:?} instead of {expect:?}"))
            }
            None => did_not_run(&end),
        }
    }

    /// A program as a call that may only read runs it.
    async fn program(&self) -> CheckResult {
        let base = self.shell.jail_policy();
        let jail = Jail::new(JailPolicy {
            allow_read: Some(base.roots.clone()),
            allow_write: Some(Vec::new()),
            ..base.clone()
        });
        let script =
            "trap '' TERM; echo x > written; setsid -f sleep MARK; while :; do sleep MARK; done";
        let job = ProgramJob {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.replace("MARK", &self.outside.mark)],
            directory: base.roots.first().cloned().unwrap_or_default(),
            input: Vec::new(),
            timeout: Duration::from_millis(500),
        };
        let ended = self
            .shell
            .run_program(Arc::new(jail), job, std::future::pending());
        match ended.await {
            Err(fault) => CheckResult::broken(fault.to_string()),
            Ok(_) if self.outside.is_running() => CheckResult::broken("a process is left"),
            Ok(_) if self.outside.has("workspace/written") => {
                CheckResult::broken("it wrote a file")
            }
            Ok(ProgramOutcome {
                end: ProgramEnd::TimedOut,
                ..
            }) => CheckResult::Holds,
            Ok(_) => CheckResult::broken("it was not ended"),
        }
    }

    async fn time_limit(&self) -> CheckResult {
        let line = "trap '' TERM INT HUP; while :; do :; done";
        match self.bash(line, Duration::from_secs(1)).await {
            Ok(ShellEnd {
                result: Err(failure),
                ..
            }) if failure.category == ErrorCategory::Timeout => CheckResult::Holds,
            Ok(end) if end.label.is_none() => did_not_run(&end),
            Ok(_) => CheckResult::broken("it was not ended"),
            Err(failure) => CheckResult::broken(failure.message),
        }
    }

    /// What a command prints.
    ///
    /// Errors: it did not run.
    pub(crate) async fn printed(&self, line: &str) -> Result<String, CheckResult> {
        let line = self.outside.filled(line);
        match self.bash(&line, TIMEOUT).await {
            Ok(end) => stdout(&end).ok_or_else(|| did_not_run(&end)),
            Err(failure) => Err(CheckResult::broken(failure.message)),
        }
    }

    async fn bash(&self, line: &str, timeout: Duration) -> Result<ShellEnd, ToolFailure> {
        let tool = tools::tools()
            .into_iter()
            .find(|tool| tool.name.as_str() == tools::BASH);
        let Some(tool) = tool else {
            return Err(ToolFailure::new(
                ErrorCategory::ServerError,
                zeph_core::category::ErrorPhase::Setup,
                "there is no `bash`",
            ));
        };
        let arguments = json!({ "command": line, "timeout": timeout.as_secs() });
        let arguments = tool.parameters.read(arguments)?;
        let (work, text) = ShellWork::read(&tool, &arguments.values)?;
        let call = ResolvedCall {
            frame: CallFrame::alone(),
            arguments,
            tool: tool.into(),
            paths: Vec::new(),
            command: text.as_deref().map(analyse),
            can_change: true,
            files: FileFacts::default(),
        };
        let facts = SessionFacts {
            approval: Some(Lifetime::Once),
            ..SessionFacts::default()
        };
        match authorise_with(&Policy::default(), &facts, call, work) {
            Decision::Allow(call) => Ok(self
                .shell
                .call(call, &self.session, RunControl::default())
                .await),
            Decision::Ask(refusal) | Decision::Deny(refusal) => Err(refusal.failure),
        }
    }
}

fn did_not_run(end: &ShellEnd) -> CheckResult {
    let why = end.result.as_ref().err().map(|failure| &failure.message);
    CheckResult::broken(format!(
        "the command did not run: {}",
        why.map_or("", |why| why)
    ))
}

/// What the command printed on its first stream. None when there was no command.
fn stdout(end: &ShellEnd) -> Option<String> {
    let raw = end.result.as_ref().ok().or(end.partial.as_ref())?;
    let shown = raw.structured.as_ref()?.get("stdout")?.as_str()?;
    Some(shown.to_owned())
}

fn policy(workspace: PathBuf, search_path: &[PathBuf]) -> JailPolicy {
    let path = std::env::join_paths(search_path).unwrap_or_default();
    let host = [
        ("PATH".to_owned(), path.to_string_lossy().into_owned()),
        (SECRET.0.to_owned(), SECRET.1.to_owned()),
    ];
    JailPolicy {
        roots: vec![workspace],
        spellings: Vec::new(),
        allow_read: None,
        allow_write: None,
        own: OwnDirectories::default(),
        network: Network::Loopback,
        hidden: Vec::new(),
        protected: Vec::new(),
        limits: JailLimits {
            processes: 256,
            memory_bytes: 0,
            file_bytes: 1 << 20,
            open_files: 256,
            tmp_bytes: 1 << 20,
            shm_bytes: 1 << 20,
        },
        environment: EnvironmentPolicy {
            host: BTreeMap::from(host),
            ..EnvironmentPolicy::default()
        },
        home: None,
        git_user: GitUser::default(),
        cache: None,
        records: None,
        mode: Mode::Enforced,
        private: Arc::default(),
        user: None,
    }
}

fn config() -> ShellConfig {
    ShellConfig {
        timeout: TIMEOUT,
        timeout_max: TIMEOUT,
        background_timeout: TIMEOUT,
        background_runs_max: 1,
        output_bytes_max: 1 << 20,
        flood_bytes_max: FLOOD_BYTES_MAX,
        enable_execution_context: false,
        hooks: Hooks::default(),
    }
}
