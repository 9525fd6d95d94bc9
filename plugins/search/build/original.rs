//! The published grammars, compiled from their C.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tree_sitter_language::LanguageFn;

use crate::raw::RawLanguage;

/// A published grammar.
pub(crate) struct Original {
    /// The name that its tables get.
    pub(crate) name: &'static str,
    package: &'static str,
    parser: &'static str,
    function: LanguageFn,
}

macro_rules! originals {
    ($($name:ident $package:literal $parser:literal $function:path;)*) => {
        &[$(Original {
            name: stringify!($name),
            package: $package,
            parser: $parser,
            function: $function,
        }),*]
    };
}

/// Every grammar of this crate.
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
        // SAFETY: the function takes nothing and returns a pointer to a static of version 14, whose layout this is.
        unsafe { &*self.function.into_raw()().cast() }
    }

    /// The text of its `parser.c`.
    pub(crate) fn text(&self, sources: &HashMap<String, PathBuf>) -> Result<String, String> {
        let folder = sources.get(self.package);
        let folder = folder.ok_or_else(|| format!("cargo does not know `{}`", self.package))?;
        let path = folder.join(self.parser);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Where cargo has the source of each package. Not all packages of the workspace need be there to build this one; only when cargo asks
/// for them are they downloaded.
pub(crate) fn sources(cargo: &str, target: &str) -> Result<HashMap<String, PathBuf>, String> {
    let metadata =
        metadata(cargo, target, &["--offline"]).or_else(|_| metadata(cargo, target, &[]))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let place = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let name = package["name"].as_str()?.to_owned();
        Some((name, manifest.parent()?.to_owned()))
    };
    Ok(packages.filter_map(place).collect())
}

#[expect(
    clippy::disallowed_methods,
    reason = "asks the cargo that builds this where the sources lie"
)]
fn metadata(cargo: &str, target: &str, options: &[&str]) -> Result<Value, String> {
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--filter-platform"])
        .arg(target)
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("cargo metadata: {error}")),
        false => Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
                .trim()
                .replace('\n', " ")
        )),
    }
}
