//! Services in the jails that this machine can make, and without one.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;
use crate::jail::tests::harness::Room;
use crate::jail::{JailPolicy, Mode};

/// More than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The jails that services run in, and none.
fn jails(room: &Room) -> Vec<(&'static str, Arc<Jail>)> {
    let policy = || room.policy.clone();
    let mut jails = vec![("alone", Jail::without_namespaces(policy()))];
    if Jail::support().namespaces.is_ok() {
        jails.push(("full", Jail::new(policy())));
    }
    let none = JailPolicy {
        mode: Mode::Disabled,
        user: None,
        ..policy()
    };
    jails.push(("none", Jail::new(none)));
    jails
        .into_iter()
        .map(|(name, jail)| (name, Arc::new(jail)))
        .collect()
}

fn bash(room: &Room, script: &str) -> ServiceJob {
    ServiceJob {
        program: "bash".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        directory: room.work.clone(),
        variables: BTreeMap::from([("TOKEN".to_owned(), "of this one".to_owned())]),
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it takes no longer than a minute")
}

#[tokio::test]
async fn it_is_spoken_to_for_as_long_as_it_lives() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        let job = bash(
            &room,
            "while read -r line; do echo \"$TOKEN: $line\"; echo noise >&2; done; exit 3",
        );
        let (service, pipes) = soon(services.start(jail, job)).await.unwrap();
        let ServicePipes { mut stdin, stdout } = pipes;
        let mut lines = BufReader::new(stdout).lines();
        for n in 0..3 {
            stdin.write_all(format!("{n}\n").as_bytes()).await.unwrap();
            let line = soon(lines.next_line()).await.unwrap();
            assert_eq!(line, Some(format!("of this one: {n}")), "{name}");
        }
        assert_eq!(service.end(), None, "{name}");
        drop(stdin);
        let end = soon(service.ended()).await;
        assert_eq!(end.exit, CommandExit::Code(3), "{name}: {end:?}");
        assert_eq!(end.stderr, "noise\nnoise\nnoise\n", "{name}");
        assert!(!end.is_stopped && end.fault.is_none(), "{name}: {end:?}");
        assert_eq!(service.stderr_tail(), end.stderr, "{name}");
    }
}

/// What it left behind, by a mark that is nowhere else.
fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| {
            line.split(|byte| *byte == 0)
                .any(|word| word == mark.as_bytes())
        })
}

/// Waits until nothing with the mark runs: the kernel takes its time for the last of a namespace.
async fn until_gone(mark: &str) {
    let gone = async {
        while is_running(mark) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(gone).await;
}

fn mark() -> String {
    format!("1000.{}", Uuid::new_v4().as_u128())
}

/// Waits until something with the mark runs.
async fn until_running(mark: &str) {
    let running = async {
        while !is_running(mark) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(running).await;
}

/// Starts a daemon that leaves its session and its parents.
fn daemon(mark: &str) -> String {
    format!("(setsid sh -c 'sleep {mark} >/dev/null 2>&1 </dev/null & exit' &) ; echo ready; cat")
}

#[tokio::test]
async fn dropping_it_ends_it_with_its_daemons() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        for way in ["drop", "stop", "stdin"] {
            let mark = mark();
            let job = bash(&room, &daemon(&mark));
            let (service, pipes) = soon(services.start(jail.clone(), job)).await.unwrap();
            let ServicePipes { stdin, stdout } = pipes;
            let line = soon(BufReader::new(stdout).lines().next_line()).await;
            assert_eq!(line.unwrap().as_deref(), Some("ready"), "{name}");
            until_running(&mark).await;
            match way {
                "drop" => drop(service),
                "stop" => {
                    service.stop();
                    assert!(soon(service.ended()).await.is_stopped, "{name}");
                }
                _ => {
                    drop(stdin);
                    assert!(!soon(service.ended()).await.is_stopped, "{name}");
                }
            }
            until_gone(&mark).await;
        }
    }
}

#[tokio::test]
async fn one_that_ignores_everything_is_killed() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        let mark = mark();
        let script =
            format!("trap '' TERM INT HUP; exec 0<&-; echo ready; while :; do sleep {mark}; done");
        let (service, pipes) = soon(services.start(jail, bash(&room, &script)))
            .await
            .unwrap();
        let mut lines = BufReader::new(pipes.stdout).lines();
        assert_eq!(
            soon(lines.next_line()).await.unwrap().as_deref(),
            Some("ready"),
            "{name}"
        );
        service.stop();
        assert!(soon(service.ended()).await.is_stopped, "{name}");
        until_gone(&mark).await;
    }
}

#[tokio::test]
async fn a_flood_of_errors_is_read_and_its_end_kept() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        let script =
            "head -c 50000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2; echo done";
        let (service, mut pipes) = soon(services.start(jail, bash(&room, script)))
            .await
            .unwrap();
        let mut printed = String::new();
        soon(pipes.stdout.read_to_string(&mut printed))
            .await
            .unwrap();
        let end = soon(service.ended()).await;
        assert_eq!(printed, "done\n", "{name}");
        assert_eq!(end.stderr, "last\n", "{name}");
        assert_eq!(end.exit, CommandExit::Code(0), "{name}");
    }
}

