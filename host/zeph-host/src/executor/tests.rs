//! Executors made of executors, a host that is one, and executors inside a host. What they run is real: no engine is started where no
//! component is needed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_engine::{Cancel, Progress};

use super::*;
use crate::host::Host;

/// An executor of the tools it is given the names of: it says who it is and what it was asked.
#[derive(Debug, Clone)]
struct Named {
    who: &'static str,
    tools: &'static [&'static str],
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"word": {"type": "string"}}})
}

impl ToolExecutor for Named {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let tools = self.tools.iter();
        tools
            .map(|tool| ToolDefinition::new(*tool, "A tool.", schema()))
            .collect()
    }

    async fn call(&self, call: ToolCall, _options: CallOptions) -> CallReport {
        CallReport::text(format!("{} {} {}", self.who, call.tool, call.arguments))
    }
}

fn names(executor: &impl ToolExecutor) -> Vec<String> {
    let definitions = executor.definitions().into_iter();
    definitions.map(|one| one.name).collect()
}

async fn said(executor: &impl ToolExecutor, tool: &str) -> String {
    let call = ToolCall::new(tool, json!({"word": "x"}));
    let report = executor.call(call, CallOptions::default()).await;
    match report.failure() {
        Some(failure) => format!("! {} {}", failure.category, failure.message),
        None => report.for_model(),
    }
}

/// A host in memory, over a directory of its own, without components.
fn bare_host(directory: &std::path::Path) -> HostBuilder {
    Host::builder()
        .directory(directory)
        .without_components()
        .set("engine.cache_dir", "none")
}

