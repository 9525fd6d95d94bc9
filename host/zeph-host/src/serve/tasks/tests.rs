use std::time::Duration;

use rmcp::model::{CallToolResult, InputResponses, TaskStatus};
use zeph_core::id::ConversationId;

use super::{Asking, Owner, TASKS_MAX, Tasks};

fn owner(caller: &str) -> Owner {
    Owner {
        caller: Some(caller.to_owned()),
        conversation: ConversationId::new(),
    }
}

fn asking(caller: &str) -> Asking<'_> {
    Asking {
        caller: Some(caller),
        conversation: None,
    }
}

fn begin(tasks: &Tasks, owner: &Owner) -> String {
    let task = tasks.spawn(owner.clone(), "it runs".to_owned(), |context| {
        Box::pin(async move {
            context.cancelled().await;
            Ok(CallToolResult::success(Vec::new()))
        })
    });
    task.task_id
}

#[tokio::test]
async fn a_task_is_known_to_its_owner_alone() {
    let tasks = Tasks::new(Duration::from_secs(60));
    let ann = owner("ann");
    let id = begin(&tasks, &ann);
    let own = Asking {
        conversation: Some(ann.conversation),
        ..asking("ann")
    };
    assert_eq!(tasks.get(&id, &own).unwrap().status(), TaskStatus::Working);
    assert!(tasks.get(&id, &asking("ann")).is_ok());
    let elsewhere = Asking {
        conversation: Some(ConversationId::new()),
        ..own
    };
    let nobody = Asking {
        caller: None,
        conversation: Some(ann.conversation),
    };
    for other in [asking("bob"), elsewhere, nobody] {
        let problem = tasks.get(&id, &other).unwrap_err();
        let unknown = tasks.get("no-such-task", &own).unwrap_err();
        assert_eq!(problem.code, unknown.code);
        assert!(tasks.cancel(&id, &other).is_err());
        assert!(tasks.update(&id, &other, InputResponses::new()).is_err());
    }
    tasks.cancel(&id, &own).unwrap();
}

#[tokio::test]
async fn one_caller_takes_no_place_from_another() {
    let tasks = Tasks::new(Duration::from_secs(60));
    let (ann, bob) = (owner("ann"), owner("bob"));
    for _ in 0..TASKS_MAX {
        assert!(tasks.has_room(&ann));
        begin(&tasks, &ann);
    }
    assert!(!tasks.has_room(&ann));
    assert!(tasks.has_room(&bob));
}
