//! The inspector's command line, over stdio and HTTP: what it lists, calls, and says of our schemas.

use serde_json::Value;

use super::{PEERS, Server, product};
use crate::peers::Peers;
use crate::product::Ran;

const LAUNCHER: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// `--strict` exits with 6 when a schema of a tool would be refused by a provider of models, and warns of what some refuse.
#[test]
fn the_inspector_finds_no_fault_in_the_schemas() {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let product = product();
    let ran = stdio(&peers, &product, &["--strict", "--method", "tools/list"]);
    let listed = said(&ran);
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "read"), "{listed}");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("Warning"), "{}", ran.stderr);
}

#[test]
fn the_inspector_calls_a_tool() {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let product = product();
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "read",
        "--tool-arg",
        "path=a.txt",
    ];
    let ran = stdio(&peers, &product, &call);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        said(&ran)["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("alpha"),
        "{ran:?}"
    );

    let server = Server::start(&product, &[]);
    let mut command = peers.node(LAUNCHER);
    command
        .args(["--cli", "--transport", "http", "--server-url", &server.url])
        .args(call);
    command.env("HOME", &product.home);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        said(&ran)["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("alpha"),
        "{ran:?}"
    );
}

fn stdio(peers: &Peers, product: &crate::product::Product, args: &[&str]) -> Ran {
    let host = product.command(&[]);
    let mut command = peers.node(LAUNCHER);
    command
        .arg("--cli")
        .arg(host.get_program())
        .arg("serve")
        .args(args);
    command
        .current_dir(&product.work)
        .env("HOME", &product.home);
    for (name, value) in host
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)))
    {
        command
            .arg("-e")
            .arg(format!("{}={}", name.display(), value.display()));
    }
    Ran::from(command.output().unwrap())
}

/// The JSON on standard output.
fn said(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}
