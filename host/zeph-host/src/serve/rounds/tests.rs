use rmcp::model::InputResponses;
use serde_json::{Map, Value, json};
use zeph_core::id::{ConversationId, Digest};
use zeph_core::lifetime::Lifetime;

use super::{About, Request, Resumed, Round};
use crate::approval::ApprovalAnswer;
use crate::seals::Seals;

const LATER_MS: i64 = 1_000;

struct Lab {
    seals: Seals,
    conversation: ConversationId,
    arguments: Map<String, Value>,
    state: String,
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn accepted() -> InputResponses {
    InputResponses::from([("approval".to_owned(), json!({ "action": "accept" }))])
}

impl Lab {
    fn new() -> Self {
        let seals = Seals::new();
        let conversation = ConversationId::new();
        let arguments = arguments(json!({ "a": { "y": 1, "x": [2] }, "b": "c" }));
        let about = About::Approval(Digest::new([7; 32]));
        let state = request(Some("ann"), "bash", &arguments).seal(
            &seals,
            (conversation, None),
            about,
            LATER_MS,
            0,
        );
        Self {
            seals,
            conversation,
            arguments,
            state,
        }
    }

    async fn open(&self, request: Request<'_>, now_ms: i64) -> Result<Resumed, String> {
        let brought = (Some(self.state.as_str()), Some(accepted()));
        let resumed = request.resumed(&self.seals, brought, now_ms);
        resumed
            .await
            .map(Option::unwrap)
            .map_err(|error| error.message.into_owned())
    }
}

fn request<'a>(
    caller: Option<&'a str>,
    tool: &'a str,
    arguments: &'a Map<String, Value>,
) -> Request<'a> {
    Request {
        caller,
        tool,
        arguments,
    }
}

#[tokio::test]
async fn the_same_request_brings_the_answer() {
    let lab = Lab::new();
    let again = arguments(serde_json::from_str(r#"{"b": "c", "a": {"x": [2], "y": 1}}"#).unwrap());
    let resumed = lab.open(request(Some("ann"), "bash", &again), LATER_MS - 1);
    let Resumed {
        conversation,
        round,
        ..
    } = resumed.await.unwrap();
    assert_eq!(conversation, lab.conversation);
    let Round::Approval { call, answer } = round else {
        panic!("{round:?}");
    };
    assert_eq!(
        (call, answer),
        (
            Digest::new([7; 32]),
            Some(ApprovalAnswer::Approved(Lifetime::Once))
        )
    );
}

/// Whether the call still asks then or not: those that come at once are one call, which was counted.
#[tokio::test]
async fn of_requests_with_one_answer_one_goes_on() {
    let lab = Lab::new();
    let request = request(Some("ann"), "bash", &lab.arguments);
    let (one, other) = tokio::join!(lab.open(request, 0), lab.open(request, 0));
    let (went_on, refused): (Vec<_>, Vec<_>) = [one, other].into_iter().partition(Result::is_ok);
    assert!(went_on[0].as_ref().unwrap().was_counted);
    let told = refused[0].as_ref().unwrap_err();
    assert!(told.contains("used before"), "{told}");
    let later = lab.open(request, 0).await.unwrap_err();
    assert!(later.contains("used before"), "{later}");
}

#[tokio::test]
async fn a_state_of_anything_else_counts_for_nothing() {
    let lab = Lab::new();
    let (own, other) = (&lab.arguments, arguments(json!({ "b": "d" })));
    for (request, now_ms, expect) in [
        (request(Some("bob"), "bash", own), 0, "belongs to another"),
        (request(None, "bash", own), 0, "belongs to another"),
        (request(Some("ann"), "write", own), 0, "belongs to another"),
        (
            request(Some("ann"), "bash", &other),
            0,
            "belongs to another",
        ),
        (
            request(Some("ann"), "bash", own),
            LATER_MS,
            "time to answer is over",
        ),
    ] {
        let problem = lab.open(request, now_ms).await.unwrap_err();
        assert!(problem.contains(expect), "{request:?}: {problem}");
    }
    let altered = Lab {
        state: format!("{}A", lab.state),
        ..lab
    };
    let problem = altered
        .open(request(Some("ann"), "bash", &altered.arguments), 0)
        .await
        .unwrap_err();
    assert!(problem.contains("altered"), "{problem}");
}

#[tokio::test]
async fn answers_without_a_state_are_nothing() {
    let lab = Lab::new();
    let request = request(Some("ann"), "bash", &lab.arguments);
    let resumed = request.resumed(&lab.seals, (None, Some(accepted())), 0);
    assert!(resumed.await.unwrap().is_none());
}

#[tokio::test]
async fn an_answer_that_is_none_agrees_to_nothing() {
    let lab = Lab::new();
    let request = request(Some("ann"), "bash", &lab.arguments);
    let open = async |response: Value| {
        let responses = InputResponses::from([("approval".to_owned(), response)]);
        let brought = (Some(lab.state.as_str()), Some(responses));
        request.resumed(&lab.seals, brought, 0).await
    };
    for response in [
        json!("accept"),
        json!({}),
        json!({"action": "agree"}),
        json!({"action": "accept", "content": []}),
    ] {
        assert!(open(response.clone()).await.is_err(), "{response}");
    }
    let nothing = request
        .resumed(&lab.seals, (Some(&lab.state), None), 0)
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(
        nothing.round,
        Round::Approval { answer: None, .. }
    ));
    assert!(!nothing.was_counted);
    // None of them used it up.
    let declined = open(json!({ "action": "decline" })).await;
    let declined = declined.unwrap().unwrap();
    assert!(matches!(
        declined.round,
        Round::Approval {
            answer: Some(ApprovalAnswer::Denied),
            ..
        }
    ));
}
