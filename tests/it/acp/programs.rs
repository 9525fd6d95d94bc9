//! Clients of others: the command line `acpx` from npm, and the library from PyPI. They are downloaded, so these tests run when
//! `ZEPH_SLOW_TESTS=1`. What was sent in them is held against the schema of the protocol that the npm package of its authors carries.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::client::Client;
use super::model::{Answer, Model, calls, says};
use super::{plain, product};
use crate::peers::{Peers, Wanted};
use crate::product::{Product, Ran};

/// What they are.
const PEERS: Wanted = Wanted {
    folder: "acp",
    what: "the clients of others that speak ACP are downloaded",
    packages: &[("@agentclientprotocol/sdk", "2.4.0"), ("acpx", "0.19.1")],
    python: "agent-client-protocol==0.12.1",
};

/// `acpx` with a prompt; what it printed of the protocol.
fn acpx(peers: &Peers, product: &Product, options: &[&str], prompt: &str) -> Ran {
    let agent = product.command(&["acp", "--allow", "bash"]);
    let mut line = vec![agent.get_program().to_string_lossy().into_owned()];
    line.extend(
        agent
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned()),
    );
    let mut command = peers.node("acpx/dist/cli.js");
    command
        .args(["--agent", &line.join(" "), "--format", "json"])
        .arg("--cwd")
        .arg(&product.work)
        .args(options)
        .args(["exec", prompt])
        .current_dir(&product.work);
    ran(&mut command, product, &agent)
}

/// A script on the Python with the library; the program under test and the workspace are its arguments.
fn python(peers: &Peers, product: &Product, script: &str) -> Ran {
    let agent = product.command(&["acp"]);
    let mut command = peers.python(script);
    command.arg(agent.get_program()).arg(&product.work);
    ran(&mut command, product, &agent)
}

/// Runs a peer to its end, with the variables that `agent` would have.
fn ran(command: &mut Command, product: &Product, agent: &Command) -> Ran {
    let variables = agent.get_envs();
    command
        .env("HOME", &product.home)
        .envs(variables.filter_map(|(name, value)| Some((name, value?))));
    Ran::from(command.output().unwrap())
}

/// Holds what the agent sent against the schema of the protocol.
fn check(peers: &Peers, heard: &[Value], asked: &BTreeMap<String, &str>) {
    let path = "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json";
    let schema = fs::read_to_string(peers.folder.join(path)).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let checked = |definition: &str, value: &Value| {
        let root = json!({"$ref": format!("#/$defs/{definition}"), "$defs": schema["$defs"]});
        let validator = jsonschema::validator_for(&root).unwrap();
        let problems: Vec<String> = validator
            .iter_errors(value)
            .map(|problem| problem.to_string())
            .collect();
        assert!(problems.is_empty(), "{definition}: {problems:?}: {value}");
    };
    for message in heard {
        assert_eq!(message["jsonrpc"], "2.0");
        match message["method"].as_str() {
            Some(method) => checked(parameters(method), &message["params"]),
            None if message.get("result").is_some() => {
                let definition = asked[&message["id"].to_string()];
                checked(definition, &message["result"]);
            }
            None => checked("Error", &message["error"]),
        }
    }
}

/// The definition of what a method of a client takes.
fn parameters(method: &str) -> &'static str {
    match method {
        "session/update" => "SessionNotification",
        "session/request_permission" => "RequestPermissionRequest",
        "fs/read_text_file" => "ReadTextFileRequest",
        "fs/write_text_file" => "WriteTextFileRequest",
        "terminal/create" => "CreateTerminalRequest",
        "terminal/output" => "TerminalOutputRequest",
        "terminal/wait_for_exit" => "WaitForTerminalExitRequest",
        "terminal/kill" => "KillTerminalRequest",
        "terminal/release" => "ReleaseTerminalRequest",
        other => panic!("{other}"),
    }
}

/// The messages that `acpx` printed.
fn messages(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn updates<'a>(messages: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    updates
        .filter(|update| update["sessionUpdate"] == kind)
        .collect()
}

#[test]
fn acpx_drives_a_prompt_with_an_edit_and_a_command_in_its_terminal() {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "three"});
    let model = Model::new([
        calls("edit", edit),
        calls("bash", json!({"command": "cat a.txt"})),
        says("done"),
    ]);
    let product = product(&model);
    product.file("a.txt", "one\ntwo\n");
    let ran = acpx(&peers, &product, &["--approve-all"], "change it");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(product.read("a.txt"), "one\nthree\n");
    let messages = messages(&ran);
    assert_eq!(updates(&messages, "tool_call").len(), 2, "{ran:?}");
    let ends = updates(&messages, "tool_call_update");
    let completed = ends.iter().filter(|end| end["status"] == "completed");
    assert_eq!(completed.count(), 2, "{ends:?}");
    assert!(ran.stdout.contains("\"diff\""), "{ran:?}");
    assert!(ran.stdout.contains("terminal/create"), "{ran:?}");
    let told = model.requests()[2]["messages"].to_string();
    assert!(told.contains("three"), "{told}");
}

