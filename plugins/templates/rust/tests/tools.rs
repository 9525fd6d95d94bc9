//! Calls the tools as the host does, without WebAssembly: `cargo test`.

use RUST_NAME::tools;
use zeph_plugin::{Content, Context, Outcome, ToolError};

fn call(name: &str, arguments: &str) -> Result<String, ToolError> {
    match zeph_plugin::call(&tools(), name, arguments, &Context::for_tests())? {
        Outcome::Done(output) => match output.content.into_iter().next() {
            Some(Content::Text(text)) => Ok(text),
            other => panic!("the answer is {other:?}"),
        },
        Outcome::Ask(ask) => panic!("it asks {ask:?}"),
    }
}

#[test]
fn counts_a_text() {
    let answer = call("TOOL_PREFIX_words", r#"{"text": "one two  three\n"}"#);
    assert_eq!(answer.expect("a text"), "3 words");
}

#[test]
fn counts_a_file() {
    let file = std::env::temp_dir().join("PLUGIN_NAME-test.txt");
    std::fs::write(&file, "one two").expect("the directory for temporary files");
    let answer = call("TOOL_PREFIX_file", &format!("{{\"path\": {file:?}}}"));
    std::fs::remove_file(&file).expect("the file that was written");
    assert_eq!(answer.expect("a file"), "2 words");
}

#[test]
fn says_what_is_wrong() {
    let error = call("TOOL_PREFIX_file", r#"{"path": "/nowhere/at/all"}"#).expect_err("no file");
    assert!(error.message.contains("/nowhere/at/all"), "{error:?}");
}