/// The runtime goes on while a service prints what nobody reads, and reads nothing of what it is sent.
#[tokio::test]
async fn one_that_nobody_reads_blocks_nobody() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        let (service, mut pipes) = soon(services.start(jail, bash(&room, "yes")))
            .await
            .unwrap();
        let flood = vec![b'x'; 4 << 20];
        let stuck = tokio::time::timeout(Duration::from_millis(200), pipes.stdin.write_all(&flood));
        assert!(stuck.await.is_err(), "{name}: nothing reads it");
        let mut some = [0; 4];
        soon(pipes.stdout.read_exact(&mut some)).await.unwrap();
        assert_eq!(&some, b"y\ny\n", "{name}");
        drop(service);
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        let job = |program: &str| ServiceJob {
            program: program.to_owned(),
            ..bash(&room, "true")
        };
        let started = services.start(Arc::clone(&jail), job("no-such-program-here"));
        let fault = soon(started).await.unwrap_err();
        assert!(
            matches!(fault, ProgramFault::NotFound(_)),
            "{name}: {fault}"
        );
        let outside = ServiceJob {
            directory: Path::new("/var").to_owned(),
            ..bash(&room, "true")
        };
        let fault = soon(services.start(jail, outside)).await.unwrap_err();
        assert!(
            matches!(fault, ProgramFault::Directory(_)),
            "{name}: {fault}"
        );
    }
}

/// Directories of the host itself are given at their own path, although they lie in what is hidden, and nothing beside them.
#[tokio::test]
async fn own_directories_are_given_within_what_is_hidden() {
    let mut room = Room::new();
    let hidden = room.outside.join("hidden");
    let (read, write) = (hidden.join("read"), hidden.join("write"));
    for folder in [&read, &write] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(hidden.join("secret"), "x").unwrap();
    std::fs::write(read.join("tool"), "#!/bin/sh\necho ran\n").unwrap();
    room.policy.hidden.push(hidden.clone());
    room.policy.own.read.push(read.clone());
    room.policy.own.write.push(write.clone());
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        if jail.label() == Ok(JailLabel::None) {
            continue;
        }
        let script = format!(
            "sh {0}/tool; cat {1}/secret 2>/dev/null || echo hidden; (echo x > {0}/new) 2>/dev/null || echo fixed; \
             cp /bin/true {2}/true && {2}/true && echo kept > {2}/note && echo runs",
            read.display(),
            hidden.display(),
            write.display()
        );
        let job = ServiceJob {
            directory: write.clone(),
            ..bash(&room, &script)
        };
        let (service, mut pipes) = soon(services.start(jail, job)).await.unwrap();
        let mut printed = String::new();
        soon(pipes.stdout.read_to_string(&mut printed))
            .await
            .unwrap();
        let end = soon(service.ended()).await;
        assert_eq!(printed, "ran\nhidden\nfixed\nruns\n", "{name}: {end:?}");
        assert_eq!(end.findings, Vec::<String>::new(), "{name}");
        assert_eq!(
            std::fs::read_to_string(write.join("note")).unwrap(),
            "kept\n"
        );
    }
}

/// The variable that makes this test program the host that is killed: the kind of jail.
const ROLE: &str = "ZEPH_TEST_SERVICE_HOST";

/// A host is killed while its service runs, with a daemon. Nothing is left.
#[tokio::test]
async fn kill_9_of_the_host_leaves_nothing() {
    for kind in ["full", "alone"] {
        if kind == "full" && Jail::support().namespaces.is_err() {
            continue;
        }
        let mark = mark();
        #[expect(clippy::disallowed_methods, reason = "it is the host that is killed")]
        let mut host = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "service::tests::host_that_is_killed",
                "--nocapture",
            ])
            .env(ROLE, format!("{kind} {mark}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = std::io::BufReader::new(host.stdout.take().unwrap());
        let is_ready = std::io::BufRead::lines(stdout)
            .any(|line| line.is_ok_and(|line| line.ends_with("service ready")));
        assert!(is_ready, "{kind}");
        until_running(&mark).await;
        let pid = Pid::from_child(&host);
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        host.wait().unwrap();
        until_gone(&mark).await;
    }
}

/// The host that another test kills; by itself it does nothing.
#[tokio::test]
async fn host_that_is_killed() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test that starts it speaks to it"
    )]
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let (kind, mark) = role.split_once(' ').unwrap();
    let room = Room::new();
    let jails = jails(&room);
    let (_, jail) = jails.into_iter().find(|(name, _)| *name == kind).unwrap();
    let services = Services::new(None).unwrap();
    let job = bash(&room, &daemon(mark));
    let (_service, pipes) = services.start(jail, job).await.unwrap();
    let mut lines = BufReader::new(pipes.stdout).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    println!("service ready");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_end_of_the_process_is_the_end_of_services_that_are_still_held() {
    let room = Room::new();
    let services = Services::new(None).unwrap();
    for (name, jail) in jails(&room) {
        let (service, pipes) = soon(services.start(jail, bash(&room, "cat")))
            .await
            .unwrap();
        assert!(end_all(PATIENCE), "{name}");
        let end = service.end().unwrap();
        assert!(end.is_stopped, "{name}: {end:?}");
        drop(pipes);
    }
}

#[tokio::test]
async fn services_of_one_host_end_together_and_others_stay() {
    let room = Room::new();
    let (ours, theirs) = (Services::new(None).unwrap(), Services::new(None).unwrap());
    for (name, jail) in jails(&room) {
        let started = soon(theirs.start(Arc::clone(&jail), bash(&room, "cat")));
        let (other, _pipes) = started.await.unwrap();
        let fresh = Services::new(None).unwrap();
        let (service, pipes) = soon(fresh.start(Arc::clone(&jail), bash(&room, "cat")))
            .await
            .unwrap();
        assert!(fresh.end_all(PATIENCE), "{name}");
        assert!(service.end().unwrap().is_stopped, "{name}");
        assert!(other.end().is_none(), "{name}: of another host");
        // What is started too late ends at once.
        if let Ok((late, _pipes)) = soon(fresh.start(jail, bash(&room, "cat"))).await {
            assert!(soon(late.ended()).await.is_stopped, "{name}");
        }
        drop(pipes);
    }
    assert!(ours.end_all(PATIENCE), "nothing ran");
}
