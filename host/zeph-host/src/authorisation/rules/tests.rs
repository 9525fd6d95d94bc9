use std::sync::{Arc, Mutex};

use serde_json::json;
use zeph_config::Flags;
use zeph_core::call::ToolRequest;
use zeph_core::lifetime::Lifetime;
use zeph_core::output::Outcome;
use zeph_core::principal::Principal;

use crate::approval::{ApprovalAnswer, ApprovalPrompt, at_prompt};
use crate::calls::CallControl;
use crate::host::{Host, StartOptions};
use crate::session::Session;
use crate::traceless;

/// The rules of every question that was put.
type Questions = Arc<Mutex<Vec<Vec<String>>>>;

/// A host in a directory of its own, and a session of a model.
struct Lab {
    host: Host,
    session: Session,
    asked: Questions,
    _folder: tempfile::TempDir,
}

async fn session(host: &Host) -> Session {
    let principal = Principal::Model { caller_id: None };
    host.open_session(None, principal).await.unwrap()
}

impl Lab {
    async fn new() -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().canonicalize().unwrap();
        let config = traceless::config(path, Flags::default());
        let (host, _) = Host::start(config, StartOptions::default()).await.unwrap();
        Self {
            session: session(&host).await,
            host,
            asked: Questions::default(),
            _folder: folder,
        }
    }

    /// Runs a command, whose question is answered like this; whether it ran, and the rules of the question if there was one.
    async fn run(&self, command: &str, answer: ApprovalAnswer) -> (bool, Option<Vec<String>>) {
        let asked = Arc::clone(&self.asked);
        let ask = move |question: crate::approval::ApprovalQuestion| {
            asked.lock().unwrap().push(question.rules);
            async move { Some(answer) }
        };
        let control = CallControl {
            ask: Some(ApprovalPrompt::new(at_prompt(), ask).with_rules()),
            ..CallControl::default()
        };
        let request = ToolRequest {
            tool: "bash".to_owned(),
            arguments: json!({ "command": command }),
            answers: None,
        };
        let report = self.host.call(&self.session, request, control).await;
        let has_run = report.output.outcome == Outcome::Done;
        (has_run, self.asked.lock().unwrap().pop())
    }

    async fn asks(&self, command: &str) -> bool {
        self.run(command, ApprovalAnswer::Denied).await.1.is_some()
    }
}

const FOR_SESSION: ApprovalAnswer = ApprovalAnswer::Approved(Lifetime::Session);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_parts_of_a_command_are_agreed_to_at_once() {
    let mut lab = Lab::new().await;
    let (has_run, rules) = lab.run("echo 1 && seq 3", FOR_SESSION).await;
    let expected = ["bash:echo *", "bash:seq *"].map(str::to_owned);
    assert_eq!((has_run, rules), (true, Some(expected.to_vec())));
    assert!(!lab.asks("seq 5; echo 2").await);
    assert!(lab.asks("echo 1; touch a").await);
    // What refuses a call refuses it whatever was agreed to.
    let (has_run, rules) = lab.run("echo $(sudo id)", FOR_SESSION).await;
    assert_eq!((has_run, rules), (false, None));
    lab.session = session(&lab.host).await;
    assert!(lab.asks("echo 1").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_revoked_asks_again() {
    let mut lab = Lab::new().await;
    let always = ApprovalAnswer::Approved(Lifetime::Always);
    lab.run("echo 1", always).await;
    lab.session = session(&lab.host).await;
    assert!(!lab.asks("echo 2").await);
    let store = lab.host.store();
    let held = store.list_approvals(0).await.unwrap().remove(0);
    let rules = held.call.rules.unwrap();
    assert_eq!(rules.texts, ["bash:echo *"]);
    assert!(store.revoke_approval(held.id).await.unwrap());
    assert!(lab.asks("echo 3").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_rule_is_enough_exactly_the_call_is_agreed_to() {
    let lab = Lab::new().await;
    let unknown = "$(echo echo) hidden";
    let (has_run, rules) = lab.run(unknown, FOR_SESSION).await;
    assert!(has_run);
    let rules = rules.unwrap();
    let is_exact = |rule: &String| rule.contains("hidden");
    assert!(rules.is_empty() || rules.iter().all(is_exact), "{rules:?}");
    assert!(!lab.asks(unknown).await);
    assert!(lab.asks("$(echo echo) other").await);
    let once = ApprovalAnswer::Approved(Lifetime::Once);
    lab.run("touch once", once).await;
    assert!(lab.asks("touch once").await);
}
