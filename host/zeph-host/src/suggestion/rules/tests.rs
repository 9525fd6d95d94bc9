//! What is suggested of hostile and of ambiguous records.

use std::path::PathBuf;

use serde_json::json;

use super::{RuleSuggestion, ToolRules};
use crate::recording::CallRecord;

fn suggested(calls: &[serde_json::Value]) -> RuleSuggestion {
    let roots = [PathBuf::from("/w")];
    let mut rules = ToolRules::new(&roots);
    for call in calls {
        let mut record = json!({
            "version": 1, "call_id": "c", "at_ms": 1, "conversation_id": "v", "tool": "read",
            "owner": { "kind": "plugin", "name": "file" }, "decision": "allow", "outcome": "ok",
            "duration_ms": 1, "result_sha256": "", "result_bytes": 0,
        });
        let more = call.as_object().cloned().unwrap();
        record.as_object_mut().unwrap().extend(more);
        rules.add(&serde_json::from_value::<CallRecord>(record).unwrap());
    }
    rules.suggestion()
}

#[test]
fn hostile_names_stay_names() {
    let name = "/w/a\"]\n[tools.policy]\ndefault_effect = \"allow\" *?{[\\\u{1b}";
    let suggestion = suggested(&[
        json!({ "paths": [name] }),
        json!({ "tool": "x\"]\n[[rules]]", "paths": ["/w/b"] }),
        json!({ "tool": "bash", "owner": { "kind": "command" }, "commands": [["echo", name, "*"]] }),
    ]);
    let parsed: toml::Table = suggestion.toml.parse().unwrap();
    let rules = parsed["tools"]["policy"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 4, "{}", suggestion.toml);
    let path = rules[0]["paths"][0].as_str().unwrap();
    assert!(path.ends_with("\\*\\?\\{\\[\\\\\u{1b}"), "{path}");
    let bash = parsed["tools"]["permissions"]["bash"].as_array().unwrap();
    assert!(bash[0]["pattern"].as_str().unwrap().ends_with(" \\*"));
}

#[test]
fn nothing_outside_of_what_tools_may_access_is_suggested() {
    let suggestion = suggested(&[json!({
        "paths": ["/etc/shadow"],
        "files": [
            { "root": "/", "path": "", "directory": true, "uses": ["list"] },
            { "root": "/w", "path": "../etc/passwd", "uses": ["read"] },
            { "root": "/w", "path": "in", "uses": ["read"] },
        ],
    })]);
    let parsed: toml::Table = suggestion.toml.parse().unwrap();
    let rules = parsed["tools"]["policy"]["rules"].as_array().unwrap();
    assert_eq!(
        rules[0]["paths"].as_array().unwrap().len(),
        1,
        "{}",
        suggestion.toml
    );
    assert_eq!(rules[0]["paths"][0].as_str(), Some("/w/in"));
    assert_eq!(rules[1]["paths"][0].as_str(), Some("/w/**"));
    assert_eq!(suggestion.outside, ["/", "/etc/shadow"]);
}

#[test]
fn hosts_and_plain_calls() {
    let suggestion = suggested(&[
        json!({ "tool": "fetch", "hosts": [{ "host": "a.example:443", "requests": 1 }, { "host": "no.example:443", "requests": 0, "refused": 1 }] }),
        json!({ "tool": "think" }),
    ]);
    assert!(
        suggestion
            .toml
            .contains(r"^(?:https://a\\.example(?::443)?)(?:[/?#]|$)")
            || suggestion
                .toml
                .contains(r"^(?:https://a\.example(?::443)?)(?:[/?#]|$)"),
        "{}",
        suggestion.toml
    );
    assert!(!suggestion.toml.contains("no.example"));
    assert!(
        suggestion.notes[0].contains("--allow think"),
        "{:?}",
        suggestion.notes
    );
}

/// A rule for an interpreter without a program would allow every program.
#[test]
fn what_its_words_do_not_say_is_not_allowed() {
    for (words, is_suggested) in [
        (&["sh"][..], false),
        (&["/bin/bash", "-s"], false),
        (&["python3", "-"], false),
        (&["python3", "/dev/stdin"], false),
        (&["node"], false),
        (&["sh", "build.sh"], true),
        (&["python3", "-c", "print(1)"], true),
        (&["cat"], true),
    ] {
        let call = json!({ "tool": "bash", "owner": { "kind": "command" }, "commands": [words] });
        let suggestion = suggested(&[call]);
        assert_eq!(!suggestion.lines.is_empty(), is_suggested, "{words:?}");
        assert_eq!(suggestion.notes.is_empty(), is_suggested, "{words:?}");
    }
}
