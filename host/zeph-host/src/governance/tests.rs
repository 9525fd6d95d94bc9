//! How many questions the flow rule asks in benign tasks, replayed without a model, under the default configuration with the network open.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use zeph_config::Flags;
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::execution::HostUse;
use zeph_core::id::{PluginId, ServerName, ToolName};
use zeph_core::policy::{
    FLOW_CHECK, FlowFacts, HeldLabels, Label, LabelKind, Policy, SessionFacts, Verdict, authorise,
    destination, private_sources, untrusted_result,
};
use zeph_core::server::ServerTool;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_shell::analysis::analyse;

use crate::path::line::{Here, places};
use crate::traceless;

/// Most questions for a task, in the mean over all of them.
const ASKS_PER_TASK_MAX: f64 = 0.3;

#[derive(Debug, Deserialize)]
struct Tasks {
    task: Vec<Task>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    name: String,
    asks: usize,
    calls: Vec<TaskCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskCall {
    tool: String,
    arguments: toml::Table,
    #[serde(default)]
    hosts: Vec<String>,
}

/// A call and what runs its tool: whether it reaches the network, and whether it is elsewhere.
struct Replayed {
    call: ResolvedCall,
    reaches_network: bool,
    is_remote: bool,
}

fn replayed(directory: &Path, given: &TaskCall) -> Replayed {
    let Value::Object(values) = json!(given.arguments) else {
        panic!("arguments are a table");
    };
    let server = |name: &str, tool: &str| {
        Backend::Mcp(ServerTool::new(ServerName::new(name).unwrap(), tool))
    };
    let wasm = |plugin: &str| Backend::Wasm(PluginId(plugin.to_owned()));
    let parts: Vec<&str> = given.tool.split(':').collect();
    let (name, kind, read_only, backend) = match parts[..] {
        ["bash"] => ("bash", ToolKind::Execute, false, Backend::Shell),
        ["read"] => ("read", ToolKind::Read, true, wasm("file")),
        ["fetch"] => ("fetch", ToolKind::Fetch, true, wasm("scrape")),
        [name @ ("write" | "edit")] => (name, ToolKind::Edit, false, wasm("file")),
        [place, access, name] => (name, ToolKind::Other, access == "ro", server(place, name)),
        _ => panic!("`{}` is no tool of a task", given.tool),
    };
    let path = given.arguments.get("path").and_then(toml::Value::as_str);
    let command = values.get("command").and_then(Value::as_str);
    let call = ResolvedCall {
        frame: CallFrame::alone(),
        tool: Tool {
            name: ToolName::new(name).unwrap(),
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({"type": "object"})).unwrap(),
            output: None,
            kind,
            annotations: Annotations {
                read_only,
                open_world: kind == ToolKind::Fetch,
                ..Annotations::default()
            },
            backend,
        }
        .into(),
        paths: path.map(|path| directory.join(path)).into_iter().collect(),
        command: command.map(|text| {
            let mut line = analyse(text);
            let here = Here {
                directory,
                home: None,
                has_private_tmp: false,
                kept: &[],
                looks_at_words: true,
            };
            line.places = places(&line, here);
            line
        }),
        arguments: Arguments {
            values,
            notes: Vec::new(),
        },
        can_change: true,
        files: FileFacts::default(),
    };
    let is_remote = given.tool.starts_with("remote:");
    Replayed {
        call,
        reaches_network: is_remote || name == "fetch",
        is_remote,
    }
}

/// How often the flow rule asks; each question is answered with yes.
fn asks(policy: &Policy, directory: &Path, task: &Task) -> usize {
    let mut held = HeldLabels::default();
    let mut n_asked = 0;
    for given in &task.calls {
        let replayed = replayed(directory, given);
        let call = &replayed.call;
        let before = held.clone();
        let facts = SessionFacts {
            flow: Some(FlowFacts {
                held: &before,
                passed: &[],
                reaches_network: replayed.reaches_network,
            }),
            ..SessionFacts::default()
        };
        let decision = authorise(policy, &facts, call.clone());
        let mut steps = decision.trace().iter();
        if steps.any(|step| step.check == FLOW_CHECK && step.verdict == Verdict::Ask) {
            n_asked += 1;
            let to = destination(policy, &facts, call).expect("it leaves the machine");
            held.release(&to.key);
        }
        let hosts: Vec<HostUse> = given.hosts.iter().map(|host| received(host)).collect();
        let private = private_sources(&policy.governance.private, call);
        let untrusted = untrusted_result(policy, call, replayed.is_remote).source(&hosts);
        let untrusted = untrusted.map(|host| Label::new(LabelKind::Untrusted, &host));
        // No file of these tasks changes, and none is there.
        let label = |path: &Path| Label::new(LabelKind::Private, &path.to_string_lossy());
        let private = private.iter().map(|source| label(&source.path));
        let labels = private.chain(untrusted);
        labels.for_each(|label| {
            held.hold(label);
        });
    }
    n_asked
}

fn received(host: &str) -> HostUse {
    HostUse {
        host: host.to_owned(),
        n_connections: 1,
        sent_bytes: 1,
        received_bytes: 1,
        n_refused: 0,
    }
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "there are fifty tasks")]
fn benign_tasks_are_not_drowned_in_questions() {
    let directory = PathBuf::from("/work/project");
    let root = tempfile::tempdir().unwrap();
    let config = traceless::config(root.path().canonicalize().unwrap(), Flags::default());
    // Without the network, no command can send anything.
    let policy = Policy {
        denies_network: false,
        ..config.rules.policy
    };
    let tasks: Tasks = toml::from_str(include_str!("tasks/benign.toml")).unwrap();
    assert_eq!(tasks.task.len(), 50);
    let mut wrong = Vec::new();
    let mut n_asked = 0;
    for task in &tasks.task {
        let n = asks(&policy, &directory, task);
        n_asked += n;
        if n != task.asks {
            wrong.push(format!("{}: {n} questions, not {}", task.name, task.asks));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let per_task = n_asked as f64 / tasks.task.len() as f64;
    assert!(per_task <= ASKS_PER_TASK_MAX, "{per_task} questions a task");
}
