use proptest::prelude::*;
use serde_json::{Value, json};
use zeph_core::argument::Parameters;
use zeph_core::catalog::Catalog;
use zeph_core::id::ToolName;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::{PromptInput, argument, read};

fn tool(name: &str, schema: Value) -> Tool {
    Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(schema).unwrap(),
        output: None,
        kind: ToolKind::Read,
        annotations: Annotations::default(),
        backend: Backend::Builtin,
    }
}

fn called(tool: &str, arguments: Value) -> PromptInput {
    PromptInput::Call {
        tool: tool.to_owned(),
        arguments,
    }
}

fn catalog() -> Catalog {
    let read = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "limit": { "type": "integer" },
            "all": { "type": "boolean" },
            "either": { "type": ["string", "null"] },
            "globs": { "type": "array", "items": { "type": "string" } },
            "mode": { "enum": ["1", "2"] },
            "any": {},
        },
        "required": ["path"],
    });
    let open = json!({ "type": "object" });
    Catalog::new([tool("read", read), tool("open", open)]).unwrap()
}

fn call(line: &str) -> Result<Value, String> {
    match read(line, &catalog())? {
        PromptInput::Call { arguments, .. } => Ok(arguments),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn the_schema_decides_what_a_value_means() {
    let table = [
        ("read", json!({})),
        ("read path=a", json!({ "path": "a" })),
        ("read path=5 limit=5", json!({ "path": "5", "limit": 5 })),
        (
            "read path=true all=true",
            json!({ "path": "true", "all": true }),
        ),
        (
            "read either=7 mode=1 any=7",
            json!({ "either": "7", "mode": "1", "any": 7 }),
        ),
        ("read any=null any2=x", json!(null)),
        ("read path=", json!({ "path": "" })),
        ("read path=a=b", json!({ "path": "a=b" })),
        (
            r#"read path="two words" limit=2"#,
            json!({ "path": "two words", "limit": 2 }),
        ),
        (r#"read path="tab\there""#, json!({ "path": "tab\there" })),
        (
            "read path='it \"is\" \\n'",
            json!({ "path": "it \"is\" \\n" }),
        ),
        (r#"read any="5""#, json!({ "any": "5" })),
        (
            r#"read globs=["a b", "c"] limit=1"#,
            json!({ "globs": ["a b", "c"], "limit": 1 }),
        ),
        ("read path=[a-z]*.rs", json!({ "path": "[a-z]*.rs" })),
        ("read path={a,b}.rs", json!({ "path": "{a,b}.rs" })),
        ("read path=[1]", json!({ "path": "[1]" })),
        ("read path=[1].rs", json!({ "path": "[1].rs" })),
        ("read limit=five", json!({ "limit": "five" })),
        (r#"read {"path": "a"}"#, json!({ "path": "a" })),
        (r#"read{"path":"a"}"#, json!({ "path": "a" })),
        ("read {\n  \"path\": \"a\"\n}", json!({ "path": "a" })),
        ("open x=1 y=two", json!({ "x": 1, "y": "two" })),
    ];
    for (line, expect) in table {
        match call(line) {
            Ok(arguments) => assert_eq!(arguments, expect, "{line}"),
            Err(problem) => assert!(expect.is_null(), "{line}: {problem}"),
        }
    }
}

#[test]
fn a_shell_has_taken_the_quotes_off() {
    let catalog = catalog();
    let parameters = &catalog.resolve("read").unwrap().parameters;
    let table = [
        ("path=two words", Ok(("path", json!("two words")))),
        ("path=\"q\"", Ok(("path", json!("\"q\"")))),
        ("limit=5", Ok(("limit", json!(5)))),
        ("globs=[\"a\", \"b\"]", Ok(("globs", json!(["a", "b"])))),
        ("path=line\nbreak", Ok(("path", json!("line\nbreak")))),
        ("path", Err("`path` is not `key=value`")),
        ("=x", Err("`=x` is not `key=value`")),
        ("a b=x", Err("`a b=x` is not `key=value`")),
        (
            "pth=x",
            Err("there is no parameter `pth`; did you mean `path`?"),
        ),
        ("zzz=x", Err("there is no parameter `zzz`")),
    ];
    for (given, expect) in table {
        let found = argument(given, parameters);
        let expect = expect
            .map(|(key, value)| (key.to_owned(), value))
            .map_err(str::to_owned);
        assert_eq!(found, expect, "{given}");
    }
}

#[test]
fn commands() {
    let table = [
        ("", Ok(PromptInput::Nothing)),
        ("  \n ", Ok(PromptInput::Nothing)),
        ("/tools", Ok(PromptInput::Tools)),
        ("/tool read", Ok(PromptInput::Tool("read".to_owned()))),
        ("/help", Ok(PromptInput::Help)),
        ("/approve", Ok(PromptInput::Approve(None))),
        (
            "/approve k7m2x9qd",
            Ok(PromptInput::Approve(Some("k7m2x9qd".to_owned()))),
        ),
        ("/approvals", Ok(PromptInput::Approvals)),
        ("/undo", Ok(PromptInput::Undo(1))),
        ("/undo 3", Ok(PromptInput::Undo(3))),
        ("/undo 0", Err("Undo count must be > 0.")),
        (
            "/undo 1001",
            Err("write `/undo` or `/undo N`, N from 1 to 1000"),
        ),
        (
            "/undo -1",
            Err("write `/undo` or `/undo N`, N from 1 to 1000"),
        ),
        ("/redo", Ok(PromptInput::Redo)),
        ("/runs", Ok(called("list_runs", json!({})))),
        ("/kill", Err("write `/kill ID`; `/runs` lists the ids")),
        ("/kill 3", Ok(called("kill_run", json!({ "run_id": "3" })))),
        ("/kill 3 4", Err("`4` is one word too many")),
        ("/plan", Ok(PromptInput::Plan(None))),
        (
            "/plan mend  the parser",
            Ok(PromptInput::Plan(Some("mend  the parser".to_owned()))),
        ),
        (
            "/planes",
            Err("there is no command `/planes`; did you mean `/plan`?"),
        ),
        ("/clear", Ok(PromptInput::Clear)),
        ("/clear now", Err("`/clear` takes no argument")),
        (" /quit ", Ok(PromptInput::Quit)),
        ("/exit", Ok(PromptInput::Quit)),
        ("/tool", Err("write `/tool NAME`; `/tools` lists the names")),
        (
            "/hepl",
            Err("there is no command `/hepl`; did you mean `/help`?"),
        ),
        ("/tools x", Err("`/tools` takes no argument")),
        (
            "/qqqqqqqqqq",
            Err(
                "there is no such command; there are: /approvals, /approve, /clear, /help, /kill, /plan, /quit, /redo, /revoke, /runs, /tool, /tools, /undo",
            ),
        ),
        ("quit", Err("did you mean `/quit`?")),
        ("exit", Err("did you mean `/quit`?")),
        (
            "raed path=x",
            Err("no tool is named `raed`; did you mean `read`?"),
        ),
    ];
    for (line, expect) in table {
        assert_eq!(
            read(line, &catalog()),
            expect.map_err(str::to_owned),
            "{line}"
        );
    }
}

#[test]
fn wrong_arguments_name_the_parameters() {
    let takes = "`read` takes {path: string, ";
    for (line, start) in [
        ("read README.md", "`README.md` is not `key=value`"),
        (
            "read path=\"open",
            "the quoted value of `path` does not end",
        ),
        ("read path='open", "the quoted value of `path` does not end"),
        (
            "read path='a'b",
            "a space is missing after the value of `path`",
        ),
        ("read path=a path=b", "`path` is given twice"),
        (
            "read pth=a",
            "there is no parameter `pth`; did you mean `path`?",
        ),
    ] {
        let problem = call(line).unwrap_err();
        assert!(problem.starts_with(start), "{line}: {problem}");
        assert!(problem.contains(takes), "{line}: {problem}");
        assert!(!problem.contains('\n'), "{line}: {problem}");
    }
    assert!(
        call("read {\"path\":")
            .unwrap_err()
            .starts_with("the arguments are not JSON: ")
    );
}

proptest! {
    #[test]
    fn no_line_panics(line in r#"(read|open|/tool)?[ \n]?([a-zé]{1,4}=)?["'\[{é=]{0,3}[a-z0-9\\ ,]{0,6}["'\]}é]{0,2}"#) {
        drop(read(&line, &catalog()));
    }

    #[test]
    fn quoted_text_comes_back(text in "[^']{0,40}") {
        let typed = call(&format!("read path={}", Value::String(text.clone()))).unwrap();
        prop_assert_eq!(&typed["path"], &Value::String(text.clone()));
        let single = call(&format!("read path='{text}'")).unwrap();
        prop_assert_eq!(&single["path"], &Value::String(text));
    }
}
