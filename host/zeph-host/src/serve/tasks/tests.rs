use std::future::pending;
use std::time::Duration;

use rmcp::model::{CallToolResult, InputRequest, InputResponses, TaskStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_core::id::{ConversationId, Digest};
use zeph_store::{
    HostProcess, Location, LongTaskAsker, LongTaskClaim, LongTaskOwner, Owner, Store, StoreOptions,
};

use super::{HeldTask, TaskEnd, TaskStart, Tasks};
use crate::serve::rounds;

const HOUR: Duration = Duration::from_secs(3_600);

fn store() -> Store {
    let options = StoreOptions {
        at_ms: 0,
        busy_timeout: Duration::from_secs(5),
    };
    Store::open(Location::Memory, options).unwrap().store
}

fn tasks() -> Tasks {
    Tasks::new(&store(), HOUR, "here".to_owned())
}

fn start(caller: &str) -> TaskStart {
    TaskStart {
        owner: LongTaskOwner {
            caller: Owner::named(Some(caller)),
            conversation: ConversationId::new(),
        },
        right: CancellationToken::new(),
        message: "it runs".to_owned(),
        call: None,
    }
}

fn asker(caller: &str) -> LongTaskAsker {
    LongTaskAsker {
        caller: Owner::named(Some(caller)),
        conversation: None,
    }
}

async fn status(tasks: &Tasks, id: &str) -> TaskStatus {
    tasks.get(id, asker("ann")).await.unwrap().status()
}

/// Waits until a task stands so; every look lets what works on it go on.
async fn until(tasks: &Tasks, id: &str, wanted: TaskStatus) {
    while status(tasks, id).await != wanted {
        tasks.keep().await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_task_is_known_to_its_owner_alone() {
    let tasks = tasks();
    let (task, held) = tasks.begin(start("ann")).await.unwrap();
    let id = task.task_id;
    assert_eq!(status(&tasks, &id).await, TaskStatus::Working);
    let unknown = tasks.get("no-such-task", asker("ann")).await.unwrap_err();
    let problem = tasks.get(&id, asker("bob")).await.unwrap_err();
    assert_eq!(problem.code, unknown.code);
    assert!(tasks.cancel(&id, asker("bob")).await.is_err());
    // A token of the name may be another's.
    let of_token = LongTaskAsker {
        caller: Owner {
            token: Some(Digest::new([1; 32])),
            ..Owner::named(Some("ann"))
        },
        conversation: None,
    };
    assert!(tasks.get(&id, of_token).await.is_err());
    let answers = InputResponses::new();
    assert!(tasks.update(&id, asker("bob"), answers).await.is_err());
    tasks.cancel(&id, asker("ann")).await.unwrap();
    assert!(!held.cancelled.is_cancelled());
    tasks.keep().await.unwrap();
    assert!(held.cancelled.is_cancelled());
}

#[tokio::test]
async fn a_task_ends_with_what_let_its_owner_in() {
    let tasks = tasks();
    let right = CancellationToken::new();
    let (start, other) = (start("ann"), start("ann"));
    let start = TaskStart {
        right: right.clone(),
        ..start
    };
    let (_task, held) = tasks.begin(start).await.unwrap();
    let (_task, other) = tasks.begin(other).await.unwrap();
    right.cancel();
    held.ended().await;
    assert!(!other.right.is_cancelled());
}

#[tokio::test]
async fn the_end_of_the_work_is_the_end_of_the_task() {
    let tasks = tasks();
    let (task, held) = tasks.begin(start("ann")).await.unwrap();
    tasks.work(held, async {
        TaskEnd::completed("read", &CallToolResult::success(Vec::new()))
    });
    until(&tasks, &task.task_id, TaskStatus::Completed).await;
    let (task, held) = tasks.begin(start("ann")).await.unwrap();
    tasks.work(held, async { panic!("a defect") });
    until(&tasks, &task.task_id, TaskStatus::Failed).await;
    tasks.close().await;
    assert!(tasks.held().is_empty());
}

fn question() -> InputRequest {
    let form = serde_json::from_value(json!({
        "mode": "form", "message": "so?", "requestedSchema": {"type": "object", "properties": {}},
    }));
    rounds::request(form.unwrap())
}

#[tokio::test]
async fn a_question_that_is_over_is_asked_no_more() {
    let tasks = tasks();
    let (task, held) = tasks.begin(start("ann")).await.unwrap();
    let (over, go_on) = (CancellationToken::new(), CancellationToken::new());
    let (asking, ends) = (std::sync::Arc::clone(&held), over.clone());
    let may_end = go_on.clone();
    tasks.work(held, async move {
        let asked = asking.request_input("a".to_owned(), question(), ends.cancelled());
        assert_eq!(asked.await, None);
        may_end.cancelled().await;
        TaskEnd::cancelled("nobody had to answer")
    });
    let id = task.task_id;
    until(&tasks, &id, TaskStatus::InputRequired).await;
    over.cancel();
    until(&tasks, &id, TaskStatus::Working).await;
    // An answer that comes too late is for nobody.
    let answers = InputResponses::from([("a".to_owned(), json!({"action": "accept"}))]);
    tasks.update(&id, asker("ann"), answers).await.unwrap();
    go_on.cancel();
    until(&tasks, &id, TaskStatus::Cancelled).await;
}

#[tokio::test]
async fn a_question_waits_for_its_answer() {
    let tasks = tasks();
    let (task, held) = tasks.begin(start("ann")).await.unwrap();
    let asking = std::sync::Arc::clone(&held);
    tasks.work(held, async move {
        let request = question();
        match asking
            .request_input("a".to_owned(), request, pending())
            .await
        {
            Some(answer) => TaskEnd::cancelled(&answer.to_string()),
            None => TaskEnd::failed("nobody answered"),
        }
    });
    let id = task.task_id;
    until(&tasks, &id, TaskStatus::InputRequired).await;
    let answers = InputResponses::from([("a".to_owned(), json!({"action": "accept"}))]);
    tasks.update(&id, asker("ann"), answers).await.unwrap();
    until(&tasks, &id, TaskStatus::Cancelled).await;
    let ended = tasks.get(&id, asker("ann")).await.unwrap();
    let message = ended.task.status_message.unwrap();
    assert_eq!(message, r#"{"action":"accept"}"#);
}

/// A process of another machine.
fn far() -> HostProcess {
    HostProcess {
        pid: 1,
        start: "another-machine/boot/pid:[1]/7".to_owned(),
    }
}

#[tokio::test]
async fn what_another_server_took_over_is_lost_here() {
    let tasks = tasks();
    let (task, held) = tasks.begin(start("ann")).await.unwrap();
    let hold = vec![held.hold];
    let over = tasks.0.store.keep_long_tasks(hold, Duration::ZERO).await;
    assert_eq!(over.unwrap().len(), 1);
    let claim = LongTaskClaim {
        host: far(),
        runs: |_| false,
        workspace: "here".to_owned(),
        lease: HOUR,
        repeats: true,
        elsewhere_after: HOUR,
        limit: 8,
    };
    let taken = tasks.0.store.claim_long_tasks(claim).await.unwrap();
    assert_eq!(taken.len(), 1);
    tasks.keep().await.unwrap();
    assert!(held.lost.is_cancelled());
    HeldTask::end(&held, TaskEnd::failed("too late")).await;
    assert_eq!(status(&tasks, &task.task_id).await, TaskStatus::Working);
}
