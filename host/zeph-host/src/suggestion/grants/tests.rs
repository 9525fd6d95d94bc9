use std::fs;

use serde_json::json;
use tempfile::TempDir;
use zeph_core::capability::Capability;

use super::{GrantSuggestion, PluginUses};
use crate::recording::CallRecord;

fn record(rest: serde_json::Value) -> CallRecord {
    let mut record = json!({
        "version": 1, "call_id": "c", "at_ms": 1, "conversation_id": "v", "tool": "p__t",
        "decision": "allow", "outcome": "ok", "duration_ms": 1, "result_sha256": "", "result_bytes": 0,
    });
    let more = rest.as_object().cloned().unwrap_or_default();
    record.as_object_mut().unwrap().extend(more);
    serde_json::from_value(record).unwrap()
}

fn directory(path: &str, rights: &str) -> Capability {
    Capability::Directory {
        path: path.to_owned(),
        rights: rights.parse().unwrap(),
    }
}

fn suggested(records: &[CallRecord], allowed: &[Capability]) -> GrantSuggestion {
    let mut uses = PluginUses::default();
    records.iter().for_each(|record| uses.add(record));
    uses.suggestion(allowed)
}

fn tree() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    for file in ["a/seen", "a/unseen", "a/deep/x", "b/out"] {
        let file = top.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let top = top.to_string_lossy().into_owned();
    (dir, top)
}

#[test]
fn a_file_stands_for_its_directory_alone_and_what_else_is_there_is_told() {
    let (_dir, top) = tree();
    let file = |path: &str, uses: &[&str]| json!({ "root": top, "path": path, "uses": uses });
    let calls = [
        record(json!({ "files": [file("a/seen", &["read"]), file("a/deep/x", &["read"])] })),
        record(json!({ "files": [file("b/out", &["create", "write"])] })),
    ];
    let all = [directory(&top, "read+write+create+delete")];
    let suggestion = suggested(&calls, &all);
    assert_eq!(
        suggestion.grants,
        [
            directory(&format!("{top}/a"), "read"),
            directory(&format!("{top}/b"), "write+create"),
        ]
    );
    let unseen = &suggestion.unseen;
    assert_eq!(unseen.len(), 1, "{unseen:?}");
    assert_eq!(
        (unseen[0].names.as_slice(), unseen[0].total),
        (["unseen".to_owned()].as_slice(), 1)
    );
}

#[test]
fn a_tampered_record_suggests_nothing_beyond_what_is_granted() {
    let (_dir, top) = tree();
    let all = ["look", "read", "write", "create", "delete", "list"];
    let calls = [
        record(json!({ "files": [
            { "root": "/", "path": "", "directory": true, "uses": all },
            { "root": "/etc", "path": "shadow", "uses": all },
            { "root": top, "path": "../..", "uses": all },
            { "root": top, "path": "/etc/passwd", "uses": all },
            { "root": "relative", "path": "x", "uses": all },
            { "root": top, "path": "a/seen", "uses": all },
        ] })),
        record(json!({ "hosts": [
            { "host": "*", "methods": ["GET", "POST"], "requests": 1 },
            { "host": "evil.example:443", "methods": ["POST"], "requests": 1 },
        ], "variables": ["PATH", "HOME"], "programs": [["rm", "-rf", "/"], ["cargo", "check"]] })),
    ];
    let allowed = [
        directory(&top, "read"),
        Capability::Host("api.example:GET".parse().unwrap()),
        Capability::Variable {
            name: "HOME".to_owned(),
        },
        Capability::Program {
            name: "cargo *".to_owned(),
        },
    ];
    let suggestion = suggested(&calls, &allowed);
    for grant in &suggestion.grants {
        let is_within = allowed
            .iter()
            .any(|one| grant.intersect(one).as_ref() == Some(grant));
        assert!(is_within, "{grant}");
    }
    assert!(
        suggestion
            .grants
            .contains(&directory(&format!("{top}/a"), "read"))
    );
    assert!(suggestion.grants.contains(&Capability::Program {
        name: "cargo check".to_owned()
    }));
    assert!(suggestion.outside.len() >= 5, "{:?}", suggestion.outside);
}

#[test]
fn hosts_are_suggested_with_their_methods() {
    let host = |methods: &[&str]| {
        record(
            json!({ "hosts": [{ "host": "api.example.com:443", "methods": methods, "requests": 1 }] }),
        )
    };
    let refused = record(
        json!({ "hosts": [{ "host": "other.example:443", "methods": ["GET"], "requests": 0, "refused": 1 }] }),
    );
    let allowed = [
        Capability::Host("*.example.com".parse().unwrap()),
        Capability::Host("api.example.com".parse().unwrap()),
    ];
    let suggestion = suggested(&[host(&["GET"]), host(&["POST"]), refused], &allowed);
    assert_eq!(suggestion.grants.len(), 1, "{:?}", suggestion.grants);
    let Capability::Host(access) = &suggestion.grants[0] else {
        panic!()
    };
    assert!(
        access.allows_method("GET")
            && access.allows_method("POST")
            && !access.allows_method("DELETE")
    );
}
