//! The templates for authors, on the real toolchains: each builds, loads, and does what it says.

use std::fs;
use std::path::Path;

use serde_json::json;
use zeph_core::capability::{FsGrant, FsRights, FsRoot};
use zeph_core::category::ErrorCategory;
use zeph_core::limit::CallLimits;
use zeph_core::manifest::Manifest;
use zeph_core::output::{Content, RawOutput};
use zeph_engine::{CallGrant, ComponentBytes, ComponentKind, inspect};

use crate::guest::{Guest, PATIENT};
use crate::product::Product;
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
    let [words_tool, file_tool, tree_tool] =
        ["words", "file", "tree"].map(|tool| format!("{id}_{tool}"));
    assert_eq!(names, [&words_tool, &file_tool, &tree_tool]);
    assert!(tools.iter().all(|tool| tool.annotations.read_only));

    let words = json!({"text": "one \"two\"  thr\u{e9}e\n"});
    let output = guest.call(&words_tool, words).await.unwrap();
    assert_eq!(text(&output), "3 words");

    let failure = guest
        .call(&file_tool, json!({"path": file}))
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
    let output = guest.call(&file_tool, json!({"path": file})).await;
    assert_eq!(text(&output.unwrap()), "4 words");
    let missing = json!({"path": format!("{named}.none")});
    let failure = guest.call(&file_tool, missing).await.unwrap_err();
    assert_eq!(failure.category, ErrorCategory::PermanentFailure);
    walks(&guest, &tree_tool, file.parent().unwrap()).await;
}

/// Its example of a walk goes by its settings and by a variable.
async fn walks(guest: &Guest, tool: &str, dir: &Path) {
    fs::write(dir.join("more.md"), "five six").unwrap();
    fs::write(dir.join("data.bin"), "seven").unwrap();
    let skip = [("WORDS_SKIP".to_owned(), "none.txt more.*".to_owned())];
    for (settings, variables, expect) in [
        ("{}", &[][..], "6 words"),
        (r#"{"only": "*.md"}"#, &[], "2 words"),
        (r#"{"only": "*.bin *.md"}"#, &skip, "1 word"),
    ] {
        let guest = guest.granted(CallGrant {
            settings: settings.into(),
            variables: variables.into(),
            ..guest.grant().clone()
        });
        let output = guest.call(tool, json!({"path": dir})).await.unwrap();
        assert_eq!(text(&output), expect, "{settings} {variables:?}");
    }
}

/// What stands in the operator's configuration is what the plugin is told, through the whole program.
#[test]
fn settings_reach_a_plugin() {
    let Some(component) = built("rust") else {
        return;
    };
    let product = Product::new();
    let id = name("rust");
    product
        .drop_in(&id, &fs::read(component).unwrap())
        .file("a.md", "one two")
        .file("b.rst", "three");
    product.plugin_json(&["grant", &id, "--dir", "."]);
    let (tool, path) = (
        format!("{id}_tree"),
        format!("path={}", product.work.display()),
    );
    for (settings, code, expect) in [
        ("{}", 0, "2 words"),
        ("{ only = '*.rst' }", 0, "1 word"),
        ("{ onyl = '*.rst' }", 1, "unknown field `onyl`"),
    ] {
        let set = format!("plugins.settings.{id}={settings}");
        let ran = product.run(&["--set", &set, "call", &tool, &path]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(expect), "{settings}: {ran:?}");
    }
}

/// The host reads out of it what the project says.
fn check_inspection(language: &str, component: &[u8]) {
    let inspection = inspect(component).unwrap();
    assert!(inspection.is_usable(), "{:?}", inspection.problems);
    let version = "0.1.0".to_owned();
    assert_eq!(inspection.kind, ComponentKind::ToolPlugin { version });

    let (files, _) = new_project(language);
    let manifest = str::from_utf8(&files["plugin.toml"]).unwrap();
    let manifest = Manifest::parse(manifest).unwrap();
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
