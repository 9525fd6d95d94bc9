use serde_json::json;
use zeph_core::execution::SecretValue;
use zeph_core::redact::Redactor;

use super::collector::NOTES_MAX;
use super::*;

fn tool(value: Value) -> McpTool {
    serde_json::from_value(value).unwrap()
}

fn collected(
    limits: &DefinitionLimits,
    tools: impl IntoIterator<Item = Value>,
) -> (Vec<ToolDefinition>, Vec<String>) {
    collected_without(&[], limits, tools)
}

fn collected_without(
    secrets: &[SecretValue],
    limits: &DefinitionLimits,
    tools: impl IntoIterator<Item = Value>,
) -> (Vec<ToolDefinition>, Vec<String>) {
    let mut collector = Collector::<McpTool>::new(limits, Redactor::new(secrets));
    tools
        .into_iter()
        .for_each(|value| collector.take(tool(value)));
    let mut notes = Vec::new();
    let kept = collector.finish(&mut notes);
    (kept, notes)
}

#[test]
fn a_tool_is_kept_in_both_forms() {
    let sent = json!({
        "name": "read_file",
        "title": "Read\u{202e} a file",
        "description": "Reads\u{200b} it.",
        "inputSchema": { "properties": { "path": { "type": "string" } }, "required": ["path"] },
        "annotations": { "readOnlyHint": true, "title": "T" },
        "icons": [{ "src": "https://example.org/spy.png" }],
        "_meta": { "example.org/by": ["m\u{1b}e\u{e0041}"] },
    });
    let (kept, notes) = collected(&DefinitionLimits::default(), [sent.clone()]);
    assert_eq!(notes, Vec::<String>::new());
    let [kept] = &kept[..] else {
        panic!("one tool");
    };
    assert_eq!(
        (kept.name.as_str(), kept.description.as_str()),
        ("read_file", "Reads it.")
    );
    assert_eq!(kept.title.as_deref(), Some("Read a file"));
    assert_eq!(kept.parameters.schema()["type"], "object");
    assert!(kept.annotations.read_only && !kept.annotations.destructive);
    assert_eq!(kept.listed.sent, sent);
    assert_eq!(kept.listed.shown.icons, None);
    assert_eq!(kept.listed.shown.description.as_deref(), Some("Reads it."));
    let meta = serde_json::to_value(&kept.listed.shown.meta).unwrap();
    assert_eq!(meta, json!({ "example.org/by": ["me"] }));
}

#[test]
fn a_resource_has_no_address_of_the_host_and_shows_what_it_says() {
    let limits = DefinitionLimits::default();
    let mut collector = Collector::<Resource>::new(&limits, Redactor::default());
    for uri in ["note:1", "overflow:01a20a6f-ade1-7154-9412-80afc732f036"] {
        let sent = json!({ "uri": uri, "name": "n", "mimeType": "text/\u{202e}plain" });
        collector.take(serde_json::from_value(sent).unwrap());
    }
    let mut notes = Vec::new();
    let kept = collector.finish(&mut notes);
    let [kept] = &kept[..] else {
        panic!("{kept:?}");
    };
    assert_eq!(kept.shown.mime_type.as_deref(), Some("text/plain"));
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("addresses of the host"), "{notes:?}");
}

#[test]
fn a_tool_without_promises_may_destroy() {
    let (kept, _) = collected(
        &DefinitionLimits::default(),
        [json!({ "name": "a", "inputSchema": {} })],
    );
    let annotations = kept[0].annotations;
    assert!(!annotations.read_only && annotations.destructive && annotations.open_world);
}

#[test]
fn what_cannot_be_used_is_omitted_with_a_reason() {
    let bad = [
        (json!({ "name": "a\u{200b}", "inputSchema": {} }), "name"),
        (
            json!({ "name": "a", "inputSchema": { "items": { "$ref": "https://example.org" } } }),
            "elsewhere",
        ),
        (
            json!({ "name": "a", "inputSchema": { "type": "string" } }),
            "object",
        ),
        (
            json!({ "name": "a", "inputSchema": { "type": "object", "properties": { "b": { "type": "nonsense" } } } }),
            "nonsense",
        ),
        (
            json!({ "name": "a", "description": "d".repeat(200_000), "inputSchema": {} }),
            "bytes",
        ),
    ];
    for (sent, why) in bad {
        let (kept, notes) = collected(&DefinitionLimits::default(), [sent]);
        assert!(kept.is_empty(), "{why}");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains(why), "{why}: {notes:?}");
    }
}

