//! The templates for authors, on the real toolchains: each builds, loads, and does what it says.

use std::fs;

use serde_json::json;
use zeph_core::capability::{FsGrant, FsRights, FsRoot};
use zeph_core::category::ErrorCategory;
use zeph_core::limit::CallLimits;
use zeph_core::manifest::Manifest;
use zeph_core::output::{Content, RawOutput};
use zeph_engine::{ComponentBytes, Kind, inspect};

use crate::guest::{Guest, PATIENT};
use crate::toolchain::{LANGUAGES, built, name, new_project, tested};

/// A whole Python runs in the slowest of them.
const LIMITS: CallLimits = CallLimits {
    memory_bytes: 256 << 20,
    table_elements: 100_000,
    handles: 1_000,
    ..PATIENT
};

fn text(output: &RawOutput) -> &str {
    match &output.content[..] {
        [Content::Text(text)] => text,
        other => panic!("not one text: {other:?}"),
    }
}

async fn check(language: &str) {
    let Some(path) = built(language) else { return };
    let component = ComponentBytes::read(&path).unwrap();
    check_inspection(language, &component);

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let file = root.join("text.txt");
    fs::write(&file, "one two  three\nfour").unwrap();

    let id = name(language);
    let nothing = FsGrant::default();
    let guest = Guest::of(&id, component.clone(), LIMITS, &nothing).await;
    let tools = guest.tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["count_words", "count_file"]);
    assert!(tools.iter().all(|tool| tool.annotations.read_only));

    let words = json!({"text": "one \"two\"  thr\u{e9}e\n"});
    let output = guest.call("count_words", words).await.unwrap();
    assert_eq!(text(&output), "3 words");

    let failure = guest
        .call("count_file", json!({"path": file}))
        .await
        .unwrap_err();
    let refused = [
        ErrorCategory::PolicyBlocked,
        ErrorCategory::PermanentFailure,
    ];
    assert!(refused.contains(&failure.category), "{failure:?}");
    let named = file.to_str().unwrap();
    assert!(failure.message.contains(named), "{failure:?}");

    let granted = FsGrant {
        roots: vec![FsRoot {
            path: root,
            rights: FsRights::READ,
        }],
        ..FsGrant::default()
    };
    let guest = Guest::of(&id, component, LIMITS, &granted).await;
    let output = guest.call("count_file", json!({"path": file})).await;
    assert_eq!(text(&output.unwrap()), "4 words");
    let missing = json!({"path": format!("{named}.none")});
    let failure = guest.call("count_file", missing).await.unwrap_err();
    assert_eq!(failure.category, ErrorCategory::PermanentFailure);
}

/// The host reads out of it what the project says.
fn check_inspection(language: &str, component: &[u8]) {
    let inspection = inspect(component).unwrap();
    assert!(inspection.is_usable(), "{:?}", inspection.problems);
    let version = "0.1.0".to_owned();
    assert_eq!(inspection.kind, Kind::ToolPlugin { version });

    let (files, _) = new_project(language);
    let manifest = Manifest::parse(&files["plugin.toml"]).unwrap();
    assert_eq!(inspection.manifest, Some(manifest));
    let metadata = inspection.metadata;
    assert_eq!(metadata.version.as_deref(), Some("0.1.0"));
    assert_eq!(metadata.description.as_deref(), Some("Counts words."));
    assert_eq!(metadata.licenses.as_deref(), Some("MIT"));
}

#[tokio::test]
async fn rust() {
    check("rust").await;
}

#[tokio::test]
async fn javascript() {
    check("js").await;
}

#[tokio::test]
async fn python() {
    check("python").await;
}

#[tokio::test]
async fn c() {
    check("c").await;
}

/// The one of Rust compiles everything a second time, for this machine: it waits for the switch with the others.
#[test]
fn the_tests_of_the_templates_pass() {
    for language in LANGUAGES.into_iter().rev() {
        if !tested(language) {
            return;
        }
    }
}
