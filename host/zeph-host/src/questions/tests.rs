use std::sync::Arc;

use serde_json::{Map, Value, json};
use zeph_core::argument::Parameters;
use zeph_core::id::{ConversationId, Digest, ToolName};
use zeph_core::inquiry::{
    GivenAnswer, GivenAnswers, Inquiry, ROUNDS_MAX, Resumption, UserAction, UserQuestion,
};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_store::{AgreedBy, Agreement, BoundCall};

use super::{Questions, SealedCall, SealedInquiry, VALID_MS};
use crate::seals::Seals;

fn inquiry() -> Inquiry {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let question = UserQuestion::new("q".to_owned(), "How many?", schema).unwrap();
    Inquiry::new(vec![question], Some(vec![0, 255, 7])).unwrap()
}

fn bound(tool: &str, owner: u8, arguments: Value) -> BoundCall {
    let tool = Tool {
        name: ToolName::new(tool).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({"type": "object"})).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Builtin,
    };
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    BoundCall::new(&tool, Some(Digest::new([owner; 32])), &arguments, None)
}

fn agreement() -> Agreement {
    Agreement {
        how: AgreedBy::Prompt,
        who: Some("ann".to_owned()),
        client: None,
    }
}

fn given(sealed: &SealedInquiry) -> GivenAnswers {
    GivenAnswers {
        state: sealed.state.clone(),
        answers: vec![GivenAnswer {
            id: "q".to_owned(),
            action: UserAction::Accept,
            content: Some(json!({"n": 3})),
        }],
    }
}

/// Questions of one call, and the seal they went out in at the time 0.
struct Lab {
    questions: Questions,
    call: BoundCall,
    conversation: ConversationId,
    sealed: SealedInquiry,
}

impl Lab {
    fn new() -> Self {
        let questions = Questions::new(Arc::new(Seals::new()));
        let call = bound("deploy", 1, json!({"where": "a"}));
        let conversation = ConversationId::new();
        let subject = SealedCall {
            call: &call,
            conversation,
            caller: Some("ann"),
        };
        let sealed = questions
            .seal(&subject, inquiry(), None, Some(agreement()), 0)
            .unwrap();
        Self {
            questions,
            call,
            conversation,
            sealed,
        }
    }

    async fn open(&self, given: GivenAnswers, now_ms: i64) -> Result<Resumption, String> {
        let opened = self.open_as(&self.call, self.conversation, given, now_ms);
        opened.await.map(|(resumption, _)| resumption)
    }

    async fn open_as(
        &self,
        call: &BoundCall,
        conversation: ConversationId,
        given: GivenAnswers,
        now_ms: i64,
    ) -> Result<(Resumption, Option<Agreement>), String> {
        let subject = SealedCall {
            call,
            conversation,
            caller: Some("ann"),
        };
        let opened = self.questions.open(&subject, given, now_ms);
        opened.await.map_err(|failure| failure.message)
    }
}

#[tokio::test]
async fn a_seal_brings_everything_back_once() {
    let lab = Lab::new();
    let opened = lab.open_as(
        &lab.call,
        lab.conversation,
        given(&lab.sealed),
        VALID_MS - 1,
    );
    let (resumption, by) = opened.await.unwrap();
    assert_eq!(resumption.answered.state, Some(vec![0, 255, 7]));
    let content = resumption.answered.answers[0].content.clone().unwrap();
    assert_eq!(content, Map::from_iter([("n".to_owned(), json!(3))]));
    assert_eq!((resumption.round, by), (1, Some(agreement())));

    lab.questions.redeem(&resumption).await.unwrap();
    let again = lab.open(given(&lab.sealed), 0).await.unwrap_err();
    assert!(again.contains("answered before"), "{again}");
    lab.questions.redeem(&resumption).await.unwrap_err();
}

#[tokio::test]
async fn a_seal_of_anything_else_is_refused() {
    let lab = Lab::new();
    for (call, conversation) in [
        (bound("destroy", 1, json!({"where": "a"})), lab.conversation),
        (bound("deploy", 2, json!({"where": "a"})), lab.conversation),
        (bound("deploy", 1, json!({"where": "b"})), lab.conversation),
        (
            bound("deploy", 1, json!({"where": "a"})),
            ConversationId::new(),
        ),
    ] {
        let opened = lab.open_as(&call, conversation, given(&lab.sealed), 0);
        let problem = opened.await.unwrap_err();
        assert!(
            problem.contains("does not belong to this call"),
            "{problem}"
        );
    }
    let subject = SealedCall {
        call: &lab.call,
        conversation: lab.conversation,
        caller: Some("bob"),
    };
    lab.questions
        .open(&subject, given(&lab.sealed), 0)
        .await
        .unwrap_err();
    let foreign = Lab::new();
    let problem = lab.open(given(&foreign.sealed), 0).await.unwrap_err();
    assert!(problem.contains("does not belong"), "{problem}");
    let late = lab.open(given(&lab.sealed), VALID_MS).await.unwrap_err();
    assert!(late.contains("the time to answer is over"), "{late}");
}

#[tokio::test]
async fn no_byte_of_a_seal_can_be_changed() {
    let lab = Lab::new();
    let seal = &lab.sealed.state;
    for place in 0..seal.len() {
        let mut changed = seal.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let given = GivenAnswers {
            state: String::from_utf8(changed).unwrap(),
            ..given(&lab.sealed)
        };
        lab.open(given, 0).await.unwrap_err();
    }
    for seal in ["", "A", "%%%", &seal[..40], &format!("{seal}AAAA")] {
        let given = GivenAnswers {
            state: seal.to_owned(),
            ..given(&lab.sealed)
        };
        lab.open(given, 0).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_tool_cannot_ask_for_ever() {
    let lab = Lab::new();
    let subject = SealedCall {
        call: &lab.call,
        conversation: lab.conversation,
        caller: Some("ann"),
    };
    let mut sealed = lab.sealed.clone();
    for round in 1..=ROUNDS_MAX {
        assert_eq!(sealed.round, round);
        let resumption = lab.open(given(&sealed), 0).await.unwrap();
        lab.questions.redeem(&resumption).await.unwrap();
        let next = lab
            .questions
            .seal(&subject, inquiry(), Some(&resumption), None, 0);
        match (next, round < ROUNDS_MAX) {
            (Ok(next), true) => sealed = next,
            (Err(failure), false) => assert!(failure.message.contains("8 times"), "{failure:?}"),
            (other, _) => panic!("{round}: {other:?}"),
        }
    }
}
