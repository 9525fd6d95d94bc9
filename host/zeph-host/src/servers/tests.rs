use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;
use zeph_config::{CommandServer, ListedTool, ServerConfig, ServerTransport, TrustLevel};
use zeph_core::category::ErrorCategory;
use zeph_core::id::ServerName;
use zeph_egress::Pending;
use zeph_engine::Cancel;
use zeph_mcp::client::{self, CallControl, ConnectionOptions, Era, ServerListener};
use zeph_plugins::event::{PluginEvent, Tell};
use zeph_plugins::server;

use super::opener::{Launch, LaunchPlan, OpenFailure, OpenedServer, Opener};
use super::{ServerState, Servers, ServersOptions, may_have, tell_news};
use crate::known_secrets::KnownSecrets;

/// A stored secret, named `KEY`.
const SECRET: &str = "S3cretValue-9988776655";

/// What the servers of a test do, and how often each was opened.
#[derive(Debug, Default)]
struct Stage {
    plan: Mutex<LaunchPlan>,
    failure: Mutex<Option<OpenFailure>>,
    tools: Mutex<Vec<&'static str>>,
    n_opened: AtomicU32,
    /// Whether it knows the newest revision alone.
    is_stateless: AtomicBool,
}

#[derive(Debug, Clone)]
struct StageOpener(Arc<Stage>);

impl Opener for StageOpener {
    fn plan<'a>(
        &'a self,
        _name: &'a ServerName,
        _config: &'a ServerConfig,
        _accepted: Option<&'a LaunchPlan>,
    ) -> Pending<'a, Result<Box<dyn Launch>, OpenFailure>> {
        let failure = self.0.failure.lock().unwrap().clone();
        let launch: Box<dyn Launch> = Box::new(self.clone());
        Box::pin(std::future::ready(failure.map_or(Ok(launch), Err)))
    }
}

impl Launch for StageOpener {
    fn plan(&self) -> LaunchPlan {
        self.0.plan.lock().unwrap().clone()
    }

    fn open(&self) -> Pending<'_, Result<OpenedServer, OpenFailure>> {
        self.0.n_opened.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        #[expect(clippy::disallowed_methods, reason = "it ends with its stream")]
        drop(tokio::spawn(serve(theirs, Arc::clone(&self.0))));
        let (from_server, to_server) = tokio::io::split(ours);
        let opened = OpenedServer {
            transport: client::ServerTransport::Pipes {
                from_server: Box::new(from_server),
                to_server: Box::new(to_server),
            },
            process: None,
        };
        Box::pin(std::future::ready(Ok(opened)))
    }
}

/// A server on the other end of a stream: `end` ends it, `grow` gives it another tool.
async fn serve(stream: DuplexStream, stage: Arc<Stage>) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        if request["id"].is_null() {
            continue;
        }
        if request["params"]["name"] == "end" {
            return;
        }
        if request["params"]["name"] == "hang" {
            std::future::pending::<()>().await;
        }
        let mut answer = answer(&request, &stage);
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        let mut text = format!("{answer}\n");
        if request["params"]["name"] == "grow" {
            stage.tools.lock().unwrap().push("grown");
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            text.push_str(&format!("{changed}\n"));
        }
        if write.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(request: &Value, stage: &Stage) -> Value {
    let is_stateless = stage.is_stateless.load(Ordering::SeqCst);
    match request["method"].as_str() {
        Some("server/discover") if is_stateless => json!({"result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "stage", "version": "1"},
        }}),
        Some("initialize") if !is_stateless => json!({"result": {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "stage", "version": SECRET},
            "instructions": format!("use {SECRET}"),
        }}),
        Some("tools/list") => {
            let tools = stage.tools.lock().unwrap().clone();
            let tool = |name: &&str| {
                let support = if *name == "task" {
                    "required"
                } else {
                    "optional"
                };
                json!({
                    "name": name, "description": format!("{name} with {SECRET}"),
                    "inputSchema": {"type": "object"}, "execution": {"taskSupport": support},
                })
            };
            json!({"result": {"tools": tools.iter().map(tool).collect::<Value>()}})
        }
        Some("tools/call") => json!({"result": {"content": [{"type": "text", "text": "done"}]}}),
        _ => json!({"error": {"code": -32601, "message": "no such method"}}),
    }
}

