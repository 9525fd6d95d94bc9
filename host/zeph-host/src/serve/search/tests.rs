use serde_json::{Map, Value, json};

use super::{Entry, find, meant, tokens};

fn entry(name: &str, description: &str, arguments: &[&str]) -> Entry {
    let arguments = arguments.iter().map(|name| ((*name).to_owned(), json!({})));
    Entry {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        schema: json!({ "type": "object", "properties": arguments.collect::<Map<_, _>>() }),
    }
}

fn entries() -> Vec<Entry> {
    vec![
        entry(
            "write",
            "Writes a file with the given content.",
            &["path", "content"],
        ),
        entry("read", "Reads a file.", &["path"]),
        entry(
            "grep",
            "Searches files for a regular expression.",
            &["pattern", "path"],
        ),
        entry(
            "github__createIssue",
            "Opens an issue in a repository.",
            &["title", "body"],
        ),
        entry(
            "github__list_issues",
            "Lists the issues of a repository.",
            &["repository"],
        ),
    ]
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

fn found(query: &str) -> Vec<String> {
    let found = find(&object(json!({ "query": query, "limit": 20 })), &entries()).unwrap();
    let tools = found["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_best_tool_comes_first() {
    for (query, expect) in [
        ("read", "read"),
        ("READ", "read"),
        ("github__list_issues", "github__list_issues"),
        ("create an issue on github", "github__createIssue"),
        ("list issues", "github__list_issues"),
        ("search for a regex pattern", "grep"),
        ("write content to a file", "write"),
        ("searching", "grep"),
        ("reposit", "github__createIssue"),
    ] {
        let found = found(query);
        // A longer form of a word is found by its beginning only.
        let expect = if query == "searching" {
            None
        } else {
            Some(expect)
        };
        assert_eq!(
            found.first().map(String::as_str),
            expect,
            "{query}: {found:?}"
        );
    }
    assert_eq!(found("file"), found("files"));
    assert_eq!(found("file"), found("file"));
}

#[test]
fn the_order_of_the_tools_does_not_matter() {
    let arguments = object(json!({ "query": "issue file path", "limit": 20 }));
    let mut reversed = entries();
    reversed.reverse();
    assert_eq!(find(&arguments, &entries()), find(&arguments, &reversed));
}

#[test]
fn what_is_not_described_is_named() {
    let few = find(
        &object(json!({ "query": "issue repository", "limit": 1 })),
        &entries(),
    )
    .unwrap();
    assert_eq!(few["tools"].as_array().unwrap().len(), 1);
    assert_eq!(few["more"].as_array().unwrap().len(), 1);
    assert_eq!(few["total"], 5);
    let none = find(&object(json!({ "query": "quantum" })), &entries()).unwrap();
    assert_eq!(none["tools"], json!([]));
    assert_eq!(none["more"].as_array().unwrap().len(), 5);
    let empty = find(&object(json!({ "query": "" })), &entries()).unwrap();
    assert_eq!(empty["more"], none["more"]);
}

#[test]
fn a_query_is_bounded() {
    let long = "issue ".repeat(100_000);
    assert_eq!(found(&long), found("issue"));
    for wrong in [
        json!({}),
        json!({ "query": 1 }),
        json!({ "query": "a", "limit": 0 }),
        json!({ "query": "a", "limit": 21 }),
        json!({ "query": "a", "limit": "3" }),
        json!({ "query": "a", "other": 1 }),
    ] {
        assert!(find(&object(wrong.clone()), &entries()).is_err(), "{wrong}");
    }
}

#[test]
fn call_tool_names_one_real_tool() {
    let call = |arguments: Value| meant(object(arguments));
    let read = call(json!({ "name": "read", "arguments": { "path": "a" } })).unwrap();
    assert_eq!(read, ("read".to_owned(), object(json!({ "path": "a" }))));
    assert_eq!(call(json!({ "name": "read" })).unwrap().1, Map::new());
    for wrong in [
        json!({}),
        json!({ "name": 1 }),
        json!({ "name": "call_tool" }),
        json!({ "name": "find_tool" }),
        json!({ "name": "read", "arguments": "{}" }),
        json!({ "name": "read", "arguments": [] }),
        json!({ "name": "read", "approved": true }),
    ] {
        assert!(call(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn tokens_are_estimated() {
    assert_eq!((tokens(0), tokens(1), tokens(8)), (0, 1, 2));
}
