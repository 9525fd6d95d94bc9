//! MCP servers as a source of tools: started in the real jail, pinned, offered, called, contained.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::{McpClient, text};
use crate::product::Product;
use crate::running::Running;

const SERVER: &str = include_str!("mcp_servers/server.py");

/// How long something may take to be gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A product with servers in the user's configuration.
struct Room {
    product: Product,
    config: String,
}

impl Room {
    fn new() -> Self {
        let product = Product::new();
        fs::create_dir(product.home.join("servers")).unwrap();
        let room = Self {
            product,
            config: String::new(),
        };
        fs::write(room.script(), SERVER).unwrap();
        room
    }

    fn script(&self) -> PathBuf {
        self.product.home.join("servers/server.py")
    }

    /// Adds a server; `more` are further keys of its table.
    fn server(mut self, name: &str, env: &[(&str, &str)], more: &str) -> Self {
        let script = self.script();
        let env: Vec<String> = env
            .iter()
            .map(|(name, value)| format!("{name} = {value:?}"))
            .collect();
        self.config.push_str(&format!(
            "[mcp.servers.{name}]\ncommand = \"python3\"\nargs = [{script:?}]\nallow_read = [{home:?}]\nenv = {{ {env} }}\n{more}\n",
            home = self.product.home.join("servers"),
            env = env.join(", "),
        ));
        self.write();
        self
    }

    fn write(&self) {
        let folder = self.folder();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), &self.config).unwrap();
    }

    /// Where the configuration and the pins are.
    fn folder(&self) -> PathBuf {
        self.product.home.join(".config/zeph-host")
    }

    fn lock(&self) -> String {
        fs::read_to_string(self.folder().join("zeph.lock")).unwrap()
    }

    /// The file that changes what the first tool says about itself.
    fn definitions(&self) -> PathBuf {
        self.product.home.join("servers/definitions.json")
    }

    fn run(&self, args: &[&str]) -> Running {
        Running::start(&self.product, args)
    }

    /// Calls a tool as the person at the terminal.
    fn call(&self, tool: &str, arguments: &[&str]) -> Value {
        let args = [&["call", tool, "--output", "json"], arguments].concat();
        let ran = self.product.run(&args);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    fn standing(&self, name: &str) -> Value {
        let listed = self.product.run(&["mcp", "list", "--json"]).json();
        let found = listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name);
        found.unwrap_or_else(|| panic!("{listed:#}")).clone()
    }
}

fn ok(answer: &Value, expect: &str) {
    assert_eq!(answer["status"], "ok", "{answer:#}");
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains(expect), "{answer:#}");
}

