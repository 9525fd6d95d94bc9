//! One case for each decision, backend and failure, over the whole line: a real host in a directory of its own. The cases are data, in
//! `cases/*.toml`; [`Case`] says what one may hold.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};
use zeph_config::{Config, Flags};
use zeph_core::call::ToolRequest;
use zeph_core::category::ErrorCategory;
use zeph_core::id::{CallId, Digest};
use zeph_core::lifetime::Lifetime;
use zeph_core::output::Outcome;
use zeph_core::policy::{AllowRule, Decision};
use zeph_core::principal::{Operator, Principal};
use zeph_mcp::caller::CallRate;
use zeph_mcp::subset::ToolSubset;
use zeph_selftest::guests::guest;

use super::{CallControl, CallReport};
use crate::admission::Admission;
use crate::approval::{ApprovalAnswer, ApprovalPrompt, at_prompt};
use crate::host::{Host, StartOptions};
use crate::session::Session;
use crate::traceless;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// One call and what has to become of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Calls of the same session that are made before, each as this one.
    #[serde(default)]
    times_before: u32,
    /// A hostile component of the self-test that is installed as a plugin.
    plugin: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: toml::Table,
    /// The configuration file of the user.
    #[serde(default)]
    config: String,
    /// `--allow`
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    principal: Who,
    /// What a person answers who is asked; none when nobody is there.
    answer: Option<Reply>,
    /// Whether the caller has given up before the call begins.
    #[serde(default)]
    cancelled: bool,
    expect: Expect,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Who {
    Operator,
    #[default]
    Program,
    Model,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Once,
    Session,
    Always,
    No,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// `done`, or the category of the failure.
    outcome: String,
    /// The type of the result in the audit.
    audit: String,
    /// What the rule in the audit holds; none when no rule decided.
    rule: Option<String>,
    /// What the text holds, each.
    #[serde(default)]
    text: Vec<String>,
    /// What neither text nor notes hold.
    #[serde(default)]
    absent: Vec<String>,
    /// What one of the notes holds.
    note: Option<String>,
    /// Whether the full text was stored.
    #[serde(default)]
    stored: bool,
}

/// The one proof of the process, as the command line would hold it.
fn operator() -> Principal {
    static PROOF: OnceLock<Option<Operator>> = OnceLock::new();
    let proof = PROOF.get_or_init(Operator::claim).clone();
    Principal::Operator(proof.expect("no other test of this process claims it"))
}

fn config(root: &Path, case: &Case) -> Config {
    let file = root.join("config.toml");
    fs::write(&file, &case.config).unwrap();
    let work = root.join("work");
    fs::create_dir(&work).unwrap();
    let plugins = root.join("plugins");
    fs::create_dir(&plugins).unwrap();
    if let Some(name) = &case.plugin {
        let bytes = guest(name).expect("there is a guest of this name");
        fs::write(plugins.join(format!("{name}.wasm")), bytes).unwrap();
    }
    let flags = Flags {
        config: Some(file),
        plugins: vec![plugins],
        ..Flags::default()
    };
    traceless::config(work, flags)
}

async fn start(root: &Path, case: &Case) -> Host {
    let config = config(root, case);
    let directory = config.rules.policy.directory.clone();
    let directory = directory.to_str().unwrap();
    let rules = case.allow.iter();
    let options = StartOptions {
        allow: rules
            .map(|rule| AllowRule::parse(rule, directory).unwrap())
            .collect(),
        ..StartOptions::default()
    };
    started(config, options).await
}

async fn started(config: Config, options: StartOptions) -> Host {
    let (host, _) = Host::start(config, options).await.unwrap();
    host.settled().await;
    host
}

fn control(case: &Case) -> CallControl {
    let ask = case.answer.map(|reply| {
        ApprovalPrompt::new(at_prompt(), move |_question| async move {
            Some(match reply {
                Reply::Once => ApprovalAnswer::Approved(Lifetime::Once),
                Reply::Session => ApprovalAnswer::Approved(Lifetime::Session),
                Reply::Always => ApprovalAnswer::Approved(Lifetime::Always),
                Reply::No => ApprovalAnswer::Denied,
            })
        })
    });
    let control = CallControl {
        ask,
        ..CallControl::default()
    };
    if case.cancelled {
        control.cancel.cancel();
    }
    control
}

/// Makes the calls of a case. Returns the last report and its record.
async fn made(case: &Case) -> (CallReport, Value) {
    let root = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = root.path().canonicalize().unwrap();
    let host = start(&root, case).await;
    let principal = match case.principal {
        Who::Operator => operator(),
        Who::Program => Principal::PROGRAM,
        Who::Model => Principal::Model {
            caller_id: Some("ann".to_owned()),
        },
    };
    let session = host.open_session(None, principal).await.unwrap();
    let request = ToolRequest {
        tool: case.tool.clone(),
        arguments: json!(case.arguments),
        answers: None,
    };
    for _ in 0..case.times_before {
        host.call(&session, request.clone(), control(case)).await;
    }
    let report = host.call(&session, request, control(case)).await;
    let record = host.store().audit_record(report.id).await.unwrap();
    (report, json!(record.expect("every call is recorded")))
}

