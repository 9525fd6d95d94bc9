use serde_json::json;

use super::*;

fn found(text: &str) -> Vec<(String, String)> {
    let has_tool = |name: &str| ["bash", "web_scrape", "read"].contains(&name);
    let calls = calls(text, &has_tool);
    let calls = calls.into_iter().map(|call| match call.arguments {
        Arguments::Object(arguments) => (call.name, Value::Object(arguments).to_string()),
        Arguments::Malformed { why, .. } => (call.name, why),
    });
    calls.collect()
}

#[test]
fn blocks_become_calls_in_order() {
    let text = "First:\n```bash\necho 'a'\nls\n```\nthen\n  ````tool_call\n{\"name\": \"read\", \"arguments\": {\"path\": \"```\"}}\n````\n\
                ```scrape\n{\"url\": \"https://example.org\"}\n```\n```json\n{\"tool\": \"read\", \"params\": {\"path\": \"b\"}}\n```";
    let expected = [
        ("bash", json!({ "command": "echo 'a'\nls" })),
        ("read", json!({ "path": "```" })),
        ("web_scrape", json!({ "url": "https://example.org" })),
        ("read", json!({ "path": "b" })),
    ];
    let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_string()));
    assert_eq!(found(text), expected);
}

#[test]
fn other_blocks_are_text() {
    for text in [
        "```bash\nnever closed",
        "```bashful\nls\n```",
        "```rust\nfn main() {}\n```",
        "``` `bash` ```\nls\n```",
        "    ```bash\n    ls\n    ```",
        "```json\n{\"name\": \"somebody\", \"arguments\": {}}\n```",
        "```json\n{\"a\": 1}\n```",
        "say ```bash ls```",
        "~~~markdown\n```bash\nls\n```\n~~~",
        "~~~\n```\n~~~bash\n```bash\nls\n```",
        "~~~bash\nls\n~~~",
        "````md\n```bash\nls\n```\n````",
        "```md\n```bash\nls\n```\n```",
    ] {
        assert!(found(text).is_empty(), "{text}");
    }
}

#[test]
fn what_is_no_call_is_told_to_the_model() {
    let calls = found(
        "```tool_call\n{\"name\": \"read\", \n```\n```tool_call\n{\"x\": 1}\n```\n```scrape\n[1]\n```",
    );
    assert!(
        calls[0].1.starts_with("the arguments are not JSON"),
        "{calls:?}"
    );
    assert!(calls[1].1.contains("names no tool"), "{calls:?}");
    assert!(calls[2].1.contains("not a JSON object"), "{calls:?}");
}

#[test]
fn a_block_ends_where_its_fence_does() {
    let text = "```bash\ncat > a.md <<'END'\n    ```\n    x\n    ```\n~~~\nEND\n   ````\n";
    let command = "cat > a.md <<'END'\n    ```\n    x\n    ```\n~~~\nEND";
    let expected = json!({ "command": command }).to_string();
    assert_eq!(found(text), [("bash".to_owned(), expected)]);
}
