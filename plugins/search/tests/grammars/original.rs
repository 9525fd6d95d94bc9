//! The published grammars, compiled from their C.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tree_sitter_c2rust::Language;
use tree_sitter_language::LanguageFn;
use zeph_plugin_search::grammar::{self, RawLanguage};

/// A grammar and ours.
pub(crate) struct Original {
    pub(crate) name: &'static str,
    package: &'static str,
    parser: &'static str,
    function: LanguageFn,
    pub(crate) ours: fn() -> Language,
}

macro_rules! originals {
    ($($name:ident $package:literal $parser:literal $function:path;)*) => {
        &[$(Original {
            name: stringify!($name),
            package: $package,
            parser: $parser,
            function: $function,
            ours: grammar::$name,
        }),*]
    };
}

pub(crate) static ORIGINALS: &[Original] = originals! {
    c "tree-sitter-c" "src/parser.c" tree_sitter_c::LANGUAGE;
    cpp "tree-sitter-cpp" "src/parser.c" tree_sitter_cpp::LANGUAGE;
    go "tree-sitter-go" "src/parser.c" tree_sitter_go::LANGUAGE;
    java "tree-sitter-java" "src/parser.c" tree_sitter_java::LANGUAGE;
    javascript "tree-sitter-javascript" "src/parser.c" tree_sitter_javascript::LANGUAGE;
    python "tree-sitter-python" "src/parser.c" tree_sitter_python::LANGUAGE;
    rust "tree-sitter-rust" "src/parser.c" tree_sitter_rust::LANGUAGE;
    tsx "tree-sitter-typescript" "tsx/src/parser.c" tree_sitter_typescript::LANGUAGE_TSX;
    typescript "tree-sitter-typescript" "typescript/src/parser.c" tree_sitter_typescript::LANGUAGE_TYPESCRIPT;
};

impl Original {
    /// The struct of the grammar.
    pub(crate) fn raw(&self) -> &'static RawLanguage {
        // SAFETY: the function takes nothing and returns a pointer to a static.
        unsafe { &*self.function.into_raw()().cast() }
    }

    /// The original, for the parser that we use.
    pub(crate) fn language(&self) -> Language {
        // SAFETY: as above; both are of version 14.
        unsafe { Language::from_raw(self.function.into_raw()().cast()) }
    }

    /// The text of its `parser.c`.
    pub(crate) fn text(&self, sources: &HashMap<String, PathBuf>) -> String {
        std::fs::read_to_string(sources[self.package].join(self.parser)).unwrap()
    }
}

/// Where cargo has the source of each package.
#[expect(
    clippy::disallowed_methods,
    reason = "asks cargo, which runs the tests"
)]
pub(crate) fn sources() -> HashMap<String, PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str().unwrap());
            let name = package["name"].as_str().unwrap().to_owned();
            (name, manifest.parent().unwrap().to_owned())
        })
        .collect()
}
