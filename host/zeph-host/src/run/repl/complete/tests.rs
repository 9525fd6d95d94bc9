use serde_json::json;
use zeph_core::argument::Parameters;
use zeph_core::catalog::Catalog;
use zeph_core::id::ToolName;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::{DirectoryName, candidates};

fn catalog() -> Catalog {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "pattern": { "type": "string" },
            "all": { "type": "boolean" },
            "mode": { "enum": ["fast", "slow"] },
        },
    });
    let tool = |name: &str| Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(schema.clone()).unwrap(),
        output: None,
        kind: ToolKind::Read,
        annotations: Annotations::default(),
        backend: Backend::Builtin,
    };
    Catalog::new([tool("read"), tool("read_overflow"), tool("grep")]).unwrap()
}

fn list(folder: &str) -> Vec<DirectoryName> {
    let names: &[&str] = match folder {
        "" => &["src/", "README.md", ".git/", "two words/", "it's"],
        "src/" => &["main.rs", "lib.rs"],
        "two words/" => &["a b", "c"],
        _ => &[],
    };
    names
        .iter()
        .map(|name| DirectoryName {
            name: name.trim_end_matches('/').to_owned(),
            is_directory: name.ends_with('/'),
        })
        .collect()
}

/// What the line would be with each candidate in place.
fn check(before: &str, expect: &[&str]) {
    let found: Vec<String> = candidates(before, &catalog(), &list)
        .into_iter()
        .map(|candidate| format!("{}{}", &before[..candidate.start], candidate.text))
        .collect();
    assert_eq!(found, expect, "{before:?}");
}

#[test]
fn what_fits_at_the_cursor() {
    check("", &["grep", "read", "read_overflow"]);
    check("re", &["read", "read_overflow"]);
    check("zz", &[]);
    check("/a", &["/approvals", "/approve"]);
    check("/t", &["/tool", "/tools"]);
    check("/tool g", &["/tool grep"]);
    check("/help r", &[]);
    check("read p", &["read path=", "read pattern="]);
    check("read path=x p", &["read path=x pattern="]);
    check("read all=", &["read all=false", "read all=true"]);
    check("read mode=s", &["read mode=slow"]);
    check("nosuch p", &[]);
    check("read {\"p", &[]);
}

#[test]
fn paths_are_completed_and_quoted() {
    check(
        "read path=",
        &[
            "read path=README.md",
            "read path=\"it's\"",
            "read path=src/",
            "read path=\"two words/",
        ],
    );
    check("read path=.", &["read path=.git/"]);
    check("read path=src/m", &["read path=src/main.rs"]);
    check("read path=\"two w", &["read path=\"two words/"]);
    check(
        "read path=\"two words/",
        &["read path=\"two words/a b\"", "read path=\"two words/c\""],
    );
    check("read path=nowhere/", &[]);
    check("read pattern=R", &[]);
}

#[test]
fn no_line_panics() {
    for before in [
        "read path=é",
        "é",
        "é é",
        "read é=\"",
        "read path=\"",
        "\"",
        "=",
        "read =",
        "   ",
    ] {
        drop(candidates(before, &catalog(), &list));
    }
}
