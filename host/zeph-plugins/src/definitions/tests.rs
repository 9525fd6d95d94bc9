use serde_json::{Value, json};
use zeph_core::argument::Parameters;
use zeph_core::capability::{Capability, FsRights, LimitName};
use zeph_core::id::{PluginId, ToolName};
use zeph_core::manifest::Want;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::{BadDefinitions, DEFINITIONS_BYTES_MAX, Definitions, canonical_json};

/// A tool with something in every field.
pub(crate) fn tool(name: &str) -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "Which file." },
            "limit": { "type": "integer", "maximum": 10 },
        },
        "required": ["path"],
    });
    Tool {
        name: ToolName::new(name).unwrap(),
        title: Some("A tool".to_owned()),
        description: "Does something.".to_owned(),
        parameters: Parameters::new(parameters).unwrap(),
        output: Some(json!({ "type": "object" }).into()),
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Wasm(PluginId("notes".to_owned())),
    }
}

pub(crate) fn want(capability: Capability, reason: &str) -> Want {
    let reason = reason.to_owned();
    Want { capability, reason }
}

pub(crate) fn directory(path: &str, rights: &str) -> Capability {
    Capability::Directory {
        path: path.to_owned(),
        rights: rights.parse().unwrap(),
    }
}

pub(crate) fn host(name: &str) -> Capability {
    Capability::Host(name.parse().unwrap())
}

/// One wish of each kind.
pub(crate) fn wants() -> Vec<Want> {
    let name = |name: &str| name.to_owned();
    vec![
        want(directory("~/notes", "read+write"), "keeps the notes"),
        want(host("api.example.com"), "asks the service"),
        want(
            Capability::Program {
                name: name("cargo"),
            },
            "builds",
        ),
        want(Capability::Variable { name: name("LANG") }, "speaks it"),
        want(
            Capability::Limit {
                name: LimitName::MemoryBytes,
                value: 1 << 30,
            },
            "sorts large files",
        ),
    ]
}

/// The schema of a tool, changed.
pub(crate) fn with_schema(tool: &mut Tool, change: impl FnOnce(&mut Value)) {
    let mut schema = tool.parameters.schema().clone();
    change(&mut schema);
    tool.parameters = Parameters::new(schema).unwrap();
}

fn definitions() -> (Vec<Want>, Vec<Tool>) {
    (wants(), vec![tool("alpha"), tool("beta")])
}

#[test]
fn every_change_changes_the_digest() {
    type Change = fn(&mut Vec<Want>, &mut Vec<Tool>);
    let changes: &[(&str, Change)] = &[
        ("name", |_, tools| {
            tools[0].name = ToolName::new("alpha2").unwrap();
        }),
        ("title", |_, tools| {
            tools[0].title = Some("Another tool".to_owned());
        }),
        ("no title", |_, tools| tools[0].title = None),
        ("empty title", |_, tools| {
            tools[0].title = Some(String::new());
        }),
        ("description", |_, tools| tools[0].description.push('.')),
        ("hidden character", |_, tools| {
            tools[0].description.push('\u{200b}');
        }),
        ("parameter added", |_, tools| {
            with_schema(&mut tools[1], |schema| {
                schema["properties"]["more"] = json!({});
            });
        }),
        ("parameter removed", |_, tools| {
            with_schema(&mut tools[1], |schema| {
                schema["properties"]
                    .as_object_mut()
                    .unwrap()
                    .remove("limit");
            });
        }),
        ("parameter's description", |_, tools| {
            with_schema(&mut tools[1], |schema| {
                schema["properties"]["path"]["description"] = json!("Which files.");
            });
        }),
        ("number", |_, tools| {
            with_schema(&mut tools[1], |schema| {
                schema["properties"]["limit"]["maximum"] = json!(10.5);
            });
        }),
        ("required", |_, tools| {
            with_schema(&mut tools[1], |schema| {
                schema["required"] = json!(["path", "limit"]);
            });
        }),
        ("output", |_, tools| {
            tools[0].output = Some(json!({ "type": "string" }).into());
        }),
        ("no output", |_, tools| tools[0].output = None),
        ("null output", |_, tools| {
            tools[0].output = Some(Value::Null.into());
        }),
        ("kind", |_, tools| tools[0].kind = ToolKind::Read),
        ("read-only", |_, tools| {
            tools[0].annotations.read_only = true;
        }),
        ("destructive", |_, tools| {
            tools[0].annotations.destructive = true;
        }),
        ("idempotent", |_, tools| {
            tools[0].annotations.idempotent = true;
        }),
        ("open world", |_, tools| {
            tools[0].annotations.open_world = true;
        }),
        ("the other tool's", |_, tools| {
            tools[1].annotations.open_world = true;
        }),
        ("tool added", |_, tools| tools.push(tool("gamma"))),
        ("tool removed", |_, tools| drop(tools.pop())),
        ("no tools", |_, tools| tools.clear()),
        ("path", |wants, _| {
            wants[0].capability = directory("~", "read+write");
        }),
        ("right", |wants, _| {
            wants[0].capability = directory("~/notes", "read");
        }),
        ("all rights", |wants, _| {
            wants[0].capability = Capability::Directory {
                path: "~/notes".to_owned(),
                rights: FsRights::ALL,
            };
        }),
        ("host", |wants, _| {
            wants[1].capability = host("*.example.com");
        }),
        ("kind of wish", |wants, _| {
            wants[2].capability = Capability::Variable {
                name: "cargo".to_owned(),
            };
        }),
        ("limit", |wants, _| {
            wants[4].capability = Capability::Limit {
                name: LimitName::MemoryBytes,
                value: (1 << 30) + 1,
            };
        }),
        ("name of the limit", |wants, _| {
            wants[4].capability = Capability::Limit {
                name: LimitName::OutputBytes,
                value: 1 << 30,
            };
        }),
        ("reason", |wants, _| wants[3].reason.push('!')),
        ("wish removed", |wants, _| drop(wants.pop())),
        ("no wishes", |wants, _| wants.clear()),
    ];
    let (wants, tools) = definitions();
    let before = Definitions::new(wants, tools).unwrap().digest();
    let mut seen = vec![("before", before)];
    for (name, change) in changes {
        let (mut wants, mut tools) = definitions();
        change(&mut wants, &mut tools);
        let digest = Definitions::new(wants, tools).unwrap().digest();
        if let Some((same, _)) = seen.iter().find(|(_, other)| *other == digest) {
            panic!("`{name}` has the digest of `{same}`");
        }
        seen.push((name, digest));
    }
}

