//! The escape matrix: more than forty attacks from inside an MCP server, made without a sandbox and in one.
//!
//! The attacks are those of `tests/escapes/server.py`. Each is made in new surroundings, and judged by what the server shows of it and by
//! what it changed, reached or left running outside. An attack that does not succeed without a sandbox proves nothing, so a machine
//! where one does not is left out of that row. `ZEPH_BLESS=1` writes the table of `host/README.md` anew; with `ZEPH_SLOW_TESTS=1`
//! the other wrappers that can be installed are tried, too.

mod client;
mod network;
mod place;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;

use self::client::Client;
use self::place::{CANARY, MARKER, OF_PROCESS, Place, Stored, VARIABLE};
use self::table::{Cell, Column, Table};
use crate::left_out::leave_out;

/// Characters of one result that would crowd out everything else a model reads.
const FLOOD_CHARS: usize = 1_000_000;

/// The one host that the server may reach, so that there is a way out to be misused.
const GRANTED: &str = "api.example.com";

/// One attack: its name in the server, what it is after, and how its success shows.
struct Attack {
    name: &'static str,
    aim: &'static str,
    proof: Proof,
}

/// How the success of an attack shows.
#[derive(Clone, Copy)]
enum Proof {
    /// The result holds this secret of others.
    Holds(&'static str),
    /// The server got hold of what it reports.
    Got,
    /// A file is another than before.
    Changed,
    /// A socket of the host was reached.
    Reached,
    /// A process of others was ended.
    Ended,
    /// A process of the server is left when the server has ended.
    Left,
    /// The tool's description reaches the client as the server changed it.
    Described(fn(&str) -> bool),
    /// The client is asked for a completion.
    Asked,
    /// The result reaches the client in full length.
    Flooded,
}

const fn attack(name: &'static str, aim: &'static str, proof: Proof) -> Attack {
    Attack { name, aim, proof }
}

const ATTACKS: [Attack; 43] = [
    attack(
        "read-ssh-key",
        "read `~/.ssh/id_ed25519`",
        Proof::Holds(CANARY),
    ),
    attack("read-system-secrets", "read `/etc/shadow`", Proof::Got),
    attack(
        "read-other-project",
        "read a file of another project",
        Proof::Holds(CANARY),
    ),
    attack(
        "read-through-link",
        "read it through a symbolic link",
        Proof::Holds(CANARY),
    ),
    attack(
        "read-through-hard-link",
        "read it through a hard link",
        Proof::Holds(CANARY),
    ),
    attack(
        "read-through-process-root",
        "read `~/.ssh/id_ed25519` through the root of another process",
        Proof::Holds(CANARY),
    ),
    attack(
        "read-host-secrets",
        "read the stored secrets of other servers",
        Proof::Holds(CANARY),
    ),
    attack(
        "read-environment",
        "find a token in its environment",
        Proof::Holds(CANARY),
    ),
    attack(
        "read-environment-of-others",
        "find a token in the environment of other processes",
        Proof::Holds(OF_PROCESS),
    ),
    attack(
        "write-other-project",
        "change a file of another project",
        Proof::Changed,
    ),
    attack("write-shell-startup", "change `~/.bashrc`", Proof::Changed),
    attack(
        "write-git-hook",
        "add a Git hook to the project",
        Proof::Changed,
    ),
    attack(
        "write-git-config",
        "have the project's Git start a program",
        Proof::Changed,
    ),
    attack(
        "write-editor-task",
        "add a task for the editor to the project",
        Proof::Changed,
    ),
    attack(
        "write-client-config",
        "add an MCP server to the project's `.mcp.json`",
        Proof::Changed,
    ),
    attack(
        "write-own-program",
        "change its own program",
        Proof::Changed,
    ),
    attack("set-user-id", "make a set-user-ID program", Proof::Changed),
    attack(
        "fill-temporary-directory",
        "fill the temporary directory with 2 GiB",
        Proof::Got,
    ),
    attack(
        "fill-own-directory",
        "fill the disk of the directory it may change with 2 GiB",
        Proof::Got,
    ),
    attack(
        "see-processes",
        "see the command line of another process",
        Proof::Holds("/bin/sleep"),
    ),
    attack(
        "trace-process",
        "attach to a process with `ptrace`",
        Proof::Got,
    ),
    attack("kill-process", "end a process of the user", Proof::Ended),
    attack(
        "outlive-host",
        "leave a process running after its end",
        Proof::Left,
    ),
    attack("start-many-processes", "start 1,000 processes", Proof::Got),
    attack("take-memory", "take 5 GiB of memory", Proof::Got),
    attack("kernel-log", "read the log of the kernel", Proof::Got),
    attack(
        "terminal-input",
        "type into a terminal with `TIOCSTI`",
        Proof::Got,
    ),
    attack("mount", "mount a file system", Proof::Got),
    attack("new-user-namespace", "create a user namespace", Proof::Got),
    attack(
        "kernel-keyring",
        "add a key to the keyring of the session",
        Proof::Got,
    ),
    attack(
        "kernel-interfaces",
        "reach `io_uring`, `bpf`, `userfaultfd` or `perf_event_open`",
        Proof::Got,
    ),
    attack(
        "connect-by-address",
        "connect to a service on 127.0.0.1",
        Proof::Reached,
    ),
    attack(
        "connect-to-agent",
        "connect to the socket of an agent in the home",
        Proof::Reached,
    ),
    attack(
        "connect-to-abstract-socket",
        "connect to an abstract socket",
        Proof::Reached,
    ),
    attack(
        "connect-to-metadata",
        "connect to the metadata service of a cloud",
        Proof::Reached,
    ),
    attack(
        "connect-to-other-host",
        "connect by name to a host, with another one granted",
        Proof::Reached,
    ),
    attack(
        "send-by-name-lookup",
        "send data away in a query to a name server",
        Proof::Reached,
    ),
    attack("raw-socket", "open a raw socket", Proof::Got),
    attack(
        "change-definitions",
        "change a tool's description after the start",
        Proof::Described(|text| text.contains(MARKER)),
    ),
    attack(
        "hidden-text",
        "hide text in a description",
        Proof::Described(|text| text.chars().any(is_hidden)),
    ),
    attack(
        "ask-the-model",
        "ask the client's model for a completion",
        Proof::Asked,
    ),
    attack(
        "control-the-terminal",
        "return control sequences for the user's terminal",
        Proof::Holds("\u{1b}"),
    ),
    attack("flood-the-model", "return 20 MB of text", Proof::Flooded),
];

/// Letters that no screen shows and models read.
fn is_hidden(character: char) -> bool {
    matches!(character, '\u{E0000}'..='\u{E007F}')
}

/// How the server is started.
enum Way {
    Bare,
    Ours,
    /// `srt`, with its program.
    Srt(PathBuf),
}

impl Way {
    fn command(&self, place: &Place) -> Command {
        let server = place.server.to_str().unwrap();
        let (work, folder) = (
            place.product.work.to_str().unwrap(),
            place.server.parent().unwrap(),
        );
        let folder = folder.to_str().unwrap();
        let python = ["/usr/bin/python3", "-B", server];
        let mut command = match self {
            Self::Bare => plain(place, python[0], &python[1..]),
            Self::Ours => {
                let mut args = vec!["wrap", "--allow-read", folder, "--allow-write", work];
                args.extend(["--host", GRANTED, "--"]);
                args.extend(python);
                place.product.command(&args)
            }
            Self::Srt(program) => {
                let settings = place.product.home.join("srt-settings.json");
                // As its documentation has it.
                let content = json!({
                    "network": {"allowedDomains": [GRANTED], "deniedDomains": []},
                    "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": []},
                });
                fs::write(&settings, content.to_string()).unwrap();
                let mut args = vec!["--settings", settings.to_str().unwrap()];
                args.extend(python);
                plain(place, program.to_str().unwrap(), &args)
            }
        };
        command
            .env(VARIABLE, CANARY)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is compared with runs without the host"
)]
fn plain(place: &Place, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(&place.product.work)
        .env_clear()
        .env("HOME", &place.product.home);
    command
}