fn refused(answer: &Value, category: &str, part: &str) {
    assert_eq!(answer["error"]["category"], category, "{answer:#}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(part), "{answer:#}");
}

#[test]
fn tools_of_servers_are_tools() {
    let room = Room::new()
        .server("notes", &[], "")
        .server("other", &[], "");
    let tools = room.product.run(&["tools", "--json"]).json();
    let named = |name: &str| {
        tools
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
    };
    for name in [
        "mcp_notes_echo",
        "mcp_notes_files_read",
        "mcp_other_echo",
        "read",
        "bash",
    ] {
        assert!(named(name).is_some(), "{name}");
    }
    assert_eq!(
        named("mcp_notes_echo").unwrap()["backend"]["mcp"]["tool"],
        "echo"
    );
    ok(&room.call("mcp_notes_echo", &["text=hello"]), "hello");
    let file = room.script();
    let path = format!("path={}", file.display());
    ok(
        &room.call("mcp_other_files_read", &[&path]),
        "An MCP server without dependencies",
    );
    let looked = room.product.run(&["doctor", "--json"]).json();
    let checks = looked["checks"].as_array().unwrap().iter();
    let mut servers = checks.filter(|check| check["group"] == "mcp servers");
    assert!(servers.any(|check| check["name"] == "notes"), "{looked:#}");
    let lock = room.lock();
    for part in [
        "[[server]]",
        "name = \"files.read\"",
        "Be gentle.",
        "[[server.prompt]]",
    ] {
        assert!(lock.contains(part), "{part}\n{lock}");
    }
}

/// `mcp_notes_more_echo` is the tool `echo` of `notes_more`, and would be the tool `more_echo` of `notes`.
#[test]
fn a_name_stays_with_its_server_whatever_runs() {
    let room = Room::new();
    let definitions = room.definitions();
    fs::write(&definitions, json!({"name": "more_echo"}).to_string()).unwrap();
    let file = definitions.to_str().unwrap().to_owned();
    let room = room.server("notes", &[("DEFINITIONS", &file)], "");
    let rule = ["--allow", "mcp_notes_more_echo"];
    // With this server alone, there is one such tool.
    let named = room.standing("notes")["tools"].to_string();
    assert!(named.contains("\"mcp_notes_more_echo\""), "{named}");
    let mut room = room.server("notes_more", &[], "");
    let mut host = room.run(&rule);
    ok(
        &host.call("mcp_notes_more_echo", &json!({"text": "x"})),
        "x",
    );
    drop(host);
    let standing = room.standing("notes");
    let tools = standing["tools"].as_array().unwrap();
    let mut tools = tools.iter().filter_map(Value::as_str);
    let hashed = tools.find(|name| name.ends_with("_more_echo")).unwrap();
    assert_ne!(hashed, "mcp_notes_more_echo");
    let notes = standing["notes"].to_string();
    assert!(
        notes.contains(&format!("`more_echo` is offered as `{hashed}`")),
        "{notes}"
    );
    let shown = room.product.run(&["mcp", "info", "notes"]);
    assert!(shown.stdout.contains(hashed), "{shown:?}");
    let checked = room.product.run(&["config", "check"]);
    let note = "`mcp_notes_more_` belong to MCP server `notes_more`";
    assert!(checked.stderr.contains(note), "{checked:?}");
    // Nor does it move when its owner is off.
    room.config.push_str("disabled = true\n");
    room.write();
    let mut host = room.run(&rule);
    let off = host.call("mcp_notes_more_echo", &json!({"text": "x"}));
    refused(&off, "policy_blocked", "mcp.servers.notes_more.disabled");
    let asked = host.call(hashed, &json!({"text": "x"}));
    refused(
        &asked,
        "confirmation_required",
        &format!("--allow {hashed}"),
    );
}

#[test]
fn a_call_asks_and_rules_hold() {
    let more = "denied_tools = [\"write\"]\n[mcp.servers.notes.tools.variable]\nname = \"look_up\"";
    let room = Room::new().server("notes", &[], more);
    let mut host = room.run(&["--allow", "mcp_notes_variable"]);
    let asked = host.call("mcp_notes_echo", &json!({"text": "x"}));
    refused(&asked, "confirmation_required", "--allow mcp_notes_echo");
    // A rule holds under the original name, whatever the tool is offered as, and however it is called.
    for name in ["look_up", "mcp_notes_variable"] {
        ok(&host.call(name, &json!({"text": "HOME"})), "/");
    }
    let denied = host.call("mcp_notes_write", &json!({"path": "x", "text": "y"}));
    refused(&denied, "policy_blocked", "denied_tools");
    drop(host);
    let mut host = room.run(&["--allow", "look_up"]);
    ok(
        &host.call("mcp_notes_variable", &json!({"text": "HOME"})),
        "/",
    );
    drop(host);
    let rules = [
        "--allow",
        "mcp_notes_*",
        "--set",
        "tools.scoped.enabled=true",
        "--set",
        "tools.scoped.denied_tools=mcp_notes_variable",
    ];
    let mut host = room.run(&rules);
    ok(&host.call("mcp_notes_echo", &json!({"text": "x"})), "x");
    refused(
        &host.call("look_up", &json!({"text": "HOME"})),
        "policy_blocked",
        "",
    );
}

/// It stood in `mcp list` alone. What a server has is known before it runs once it was accepted.
#[test]
fn a_misspelt_tool_of_an_accepted_server_is_told_by_config_check() {
    let room = Room::new().server("notes", &[], "denied_tools = [\"wirte\"]");
    let told = "MCP server `notes`: `denied_tools` lists `wirte`, which the server does not have; did you mean `write`?";
    let checked = || room.product.run(&["config", "check"]).stderr;
    assert!(!checked().contains("wirte"), "it was never accepted");
    let tested = room.product.run(&["mcp", "test", "notes"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    let checked = checked();
    assert!(checked.contains(told), "{checked}");
}

#[test]
fn a_trusted_server_is_believed_what_it_only_reads() {
    let room = Room::new()
        .server("believed", &[], "trust_level = \"trusted\"")
        .server("doubted", &[], "")
        .server("boxed", &[], "trust_level = \"sandboxed\"")
        .server(
            "listed",
            &[],
            "trust_level = \"sandboxed\"\nallowed_tools = [\"echo\"]",
        );
    let mut host = room.run(&[]);
    ok(&host.call("mcp_believed_echo", &json!({"text": "x"})), "x");
    let tool = "mcp_believed_variable";
    refused(
        &host.call(tool, &json!({"text": "x"})),
        "confirmation_required",
        "",
    );
    let tool = "mcp_doubted_echo";
    refused(
        &host.call(tool, &json!({"text": "x"})),
        "confirmation_required",
        "",
    );
    let tool = "mcp_boxed_echo";
    refused(
        &host.call(tool, &json!({"text": "x"})),
        "policy_blocked",
        "sandboxed",
    );
    let tool = "mcp_listed_echo";
    refused(
        &host.call(tool, &json!({"text": "x"})),
        "confirmation_required",
        "",
    );
}

#[test]
fn what_a_server_does_wrong_costs_its_own_call() {
    let room = Room::new()
        .server("bad", &[], "tool_timeout = 3")
        .server("good", &[], "");
    let mut host = room.run(&["--allow", "*"]);
    let nothing = json!({});
    let crashed = host.call("mcp_bad_crash", &nothing);
    assert_eq!(crashed["status"], "failed", "{crashed}");
    ok(
        &host.call("mcp_bad_echo", &json!({"text": "again"})),
        "again",
    );
    refused(
        &host.call("mcp_bad_hang", &nothing),
        "timeout",
        "within 3 s",
    );
    ok(
        &host.call("mcp_good_echo", &json!({"text": "unharmed"})),
        "unharmed",
    );
    ok(&host.call("mcp_bad_garbage", &nothing), "after garbage");
    ok(&host.call("mcp_bad_other_id", &nothing), "the right one");
    let flooded = host.call("mcp_bad_flood", &nothing);
    assert_eq!(flooded["status"], "failed", "{flooded}");
    ok(
        &host.call("mcp_bad_echo", &json!({"text": "still"})),
        "still",
    );
    let failed = host.call("mcp_bad_fail", &nothing);
    refused(&failed, "permanent_failure", "it did not work out");
    for method in ["sampling/createMessage", "roots/list", "elicitation/create"] {
        let asked = host.call("mcp_bad_ask", &json!({"method": method}));
        ok(&asked, "error");
    }
    ok(
        &host.call("mcp_good_echo", &json!({"text": "last"})),
        "last",
    );
}

#[test]
fn a_cancelled_call_ends_and_the_next_works() {
    let room = Room::new().server("slow", &[], "");
    let mut host = room.run(&["--allow", "*"]);
    ok(&host.call("mcp_slow_echo", &json!({"text": "up"})), "up");
    host.begin("mcp_slow_hang", &json!({}));
    host.cancel();
    refused(&host.answer(), "cancelled", "");
    ok(&host.call("mcp_slow_slow", &json!({})), "done");
}

#[test]
fn a_server_that_hangs_at_start_holds_up_nobody() {
    let room = Room::new()
        .server("stuck", &[("MODE", "hang")], "")
        .server("dead", &[("MODE", "exit")], "")
        .server("good", &[], "");
    let config = ["--set", "mcp.start_timeout=2"];
    let listed = room
        .product
        .run(&[&config[..], &["mcp", "list", "--json"]].concat())
        .json();
    let standing = |name: &str| {
        listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(standing("good")["status"], "active", "{listed:#}");
    for (name, reason) in [
        ("stuck", "within 2 s"),
        ("dead", "there is something wrong with me"),
    ] {
        assert_eq!(standing(name)["status"], "failed", "{listed:#}");
        let why = standing(name)["reason"].as_str().unwrap().to_owned();
        assert!(why.contains(reason), "{name}: {why}");
    }
    let tested = room
        .product
        .run(&[&config[..], &["mcp", "test", "dead"]].concat());
    assert_eq!(tested.code, Some(1), "{tested:?}");
    assert!(
        tested.stdout.contains("there is something wrong with me"),
        "{tested:?}"
    );
    let mut host = room.run(&[&config[..], &["--allow", "*"]].concat());
    ok(
        &host.call("mcp_good_echo", &json!({"text": "there"})),
        "there",
    );
    let dead = host.call("mcp_dead_echo", &json!({"text": "x"}));
    refused(&dead, "server_error", "mcp test dead");
}

#[test]
fn a_changed_server_is_off_until_it_is_approved() {
    let room = Room::new();
    let definitions = room.definitions();
    let file = definitions.to_str().unwrap().to_owned();
    let room = room.server("notes", &[("DEFINITIONS", &file)], "");
    assert_eq!(room.standing("notes")["status"], "active");
    let same = room.product.run(&["mcp", "approve", "notes"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.stdout.contains("nothing to approve"), "{same:?}");

    fs::write(
        &definitions,
        json!({"description": "Sends everything to me."}).to_string(),
    )
    .unwrap();
    assert_eq!(room.standing("notes")["status"], "changed");
    let mut host = room.run(&["--allow", "*"]);
    host.note(&["MCP server `notes`", "mcp approve notes"]);
    let off = host.call("mcp_notes_echo", &json!({"text": "x"}));
    refused(&off, "policy_blocked", "mcp approve notes");

    let shown = room.product.run(&["mcp", "approve", "notes"]);
    assert_eq!(shown.code, Some(5), "{shown:?}");
    for part in [
        "~ tool `mcp_notes_echo`",
        "Gives back what it is given.",
        "Sends everything to me.",
    ] {
        assert!(shown.stdout.contains(part), "{part} {shown:?}");
    }
    let before = room.lock();
    let json = room.product.run(&["mcp", "approve", "notes", "--json"]);
    assert_eq!(
        (json.code, json.json()["approved"].clone()),
        (Some(5), json!(false))
    );
    assert_eq!(room.lock(), before);

    let approved = room.product.run(&["mcp", "approve", "notes", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    // The host that runs follows.
    host.note(&["MCP server `notes`", "tools"]);
    ok(
        &host.call("mcp_notes_echo", &json!({"text": "back"})),
        "back",
    );
    assert_eq!(room.standing("notes")["status"], "active");
}

#[test]
fn another_command_line_does_not_run_before_it_is_approved() {
    let mut room = Room::new().server("notes", &[], "");
    assert_eq!(room.standing("notes")["status"], "active");
    let witness = room.product.work.join("ran");
    room.config = format!(
        "[mcp.servers.notes]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"touch {witness}\"]\nallow_write = [{work:?}]\n",
        witness = witness.display(),
        work = room.product.work,
    );
    room.write();
    let standing = room.standing("notes");
    assert_eq!(standing["status"], "changed", "{standing}");
    let shown = room.product.run(&["mcp", "approve", "notes"]);
    assert_eq!(shown.code, Some(5), "{shown:?}");
    assert!(shown.stdout.contains("touch"), "{shown:?}");
    assert!(!witness.exists());
}

#[test]
fn tools_that_change_while_it_runs_switch_it_off() {
    let room = Room::new().server("notes", &[], "");
    let mut host = room.run(&["--allow", "*"]);
    ok(&host.call("mcp_notes_grow", &json!({})), "grown");
    host.note(&["MCP server `notes`", "mcp approve notes"]);
    let off = host.call("mcp_notes_new", &json!({}));
    refused(&off, "policy_blocked", "mcp approve notes");
    // Started anew it says what was accepted; what it said later was kept.
    let shown = room.product.run(&["mcp", "approve", "notes"]);
    assert_eq!(shown.code, Some(5), "{shown:?}");
    assert!(shown.stdout.contains("+ tool `mcp_notes_new`"), "{shown:?}");
    let approved = room.product.run(&["mcp", "approve", "notes", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    host.note(&["MCP server `notes`", "tools"]);
    ok(&host.call("mcp_notes_grow", &json!({})), "grown");
    ok(&host.call("mcp_notes_echo", &json!({"text": "on"})), "on");
}

#[test]
fn neighbours_have_no_secrets_of_each_other() {
    let room = Room::new()
        .server("rich", &[("RICH_TOKEN", "t0psecret-value-of-rich")], "")
        .server("poor", &[], "");
    let mut host = room.run(&["--allow", "*"]);
    let name = json!({"text": "RICH_TOKEN"});
    ok(&host.call("mcp_poor_variable", &name), "unset");
    // It has its own, and nobody is shown it.
    let own = host.call("mcp_rich_variable", &name);
    assert_eq!(own["status"], "ok", "{own}");
    assert!(
        !own.to_string().contains("t0psecret-value-of-rich"),
        "{own}"
    );
    let environment = format!("path={}", Path::new("/proc/self/environ").display());
    let environment = host.call(
        "mcp_poor_files_read",
        &json!({"path": environment.split_once('=').unwrap().1}),
    );
    assert!(
        !environment.to_string().contains("t0psecret"),
        "{environment}"
    );
}

#[test]
fn a_server_reaches_what_it_was_granted() {
    let room = Room::new();
    room.product.file("mine.txt", "the user's");
    let work = room.product.work.display().to_string();
    let room =
        room.server("none", &[], "")
            .server("writes", &[], &format!("allow_write = [{work:?}]"));
    let path = |name: &str| format!("path={work}/{name}");
    let refused = room.call("mcp_none_files_read", &[&path("mine.txt")]);
    assert_ne!(refused["status"], "ok", "{refused}");
    ok(
        &room.call("mcp_writes_files_read", &[&path("mine.txt")]),
        "the user's",
    );
    ok(
        &room.call("mcp_writes_write", &[&path("new.txt"), "text=hello"]),
        "written",
    );
    assert_eq!(room.product.read("new.txt"), "hello");
    let lock = format!("path={}", room.folder().join("zeph.lock").display());
    let pins = room.call("mcp_writes_files_read", &[&lock]);
    assert_ne!(pins["status"], "ok", "{pins}");
}

#[test]
fn calls_are_counted_and_recorded() {
    let more = "rate_limit = { max_calls_per_minute = 2 }";
    let room = Room::new().server("notes", &[], more);
    let mut host = room.run(&["--allow", "*"]);
    for _ in 0..2 {
        ok(&host.call("mcp_notes_echo", &json!({"text": "x"})), "x");
    }
    let limited = host.call("mcp_notes_echo", &json!({"text": "x"}));
    refused(&limited, "rate_limited", "max_calls_per_minute");
    drop(host);
    let rows = room
        .product
        .run(&["audit", "query", "--json", "--tool", "mcp_notes_echo"]);
    let rows = rows.json_lines();
    assert_eq!(rows.len(), 3, "{rows:#?}");
    for row in &rows {
        assert_eq!(row["mcp_server_id"], "notes", "{row}");
        assert_eq!(row["claim_source"], "mcp", "{row}");
        assert!(row["cache_age_ms"].is_null(), "{row}");
    }
}

#[test]
fn many_tools_and_deceptive_texts_are_bounded() {
    let room = Room::new()
        .server("many", &[("N_TOOLS", "10000")], "")
        .server("sly", &[("MODE", "deceptive")], "");
    let listed = room.product.run(&["mcp", "list", "--json"]).json();
    for row in listed.as_array().unwrap() {
        assert_eq!(row["status"], "active", "{row:#}");
        let n_tools = row["tools"].as_array().unwrap().len();
        assert!(n_tools <= 2_000, "{n_tools}");
    }
    let tools = room.product.run(&["tools", "--json"]);
    assert!(!tools.stdout.contains('\u{202e}'));
    assert!(tools.stdout.len() < 20_000_000);
}

#[test]
fn a_client_of_ours_sees_them_and_hears_of_changes() {
    let room = Room::new().server("notes", &[], "");
    let mut client = McpClient::legacy(&room.product, &["--allow", "mcp_notes_*"], &json!({}));
    let tools = client.tools();
    let echo = tools
        .iter()
        .find(|tool| tool["name"] == "mcp_notes_echo")
        .unwrap();
    // What a stranger says of itself is not passed on as our word.
    assert_eq!(echo["annotations"]["readOnlyHint"], false, "{echo}");
    let done = client.call("mcp_notes_echo", json!({"text": "through two"}));
    assert!(text(&done).contains("through two"), "{done}");
    client.close();
}

#[test]
fn nothing_is_left_when_the_host_is_killed() {
    let room = Room::new().server("notes", &[], "");
    let mark = room.script().display().to_string();
    let mut host = room.run(&["--allow", "*"]);
    ok(&host.call("mcp_notes_daemon", &json!({})), "left");
    assert!(n_processes(&mark) > 0);
    // `Running` kills the host with SIGKILL.
    drop(host);
    let deadline = Instant::now() + PATIENCE;
    while n_processes(&mark) > 0 {
        assert!(
            Instant::now() < deadline,
            "{} processes are left",
            n_processes(&mark)
        );
        std::thread::yield_now();
    }
}

/// Processes of this machine whose command line holds `mark`.
fn n_processes(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_one = |folder: PathBuf| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    entries.filter(|entry| is_one(entry.path())).count()
}
