use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use uuid::Uuid;
use zeph_core::execution::SecretValue;
use zeph_core::exit::CommandExit;
use zeph_core::redact::Redactor;

use super::capture::CapturedOutput;
use super::{
    Cause, ExitState, OutputListener, Plan, Reason, RunEnd, RunLimits, RunStart, RunStop,
    StreamKind, Tree,
};
use crate::platform::pipe;
use crate::spawn::{Launch, Spawner};

/// Far more than any of these takes on a busy machine, and less than a test may.
const PATIENCE: Duration = Duration::from_secs(40);

/// What stands around a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    Namespace,
}

const BOTH: [Around; 2] = [Around::Nothing, Around::Namespace];

type OnStart = Box<dyn FnOnce(&RunStop)>;

struct Run {
    around: Around,
    limits: RunLimits,
    stop: Arc<RunStop>,
    listener: Option<OutputListener>,
    /// A number that is in the command lines of this test's processes and of no others: `$MARK`.
    mark: String,
    /// Called when the thread of the run is there.
    on_start: Option<OnStart>,
}

impl Run {
    fn new(around: Around) -> Self {
        Self {
            around,
            limits: RunLimits {
                timeout: PATIENCE,
                grace: Duration::from_millis(300),
                output_bytes_max: 1024 * 1024,
                flood_bytes_max: u64::MAX,
            },
            stop: Arc::new(RunStop::new().expect("a descriptor is free")),
            listener: None,
            mark: format!("1000.{}", Uuid::new_v4().as_u128()),
            on_start: None,
        }
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    fn plan(&self, command: &str) -> io::Result<Plan> {
        let (context, writer) = pipe()?;
        let command = command.replace("$STATE", &writer.as_raw_fd().to_string());
        let command = command.replace("$MARK", &self.mark);
        let bwrap = "--unshare-all --die-with-parent --new-session --ro-bind / / --dev /dev --proc /proc /bin/bash -c";
        let (program, arguments) = match self.around {
            Around::Nothing => ("/bin/bash", "-c"),
            Around::Namespace => ("/usr/bin/bwrap", bwrap),
        };
        let mut arguments: Vec<OsString> = arguments.split(' ').map(OsString::from).collect();
        arguments.push(command.into());
        let run_id = Uuid::new_v4();
        let mark = format!("ZEPH_RUN={run_id}");
        Ok(Plan {
            begin: RunStart::Launch(Launch {
                program: program.into(),
                arguments,
                environment: vec![
                    ("PATH".into(), "/usr/bin:/bin".into()),
                    ("ZEPH_RUN".into(), run_id.to_string().into()),
                ],
                directory: "/".into(),
                inherited: vec![writer],
                input: None,
            }),
            tree: match self.around {
                Around::Nothing => Tree::Session { mark },
                Around::Namespace => Tree::Namespace,
            },
            context: Some(context),
            listener: self.listener.clone(),
            stderr_end: None,
            guard: None,
        })
    }

    /// Runs until the end, and checks that nothing of it is left.
    fn run(mut self, command: &str) -> (RunEnd, CapturedOutput) {
        let spawner = Arc::new(Spawner::new(None).expect("a thread can be started"));
        let plan = self.plan(command);
        let (sender, ended) = mpsc::channel();
        let stop = Arc::clone(&self.stop);
        super::start(
            spawner,
            self.limits,
            stop,
            move || plan,
            move |ended: io::Result<RunEnd>| {
                drop(sender.send(ended));
            },
        )
        .expect("a thread can be started");
        if let Some(on_start) = self.on_start.take() {
            on_start(&self.stop);
        }
        let ended = ended.recv_timeout(PATIENCE * 2).expect("it ends");
        let mut ended = ended.expect("it can be started");
        assert_eq!(self.survivors(), Vec::<String>::new(), "{command}");
        let capture = std::mem::replace(&mut ended.capture, super::Capture::new(0));
        (ended, capture.finish())
    }

    /// The command lines with the mark in them, once the kernel had its time.
    fn survivors(&self) -> Vec<String> {
        let end = Instant::now() + Duration::from_secs(5);
        loop {
            let found = command_lines_with(&self.mark);
            if found.is_empty() || Instant::now() > end {
                return found;
            }
            std::thread::yield_now();
        }
    }
}

fn command_lines_with(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("there is /proc");
    processes
        .filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(mark))
        .collect()
}

