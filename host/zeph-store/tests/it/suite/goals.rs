//! Goals: one is active in a conversation, its tasks are kept as a graph, and it goes with its conversation.

use uuid::Uuid;
use zeph_core::id::ConversationId;
use zeph_store::{GoalSource, GoalState, GoalTask, NewGoal, Store, TaskGraph, TaskState};

use crate::database::{Database, on_every_database};
use crate::setup::NOW_MS;

fn new(conversation: ConversationId, text: &str) -> NewGoal {
    NewGoal {
        conversation,
        text: text.to_owned(),
        source: GoalSource::Plan,
    }
}

async fn begun(store: &Store, conversation: ConversationId, text: &str) -> Uuid {
    let begun = store.begin_goal(new(conversation, text), NOW_MS).await;
    begun.unwrap().id
}

fn task(id: &str, state: TaskState, after: &[&str]) -> GoalTask {
    GoalTask {
        id: id.to_owned(),
        title: format!("do {id}"),
        state,
        after: after.iter().map(|name| (*name).to_owned()).collect(),
    }
}

async fn one_goal_of_a_conversation_is_active<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let (own, other) = (ConversationId::new(), ConversationId::new());
    let first = begun(&store, own, "first").await;
    let foreign = begun(&store, other, "foreign").await;
    let second = begun(&store, own, "second").await;
    let active = store.active_goal(own).await.unwrap().unwrap();
    assert_eq!((active.id, active.text.as_str()), (second, "second"));
    let listed = store.goals(own, 10).await.unwrap();
    let states: Vec<_> = listed.iter().map(|goal| (goal.id, goal.state)).collect();
    assert_eq!(
        states,
        [(second, GoalState::Active), (first, GoalState::Cancelled)]
    );
    assert_eq!(store.goals(own, 1).await.unwrap().len(), 1);
    assert_eq!(store.goal(own, foreign).await.unwrap(), None);
    let ended = |id, state| store.end_goal(own, id, state, NOW_MS + 1);
    assert!(!ended(foreign, GoalState::Completed).await.unwrap());
    assert!(!ended(first, GoalState::Completed).await.unwrap());
    assert!(ended(second, GoalState::Completed).await.unwrap());
    assert!(!ended(second, GoalState::Cancelled).await.unwrap());
    assert_eq!(store.active_goal(own).await.unwrap(), None);
    let goal = store.goal(own, second).await.unwrap().unwrap();
    assert_eq!(
        (goal.state, goal.changed_at_ms),
        (GoalState::Completed, NOW_MS + 1)
    );
    assert!(store.active_goal(other).await.unwrap().is_some());
}

async fn tasks_are_a_graph_that_completes_its_goal<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let own = ConversationId::new();
    let goal = begun(&store, own, "build it").await;
    let graph = |state| {
        let tasks = vec![
            task("a", TaskState::Completed, &[]),
            task("b", state, &["a"]),
        ];
        TaskGraph::new(tasks).unwrap()
    };
    let set = store
        .set_tasks(own, goal, graph(TaskState::Running), NOW_MS)
        .await;
    let set = set.unwrap().unwrap();
    assert_eq!(
        (set.state, set.tasks),
        (GoalState::Active, graph(TaskState::Running))
    );
    let foreign = ConversationId::new();
    let not_ours = store.set_tasks(foreign, goal, TaskGraph::default(), NOW_MS);
    assert_eq!(not_ours.await.unwrap(), None);
    let done = store.set_tasks(own, goal, graph(TaskState::Skipped), NOW_MS + 2);
    let done = done.await.unwrap().unwrap();
    assert_eq!(
        (done.state, done.changed_at_ms),
        (GoalState::Completed, NOW_MS + 2)
    );
    let late = store.set_tasks(own, goal, TaskGraph::default(), NOW_MS);
    assert_eq!(late.await.unwrap(), None);
    let kept = store.goal(own, goal).await.unwrap().unwrap();
    assert_eq!(kept.tasks, graph(TaskState::Skipped));
}

async fn a_goal_goes_with_its_conversation<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let own = ConversationId::new();
    let goal = begun(&store, own, "build it").await;
    assert!(store.delete_conversation(own).await.unwrap());
    assert_eq!(store.active_goal(own).await.unwrap(), None);
    assert_eq!(store.goal(own, goal).await.unwrap(), None);
    assert!(begun(&store, own, "again").await != goal);
}

async fn a_goal_outlives_its_host<D: Database>() {
    let database = D::fresh();
    let store = database.open();
    let own = ConversationId::new();
    let goal = begun(&store, own, "build it").await;
    let tasks = TaskGraph::new(vec![task("a", TaskState::Running, &[])]).unwrap();
    let set = store.set_tasks(own, goal, tasks.clone(), NOW_MS).await;
    let set = set.unwrap().unwrap();
    store.close().await.unwrap();
    let store = database.open();
    assert_eq!(store.active_goal(own).await.unwrap(), Some(set));
}

on_every_database! {
    any: [
        one_goal_of_a_conversation_is_active,
        tasks_are_a_graph_that_completes_its_goal,
        a_goal_goes_with_its_conversation,
    ],
    lasting: [a_goal_outlives_its_host],
}
