//! Pictures: a conversation outlives those that a provider refuses.

use std::sync::Arc;

use super::fake::{FakeHost, Lab, Model, calls, lab, resumed, says, user_entry};
use crate::event::TurnStatus;
use crate::message::Image;
use crate::provider::Provider;
use crate::tool_host::{CallEnd, CallEndKind};
use crate::transcript::tests::assert_valid;
use crate::transcript::{Attachment, Transcript, UserEntry};

fn picture() -> Image {
    Image::read(b"GIF89a").unwrap()
}

fn with_picture(text: &str) -> UserEntry {
    UserEntry {
        attachments: vec![Attachment {
            name: "a.gif".to_owned(),
            text: None,
            image: Some(picture()),
        }],
        ..user_entry(text)
    }
}

async fn show(lab: &mut Lab) -> TurnStatus {
    let turn = lab
        .agent
        .turn(with_picture("look"), &*lab.observer, &lab.cancel);
    turn.await.status
}

fn last_request(lab: &Lab) -> String {
    lab.model.requests().pop().unwrap().turns.concat()
}

#[tokio::test]
async fn a_conversation_goes_on_without_a_picture_that_is_refused() {
    let mut lab = lab(
        Model::new([says("I cannot see it"), says("more")]).blind(),
        FakeHost::default(),
    );
    assert_eq!(show(&mut lab).await, TurnStatus::Done);
    assert_eq!(lab.model.requests().len(), 2);
    let sent = last_request(&lab);
    assert!(
        sent.contains("look") && sent.contains("image removed"),
        "{sent}"
    );
    assert_eq!(lab.turn("and now?").await.status, TurnStatus::Done);
    assert_eq!(lab.model.requests().len(), 3);
    let stored = Transcript::load(lab.agent.journal().entries());
    assert_eq!(stored.usage(), lab.agent.spending().usage);
    let mut later = resumed(Model::new([says("still")]).blind(), stored);
    assert_eq!(later.turn("there?").await.status, TurnStatus::Done);
    assert_eq!(later.model.requests().len(), 1);
}

#[tokio::test]
async fn a_picture_of_a_result_that_is_refused_is_removed_from_it() {
    let host = FakeHost::default();
    let mut end = CallEnd::of(CallEndKind::Done, "a screenshot");
    end.images = vec![picture(), picture()];
    host.end_with(end);
    let mut lab = lab(Model::new([calls(&["read"]), says("done")]).blind(), host);
    assert_eq!(lab.turn("look").await.status, TurnStatus::Done);
    assert_valid(&lab.agent.transcript().turns());
    let results = lab.results();
    assert_eq!(
        results[0].matches("image removed").count(),
        2,
        "{results:?}"
    );
    assert!(results[0].starts_with("a screenshot"), "{results:?}");
}

#[tokio::test]
async fn pictures_that_the_model_has_answered_to_stay() {
    let mut lab = lab(
        Model::new([says("a heron"), calls(&["edit"])]),
        FakeHost::default(),
    );
    assert_eq!(show(&mut lab).await, TurnStatus::Done);
    lab.turn("what colour?").await;
    assert!(last_request(&lab).contains("base64"));
    // Another model that cannot see gets the conversation without them.
    let mut other = Model::new([says("I am blind")]).blind();
    other.rename("other");
    lab.model = Arc::new(other);
    let provider = Arc::clone(&lab.model) as Arc<dyn Provider>;
    lab.agent.use_provider(provider);
    assert_eq!(lab.turn("and you?").await.status, TurnStatus::Done);
    assert!(!last_request(&lab).contains("base64"));
}

#[tokio::test]
async fn a_refusal_that_is_not_about_pictures_leaves_them() {
    let model = Model::new([]).refusing().refusing();
    let mut lab = lab(model, FakeHost::default());
    let status = show(&mut lab).await;
    assert!(matches!(status, TurnStatus::ProviderFailed(_)));
    assert!(!last_request(&lab).contains("base64"));
    assert_eq!(lab.turn("and now?").await.status, TurnStatus::Done);
    let sent = last_request(&lab);
    assert!(
        sent.contains("base64") && !sent.contains("image removed"),
        "{sent}"
    );
}

#[tokio::test]
async fn a_request_that_is_refused_without_pictures_is_not_sent_again() {
    let mut lab = lab(Model::new([]).refusing(), FakeHost::default());
    let end = lab.turn("hello").await;
    assert!(matches!(end.status, TurnStatus::ProviderFailed(_)));
    assert_eq!(lab.model.requests().len(), 1);
}