#[test]
fn ends_are_told_as_they_are() {
    let check = |around: Around, command: &str, expect: CommandExit| {
        let (ended, _) = Run::new(around).run(command);
        assert_eq!(ended.cause, Cause::Exited, "{command}");
        let exit = super::exit::of(
            ended.status,
            super::exit::Evidence {
                text: command,
                reported: None,
                stderr: "",
                is_namespace: around == Around::Namespace,
            },
        );
        assert_eq!(exit, expect, "{around:?} {command}");
    };
    for around in BOTH {
        check(around, "true", CommandExit::Code(0));
        check(around, "exit 3", CommandExit::Code(3));
        check(around, "exit 255", CommandExit::Code(255));
        check(around, "/nonexistent/program", CommandExit::Code(127));
        check(around, "kill -9 $$", CommandExit::Signal(9));
        check(around, "kill -SEGV $$", CommandExit::Signal(11));
    }
}

#[test]
fn streams_are_apart_and_nothing_can_be_typed() {
    for around in BOTH {
        let (_, captured) = Run::new(around).run("cat; echo out; echo err >&2");
        assert_eq!(
            (captured.stdout.as_str(), captured.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(captured.text.len(), 8);
    }
}

#[test]
fn only_what_is_given_is_inherited() {
    let held = std::fs::File::open("/dev/null").expect("it is there");
    let check = |number: &str, expect: &str| {
        let command = format!("[ -e /proc/self/fd/{number} ] && echo there || echo not");
        let (_, captured) = Run::new(Around::Nothing).run(&command);
        assert_eq!(captured.stdout, format!("{expect}\n"), "{number}");
    };
    check("$STATE", "there");
    check(&held.as_raw_fd().to_string(), "not");
}

#[test]
fn all_of_a_large_output_is_read() {
    let mut run = Run::new(Around::Nothing);
    run.limits.output_bytes_max = 4 * 1024 * 1024;
    let (ended, captured) = run.run("head -c 100000000 /dev/zero | tr '\\0' x; echo end");
    assert_eq!(ended.status, ExitState::Code(0));
    assert!(captured.text.ends_with("xend\n"));
    let n_kept = u64::try_from(captured.text.matches('x').count()).expect("small");
    assert_eq!(n_kept + captured.n_cut, 100_000_000);
    assert!(captured.text.len() <= 4 * 1024 * 1024 + 100);
}

#[test]
fn a_flood_is_ended() {
    for around in BOTH {
        let mut run = Run::new(around);
        run.limits.flood_bytes_max = 50_000_000;
        let (ended, captured) = run.run("trap '' TERM; yes $MARK");
        assert_eq!(ended.cause, Cause::Flooded);
        assert!(captured.text.len() < 2 * 1024 * 1024);
        assert!(captured.n_cut > 40_000_000);
    }
}

#[test]
fn any_bytes_become_text() {
    let (_, captured) = Run::new(Around::Nothing)
        .run("printf 'a\\303'; printf '\\0' >&2; printf '\\274\\377\\n'; head -c 300000 /dev/urandom >&2");
    assert_eq!(captured.stdout, "aü\u{fffd}\n");
    assert!(captured.stderr.contains('\u{fffd}'));
}

#[test]
fn time_is_limited_for_the_whole_tree() {
    let check = |command: &str| {
        for around in BOTH {
            let run = Run::new(around).timeout(Duration::from_millis(400));
            let (ended, captured) = run.run(command);
            assert_eq!(ended.cause, Cause::TimedOut, "{around:?} {command}");
            assert_eq!(captured.stdout, "begun\n", "{around:?} {command}");
        }
    };
    check("echo begun; sleep $MARK");
    check("echo begun; sleep $MARK & sleep $MARK & wait");
    check("trap '' TERM INT HUP; echo begun; while :; do sleep $MARK; done");
    check("echo begun; kill -STOP $$; echo $MARK");
    check(
        "echo begun; (trap '' TERM; kill -STOP $BASHPID; : $MARK) & setsid sleep $MARK & setsid -f sleep $MARK; sleep $MARK",
    );
    check(
        "f() { [ $1 = 0 ] || { f $(($1-1)) & f $(($1-1)) & }; trap '' TERM; sleep $MARK; wait; }; echo begun; f 5",
    );
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    for around in BOTH {
        let command = "setsid -f sleep $MARK; (sleep $MARK &) ; sleep $MARK >/dev/null 2>&1 & echo done; exit 4";
        let (ended, captured) = Run::new(around).run(command);
        assert_eq!(
            (ended.cause, ended.status),
            (Cause::Exited, ExitState::Code(4))
        );
        assert_eq!(captured.stdout, "done\n");
        assert!(
            ended.duration < PATIENCE,
            "it did not wait for those that hold its pipes"
        );
    }
}

#[test]
fn a_wish_to_stop_ends_it() {
    for around in BOTH {
        for reason in [Reason::Cancelled, Reason::Killed, Reason::Shutdown] {
            let (sender, mut chunks) = tokio::sync::mpsc::channel(8);
            let mut run = Run::new(around);
            run.listener = Some(OutputListener::new(sender));
            run.on_start = Some(Box::new(move |stop: &RunStop| {
                let chunk = chunks.blocking_recv().expect("it begins");
                assert_eq!(chunk.text, "begun\n");
                stop.stop(reason);
                stop.stop(Reason::Killed);
            }));
            let (ended, _) = run.run("echo begun; sleep $MARK; echo not reached");
            assert_eq!(ended.cause, Cause::Stopped(reason));
        }
    }
}

#[test]
fn a_wish_from_before_the_start_ends_it_too() {
    let run = Run::new(Around::Namespace);
    run.stop.stop(Reason::Cancelled);
    let (ended, _) = run.run("sleep $MARK");
    assert_eq!(ended.cause, Cause::Stopped(Reason::Cancelled));
}

#[test]
fn a_gentle_end_is_possible() {
    for around in BOTH {
        let run = Run {
            limits: RunLimits {
                grace: PATIENCE,
                ..Run::new(around).limits
            },
            ..Run::new(around)
        };
        let (ended, captured) = run
            .timeout(Duration::from_millis(300))
            .run("trap 'echo tidied; exit 0' TERM; echo begun; while :; do sleep 0.01; done");
        assert_eq!(ended.cause, Cause::TimedOut);
        assert_eq!(captured.stdout, "begun\ntidied\n");
    }
}

#[test]
fn the_state_is_read_and_bounded() {
    let (ended, _) = Run::new(Around::Nothing).run("printf 'state' >&$STATE");
    assert_eq!(ended.context.as_deref(), Some(b"state".as_slice()));
    let (ended, captured) =
        Run::new(Around::Nothing).run("head -c 10000000 /dev/zero >&$STATE; echo end");
    assert_eq!(ended.context, None);
    assert_eq!(captured.stdout, "end\n");
}

#[test]
fn a_listener_that_sleeps_slows_nothing() {
    let (sender, mut chunks) = tokio::sync::mpsc::channel(1);
    let mut run = Run::new(Around::Nothing);
    run.listener = Some(OutputListener::new(sender));
    let (_, captured) = run.run("head -c 20000000 /dev/zero | tr '\\0' x; echo err >&2");
    assert!(captured.n_cut > 0);
    let first = chunks.blocking_recv().expect("the first was heard");
    assert_eq!((first.stream, first.n_skipped), (StreamKind::Stdout, 0));
    assert!(first.text.starts_with("xxx"));
    assert!(chunks.blocking_recv().is_none(), "the others were omitted");
}

/// A listener sees no known secret, whatever the borders of the pieces and however it is folded.
#[test]
fn a_listener_hears_no_secret() {
    let secret = SecretValue {
        name: "T".to_owned(),
        value: "s3cr3t-value".to_owned(),
    };
    let (sender, mut chunks) = tokio::sync::mpsc::channel(64);
    let mut run = Run::new(Around::Nothing);
    let listener = OutputListener::new(sender);
    run.listener = Some(listener.redacted(Redactor::new(&[secret])));
    let command = "echo begun; for part in s3c r3t- val ue; do printf $part; sleep 0.02; done; \
                   echo; printf s3cr3t-value | base64 -w 5 >&2; printf s3cr";
    let (_, captured) = run.run(command);
    assert!(
        captured.stdout.contains("s3cr3t-value"),
        "that is a later stage's"
    );
    let mut heard = [String::new(), String::new()];
    while let Some(chunk) = chunks.blocking_recv() {
        heard[chunk.stream as usize].push_str(&chunk.text);
    }
    assert_eq!(heard[0], "begun\n[redacted: T]\ns3cr");
    assert_eq!(heard[1].trim_end(), "[redacted: T]");
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let spawner = Spawner::new(None).expect("a thread can be started");
    let launch = Launch {
        program: Path::new("/nonexistent/program").to_path_buf(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: "/".into(),
        inherited: Vec::new(),
        input: None,
    };
    let error = spawner.spawn(launch).expect_err("there is none");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