#[test]
fn the_first_of_a_name_counts() {
    let same = |words: &str| json!({ "name": "a", "description": words, "inputSchema": {} });
    let (kept, notes) = collected(&DefinitionLimits::default(), [same("one"), same("two")]);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].description, "one");
    assert!(notes[0].contains("another"), "{notes:?}");
}

#[test]
fn ten_thousand_tools_are_too_many() {
    let many = (0..10_000).map(|n| json!({ "name": format!("t{n}"), "inputSchema": {} }));
    let (kept, notes) = collected(&DefinitionLimits::default(), many);
    assert_eq!(kept.len(), 1_000);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn notes_are_bounded() {
    let many = (0..100).map(|n| json!({ "name": format!("t\u{200b}{n}"), "inputSchema": {} }));
    let (_, notes) = collected(&DefinitionLimits::default(), many);
    assert_eq!(notes.len(), NOTES_MAX + 1, "{notes:?}");
}

#[test]
fn a_long_description_is_cut() {
    let with = |n_bytes: usize| json!({ "name": format!("a{n_bytes}"), "description": "d".repeat(n_bytes), "inputSchema": {} });
    let sent = [with(10_000), with(20_000)];
    let (kept, notes) = collected(&DefinitionLimits::default(), sent);
    let lengths: Vec<usize> = kept.iter().map(|tool| tool.description.len()).collect();
    assert_eq!(lengths, [10_000, 16 * 1024]);
    assert!(
        notes[0].starts_with("tools whose texts were cut: `a20000`; the limit is 16384 bytes"),
        "{notes:?}"
    );
}

#[test]
fn an_output_schema_that_cannot_be_used_costs_only_itself() {
    let sent = json!({ "name": "a", "inputSchema": {}, "outputSchema": { "$ref": "https://example.org" } });
    let (kept, _) = collected(&DefinitionLimits::default(), [sent]);
    assert_eq!(kept[0].output, None);
    assert_eq!(kept[0].listed.shown.output_schema, None);
}

#[test]
fn no_definition_holds_a_secret() {
    const VALUE: &str = "S3cretValue-9988776655";
    let secret = SecretValue {
        name: "KEY".to_owned(),
        value: VALUE.to_owned(),
    };
    let sent = json!({
        "name": "t",
        "title": format!("T {VALUE}"),
        "description": format!("connected with {VALUE}"),
        "inputSchema": { "type": "object", "properties": { "a": { "type": "string", "default": VALUE } } },
        "annotations": { "title": VALUE },
        "_meta": { "k": VALUE },
    });
    let named = json!({ "name": VALUE, "inputSchema": { "type": "object" } });
    let limits = DefinitionLimits::default();
    let (kept, notes) = collected_without(&[secret], &limits, [sent, named]);
    let said = format!("{kept:?} {notes:?}");
    assert!(!said.contains("S3cret"), "{said}");
    let [kept] = &kept[..] else { panic!("{said}") };
    assert_eq!(kept.description, "connected with [redacted: KEY]");
    assert_eq!(kept.listed.sent["_meta"]["k"], "[redacted: KEY]");
    assert_eq!(
        notes,
        ["tool `[redacted: KEY]` is omitted: its name holds a secret"]
    );
}

#[test]
fn a_tool_that_needs_a_task_is_known_by_its_mark_and_pinned_without_it() {
    for (meta, pinned) in [
        (json!({ TASK_KEY: true }), Value::Null),
        (json!({ TASK_KEY: true, "k": 1 }), json!({ "k": 1 })),
    ] {
        let sent = json!({ "name": "t", "inputSchema": { "type": "object" }, "_meta": meta });
        let (kept, _) = collected(&DefinitionLimits::default(), [sent]);
        assert!(kept[0].needs_task);
        assert_eq!(kept[0].listed.sent["_meta"], pinned);
        let shown = serde_json::to_value(&kept[0].listed.shown).unwrap();
        assert_eq!(shown["_meta"], pinned);
    }
}
