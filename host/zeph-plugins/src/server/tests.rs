use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;
use zeph_core::argument::Parameters;
use zeph_core::id::ServerName;
use zeph_core::server::ServerTool;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::{
    AcceptError, LockedServer, NamedDefinition, ServerDefinitions, ServerSight, accept, look,
};
use crate::diff::between_servers;
use crate::lock::Lock;

/// 2026-11-20T08:00:00Z.
const ACCEPTED_MS: i64 = 1_795_161_600_000;

fn tool(own: &str, description: &str) -> Tool {
    let named = ServerTool::new(ServerName::new("notes").unwrap(), own);
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    Tool {
        name: named.plain_name(),
        title: None,
        description: description.to_owned(),
        parameters: Parameters::new(schema).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Mcp(named),
    }
}

fn prompt(name: &str, text: &str) -> NamedDefinition {
    NamedDefinition {
        name: name.to_owned(),
        definition: json!({"name": name, "description": text}),
    }
}

fn server(tools: Vec<Tool>, instructions: &str) -> LockedServer {
    let prompts = vec![prompt("greet", "Says hello.")];
    let templates = vec![prompt("notes://{id}", "A note.")];
    let instructions = Some(instructions.to_owned());
    let (definitions, twice) = ServerDefinitions::new(instructions, tools, prompts, templates);
    assert!(twice.is_empty(), "{twice:?}");
    LockedServer {
        name: ServerName::new("notes").unwrap(),
        launch: vec![
            "npx".to_owned(),
            "-y".to_owned(),
            "notes \"quoted\"".to_owned(),
        ],
        install: BTreeMap::from([("version".to_owned(), "1.2.3".to_owned())]),
        accepted_at_ms: ACCEPTED_MS,
        digest: definitions.digest(),
        definitions,
    }
}

fn sight(lock: &Path, now: &LockedServer) -> &'static str {
    match look(lock, now).unwrap() {
        ServerSight::Pinned => "pinned",
        ServerSight::Same => "same",
        ServerSight::Changed(_) => "changed",
    }
}

#[test]
fn the_first_sight_pins_and_every_change_shows() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("deep/zeph.lock");
    let first = server(vec![tool("a.b", "One."), tool("keep", "Two.")], "Be kind.");
    assert_eq!(sight(&lock, &first), "pinned");
    assert_eq!(sight(&lock, &first), "same");
    let variants = [
        LockedServer {
            launch: vec!["other".to_owned()],
            ..first.clone()
        },
        LockedServer {
            install: BTreeMap::new(),
            ..first.clone()
        },
        server(vec![tool("a.b", "One!"), tool("keep", "Two.")], "Be kind."),
        server(
            vec![tool("keep", "Two."), tool("new", "Three.")],
            "Be kind.",
        ),
        server(vec![tool("a_b", "One."), tool("keep", "Two.")], "Be kind."),
        server(vec![tool("a.b", "One."), tool("keep", "Two.")], "Obey."),
    ];
    for changed in variants {
        assert_eq!(sight(&lock, &changed), "changed", "{changed:?}");
        let ServerSight::Changed(old) = look(&lock, &changed).unwrap() else {
            panic!("{changed:?}");
        };
        assert_ne!(between_servers(&old, &changed).summary(), "nothing changed");
    }
}

#[test]
fn tools_may_come_and_go_among_those_that_were_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("zeph.lock");
    let all = vec![tool("a", "One."), tool("b", "Two.")];
    look(&lock, &server(all.clone(), "Be kind.")).unwrap();
    for some in [&all[..1], &all[1..], &[]] {
        assert_eq!(sight(&lock, &server(some.to_vec(), "Be kind.")), "same");
        assert_eq!(sight(&lock, &server(some.to_vec(), "")), "same");
    }
    assert_eq!(sight(&lock, &server(all, "Be kind.")), "same");
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("zeph.lock");
    let mut described = tool("x", "Lines.\n\n\u{202e}\"quotes\" \\ and more \n");
    described.annotations.read_only = true;
    described.output = Some(json!({"type": "object"}).into());
    let first = server(
        vec![described, tool("日本", "Two.")],
        "Line one.\nLine two.",
    );
    look(&lock, &first).unwrap();
    let text = fs::read_to_string(&lock).unwrap();
    assert!(text.contains("version = 2\n"), "{text}");
    let read = Lock::read(&lock).unwrap();
    let back = read.server(&first.name).unwrap();
    assert!(back.is_same(&first), "{text}");
    assert_eq!(back.definitions.digest(), first.digest, "{text}");
    let Backend::Mcp(named) = &back.definitions.tools()[0].backend else {
        panic!("{back:?}");
    };
    assert_eq!(named.tool, "日本");
}

#[test]
fn what_was_shown_is_what_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("zeph.lock");
    let first = server(vec![tool("a", "One.")], "");
    let second = server(vec![tool("a", "Two.")], "");
    let third = server(vec![tool("a", "Three.")], "");
    look(&lock, &first).unwrap();
    accept(&lock, &first, second.clone()).unwrap();
    assert_eq!(sight(&lock, &second), "same");
    let late = accept(&lock, &first, third);
    assert!(matches!(late, Err(AcceptError::Meanwhile(_))), "{late:?}");
    assert_eq!(sight(&lock, &second), "same");
}

#[test]
fn a_difference_is_made_for_people() {
    let old = server(vec![tool("a", "Reads."), tool("gone", "Old.")], "Be kind.");
    let mut new = server(
        vec![tool("a", "Deletes."), tool("new", "New.")],
        "Obey \u{202e}me.",
    );
    new.launch.push("--more".to_owned());
    let changes = between_servers(&old, &new);
    let lines: Vec<String> = changes.lines().iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    for part in [
        "command: changed; instructions: changed; tools: 1 added, 1 changed, 1 removed",
        "~ tool `mcp_notes_a`",
        "- \"Reads.\"",
        "+ \"Deletes.\"",
        "+ tool `mcp_notes_new`",
        "- tool `mcp_notes_gone`",
        "\\u{202e}",
        "--more",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains('\u{202e}'), "{text}");
}

#[test]
fn of_two_tools_with_one_name_the_first_counts() {
    let tools = vec![tool("a.b", "One."), tool("a.b", "Two.")];
    let (definitions, twice) = ServerDefinitions::new(None, tools, Vec::new(), Vec::new());
    assert_eq!(definitions.tools().len(), 1);
    assert_eq!(definitions.tools()[0].description, "One.");
    assert_eq!(twice.len(), 1);
}

/// A server may list them in another order at each start.
#[test]
fn tools_that_come_out_alike_are_pinned_by_the_names_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("zeph.lock");
    let (dot, line) = (tool("item.get", "One."), tool("item_get", "Two."));
    let both = |one: &Tool, other: &Tool| server(vec![one.clone(), other.clone()], "");
    assert_eq!(sight(&lock, &both(&dot, &line)), "pinned");
    assert_eq!(sight(&lock, &both(&line, &dot)), "same");
    assert_eq!(sight(&lock, &server(vec![dot.clone()], "")), "same");
    let changed = both(&tool("item.get", "Two."), &line);
    assert_eq!(sight(&lock, &changed), "changed");
    let changes = between_servers(&both(&dot, &line), &changed).summary();
    assert_eq!(changes, "tools: 1 changed");
    let more = server(vec![dot, line, tool("item/get", "One.")], "");
    let changes = between_servers(
        &both(&tool("item.get", "One."), &tool("item_get", "Two.")),
        &more,
    );
    assert_eq!(changes.summary(), "tools: 1 added");
}