struct Lab {
    servers: Servers,
    stage: Arc<Stage>,
    lock: PathBuf,
    _folder: TempDir,
    _tasks: JoinSet<()>,
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

fn config() -> ServerConfig {
    let command = CommandServer::new("stage", Vec::new());
    ServerConfig::new(ServerTransport::Command(command), Duration::from_secs(5))
}

fn listed(tools: &[&str]) -> Vec<ListedTool> {
    let listed = tools.iter().map(|tool| ListedTool::new(*tool).unwrap());
    listed.collect()
}

impl Lab {
    /// A room with the server `stage`.
    fn new(tools: &[&'static str], config: ServerConfig) -> Self {
        Self::heard_by(None, tools, config)
    }

    /// A room with the server `stage`, whose words `listener` hears.
    fn heard_by(
        listener: Option<Arc<dyn ServerListener>>,
        tools: &[&'static str],
        config: ServerConfig,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stage = Arc::new(Stage::default());
        *stage.tools.lock().unwrap() = tools.to_vec();
        stage.plan.lock().unwrap().launch = vec!["stage".to_owned()];
        let lock = folder.path().join("zeph.lock");
        let secrets = folder.path().join("secrets");
        let secrets = KnownSecrets::of_one(&secrets, "KEY", SECRET).unwrap();
        let mut tasks = JoinSet::new();
        let options = ServersOptions {
            keeps_changes: false,
            servers: [(name("stage"), config)].into(),
            lock: Some(lock.clone()),
            options: ConnectionOptions {
                start_timeout: Duration::from_secs(5),
                ..ConnectionOptions::new("1")
            },
            opener: Arc::new(StageOpener(Arc::clone(&stage))),
            secrets: Arc::new(secrets),
            listener,
            is_eager: false,
            program: "zeph-host".to_owned(),
            clock: || 0,
        };
        Self {
            servers: Servers::start(options, &mut tasks),
            stage,
            lock,
            _folder: folder,
            _tasks: tasks,
        }
    }

    /// Waits for a state; its label.
    async fn until(&self, label: &str) {
        let mut watch = self.servers.watch();
        let is_so = watch.wait_for(|set| set.standing("stage").unwrap().state.label() == label);
        let waited = tokio::time::timeout(Duration::from_secs(10), is_so).await;
        let state = self.servers.set().standing("stage").unwrap().state.label();
        assert!(waited.is_ok(), "{label}, not {state}");
    }

    fn tools(&self) -> Vec<String> {
        let set = self.servers.set();
        set.tools()
            .map(|offered| offered.tool.name.to_string())
            .collect()
    }

    fn n_opened(&self) -> u32 {
        self.stage.n_opened.load(Ordering::SeqCst)
    }

    async fn connection(&self) -> Result<client::Connection, zeph_core::failure::ToolFailure> {
        let patience = Duration::from_secs(10);
        self.servers
            .connection(&name("stage"), patience, &Cancel::new())
            .await
    }

    async fn call(&self, tool: &str) -> Result<client::CallAnswer, client::McpError> {
        let connection = self.connection().await.unwrap();
        connection
            .call(tool, serde_json::Map::new(), CallControl::default())
            .await
    }
}

#[tokio::test]
async fn a_server_is_started_when_it_is_wanted() {
    let lab = Lab::new(&["one", "two"], config());
    lab.servers.settled().await;
    assert_eq!((lab.n_opened(), lab.tools()), (0, Vec::new()));
    lab.servers.want_for("mcp_other_one");
    lab.until("idle").await;
    lab.servers.want_for("mcp_stage_one");
    lab.servers.settled().await;
    lab.until("active").await;
    assert_eq!(lab.tools(), ["mcp_stage_one", "mcp_stage_two"]);
    assert_eq!(lab.n_opened(), 1);
}

#[tokio::test]
async fn what_ends_is_started_again_and_keeps_its_tools() {
    let lab = Lab::new(&["one"], config());
    assert!(lab.call("one").await.is_ok());
    for n in 2..5 {
        assert!(lab.call("end").await.is_err());
        assert_eq!(lab.tools(), ["mcp_stage_one"]);
        assert!(lab.call("one").await.is_ok());
        assert_eq!(lab.n_opened(), n);
    }
}

#[tokio::test]
async fn one_that_hangs_is_started_again() {
    let lab = Lab::new(&["one"], config());
    let connection = lab.connection().await.unwrap();
    let control = CallControl {
        timeout: Some(Duration::from_millis(100)),
        ..CallControl::default()
    };
    let call = connection.call("hang", serde_json::Map::new(), control);
    let given_up = lab.servers.watched(&name("stage"), call).await;
    assert!(given_up.is_err(), "{given_up:?}");
    assert!(lab.call("one").await.is_ok());
    assert_eq!(lab.n_opened(), 2);
}

#[tokio::test]
async fn another_command_line_is_not_run_before_it_is_accepted() {
    let lab = Lab::new(&["one"], config());
    assert!(lab.call("one").await.is_ok());
    lab.stage
        .plan
        .lock()
        .unwrap()
        .launch
        .push("--evil".to_owned());
    assert!(lab.call("end").await.is_err());
    lab.until("changed").await;
    assert_eq!((lab.n_opened(), lab.tools()), (1, Vec::new()));
    let failure = lab.connection().await.expect_err("off");
    assert_eq!(failure.category, ErrorCategory::PolicyBlocked);
    assert!(
        failure.message.contains("zeph-host mcp approve stage"),
        "{failure:?}"
    );
    let set = lab.servers.set();
    let ServerState::Changed(changed) = &set.standing("stage").unwrap().state else {
        panic!("{set:?}");
    };
    server::accept(&lab.lock, &changed.old, changed.new.clone()).unwrap();
    lab.until("active").await;
    assert_eq!(
        (lab.n_opened(), lab.tools()),
        (2, vec!["mcp_stage_one".to_owned()])
    );
}

#[tokio::test]
async fn other_tools_switch_it_off() {
    let lab = Lab::new(&["one", "grow"], config());
    assert!(lab.call("grow").await.is_ok());
    lab.until("changed").await;
    assert_eq!(lab.tools(), Vec::<String>::new());
}

#[tokio::test]
async fn a_failure_is_told_and_tried_again() {
    let lab = Lab::new(&["one"], config());
    let reason = "there is no program `stage`".to_owned();
    *lab.stage.failure.lock().unwrap() = Some(OpenFailure::Failed(reason));
    let failure = lab.connection().await.expect_err("it does not run");
    assert_eq!(failure.category, ErrorCategory::ServerError);
    assert!(
        failure.message.contains("there is no program"),
        "{failure:?}"
    );
    *lab.stage.failure.lock().unwrap() = None;
    lab.until("active").await;
}

#[tokio::test]
async fn one_that_is_off_stays_off() {
    let off = ServerConfig {
        disabled: true,
        ..config()
    };
    let lab = Lab::new(&["one"], off);
    lab.servers.want_all();
    lab.servers.settled().await;
    let failure = lab.connection().await.expect_err("off");
    assert!(
        failure.message.contains("mcp.servers.stage.disabled"),
        "{failure:?}"
    );
    assert_eq!(lab.n_opened(), 0);
}

#[tokio::test]
async fn lists_say_what_is_offered_and_why_not() {
    let listed = ServerConfig {
        allowed_tools: listed(&["one", "two", "none"]),
        denied_tools: listed(&["two"]),
        ..config()
    };
    let lab = Lab::new(&["one", "two", "three"], listed);
    lab.connection().await.unwrap();
    assert_eq!(lab.tools(), ["mcp_stage_one"]);
    for (tool, why) in [
        ("mcp_stage_two", "`denied_tools`"),
        ("mcp_stage_three", "`allowed_tools`"),
    ] {
        let failure = lab.servers.why(tool).unwrap();
        assert!(failure.message.contains(why), "{failure:?}");
    }
    assert!(lab.servers.why("mcp_stage_nothing").is_none());
    let set = lab.servers.set();
    let notes = set.standing("stage").unwrap().notes.join(" ");
    assert!(notes.contains("`allowed_tools` lists `none`"), "{notes}");
}

#[tokio::test]
async fn lists_take_globs() {
    let listed = ServerConfig {
        allowed_tools: listed(&["t*", "x?"]),
        denied_tools: listed(&["*ree"]),
        ..config()
    };
    let lab = Lab::new(&["one", "two", "three"], listed);
    lab.connection().await.unwrap();
    assert_eq!(lab.tools(), ["mcp_stage_two"]);
    let failure = lab.servers.why("mcp_stage_three").unwrap();
    assert!(failure.message.contains("`denied_tools`"), "{failure:?}");
    let set = lab.servers.set();
    let notes = set.standing("stage").unwrap().notes.join(" ");
    assert!(notes.contains("`allowed_tools` lists `x?`"), "{notes}");
    assert!(!notes.contains("t*") && !notes.contains("ree"), "{notes}");
}

/// It stood in `mcp list` alone.
#[tokio::test]
async fn a_misspelt_tool_of_a_list_is_told_once_when_the_server_is_there() {
    let denied = ServerConfig {
        denied_tools: listed(&["tow", "o*"]),
        ..config()
    };
    let lab = Lab::new(&["one", "two", "end"], denied);
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let tell: Tell = Arc::new(move |event: &PluginEvent| drop(sender.send(event.to_string())));
    tasks.spawn(tell_news(lab.servers.watch(), "zeph-host".to_owned(), tell));
    assert!(lab.call("end").await.is_err());
    assert!(lab.call("two").await.is_ok());
    let expect = "MCP server `stage`: `denied_tools` lists `tow`, which the server does not have; did you mean `two`?";
    assert_eq!(told.recv().await.unwrap(), expect);
    drop(tasks);
    while let Some(more) = told.recv().await {
        assert!(!more.contains("tow"), "{more}");
    }
}

#[tokio::test]
async fn no_secret_is_shown_or_pinned_of_what_a_server_offers() {
    let lab = Lab::new(&["one"], config());
    let connection = lab.connection().await.unwrap();
    assert_eq!(lab.tools(), ["mcp_stage_one"]);
    let pinned = std::fs::read_to_string(&lab.lock).unwrap();
    let set = lab.servers.set();
    let shown = format!("{set:?} {:?}", connection.info());
    for (text, said) in [
        (&pinned, "use [redacted: KEY]"),
        (&shown, "one with [redacted: KEY]"),
    ] {
        assert!(text.contains(said) && !text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
async fn a_tool_that_needs_a_task_is_not_offered() {
    let lab = Lab::new(&["one", "task"], config());
    lab.connection().await.unwrap();
    assert_eq!(lab.tools(), ["mcp_stage_one"]);
    let failure = lab.servers.why("mcp_stage_task").unwrap();
    assert!(failure.message.contains("taskSupport"), "{failure:?}");
}

/// The client of a wrapped server, which speaks the older revisions.
#[derive(Debug)]
struct Older;

impl ServerListener for Older {
    fn era(&self) -> Pending<'_, Era> {
        Box::pin(std::future::ready(Era::Initialize))
    }
}

#[tokio::test]
async fn a_server_is_spoken_to_in_the_generation_of_its_client_if_it_knows_it() {
    for (is_stateless, protocol, n_opened) in [(false, "2025-11-25", 1), (true, "2026-07-28", 2)] {
        let lab = Lab::heard_by(Some(Arc::new(Older)), &["one"], config());
        lab.stage.is_stateless.store(is_stateless, Ordering::SeqCst);
        let connection = lab.connection().await.unwrap();
        assert_eq!(connection.info().protocol, protocol);
        assert_eq!(lab.n_opened(), n_opened);
    }
}

#[tokio::test]
async fn a_sandboxed_server_without_a_list_offers_nothing() {
    let boxed = ServerConfig {
        trust: TrustLevel::Sandboxed,
        ..config()
    };
    let lab = Lab::new(&["one"], boxed);
    lab.connection().await.unwrap();
    assert_eq!(lab.tools(), Vec::<String>::new());
    let failure = lab.servers.why("mcp_stage_one").unwrap();
    assert!(failure.message.contains("sandboxed"), "{failure:?}");
}

/// They were lost, also under a name that the operator chose, and their order made a server a changed one.
#[tokio::test]
async fn tools_that_come_out_alike_are_all_offered() {
    let named = |name: &str| zeph_config::ToolChoice {
        name: Some(zeph_core::id::ToolName::new(name).unwrap()),
        description: None,
        enabled: true,
        arguments: [].into(),
    };
    let chosen = ServerConfig {
        tools: [
            ("item/get".to_owned(), named("fetch_item")),
            ("other".to_owned(), named("mcp_stage_item_get")),
        ]
        .into(),
        ..config()
    };
    let lab = Lab::new(&["item.get", "item_get", "item/get", "other"], chosen);
    lab.connection().await.unwrap();
    let before = lab.tools();
    let [dot, line, chosen] = before.as_slice() else {
        panic!("{before:?}");
    };
    assert!(
        dot.starts_with("mcp_stage_") && dot.ends_with("_item_get"),
        "{dot}"
    );
    assert_eq!(
        (line.as_str(), chosen.as_str()),
        ("mcp_stage_item_get", "fetch_item")
    );
    let set = lab.servers.set();
    let notes = set.standing("stage").unwrap().notes.join("; ");
    assert!(
        notes.contains(&format!("`item.get` is offered as `{dot}`")),
        "{notes}"
    );
    assert!(!notes.contains("item/get"), "{notes}");
    let failure = lab.servers.why("mcp_stage_other").unwrap();
    assert!(
        failure.message.contains("is named `mcp_stage_item_get`"),
        "{failure:?}"
    );
    // A part of them, in another order.
    *lab.stage.tools.lock().unwrap() = vec!["item/get", "item.get"];
    assert!(lab.call("end").await.is_err());
    lab.connection().await.unwrap();
    assert_eq!(lab.tools(), [chosen.clone(), dot.clone()]);
}

#[test]
fn rules_for_tools_that_may_come() {
    let servers = [(name("Git-Hub"), config())].into();
    for rule in [
        "mcp_git-hub_x",
        "mcp_Git-Hub_*",
        "mcp_*",
        "*",
        "mcp_git-*_x",
    ] {
        assert!(may_have(&servers, rule), "{rule}");
    }
    for rule in [
        "mcp_other_x",
        "mcp_git_x",
        "read",
        "mcp_git-hubx",
        "other_*",
    ] {
        assert!(!may_have(&servers, rule), "{rule}");
    }
}
