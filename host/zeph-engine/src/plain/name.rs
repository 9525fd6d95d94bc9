//! Names: those of WIT in JSON, and those of functions as tools.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};
use zeph_core::id::ToolName;

/// Most characters of a tool's name, as in the contract of typed plugins.
const TOOL_NAME_CHARS_MAX: usize = 48;

/// Hexadecimal digits that keep a shortened name apart from others.
const MARK_CHARS: usize = 8;

/// A name in WIT and the same in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldName {
    pub(crate) wit: String,
    /// Snake case. WIT names have no `_`, so no two become one.
    pub(crate) json: String,
}

impl FieldName {
    pub(crate) fn new(wit: &str) -> Self {
        Self {
            wit: wit.to_owned(),
            json: wit.replace('-', "_"),
        }
    }
}

/// Where an exported function stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExportPlace {
    /// `geo` of `demo:geo/shapes@1.0.0`; empty for what has no package.
    pub(crate) package: String,
    /// `shapes` of `demo:geo/shapes@1.0.0`; empty for what stands in no interface.
    pub(crate) interface: String,
}

impl ExportPlace {
    /// Reads the name of an exported instance. The component itself is the default.
    pub(crate) fn parse(export: &str) -> Self {
        let (path, _version) = export.split_once('@').unwrap_or((export, ""));
        let (package, interface) = path.rsplit_once('/').unwrap_or(("", path));
        let (_namespace, package) = package.rsplit_once(':').unwrap_or(("", package));
        Self {
            package: package.to_owned(),
            interface: interface.to_owned(),
        }
    }

    /// The name of `function` here, `n_parts` words of its place before it.
    fn qualified(&self, function: &str, n_parts: usize) -> String {
        let place = [&self.package, &self.interface];
        let parts = place[place.len() - n_parts..].iter();
        let parts = parts.filter(|part| !part.is_empty());
        let words: Vec<&str> = parts.map(|part| part.as_str()).chain([function]).collect();
        shortened(words.join("_").replace('-', "_").to_ascii_lowercase())
    }
}

/// Names the tools of all `functions`, in their order.
///
/// Shape:  the function's own name where no other function has it, else with its interface, else with its package and its interface
///         before it; `-` becomes `_`, capitals small letters. What is longer than 48 characters is cut and marked.
/// Errors: the name two functions would share nevertheless.
pub(crate) fn tool_names(functions: &[(&ExportPlace, &str)]) -> Result<Vec<ToolName>, String> {
    let mut n_parts = vec![0; functions.len()];
    let mut names = Vec::new();
    for most in 0..=2 {
        names = functions
            .iter()
            .zip(&n_parts)
            .map(|((place, function), n_parts)| place.qualified(function, *n_parts))
            .collect();
        let mut n_uses: HashMap<&str, usize> = HashMap::new();
        for name in &names {
            *n_uses.entry(name).or_default() += 1;
        }
        let shared = names.iter().position(|name| n_uses[name.as_str()] > 1);
        let Some(shared) = shared else {
            break;
        };
        if most == 2 {
            return Err(names.swap_remove(shared));
        }
        for (name, n_parts) in names.iter().zip(&mut n_parts) {
            if n_uses[name.as_str()] > 1 {
                *n_parts = most + 1;
            }
        }
    }
    names
        .into_iter()
        .map(|name| ToolName::new(name.clone()).map_err(|_bad| name))
        .collect()
}

/// Cuts what is too long and marks it with a digest of the whole.
fn shortened(name: String) -> String {
    if name.len() <= TOOL_NAME_CHARS_MAX {
        return name;
    }
    let digest = Sha256::digest(name.as_bytes());
    let mark: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let n_kept = TOOL_NAME_CHARS_MAX - MARK_CHARS - 1;
    let kept: String = name.chars().take(n_kept).collect();
    format!("{kept}_{}", &mark[..MARK_CHARS])
}
