use serde_json::{Value, json};

use super::*;

fn answer(value: Value) -> CallAnswer {
    of_result(serde_json::from_value(value).unwrap(), Ok(()))
}

#[test]
fn blocks_become_those_of_the_host() {
    let answer = answer(json!({ "content": [
        { "type": "text", "text": "hello" },
        { "type": "image", "data": "QUJD", "mimeType": "image/png\n" },
        { "type": "audio", "data": "QUJD", "mimeType": "audio/wav" },
        { "type": "resource", "resource": { "uri": "a:b", "text": "words", "mimeType": "text/plain" } },
        { "type": "resource", "resource": { "uri": "a:c", "blob": "QUJD" } },
        { "type": "resource_link", "uri": "a:d", "name": "d" },
    ] }));
    let blob = |media_type: &str| Blob {
        media_type: media_type.to_owned(),
        data: b"ABC".to_vec(),
    };
    let expected = [
        Content::Text("hello".to_owned()),
        Content::Image(blob("image/png")),
        Content::Audio(blob("audio/wav")),
        Content::Resource {
            uri: "a:b".to_owned(),
            media_type: Some("text/plain".to_owned()),
            body: ResourceBody::Text("words".to_owned()),
        },
        Content::Resource {
            uri: "a:c".to_owned(),
            media_type: None,
            body: ResourceBody::Bytes(b"ABC".to_vec()),
        },
        Content::Link {
            uri: "a:d".to_owned(),
            name: "d".to_owned(),
            media_type: None,
            description: None,
        },
    ];
    assert_eq!(answer.output.content, expected);
    assert_eq!((answer.is_error, answer.notes), (false, Vec::new()));
}

#[test]
fn what_is_no_base64_is_noted() {
    let answer =
        answer(json!({ "content": [{ "type": "image", "data": "?", "mimeType": "image/png" }] }));
    assert!(answer.output.content.is_empty());
    assert_eq!(answer.notes.len(), 1);
}

#[test]
fn no_text_is_lost_among_many_blocks() {
    let mut blocks: Vec<Value> = (0..200)
        .map(|n| json!({ "type": "text", "text": format!("<{n}>") }))
        .collect();
    blocks.push(json!({ "type": "resource_link", "uri": "a:b", "name": "b" }));
    let answer = answer(json!({ "content": blocks }));
    assert_eq!(answer.output.content.len(), BLOCKS_MAX);
    let text = answer.output.to_text();
    assert!((0..200).all(|n| text.contains(&format!("<{n}>"))));
    assert!(answer.notes[0].contains("1 block "), "{:?}", answer.notes);
}

#[test]
fn a_structured_part_that_disagrees_is_omitted_and_its_text_kept() {
    for (problem, said) in [
        (Disagreement::Mismatch, "does not agree"),
        (Disagreement::TooLong, "would take too long to check"),
    ] {
        let sent = json!({ "content": [], "structuredContent": { "n": "not a number" } });
        let answer = of_result(serde_json::from_value(sent).unwrap(), Err(problem));
        assert_eq!(answer.output.structured, None);
        assert_eq!(answer.output.to_text(), r#"{"n":"not a number"}"#);
        assert!(answer.notes[0].contains(said), "{:?}", answer.notes);
    }
}

#[test]
fn a_failure_keeps_its_output() {
    let answer =
        answer(json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }));
    assert!(answer.is_error);
    assert_eq!(answer.output.to_text(), "no such file");
}
