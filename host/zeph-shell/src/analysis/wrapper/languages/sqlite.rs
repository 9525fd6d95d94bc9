//! The clients of SQLite and DuckDB: their dot commands, and functions of SQL that load code, start an editor or write files.
//!
//! Source: the documentation of the command-line shell of SQLite 3.50.

/// Dot commands that only read, print or set how results are shown. A shortened one is not known.
const TAME: &[&str] = &[
    "bail",
    "binary",
    "changes",
    "columns",
    "databases",
    "dbconfig",
    "dbinfo",
    "dump",
    "echo",
    "eqp",
    "exit",
    "explain",
    "expert",
    "fullschema",
    "header",
    "headers",
    "help",
    "import",
    "indexes",
    "indices",
    "limit",
    "lint",
    "maxrows",
    "mode",
    "nullvalue",
    "open",
    "parameter",
    "print",
    "progress",
    "prompt",
    "quit",
    "read",
    "scanstats",
    "schema",
    "separator",
    "sha3sum",
    "show",
    "stats",
    "tables",
    "timeout",
    "timer",
    "version",
    "vfsinfo",
    "width",
];

/// Functions that do more than compute.
const FUNCTIONS: &[&str] = &["edit", "fts3_tokenizer", "load_extension", "writefile"];

/// Whether a text holds a command that runs something or writes a file.
pub(super) fn acts(text: &str) -> bool {
    let is_wild = |line: &str| match line.trim_start().strip_prefix('.') {
        Some(command) => !is_tame(command),
        None => false,
    };
    text.lines().any(is_wild) || statement_acts(&text.to_ascii_lowercase())
}

/// Whether a dot command is one of the known, and pipes nothing.
fn is_tame(command: &str) -> bool {
    let name = command.split_whitespace().next().unwrap_or_default();
    // Names of files such as `./x.db` and `.x.db` are no commands.
    let is_file = name == command && name.contains(['/', '.']);
    is_file || TAME.contains(&name) && !command.contains('|')
}

/// Whether a statement in lower case calls one of the functions, loads code, or writes a copy of the database.
fn statement_acts(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_copy = words.windows(2).any(|pair| pair == ["vacuum", "into"])
        || words.iter().any(|word| word.starts_with("into'")) && text.contains("vacuum");
    is_copy || FUNCTIONS.iter().any(|function| calls(text, function))
}

/// Whether a text holds the name of a function with a parenthesis behind it.
fn calls(text: &str, function: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(function).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after =
            text[at + function.len()..].trim_start_matches(|c: char| c.is_whitespace() || c == '"');
        !before.is_some_and(is_part) && after.starts_with('(')
    })
}
