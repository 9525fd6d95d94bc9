//! The tools: a struct of arguments and a function each, and the table of what a model is told about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Context, Kind, Output, Tool, ToolError, progress};

#[derive(Deserialize, JsonSchema)]
struct TextArgs {
    /// The text to count.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct FileArgs {
    /// The file to count, as an absolute path.
    path: String,
}

/// The answer for programs; a model reads the text.
#[derive(Serialize, JsonSchema)]
struct Count {
    words: usize,
}

fn count(text: &str) -> Output {
    let words = text.split_whitespace().count();
    Output::text(format!("{words} words")).structured(&Count { words })
}

fn count_words(args: TextArgs, _: &Context) -> Result<Output, ToolError> {
    Ok(count(&args.text))
}

fn count_file(args: FileArgs, _: &Context) -> Result<Output, ToolError> {
    progress::message(&format!("reading {}", args.path));
    let text = std::fs::read_to_string(&args.path)
        .map_err(|error| ToolError::io(error.kind(), format!("`{}`: {error}", args.path)))?;
    Ok(count(&text))
}

/// Every tool of the plugin.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("count_words", count_words)
            .describe("Counts the words of a text. Use it to judge whether a text fits.")
            .read_only()
            .returns::<Count>(),
        Tool::new("count_file", count_file)
            .describe("Counts the words of a text file.")
            .kind(Kind::Read)
            .read_only()
            .returns::<Count>(),
    ]
}

zeph_plugin::export!(tools, manifest = "../plugin.toml");