#[test]
fn acpx_rejects_what_its_user_does_not_want() {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let write = json!({"path": "a.txt", "content": "x"});
    let model = Model::new([calls("write", write), says("pity")]);
    let product = product(&model);
    let ran = acpx(&peers, &product, &["--deny-all"], "write it");
    assert!(ran.stdout.contains("session/request_permission"), "{ran:?}");
    assert!(!product.work.join("a.txt").exists());
}

/// Drives the program with the library of others: a permission, a cancelled turn, a session that is loaded.
const SCRIPT: &str = r#"
import asyncio, sys
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse

class Editor(Client):
    def __init__(self):
        self.updates, self.asked = [], 0
        self.talks = asyncio.Event()

    async def request_permission(self, *args, **kwargs):
        self.asked += 1
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="reject_once"))

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update.session_update)
        if update.session_update == "agent_message_chunk" and update.content.text == "well":
            self.talks.set()

    def on_connect(self, conn):
        pass

async def main():
    program, work = sys.argv[1:3]
    editor = Editor()
    async with spawn_agent_process(editor, program, "acp", cwd=work, env=dict(__import__("os").environ)) as (agent, process):
        answer = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        assert answer.protocol_version == 1, answer
        session = (await agent.new_session(cwd=work, mcp_servers=[])).session_id
        answer = await agent.prompt(session_id=session, prompt=[text_block("write")])
        assert answer.stop_reason == "end_turn" and editor.asked == 1, answer
        assert "tool_call" in editor.updates and "tool_call_update" in editor.updates
        turn = asyncio.create_task(agent.prompt(session_id=session, prompt=[text_block("talk")]))
        await editor.talks.wait()
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        await agent.set_session_mode(session_id=session, mode_id="read-only")
        editor.updates.clear()
        await agent.load_session(session_id=session, cwd=work, mcp_servers=[])
        assert "user_message_chunk" in editor.updates, editor.updates
        print("all is well")

asyncio.run(main())
"#;

#[test]
fn the_python_library_drives_a_session() {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let model = Model::new([
        calls("write", json!({"path": "a.txt", "content": "x"})),
        says("pity"),
        Answer::Hangs("well".to_owned()),
    ]);
    let product = product(&model);
    let ran = python(&peers, &product, SCRIPT);
    assert!(ran.stdout.contains("all is well"), "{ran:?}");
}

#[test]
fn what_is_sent_fits_the_schema_of_the_protocol() {
    let Some(peers) = Peers::install(&PEERS) else {
        return;
    };
    let model = Model::new([
        calls("write", json!({"path": "a.txt", "content": "x"})),
        calls("bash", json!({"command": "exit 3"})),
        says("done"),
    ]);
    let product = product(&model);
    let mut client = Client::start(&product, &["--allow", "bash"], plain());
    let new = json!({"cwd": product.work, "mcpServers": []});
    let mut asked = BTreeMap::from([("1".to_owned(), "InitializeResponse")]);
    let id = client.request("session/new", &new);
    asked.insert(id.to_string(), "NewSessionResponse");
    let answer = client.wait(id, |_, request| panic!("{request}")).unwrap();
    let session = answer["sessionId"].as_str().unwrap().to_owned();
    let id = client.send_prompt(&session, "go");
    asked.insert(id.to_string(), "PromptResponse");
    client
        .wait(id, |client, request| {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            client.answer(request, &outcome);
        })
        .unwrap();
    let of = json!({"sessionId": session});
    let place = json!({"sessionId": session, "cwd": product.work, "mcpServers": []});
    for (method, params, definition) in [
        (
            "session/set_mode",
            json!({"sessionId": session, "modeId": "edit"}),
            "SetSessionModeResponse",
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "model", "value": "other"}),
            "SetSessionConfigOptionResponse",
        ),
        ("session/list", json!({}), "ListSessionsResponse"),
        ("session/load", place.clone(), "LoadSessionResponse"),
        ("session/close", of.clone(), "CloseSessionResponse"),
        ("session/resume", place, "ResumeSessionResponse"),
        ("session/delete", of, "DeleteSessionResponse"),
        ("session/none", json!({}), "Error"),
    ] {
        let id = client.request(method, &params);
        asked.insert(id.to_string(), definition);
        let answer = client.wait(id, |_, request| panic!("{request}"));
        assert_eq!(answer.is_err(), definition == "Error", "{method}");
    }
    check(&peers, &client.heard, &asked);
}
