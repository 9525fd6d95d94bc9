//! The tools: a struct of arguments and a function each, and the table with their descriptions for the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Context, Kind, Output, Tool, ToolError, counted, progress, settings, walk};

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

#[derive(Deserialize, JsonSchema)]
struct TreeArgs {
    /// The directory whose files to count, as an absolute path.
    path: String,
}

/// Settings from `[plugins.settings.PLUGIN_NAME]` of the host's configuration.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// Globs of the files to count, separated by spaces.
    only: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            only: "*.md *.txt".to_owned(),
        }
    }
}

/// The structured result, for programs.
#[derive(Serialize, JsonSchema)]
struct Count {
    words: usize,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn n_words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn count(n_words: usize) -> Output {
    let answer = Count { words: n_words };
    Output::text(counted(n_words, "word", "words")).structured(&answer)
}

fn count_words(args: TextArgs, _: &Context) -> Result<Output, ToolError> {
    Ok(count(n_words(&args.text)))
}

fn count_file(args: FileArgs, _: &Context) -> Result<Output, ToolError> {
    progress::message(&format!("reading {}", args.path));
    let text = std::fs::read_to_string(&args.path)
        .map_err(|error| ToolError::io(error.kind(), format!("`{}`: {error}", args.path)))?;
    Ok(count(n_words(&text)))
}

fn count_tree(args: TreeArgs, _: &Context) -> Result<Output, ToolError> {
    let Settings { only } = settings()?;
    // Set only if the operator has granted the variable.
    let skip = std::env::var("WORDS_SKIP").unwrap_or_default();
    let options = walk::Options {
        max_depth: None,
        only: words(&only),
        skip: words(&skip),
        standard_filters: true,
        sizes: false,
    };
    let failed = |error| ToolError::denied(format!("`{}`: {error}", args.path));
    let walker = walk::Walker::open(&args.path, &options).map_err(failed)?;
    let mut n_words = 0;
    loop {
        let entries = walker.next(1000).map_err(failed)?;
        if entries.is_empty() {
            return Ok(count(n_words));
        }
        let files = entries.iter().filter(|entry| entry.kind == walk::EntryKind::File);
        for file in files {
            // Files that are not UTF-8 text count as empty.
            let text = std::fs::read_to_string(format!("{}/{}", args.path, file.path));
            n_words += self::n_words(&text.unwrap_or_default());
        }
    }
}

/// Every tool of the plugin.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("TOOL_PREFIX_words", count_words)
            .describe("Counts the words of a text. Use it to judge whether a text fits.")
            .read_only()
            .returns::<Count>(),
        Tool::new("TOOL_PREFIX_file", count_file)
            .describe("Counts the words of a text file.")
            .kind(Kind::Read)
            .read_only()
            .returns::<Count>(),
        Tool::new("TOOL_PREFIX_tree", count_tree)
            .describe("Counts the words of all text files below a directory.")
            .kind(Kind::Search)
            .read_only()
            .returns::<Count>(),
    ]
}

zeph_plugin::export!(tools, manifest = "../plugin.toml");
