use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall, TurnContext};
use zeph_core::category::ErrorCategory;
use zeph_core::exit::CommandExit;
use zeph_core::git_config::GitUser;
use zeph_core::lifetime::Lifetime;
use zeph_core::output::RawOutput;
use zeph_core::policy::{AuthorizedCall, Decision, Policy, SessionFacts, authorise_with};

use super::{
    FLOOD_BYTES_MAX, RunControl, Shell, ShellConfig, ShellEnd, ShellSession, ShellState, ShellWork,
    job,
};
use crate::analysis::analyse;
use crate::hooks::{ChangedFiles, Hooks, OnFailure, ShellHook};
use crate::jail::{
    EnvironmentPolicy, Guard, Jail, JailError, JailLabel, JailLimits, JailPolicy, Job, Mode,
    Network, OwnDirectories,
};
use crate::run::{OutputListener, StreamKind};
use crate::spawn::{Launch, Spawner};
use crate::tools;

mod real;

/// A shell over a directory of its own, without the real jail: what the jail does is tested there.
struct Lab {
    directory: tempfile::TempDir,
    shell: Shell,
    session: ShellSession,
}

fn config() -> ShellConfig {
    ShellConfig {
        timeout: Duration::from_secs(60),
        timeout_max: Duration::from_secs(100),
        background_timeout: Duration::from_secs(60),
        background_runs_max: 2,
        output_bytes_max: 1024 * 1024,
        flood_bytes_max: FLOOD_BYTES_MAX,
        enable_execution_context: true,
        hooks: Hooks::default(),
    }
}

fn turn(id: &str) -> TurnContext {
    TurnContext {
        turn_id: id.to_owned(),
        goal_id: Some("the goal".to_owned()),
        skill_name: None,
        timestamp_ms: 5,
    }
}

/// A namespace around the command, as in the full jail, and nothing else of that.
fn spaced(jail: &Jail, job: Job<'_>) -> Result<(Launch, JailLabel, Option<Guard>), JailError> {
    let (mut launch, _, guard) = job::in_the_jail(jail, job)?;
    let words = "--unshare-all --die-with-parent --new-session --bind / / --dev /dev --proc /proc /bin/bash";
    let mut arguments: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    arguments.append(&mut launch.arguments);
    launch.program = "/usr/bin/bwrap".into();
    launch.arguments = arguments;
    Ok((launch, JailLabel::Full, guard))
}