#[tokio::test]
async fn a_call_goes_to_the_first_that_knows_the_tool() {
    let first = Named {
        who: "first",
        tools: &["a"],
    };
    let second = Named {
        who: "second",
        tools: &["b"],
    };
    let third = Named {
        who: "third",
        tools: &["c"],
    };
    let both = CompositeExecutor::new(first, CompositeExecutor::new(second, third).unwrap());
    let all = DynExecutor(Arc::new(both.unwrap()));
    assert_eq!(names(&all), ["a", "b", "c"]);
    assert_eq!(said(&all, "a").await, r#"first a {"word":"x"}"#);
    assert_eq!(said(&all, "c").await, r#"third c {"word":"x"}"#);
    assert_eq!(all.known_as("b").as_deref(), Some("b"));
    assert_eq!(all.known_as("d"), None);
    // What nobody knows goes to the last, which answers for it.
    assert_eq!(said(&all, "d").await, r#"third d {"word":"x"}"#);
}

#[test]
fn a_name_that_both_have_is_an_error() {
    let one = Named {
        who: "one",
        tools: &["a", "b"],
    };
    let other = Named {
        who: "other",
        tools: &["c", "b"],
    };
    let clash = CompositeExecutor::new(one.clone(), other.clone()).unwrap_err();
    assert_eq!(clash.tool, "b");
    let scoped = ScopedExecutor::without(other, ["b"]);
    assert_eq!(
        names(&CompositeExecutor::new(one, scoped).unwrap()),
        ["a", "b", "c"]
    );
}

#[tokio::test]
async fn what_is_out_of_scope_is_not_there() {
    let all = Named {
        who: "all",
        tools: &["a", "b", "c"],
    };
    let only = ScopedExecutor::only(all.clone(), ["a", "z"]);
    let without = ScopedExecutor::without(all, ["a"]);
    assert_eq!(names(&only), ["a"]);
    assert_eq!(names(&without), ["b", "c"]);
    assert!(said(&only, "a").await.starts_with("all a"));
    assert_eq!(
        said(&only, "b").await,
        "! tool_not_found no tool is named `b`"
    );
    assert_eq!(
        said(&without, "a").await,
        "! tool_not_found no tool is named `a`"
    );
    // A tool that no definition names is outside of either.
    assert_eq!(
        said(&without, "z").await,
        "! tool_not_found no tool is named `z`"
    );
}

#[tokio::test]
async fn the_host_is_an_executor() {
    let directory = tempfile::tempdir().unwrap();
    let host = bare_host(directory.path())
        .allow("bash:echo *")
        .build()
        .await
        .unwrap();
    let tools = host
        .session(Caller::model().acting_for("ann"))
        .await
        .unwrap();
    assert!(
        names(&tools).contains(&"bash".to_owned()),
        "{:?}",
        names(&tools)
    );
    let (events, mut heard) = mpsc::channel(8);
    let options = CallOptions {
        events: Some(events.into()),
        ..CallOptions::default()
    };
    let call = ToolCall::new("bash", json!({"command": "echo one"}));
    let report = tools.call(call, options).await;
    assert!(report.output.text.contains("one"), "{}", report.output.text);
    let mut printed = String::new();
    while let Ok(event) = heard.try_recv() {
        if let CallEvent::Output(chunk) = event {
            printed.push_str(&chunk.text);
        }
    }
    assert_eq!(printed, "one\n");
    let asks = ToolCall::new("bash", json!({"command": "touch two"})).acting_for("bob");
    let report = tools.call(asks, CallOptions::default()).await;
    let category = report.failure().map(|failure| failure.category);
    assert_eq!(category, Some(ErrorCategory::ConfirmationRequired));
    let record = host.store().audit_record(report.id).await.unwrap().unwrap();
    assert_eq!(json!(record)["caller_id"], "bob");
}

/// Two hosts of one process: what one may do, knows and has running is nothing of the other.
#[tokio::test]
async fn two_hosts_live_in_one_process() {
    let (one_directory, other_directory) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = std::env::current_dir().unwrap();
    let one = bare_host(one_directory.path())
        .allow("bash")
        .state_in(one_directory.path().join("state"));
    let (one, other) = tokio::join!(one.build(), bare_host(other_directory.path()).build());
    let (one, other) = (one.unwrap(), other.unwrap());
    let of_one = one.session(Caller::program()).await.unwrap();
    let of_other = other.session(Caller::program()).await.unwrap();
    one.learn_secret(zeph_core::execution::SecretValue {
        name: "TOKEN".to_owned(),
        value: "a-value-that-is-known-here".to_owned(),
    });
    let write = ToolCall::new("bash", json!({"command": "pwd; umask; echo 1 >file"}));
    let (done, refused) = tokio::join!(
        of_one.call(write.clone(), CallOptions::default()),
        of_other.call(write, CallOptions::default()),
    );
    assert_eq!(done.failure(), None, "{}", done.output.text);
    let shown = one_directory.path().canonicalize().unwrap();
    assert!(
        done.output.text.contains(shown.to_str().unwrap()),
        "{}",
        done.output.text
    );
    assert!(refused.failure().is_some());
    assert!(one_directory.path().join("file").exists());
    assert!(!other_directory.path().join("file").exists());
    let text = "a-value-that-is-known-here";
    assert_ne!(one.redact(text), text);
    assert_eq!(other.redact(text), text);
    // The log of the process is one: what any host knows is removed from it.
    let logged = crate::known_secrets::for_log(text.as_bytes());
    assert!(logged.is_some_and(|line| !line.contains(text)));
    // One that ends leaves the other as it is.
    drop((of_one, one));
    let call = ToolCall::new("read_overflow", json!({"id": "none"}));
    let report = of_other.call(call, CallOptions::default()).await;
    assert_eq!(
        report.failure().map(|failure| failure.category),
        Some(ErrorCategory::InvalidParameters)
    );
    assert_eq!(std::env::current_dir().unwrap(), here);
}

/// A backend with tools for every way a call can go.
#[derive(Debug, Clone, Default)]
struct Backend {
    /// Told when `wait` has begun.
    begun: Arc<Notify>,
    /// Calls of `wait` that saw their cancel.
    n_cancelled: Arc<AtomicUsize>,
    /// What was asked.
    asked: Arc<Mutex<Vec<ToolCall>>>,
}

impl ToolExecutor for Backend {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let tool = |name: &str| ToolDefinition::new(name, "A tool of a test.", schema());
        vec![
            tool("repeat").reading_only(),
            tool("change"),
            tool("wait").reading_only(),
            tool("stay").reading_only(),
            tool("panic").reading_only(),
            tool("fail").reading_only(),
        ]
    }

    async fn call(&self, call: ToolCall, options: CallOptions) -> CallReport {
        self.asked.lock().unwrap().push(call.clone());
        match call.tool.as_str() {
            "wait" => {
                self.begun.notify_one();
                options.cancel.cancelled().await;
                self.n_cancelled.fetch_add(1, Ordering::SeqCst);
                CallReport::text("as far as it came")
            }
            "stay" => {
                self.begun.notify_one();
                std::future::pending().await
            }
            "panic" => panic!("a defect"),
            "fail" => {
                let failure =
                    ToolFailure::new(ErrorCategory::NetworkError, ErrorPhase::Execution, "no way");
                CallReport::failed(failure)
            }
            _ => {
                if let Some(events) = &options.events {
                    events.tell(CallEvent::Progress(Progress {
                        message: "half".to_owned(),
                        completed: Some(1),
                        total: Some(2),
                    }));
                }
                CallReport::text(call.arguments["word"].as_str().unwrap_or("nothing"))
            }
        }
    }
}

async fn host_with(backend: Backend) -> (tempfile::TempDir, Host, HostExecutor) {
    let directory = tempfile::tempdir().unwrap();
    let host = bare_host(directory.path())
        .set("limits.wall_clock_secs", 1)
        .set("limits.cpu_secs", 1)
        .backend(backend)
        .build()
        .await
        .unwrap();
    let tools = host
        .session(Caller::model().acting_for("ann"))
        .await
        .unwrap();
    (directory, host, tools)
}

fn category(report: &CallReport) -> Option<ErrorCategory> {
    report.failure().map(|failure| failure.category)
}

fn word(tool: &str, word: &str) -> ToolCall {
    ToolCall::new(tool, json!({ "word": word }))
}

#[tokio::test]
async fn a_backend_runs_what_the_line_lets_through() {
    let backend = Backend::default();
    let (_directory, host, tools) = host_with(backend.clone()).await;
    let (events, mut heard) = mpsc::channel(8);
    let options = CallOptions {
        events: Some(events.into()),
        ..CallOptions::default()
    };
    let report = tools.call(word("repeat", "again"), options).await;
    assert_eq!(
        (category(&report), report.output.text.as_str()),
        (None, "again")
    );
    assert!(
        matches!(heard.try_recv(), Ok(CallEvent::Progress(progress)) if progress.message == "half")
    );
    let record = host.store().audit_record(report.id).await.unwrap().unwrap();
    let record = json!(record);
    assert_eq!(
        (&record["tool"], &record["caller_id"]),
        (&json!("repeat"), &json!("ann"))
    );
    // Arguments are checked against the schema, and what changes something asks, before the backend hears of it.
    let wrong = ToolCall::new("repeat", json!({"word": 7}));
    let wrong = tools.call(wrong, CallOptions::default()).await;
    assert_eq!(category(&wrong), Some(ErrorCategory::TypeMismatch));
    let asks = tools
        .call(word("change", "it"), CallOptions::default())
        .await;
    assert_eq!(category(&asks), Some(ErrorCategory::ConfirmationRequired));
    let asked = backend.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].caller_id.as_deref(), Some("ann"));
}