#[test]
fn what_the_author_does_not_say_does_not_count() {
    let (wants, tools) = definitions();
    let before = Definitions::new(wants.clone(), tools.clone()).unwrap();
    let reversed = Definitions::new(wants.clone(), tools.iter().rev().cloned().collect());
    assert_eq!(reversed.unwrap().digest(), before.digest());
    let mut elsewhere = tools;
    for tool in &mut elsewhere {
        tool.backend = Backend::Wasm(PluginId("another".to_owned()));
        let text = tool.parameters.schema().to_string();
        tool.parameters = Parameters::new(serde_json::from_str(&text).unwrap()).unwrap();
    }
    let elsewhere = Definitions::new(wants, elsewhere).unwrap();
    assert_eq!(elsewhere.digest(), before.digest());
}

/// Pins hold as long as this digest does: a change of the form turns every accepted plugin off.
#[test]
fn the_form_stays() {
    let nothing = Definitions::default();
    assert_eq!(nothing.canonical(), r#"{"form":1,"tools":[],"wants":[]}"#);
    let mut tool = tool("alpha");
    with_schema(&mut tool, |schema| {
        *schema = json!({ "type": "object", "b": [1.5, -0.0], "a": null });
    });
    let wants = vec![want(directory(".", "read"), "looks")];
    let definitions = Definitions::new(wants, vec![tool]).unwrap();
    let expect = concat!(
        r#"{"form":1,"tools":[{"annotations":{"destructive":false,"idempotent":false,"open_world":false,"read_only":false},"#,
        r#""description":"Does something.","kind":"other","name":"alpha","output":{"type":"object"},"#,
        r#""parameters":{"a":null,"b":[1.5,-0.0],"type":"object"},"title":"A tool"}],"#,
        r#""wants":[{"kind":"directory","path":".","reason":"looks","#,
        r#""rights":{"create":false,"delete":false,"read":true,"write":false}}]}"#,
    );
    assert_eq!(definitions.canonical(), expect);
    let digest = "sha256:cc308e6cb5604f7c3f4b2ddfece92a72fb4db470e8791fcc2ea108aa9a757a55";
    assert_eq!(definitions.digest().to_string(), digest);
}

#[test]
fn canonical_json_depends_on_the_value_alone() {
    let table = [
        (
            r#" { "b" : 1 , "a" : [ { "d" : 2 , "c" : "\u00e9\n" } ] } "#,
            r#"{"a":[{"c":"é\n","d":2}],"b":1}"#,
        ),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"é":1,"z":2,"Z":3}"#, r#"{"Z":3,"z":2,"é":1}"#),
        ("1e2", "100.0"),
        ("18446744073709551615", "18446744073709551615"),
        // Read with its last digit, or the same schema would not be the same after a round through the lock file.
        ("0.15100216327808003", "0.15100216327808003"),
        ("[]", "[]"),
    ];
    for (text, expect) in table {
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(canonical_json(&value), expect);
    }
}

#[test]
fn no_plugin_can_fill_the_lock_file() {
    let mut large = tool("alpha");
    large.title = Some("x".repeat(DEFINITIONS_BYTES_MAX));
    let error = Definitions::new(Vec::new(), vec![large]).unwrap_err();
    assert!(
        matches!(error, BadDefinitions::TooLong { n_bytes } if n_bytes > DEFINITIONS_BYTES_MAX)
    );
    let twice = Definitions::new(Vec::new(), vec![tool("b"), tool("a"), tool("b")]);
    let error = twice.unwrap_err().to_string();
    assert_eq!(error, "it has two tools named `b`");
}
