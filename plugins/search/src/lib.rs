//! `search_code`: where things are defined, used and described in code, as one component.
//!
//! `grammar` and `scanner` make tree-sitter's grammars work without a compiler of C; `language` says what counts as a definition in
//! which language; `outline` reads one file; `index` keeps what was read, in the folder the host gives to this plugin; `rank` finds and
//! orders; `glob` says which files are meant; `pattern` matches syntax trees; `passages` searches by meaning and `lsp` asks a language server, where the operator granted that;
//! `answer` shows the result. Protection is not done here: every file is listed and opened
//! through the host's guard, in every call anew, and nothing of a file is shown that this call could not open.

pub mod answer;
pub mod glob;
pub mod grammar;
pub mod index;
pub mod language;
pub mod lsp;
pub mod outline;
pub mod passages;
pub mod pattern;
pub mod rank;
pub mod refresh;
pub mod scanner;
pub mod sys;
pub mod tool;
pub mod words;

zeph_plugin::export!(crate::tool::tools, manifest = "../plugin.toml");
