//! The way out of a jail that may reach some hosts: where it leads, and that there is no other.

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use zeph_core::execution::NetworkReport;

use super::super::*;
use super::harness::{self, End, Room};
use crate::spawn::{Child, Spawner};

/// Answers every connection with the token of the run that it is for.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) runtime: Handle,
    pub(crate) closed: Sender<String>,
}

#[derive(Debug)]
struct OpenToken {
    token: String,
    task: JoinHandle<()>,
    closed: Sender<String>,
}

impl Outlets for Tokens {
    fn open(&self, door: OutletDoor) -> Box<dyn OpenOutlet> {
        let token = door.token.clone();
        let told = token.clone();
        let task = self.runtime.spawn(async move {
            let listener = door.listener().await.unwrap();
            answer(listener, &told).await.unwrap();
        });
        Box::new(OpenToken {
            token,
            task,
            closed: self.closed.clone(),
        })
    }

    fn certificates(&self) -> Option<&[u8]> {
        None
    }
}

/// One connection is enough.
async fn answer(listener: TcpListener, token: &str) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (mut stream, _) = listener.accept().await?;
    stream.write_all(token.as_bytes()).await?;
    stream.shutdown().await?;
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

impl OpenOutlet for OpenToken {
    fn close(self: Box<Self>) -> NetworkReport {
        self.task.abort();
        self.closed.send(self.token.clone()).unwrap();
        NetworkReport {
            hosts: Vec::new(),
            notes: vec!["a note of the way out".to_owned()],
        }
    }
}

fn with_hosts(room: &mut Room) -> (Jail, Receiver<String>, Runtime) {
    room.policy.network = Network::Hosts;
    let (closed, told) = channel();
    let served = Runtime::new().unwrap();
    let runtime = served.handle().clone();
    let jail = room
        .jail()
        .with_outlets(Arc::new(Tokens { runtime, closed }));
    (jail, told, served)
}

/// Reads what the way out says, by the address that the environment names.
pub(crate) const READ: &str =
    r#"p=${HTTPS_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/$p; cat <&3; echo; echo "$HTTPS_PROXY""#;

#[track_caller]
fn check_told(end: &End) {
    let (token, address) = end.stdout.trim().split_once('\n').unwrap();
    let expect = format!("http://zeph:{token}@127.0.0.1:");
    assert_eq!(end.code, Some(0), "{end:#?}");
    assert_eq!(token.len(), 32, "{end:#?}");
    assert!(address.starts_with(&expect), "{end:#?}");
}

#[test]
fn a_command_reaches_the_way_out_that_its_environment_names() {
    let mut room = Room::new();
    let (jail, _told, _served) = with_hosts(&mut room);
    let end = harness::run(&jail, &room.work, READ);
    check_told(&end);
    let other = harness::run(&jail, &room.work, READ);
    check_told(&other);
    assert_ne!(end.stdout, other.stdout);
}

#[test]
fn a_jail_made_ahead_has_the_way_out_too() {
    let mut room = Room::new();
    let (jail, told, _served) = with_hosts(&mut room);
    let spawner = Spawner::new(None).unwrap();
    let (launch, standing) = jail.stand(Vec::new()).unwrap().unwrap();
    let child: Child = spawner.spawn(launch).unwrap();
    let arguments = ["-c".into(), READ.into()];
    let job = Job {
        program: Path::new("/bin/bash"),
        arguments: &arguments,
        directory: &room.work,
        variables: &BTreeMap::new(),
        files: Vec::new(),
        rc: None,
        made: None,
    };
    let mut guard = jail.enter(standing, &job).unwrap();
    let pid = rustix::process::WaitId::Pid(child.pid);
    rustix::process::waitid(pid, rustix::process::WaitIdOptions::EXITED).unwrap();
    let report = guard.close_outlet();
    assert_eq!(report.notes, ["a note of the way out"]);
    let mut text = [0; 256];
    let n_bytes = rustix::io::read(&child.stdout, &mut text).unwrap();
    let text = String::from_utf8_lossy(&text[..n_bytes]).into_owned();
    assert!(text.starts_with(&told.recv().unwrap()), "{text}");
}

#[test]
fn nothing_but_the_way_out_is_reached() {
    let mut room = Room::new();
    let (jail, _told, _served) = with_hosts(&mut room);
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    let script = format!(
        "(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached the host
         (exec 3<>/dev/tcp/192.0.2.1/443) 2>/dev/null && echo reached an address
         (exec 3<>/dev/udp/192.0.2.53/53 && echo x >&3) 2>/dev/null && echo asked a name server
         getent hosts example.org && echo resolved
         test -e /etc/resolv.conf && echo names servers
         grep -c : /proc/net/dev"
    );
    let end = harness::run(&jail, &room.work, &script);
    assert_eq!(end.stdout, "1\n", "{end:#?}");
}

#[test]
fn the_way_out_is_told_to_programs_in_place_of_the_hosts_own_and_of_being_offline() {
    let mut room = Room::new();
    let host = &mut room.policy.environment.host;
    host.insert(
        "https_proxy".to_owned(),
        "http://proxy.corp:3128".to_owned(),
    );
    let (jail, _told, _served) = with_hosts(&mut room);
    let script = "env | grep -c '^[A-Za-z_]*=http://zeph:.*@127.0.0.1:[0-9]*$'
                  env | grep -ci 'offline\\|NO_INDEX\\|GOPROXY=off\\|proxy.corp'
                  echo \"$NO_PROXY $no_proxy\"";
    let end = harness::run(&jail, &room.work, script);
    let local = "localhost,127.0.0.1,::1";
    assert_eq!(end.stdout, format!("8\n0\n{local} {local}\n"), "{end:#?}");
}

#[test]
fn hosts_are_never_opened_without_namespaces_or_without_who_serves_them() {
    let mut room = Room::new();
    room.policy.network = Network::Hosts;
    let job = |directory| Job {
        program: Path::new("/bin/bash"),
        arguments: &[],
        directory,
        variables: const { &BTreeMap::new() },
        files: Vec::new(),
        rc: None,
        made: None,
    };
    let unserved = room.jail().prepare(job(&room.work));
    assert!(
        matches!(unserved, Err(JailError::BadJob { .. })),
        "{unserved:?}"
    );
    let jail = Jail::without_namespaces(room.policy.clone());
    let alone = jail.prepare(job(&room.work)).map(|_| ()).unwrap_err();
    assert!(matches!(alone, JailError::HostsNeedNamespaces), "{alone:?}");
    assert!(alone.to_string().contains("allow_hosts"), "{alone}");
}