/// What is not as the case wants it, one line each.
fn problems(case: &Case, report: &CallReport, record: &Value) -> Vec<String> {
    let (output, expect) = (&report.output, &case.expect);
    let mut problems = Vec::new();
    let mut same = |what: &str, is: Value, expected: Value| {
        if is != expected {
            problems.push(format!("{what} is {is}, not {expected}"));
        }
    };
    let outcome = match &output.outcome {
        Outcome::Done => json!("done"),
        Outcome::Failed(failure) => json!(failure.category),
    };
    same("outcome", outcome, json!(expect.outcome));
    let result = &record["result"]["type"];
    same("result in the audit", result.clone(), json!(expect.audit));
    let stored = output.overflow.is_some();
    same("stored", json!(stored), json!(expect.stored));
    let caller = match case.principal {
        Who::Model => json!("ann"),
        Who::Operator | Who::Program => Value::Null,
    };
    same("caller", record["caller_id"].clone(), caller);
    let rule = record["policy_match"].as_str();
    let is_rule = match (&expect.rule, rule) {
        (Some(part), Some(rule)) => rule.contains(part),
        (expected, rule) => expected.is_none() && rule.is_none(),
    };
    same("rule", json!((is_rule, rule)), json!((true, rule)));
    for part in &expect.text {
        let holds = output.text.contains(part);
        same(&format!("`{part}` in the text"), json!(holds), json!(true));
    }
    let told = format!("{} {:?}", output.text, output.notes);
    for part in &expect.absent {
        let holds = told.contains(part);
        same(
            &format!("`{part}` in what is told"),
            json!(holds),
            json!(false),
        );
    }
    if let Some(part) = &expect.note {
        let holds = output.notes.iter().any(|note| note.contains(part));
        same(&format!("`{part}` in a note"), json!(holds), json!(true));
    }
    problems
}

async fn check_all(cases: &str) {
    let cases: Cases = toml::from_str(cases).unwrap();
    let mut found = String::new();
    for case in &cases.case {
        let (report, record) = made(case).await;
        let problems = problems(case, &report, &record);
        if !problems.is_empty() {
            let text = &report.output.text;
            found.push_str(&format!(
                "{}:\n  {}\n{text}\n",
                case.name,
                problems.join("\n  ")
            ));
        }
    }
    assert_eq!(found, "");
}

/// A host that has `list_runs`, and a session of a model that nobody knows.
async fn of_a_model() -> (Host, Session) {
    let config = traceless::config(std::env::temp_dir(), Flags::default());
    let options = StartOptions {
        expected_tool: Some("list_runs".to_owned()),
        ..StartOptions::default()
    };
    let host = started(config, options).await;
    let model = Principal::Model { caller_id: None };
    let session = host.open_session(None, model).await.unwrap();
    (host, session)
}

/// Whatever makes its calls: the caller, a schedule of it. What a plugin calls on its own is the plugin's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_calls_a_tool_that_its_token_does_not_allow() {
    let (host, session) = of_a_model().await;
    for (pattern, may_call) in [("list_*", true), ("read_overflow", false)] {
        let session = session.clone().admitted(Admission {
            tools: ToolSubset::new([pattern]).unwrap(),
            ..Admission::default()
        });
        let cases = [
            (session.clone(), may_call),
            (session.of_schedule("schedule:a:1"), may_call),
            (session.of_plugin(CallId::new()), true),
        ];
        for (session, may_call) in cases {
            let request = ToolRequest {
                tool: "list_runs".to_owned(),
                arguments: json!({}),
                answers: None,
            };
            let explained = host.explain(&session, request.clone()).await.unwrap();
            assert_eq!(
                matches!(explained, Decision::Allow(_)),
                may_call,
                "{pattern}"
            );
            let report = host.call(&session, request, CallControl::default()).await;
            match report.failure() {
                None => assert!(may_call, "{pattern}"),
                Some(failure) => {
                    assert!(!may_call, "{pattern}: {failure:?}");
                    assert_eq!(failure.category, ErrorCategory::PolicyBlocked);
                    assert!(failure.message.contains("token allows"), "{failure:?}");
                }
            }
        }
    }
}

/// A schedule makes the calls of its caller where no door counts them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_token_scheduled_is_counted_as_its_calls() {
    let (host, session) = of_a_model().await;
    let session = session.of_schedule("schedule:a:1").admitted(Admission {
        rate: Some(CallRate {
            token: Digest::new([1; 32]),
            per_minute: 1,
        }),
        ..Admission::default()
    });
    let of_plugin = session.of_plugin(CallId::new());
    let category = async |session: &Session| {
        let request = ToolRequest {
            tool: "list_runs".to_owned(),
            arguments: json!({}),
            answers: None,
        };
        let report = host.call(session, request, CallControl::default()).await;
        report.failure().map(|failure| failure.category)
    };
    assert_eq!(category(&session).await, None);
    let limited = Some(ErrorCategory::RateLimited);
    assert_eq!(category(&session).await, limited);
    assert_eq!(category(&of_plugin).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_comes_later_is_told_of() {
    let cases = "[[case]]\nname = ''\ntool = ''\nexpect = { outcome = '', audit = '' }";
    let mut cases: Cases = toml::from_str(cases).unwrap();
    let root = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = root.path().canonicalize().unwrap();
    let options = StartOptions {
        is_server: true,
        ..StartOptions::default()
    };
    let host = started(config(&root, &cases.case.remove(0)), options).await;
    let mut watch = host.watch_catalog();
    let first = watch.generation();
    let mut generation = first;
    fs::write(root.join("plugins/good.wasm"), guest("good").unwrap()).unwrap();
    let has_come = async {
        while host.catalog().resolve("good__go").is_err() {
            let next = watch.changed().await.expect("the keeper runs");
            assert!(next > generation);
            generation = next;
        }
    };
    let patience = std::time::Duration::from_secs(60);
    tokio::time::timeout(patience, has_come).await.unwrap();
    assert!(watch.generation() >= generation && generation > first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_components() {
    check_all(include_str!("cases/guest.toml")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_the_shell() {
    check_all(include_str!("cases/shell.toml")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_the_host_itself() {
    check_all(include_str!("cases/builtin.toml")).await;
}