#[tokio::test]
async fn results_of_a_backend_are_redacted() {
    let (_directory, host, tools) = host_with(Backend::default()).await;
    host.learn_secret(zeph_core::execution::SecretValue {
        name: "TOKEN".to_owned(),
        value: "hunter-twenty-two".to_owned(),
    });
    let report = tools
        .call(
            word("repeat", "it is hunter-twenty-two"),
            CallOptions::default(),
        )
        .await;
    assert!(
        !report.output.text.contains("hunter"),
        "{}",
        report.output.text
    );
}

#[tokio::test]
async fn a_backend_that_fails_or_panics_fails_its_call_alone() {
    let (_directory, host, tools) = host_with(Backend::default()).await;
    let failed = tools.call(word("fail", ""), CallOptions::default()).await;
    assert_eq!(category(&failed), Some(ErrorCategory::NetworkError));
    let crashed = tools.call(word("panic", ""), CallOptions::default()).await;
    assert_eq!(category(&crashed), Some(ErrorCategory::ServerError));
    let record = host
        .store()
        .audit_record(crashed.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(json!(record)["result"]["type"], "error", "{record:?}");
    assert_eq!(
        category(
            &tools
                .call(word("repeat", "x"), CallOptions::default())
                .await
        ),
        None
    );
}

#[tokio::test]
async fn a_backend_that_does_not_end_is_ended() {
    let (_directory, _host, tools) = host_with(Backend::default()).await;
    let report = tools.call(word("stay", ""), CallOptions::default()).await;
    assert_eq!(category(&report), Some(ErrorCategory::Timeout));
    assert!(
        report.output.text.contains("limits.wall_clock_secs"),
        "{}",
        report.output.text
    );
}

#[tokio::test]
async fn a_cancel_reaches_the_backend_and_what_it_had_is_kept() {
    let backend = Backend::default();
    let (_directory, _host, tools) = host_with(backend.clone()).await;
    let cancel = Cancel::new();
    let call = tools.call(word("wait", ""), CallOptions::cancelled_by(&cancel));
    let (report, ()) = tokio::join!(call, async {
        backend.begun.notified().await;
        cancel.cancel();
    });
    assert_eq!(category(&report), Some(ErrorCategory::Cancelled));
    assert!(
        report.output.text.contains("as far as it came"),
        "{}",
        report.output.text
    );
    // One that comes before the call is not lost.
    let report = tools
        .call(word("wait", ""), CallOptions::cancelled_by(&cancel))
        .await;
    assert_eq!(category(&report), Some(ErrorCategory::Cancelled));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_still_ends_in_the_audit() {
    let backend = Backend::default();
    let (_directory, host, tools) = host_with(backend.clone()).await;
    let shared = Cancel::new();
    let mut call = Box::pin(tools.call(word("wait", ""), CallOptions::cancelled_by(&shared)));
    tokio::select! {
        report = &mut call => panic!("{report:?}"),
        () = backend.begun.notified() => {}
    }
    drop(call);
    let ended = async {
        loop {
            let records = host
                .store()
                .audit_query(zeph_store::AuditFilter::newest(10))
                .await
                .unwrap();
            let records = json!(records);
            if records.to_string().contains("cancelled") {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
    assert_eq!(backend.n_cancelled.load(Ordering::SeqCst), 1);
    // The token stands for other calls too.
    assert!(!shared.is_cancelled());
}

#[tokio::test]
async fn a_host_is_not_built_over_names_that_clash() {
    for (tools, problem) in [
        (&["bash"][..], "the host has a tool of this name"),
        (&["Shell"], "the host has a tool of this name"),
        (&["read_overflow"], "the host has a tool of this name"),
        (&["a__b"], "names with `__` are those of plugins"),
        (
            &["mcp_files_read"],
            "names that begin with `mcp_` are those of MCP servers",
        ),
        (&["a b"], "tool"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let backend = Named {
            who: "backend",
            tools,
        };
        let built = bare_host(directory.path()).backend(backend).build().await;
        let error = built.unwrap_err();
        let said = zeph_core::failure::chain(&error, 500);
        assert!(said.contains(problem), "{tools:?}: {said}");
    }
}

#[tokio::test]
async fn problems_of_the_configuration_are_told_together() {
    let built = Host::builder()
        .config_text("[tools.shell]\ntimeuot = 5\n")
        .set("limits.cpu_secs", "many")
        .build()
        .await;
    let said = built.unwrap_err().to_string();
    assert!(
        said.contains("timeuot") && said.contains("limits.cpu_secs"),
        "{said}"
    );
    assert!(said.contains("configuration text:2"), "{said}");
}

#[tokio::test]
async fn a_configuration_is_read_from_a_file_a_text_and_values() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    std::fs::write(&file, "[tools.shell]\ntimeout = 7\n").unwrap();
    let timeout = |host: Host| host.config().shell.timeout;
    let built = bare_host(directory.path())
        .config_file(&file)
        .build()
        .await
        .unwrap();
    assert_eq!(timeout(built), Duration::from_secs(7));
    let text = "[tools.shell]\ntimeout = 8\n";
    let built = bare_host(directory.path())
        .config_text(text)
        .build()
        .await
        .unwrap();
    assert_eq!(timeout(built), Duration::from_secs(8));
    let builder = bare_host(directory.path()).config_text(text);
    let built = builder.set("tools.shell.timeout", 9).build().await.unwrap();
    assert_eq!(timeout(built), Duration::from_secs(9));
}

/// Where nobody says where state lies, there is none; what the text says, holds.
#[tokio::test]
async fn nothing_is_kept_unless_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let built = bare_host(directory.path()).build().await.unwrap();
    assert_eq!(built.config().store.path(), None);
    assert_eq!(built.config().audit.file, None);
    assert!(built.config().plugins.folders.is_empty());
    let place = directory.path().join("own.db");
    let text = format!("[store]\npath = '{}'\n", place.display());
    let built = bare_host(directory.path())
        .config_text(text)
        .build()
        .await
        .unwrap();
    assert_eq!(built.config().store.path(), Some(place.as_path()));
    let state = directory.path().join("state");
    let built = bare_host(directory.path())
        .state_in(&state)
        .build()
        .await
        .unwrap();
    assert_eq!(
        built.config().store.path(),
        Some(state.join("zeph.db").as_path())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_can_be_waited_for_until_nothing_of_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let host = bare_host(folder.path())
        .allow("bash")
        .build()
        .await
        .unwrap();
    let other = bare_host(folder.path())
        .allow("bash")
        .build()
        .await
        .unwrap();
    let (tools, others) = (session(&host).await, session(&other).await);
    for executor in [&tools, &others] {
        let command = json!({"command": "echo $$ > started; sleep 600", "background": true});
        let report = executor
            .call(ToolCall::new("bash", command), CallOptions::default())
            .await;
        assert!(report.failure().is_none(), "{}", report.for_model());
    }
    assert!(host.shutdown().await);
    let told = tools.take_messages().await.join("\n");
    assert!(told.contains("terminated by shutdown"), "{told}");
    // Nothing can be begun any more, and that is an answer.
    let late = ToolCall::new("bash", json!({"command": "sleep 600"}));
    let late = tools.call(late, CallOptions::default()).await;
    assert!(late.failure().is_some(), "{}", late.for_model());
    // The other host goes on.
    assert!(others.take_messages().await.is_empty());
    let still = ToolCall::new("bash", json!({"command": "echo here"}));
    let still = others.call(still, CallOptions::default()).await;
    assert!(still.for_model().contains("here"), "{}", still.for_model());
    assert!(other.shutdown().await && other.shutdown().await);
}

async fn session(host: &Host) -> HostExecutor {
    host.session(Caller::model()).await.unwrap()
}