fn policy(root: PathBuf) -> JailPolicy {
    JailPolicy {
        roots: vec![root],
        spellings: Vec::new(),
        allow_read: None,
        allow_write: None,
        own: OwnDirectories::default(),
        network: Network::Loopback,
        hidden: Vec::new(),
        protected: Vec::new(),
        limits: JailLimits {
            processes: 0,
            memory_bytes: 0,
            file_bytes: 0,
            open_files: 0,
            tmp_bytes: 0,
            shm_bytes: 0,
        },
        environment: EnvironmentPolicy {
            host: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
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

impl Lab {
    fn new() -> Self {
        Self::with(config(), job::in_the_jail)
    }

    fn with(config: ShellConfig, prepare: job::Prepare) -> Self {
        let disabled = |policy| {
            Jail::new(JailPolicy {
                mode: Mode::Disabled,
                user: None,
                ..policy
            })
        };
        Self::jailed(config, prepare, disabled)
    }

    fn jailed(
        config: ShellConfig,
        prepare: job::Prepare,
        jail: impl FnOnce(JailPolicy) -> Jail,
    ) -> Self {
        // Not in `/tmp`, which the jail has its own of.
        let directory = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        let root = directory.path().canonicalize().expect("it exists");
        let shell = Shell(Arc::new(ShellState {
            config,
            jail: Arc::new(jail(policy(root))),
            spawner: Arc::new(Spawner::new(None).expect("a thread can be started")),
            prepare,
            first: std::sync::Mutex::default(),
            seats: super::ahead::Seats::default(),
            n_background: std::sync::atomic::AtomicUsize::new(0),
        }));
        let session = ShellSession::new(&shell, turn("one"));
        Self {
            directory,
            shell,
            session,
        }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it exists")
    }

    async fn call(&self, tool: &str, arguments: Value, control: RunControl) -> ShellEnd {
        self.shell
            .call(authorized(tool, arguments), &self.session, control)
            .await
    }

    async fn bash(&self, command: &str) -> ShellEnd {
        self.call("bash", json!({ "command": command }), RunControl::default())
            .await
    }

    async fn text(&self, command: &str) -> String {
        text(&self.bash(command).await)
    }

    async fn background(&self, command: &str) -> ShellEnd {
        let arguments = json!({ "command": command, "background": true });
        self.call("bash", arguments, RunControl::default()).await
    }

    /// Waits until nothing runs in the background.
    async fn all_ended(&self) {
        let wait = async {
            while self
                .call("list_runs", json!({}), RunControl::default())
                .await
                .is_running()
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .expect("they end");
    }
}

impl ShellEnd {
    fn is_running(&self) -> bool {
        text(self).contains("running for")
    }

    fn category(&self) -> Option<ErrorCategory> {
        self.result.as_ref().err().map(|failure| failure.category)
    }
}

/// What a command printed that ran to its end, whatever its exit code.
fn output(end: &ShellEnd) -> &RawOutput {
    let failed = end.exit.and(end.partial.as_ref());
    end.result.as_ref().ok().or(failed).expect("it ran")
}

fn text(end: &ShellEnd) -> String {
    output(end).to_text()
}

fn authorized(tool: &str, arguments: Value) -> AuthorizedCall<ShellWork> {
    let found = tools::tools()
        .into_iter()
        .find(|known| known.name.as_str() == tool);
    let tool = found.expect("there is one of this name");
    let arguments = tool.parameters.read(arguments).expect("they fit");
    let (work, text) = ShellWork::read(&tool, &arguments.values).expect("they can be run");
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
        Decision::Allow(call) => call,
        other => panic!("an approved call runs: {other:?}"),
    }
}

#[tokio::test]
async fn a_command_that_fails_is_a_failed_call_with_its_whole_output() {
    let lab = Lab::with(config(), spaced);
    let check = async |command: &str, text_expected: &str, exit: CommandExit| {
        let end = lab.bash(command).await;
        assert_eq!(text(&end), text_expected, "{command}");
        assert_eq!(end.exit, Some(exit), "{command}");
        let envelope = output(&end).structured.as_ref().expect("an envelope");
        assert_eq!(envelope["exit_code"], json!(exit.code()), "{command}");
        assert_eq!(envelope.get("sandbox"), None);
        assert_eq!(end.result.err(), exit.failure(), "{command}");
    };
    use CommandExit::{Code, Signal};
    check("true", "", Code(0)).await;
    check("echo a", "a\n", Code(0)).await;
    check("false", "[exit code 1]", Code(1)).await;
    check("printf a; exit 3", "a\n[exit code 3]", Code(3)).await;
    check("nosuch 2>/dev/null", "[exit code 127]", Code(127)).await;
    check("/etc 2>/dev/null", "[exit code 126]", Code(126)).await;
    check("exit 124", "[exit code 124]", Code(124)).await;
    // Codes that only look like those of signals.
    check("exit 137", "[exit code 137]", Code(137)).await;
    check("exit 130", "[exit code 130]", Code(130)).await;
    check("sh -c 'exit 139'", "[exit code 139]", Code(139)).await;
    check("(exit 129)", "[exit code 129]", Code(129)).await;
    check("kill -9 $$", "[killed by signal SIGKILL]", Signal(9)).await;
}

#[tokio::test]
async fn a_signal_has_no_exit_code_whichever_process_it_ends() {
    let lab = Lab::with(config(), spaced);
    let signals = [
        ("HUP", 1),
        ("INT", 2),
        ("ILL", 4),
        ("ABRT", 6),
        ("FPE", 8),
        ("KILL", 9),
        ("SEGV", 11),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("USR1", 10),
        ("XCPU", 24),
    ];
    for (name, number) in signals {
        for command in [
            format!("kill -{name} $$; sleep 100"),
            format!("sh -c 'kill -{name} $$'"),
            format!("exec sh -c 'kill -{name} $$'"),
            format!("true | sh -c 'kill -{name} $$'"),
            format!("set -e; sh -c 'kill -{name} $$'; echo not reached"),
        ] {
            let end = lab.bash(&command).await;
            assert_eq!(
                end.exit,
                Some(CommandExit::Signal(number)),
                "{command}: {end:?}"
            );
            let envelope = output(&end).structured.as_ref().expect("an envelope");
            assert!(envelope["exit_code"].is_null(), "{command}");
            assert!(
                text(&end).ends_with(&format!("[killed by signal SIG{name}]")),
                "{end:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_directory_that_the_shell_cannot_report_is_told_as_lost() {
    let lab = Lab::new();
    let root = lab.root().display().to_string();
    for (command, is_lost) in [
        ("mkdir src; export A=1; cd src; trap true EXIT", true),
        ("cd src; exec true", true),
        ("trap true EXIT; true", false),
        ("cd src; cd ..", false),
    ] {
        let end = lab.bash(command).await;
        let told = format!("the next command starts in `{root}`");
        let is_told = end.notes.iter().any(|note| note.contains(&told));
        assert_eq!(is_told, is_lost, "{command}: {:?}", end.notes);
    }
    let now = lab.text("pwd; echo ${A-gone}").await;
    assert!(now.starts_with(&format!("{root}\ngone\n")), "{now}");
}

#[tokio::test]
async fn the_envelope_tells_the_streams_apart() {
    let lab = Lab::new();
    let end = lab.bash("echo out; echo err >&2; exit 1").await;
    assert!(
        text(&end).ends_with("[exit code 1]\n[sandbox: none]"),
        "{}",
        text(&end)
    );
    assert_eq!(
        output(&end).structured,
        Some(
            json!({ "stdout": "out\n", "stderr": "err\n", "exit_code": 1, "truncated": false, "sandbox": "none" })
        )
    );
    assert_eq!(end.label, Some(JailLabel::None));
}

#[tokio::test]
async fn too_much_output_is_cut_and_said() {
    let lab = Lab::new();
    let end = lab.bash("seq 1000000").await;
    assert!(end.truncated);
    let structured = end
        .result
        .expect("it is done")
        .structured
        .expect("an envelope");
    assert_eq!(structured["truncated"], json!(true));
    assert!(
        structured["stdout"]
            .as_str()
            .is_some_and(|text| text.ends_with("\n1000000\n"))
    );
}

#[tokio::test]
async fn time_is_up_is_a_failure_that_keeps_the_output() {
    let lab = Lab::with(config(), spaced);
    let arguments = json!({ "command": "cd /; echo begun; sleep 1000", "timeout": 1 });
    let end = lab.call("bash", arguments, RunControl::default()).await;
    assert_eq!(end.category(), Some(ErrorCategory::Timeout));
    let message = &end.result.expect_err("it failed").message;
    assert!(
        message.contains("longer than 1 s") && message.contains("100 s"),
        "{message}"
    );
    let partial = end.partial.expect("it had printed");
    assert_eq!(partial.to_text(), "begun\n[ended: it took too long]");
    assert_eq!(end.exit, None);
}

#[test]
fn bad_commands_are_refused() {
    let bash = tools::tools().swap_remove(0);
    for command in ["", "  \n", "echo \0", &"x".repeat(200_000)] {
        let arguments = json!({ "command": command });
        let read = ShellWork::read(&bash, arguments.as_object().expect("an object"));
        let category = read.err().map(|failure| failure.category);
        assert_eq!(category, Some(ErrorCategory::InvalidParameters));
    }
}

#[tokio::test]
async fn a_long_command_runs() {
    let lab = Lab::new();
    let n_bytes = 100_000;
    let command = format!("cat > f <<'E'\n{}\nE\nwc -c < f", "x".repeat(n_bytes));
    assert_eq!(
        lab.text(&command).await,
        format!("{}\n[sandbox: none]", n_bytes + 1)
    );
}

#[tokio::test]
async fn a_call_is_cancelled_before_and_while_it_runs() {
    let lab = Lab::new();
    let mark = lab.root().join("ran");
    let control = RunControl {
        cancelled: Box::pin(std::future::ready(())),
        ..RunControl::default()
    };
    let end = lab
        .call(
            "bash",
            json!({ "command": format!("touch {}", mark.display()) }),
            control,
        )
        .await;
    assert_eq!(end.category(), Some(ErrorCategory::Cancelled));
    assert!(!mark.exists());

    let (sender, mut chunks) = tokio::sync::mpsc::channel(8);
    let control = RunControl {
        cancelled: Box::pin(async move {
            let chunk: crate::run::OutputChunk = chunks.recv().await.expect("it begins");
            assert_eq!(
                (chunk.stream, chunk.text.as_str()),
                (StreamKind::Stderr, "begun\n")
            );
        }),
        on_output: Some(OutputListener::new(sender)),
        ..RunControl::default()
    };
    let end = lab
        .call(
            "bash",
            json!({ "command": "echo begun >&2; sleep 1000" }),
            control,
        )
        .await;
    assert_eq!(end.category(), Some(ErrorCategory::Cancelled));
    assert_eq!(
        end.partial.expect("it had printed").to_text(),
        "begun\n[cancelled]\n[sandbox: none]"
    );
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_its_command() {
    for prepare in [job::in_the_jail as job::Prepare, spaced] {
        let lab = Lab::with(config(), prepare);
        let pid_file = lab.root().join("pid");
        std::fs::write(&pid_file, "").expect("writes");
        let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128());
        let command = format!("sleep {mark} & echo x > pid; wait");
        let call = lab.bash(&command);
        let begun = async {
            while std::fs::read(&pid_file).expect("reads").is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = call => panic!("it does not end by itself"),
            () = begun => {}
        }
        let end = Instant::now() + Duration::from_secs(20);
        while is_running(&mark) {
            assert!(Instant::now() < end, "it goes on");
            tokio::task::yield_now().await;
        }
    }
}

fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("there is /proc");
    processes
        .filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[tokio::test]
async fn a_turn_carries_on_and_ends() {
    let lab = Lab::with(config(), spaced);
    let root = lab.root();
    let end = lab
        .bash("mkdir -p a/b; cd a/b; export X='1 2'; unset LANG")
        .await;
    assert_eq!(
        end.changed_directory,
        Some((root.clone(), root.join("a/b")))
    );
    assert_eq!(lab.session.directory(), root.join("a/b"));
    let expect = format!("{}/a/b 1 2 none one the goal\n", root.display());
    let command = "echo $PWD $X ${LANG-none} $ZEPH_TURN_ID $ZEPH_GOAL_ID $ZEPH_SKILL_NAME";
    assert_eq!(lab.text(command).await, expect);
    assert!(lab.text("history").await.contains("echo $PWD $X"));

    lab.session.begin_turn(turn("two"));
    let expect = format!("{} none two\n", root.display());
    assert_eq!(lab.text("echo $PWD ${X-none} $ZEPH_TURN_ID").await, expect);
    assert_eq!(lab.session.context().turn_id, "two");
}

#[tokio::test]
async fn a_command_of_an_old_turn_changes_nothing_in_the_new_one() {
    let lab = Lab::new();
    let (sender, mut chunks) = tokio::sync::mpsc::channel(8);
    let control = RunControl {
        on_output: Some(OutputListener::new(sender)),
        ..RunControl::default()
    };
    let command = "export X=1; cd /; echo begun; until [ -e go ]; do cd - >/dev/null; done; cd /";
    let call = lab.call("bash", json!({ "command": command }), control);
    let next = async {
        chunks.recv().await.expect("it begins");
        lab.session.begin_turn(turn("two"));
        std::fs::write(lab.root().join("go"), "").expect("writes");
    };
    let (end, ()) = tokio::join!(call, next);
    assert_eq!(end.changed_directory, None);
    assert_eq!(lab.session.directory(), lab.root());
    assert_eq!(lab.text("echo ${X-none}").await, "none\n[sandbox: none]");
}

#[tokio::test]
async fn the_context_is_not_told_unless_wanted() {
    let config = ShellConfig {
        enable_execution_context: false,
        ..config()
    };
    let lab = Lab::with(config, spaced);
    assert_eq!(
        lab.text("env | grep ZEPH_ | grep -v ZEPH_RUN").await,
        "[exit code 1]"
    );
}

#[tokio::test]
async fn a_hostile_state_changes_nothing() {
    let lab = Lab::with(config(), spaced);
    for command in [
        "printf 'x' >&59",
        "printf '0\\0/etc\\n\\0declare -x A=\"1\"\\n\\0' >&59",
        "head -c 1000000 /dev/zero >&59",
        "printf '0\\0relative\\n\\0\\0' >&59; exec 59>&-",
    ] {
        let end = lab.bash(command).await;
        assert!(end.exit.is_some(), "{command}");
        assert_eq!(lab.session.directory(), lab.root(), "{command}");
        assert_eq!(lab.text("echo ${A-none}").await, "none\n", "{command}");
    }
}

#[tokio::test]
async fn a_run_in_the_background_is_announced_when_it_ends() {
    let lab = Lab::with(config(), spaced);
    let end = lab
        .background("until [ -e go ]; do :; done; echo out; echo err >&2; exit 3")
        .await;
    let run_id = end.run_id.expect("it runs");
    assert_eq!(text(&end), format!("[background] started run_id={run_id}"));
    let listed = text(
        &lab.call("list_runs", json!({}), RunControl::default())
            .await,
    );
    assert!(
        listed.starts_with(&format!("run_id={run_id} running for ")),
        "{listed}"
    );
    assert!(lab.session.take_completed().is_empty());
    std::fs::write(lab.root().join("go"), "").expect("writes");
    lab.all_ended().await;
    let completed = lab.session.take_completed();
    let command = "until [ -e go ]; do :; done; echo out; echo err >&2; exit 3".to_owned();
    assert_eq!(completed[0].command, Some(command));
    assert_eq!(completed[0].exit, Some(CommandExit::Code(3)));
    assert_eq!(completed[0].failure, CommandExit::Code(3).failure());
    let message = completed[0].message();
    assert!(
        message.starts_with(&format!(
            "[background complete] run_id={run_id} exit_code=3\n"
        )),
        "{message}"
    );
    assert!(
        message.ends_with("[exit code 3]") && message.contains("out\n"),
        "{message}"
    );
    assert!(lab.session.take_completed().is_empty());
}

#[tokio::test]
async fn runs_in_the_background_are_limited_in_number_and_time() {
    let config = ShellConfig {
        background_timeout: Duration::from_millis(500),
        ..config()
    };
    let lab = Lab::with(config, spaced);
    lab.background("echo begun; sleep 1000").await;
    let (first, second) = (
        lab.background("sleep 1000").await,
        lab.background("true").await,
    );
    assert!(first.run_id.is_some());
    assert_eq!(second.category(), Some(ErrorCategory::RateLimited));
    let message = second.result.expect_err("it is refused").message;
    assert!(
        message.contains("tools.shell.max_background_runs"),
        "{message}"
    );
    lab.all_ended().await;
    let completed = lab.session.take_completed();
    assert_eq!(completed.len(), 2);
    for completed in completed {
        assert_eq!((completed.exit_code, completed.exit), (Some(124), None));
        let failure = completed.failure.expect("it failed");
        assert_eq!(failure.category, ErrorCategory::Timeout);
    }
}

#[tokio::test]
async fn a_run_in_the_background_can_be_killed() {
    let lab = Lab::new();
    let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128());
    let end = lab
        .background(&format!("setsid -f sleep {mark}; sleep {mark}"))
        .await;
    let run_id = end.run_id.expect("it runs").to_string();
    let kill = async |run_id: &str| {
        lab.call(
            "kill_run",
            json!({ "run_id": run_id }),
            RunControl::default(),
        )
        .await
    };
    assert_eq!(
        kill("nonsense").await.category(),
        Some(ErrorCategory::PermanentFailure)
    );
    assert!(kill(&run_id).await.result.is_ok());
    assert!(!is_running(&mark));
    assert_eq!(
        kill(&run_id).await.category(),
        Some(ErrorCategory::PermanentFailure)
    );
    let completed = lab.session.take_completed();
    assert!(completed[0].message().contains("[ended on request]"));
}

#[tokio::test]
async fn a_session_that_ends_takes_its_runs_along() {
    let lab = Lab::with(config(), spaced);
    let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128());
    lab.background(&format!("trap '' TERM; while :; do sleep {mark}; done"))
        .await;
    lab.session.shutdown().await;
    assert!(!is_running(&mark));
    let completed = lab.session.take_completed();
    assert!(completed[0].message().contains("[terminated by shutdown]"));
    assert_eq!(
        lab.background("true").await.category(),
        Some(ErrorCategory::Cancelled)
    );
}

#[tokio::test]
async fn hooks_hear_of_a_new_directory() {
    let hook = |command: &str, on_failure| ShellHook {
        paths: Vec::new(),
        command: command.to_owned(),
        timeout: Duration::from_secs(30),
        on_failure,
    };
    let mut config = config();
    config.hooks.cwd_changed = vec![
        hook(
            "echo $ZEPH_OLD_CWD $ZEPH_NEW_CWD $ZEPH_TURN_ID ${X-none} >> ../heard; pwd >> ../heard",
            OnFailure::Note,
        ),
        hook("echo oh no >&2; exit 2", OnFailure::Note),
    ];
    let lab = Lab::with(config.clone(), spaced);
    let root = lab.root().display().to_string();
    let end = lab.bash("mkdir a; export X=1; cd a").await;
    let heard = std::fs::read_to_string(lab.root().join("heard")).expect("it ran");
    assert_eq!(heard, format!("{root} {root}/a one none\n{root}/a\n"));
    assert_eq!(
        end.notes,
        ["the hook `cwd_changed` failed: exit code 2, oh no"]
    );
    assert!(end.result.is_ok());
    assert!(lab.bash("true").await.notes.is_empty());

    config.hooks.cwd_changed = vec![hook("exit 2", OnFailure::FailClosed)];
    let lab = Lab::with(config, spaced);
    let end = lab.bash("mkdir a; cd a; echo out").await;
    assert_eq!(end.category(), Some(ErrorCategory::PermanentFailure));
    assert_eq!(end.partial.expect("it had printed").to_text(), "out\n");
    assert_eq!(lab.session.directory(), lab.root());
}

#[tokio::test]
async fn hooks_hear_of_changed_files() {
    let mut config = config();
    config.hooks.file_changed = vec![ShellHook {
        paths: Vec::new(),
        command: "printf %s \"$ZEPH_CHANGED_PATHS\" > heard; echo $ZEPH_CHANGED_PATH >> heard"
            .to_owned(),
        timeout: Duration::from_secs(30),
        on_failure: OnFailure::FailClosed,
    }];
    let lab = Lab::new();
    let changed = |paths: &[&str]| ChangedFiles {
        paths: paths.iter().map(PathBuf::from).collect(),
        missed: None,
    };
    let one = changed(&["/a"]);
    let report = lab.shell.files_changed(&lab.session, &one).await;
    assert_eq!(report, crate::hooks::HookReport::default());
    let lab = Lab::with(config, spaced);
    let both = changed(&["/a b", "/c'$(id)"]);
    let report = lab.shell.files_changed(&lab.session, &both).await;
    assert_eq!(report, crate::hooks::HookReport::default());
    let heard = std::fs::read_to_string(lab.root().join("heard")).expect("it ran");
    assert_eq!(heard, "/a b\n/c'$(id)\n/a b\n");
    let missed = ChangedFiles {
        missed: Some("too many".to_owned()),
        ..both
    };
    let report = lab.shell.files_changed(&lab.session, &missed).await;
    assert!(report.failure.is_some(), "{report:?}");
}

#[tokio::test]
async fn a_jail_that_cannot_be_made_runs_nothing() {
    fn none(_: &Jail, _: Job<'_>) -> Result<(Launch, JailLabel, Option<Guard>), JailError> {
        Err(JailError::Unavailable {
            missing: "no user namespaces".to_owned(),
        })
    }
    let lab = Lab::with(config(), none);
    let end = lab.bash("true").await;
    assert_eq!(end.category(), Some(ErrorCategory::PermanentFailure));
    assert!(
        end.result
            .expect_err("it failed")
            .message
            .contains("no user namespaces")
    );
    lab.background("true").await;
    lab.all_ended().await;
    assert!(
        lab.session.take_completed()[0]
            .message()
            .contains("no user namespaces")
    );
}