/// Makes one attack, in a network of its own where that can be had. `Err` when the server could not even be asked.
fn make(attack: &Attack, way: &Way, stored: &Stored) -> Result<bool, String> {
    thread::scope(|scope| {
        let made = scope.spawn(|| {
            network::enter();
            make_here(attack, way, stored)
        });
        made.join().unwrap()
    })
}

fn make_here(attack: &Attack, way: &Way, stored: &Stored) -> Result<bool, String> {
    let mut place = Place::new(stored);
    let mut client = Client::start(way.command(&place))?;
    let (tool, _) = client.tools()?;
    let params = json!({"name": tool, "arguments": {"name": attack.name, "at": place.targets()}});
    // A call that is refused, or never answered, is a way to stop an attack.
    let answer = client.request("tools/call", &params).unwrap_or_default();
    let text = answer["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let has_got = answer["isError"] != true && text.contains("GOT");
    let succeeded = match attack.proof {
        Proof::Holds(secret) => text.contains(secret),
        Proof::Got => has_got,
        Proof::Changed => {
            client.end();
            place.is_changed()
        }
        Proof::Reached => place.is_reached(),
        Proof::Ended => place.is_victim_dead(),
        Proof::Left => {
            client.end();
            place.end_leftovers()
        }
        Proof::Described(is_seen) => is_described(&mut client, is_seen),
        Proof::Asked => {
            // Whatever was sent before the answer has arrived with it.
            drop(client.request("ping", &json!({})));
            client
                .asked
                .iter()
                .any(|asked| asked == "sampling/createMessage")
        }
        Proof::Flooded => text.chars().count() >= FLOOD_CHARS,
    };
    place.end_leftovers();
    Ok(succeeded)
}

/// Whether the change arrives within the time that a wrapper may take to notice it.
fn is_described(client: &mut Client, is_seen: fn(&str) -> bool) -> bool {
    (0..10).any(|_| {
        thread::sleep(Duration::from_millis(100));
        client
            .tools()
            .is_ok_and(|(_, descriptions)| is_seen(&descriptions))
    })
}

/// The outcomes of all attacks, in their order.
fn column(title: &str, way: &Way, stored: &Stored) -> Column {
    let cells = ATTACKS
        .iter()
        .map(|attack| match make(attack, way, stored) {
            Ok(true) => Cell::Succeeds,
            Ok(false) => Cell::Stopped,
            Err(problem) => panic!("{title}: {}: {problem}", attack.name),
        });
    Column {
        title: title.to_owned(),
        cells: cells.collect(),
    }
}

#[test]
fn every_attack_is_made_by_the_server() {
    let server = include_str!("../escapes/server.py");
    for Attack { name, .. } in &ATTACKS {
        let function = format!("@attack\ndef {}(at):", name.replace('-', "_"));
        assert!(server.contains(&function), "{name}");
    }
    assert_eq!(server.matches("\n@attack\n").count(), ATTACKS.len());
}

#[test]
fn a_wrapped_server_gets_at_nothing_that_the_table_denies() {
    let stored = Stored::new();
    let bare = column("without a sandbox", &Way::Bare, &stored);
    let ours = column("`zeph-host wrap`", &Way::Ours, &stored);
    let rows: Vec<&str> = ATTACKS.iter().map(|attack| attack.aim).collect();
    for (aim, bare) in rows.iter().zip(&bare.cells) {
        if *bare == Cell::Stopped {
            leave_out(&format!(
                "an attack that this machine stops by itself: {aim}"
            ));
        }
    }
    let mut columns = vec![bare, ours];
    columns.extend(others(&stored));
    Table { rows, columns }.compare();
}

/// The other wrappers that can be installed, each with its version.
fn others(stored: &Stored) -> Option<Column> {
    let (program, version) = table::srt()?;
    let title = format!("`srt` {version}");
    Some(column(&title, &Way::Srt(program), stored))
}
