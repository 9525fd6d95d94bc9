//! Names of imports and exports, such as `wasi:io/poll@0.2.6`, taken apart.

use serde::Serialize;
use wasmparser::component_types::{ComponentAnyTypeId, ComponentEntityType};
use wasmparser::types::Types;
use zeph_core::text::plain_line;

use super::host;
use super::read::Parts;

/// Most characters of a name that is shown. Real ones have some fifty.
const NAME_CHARS_MAX: usize = 120;

/// What a component needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// Without its version.
    pub name: String,
    /// Such as `0.2.6`.
    pub version: Option<String>,
    /// What it is.
    pub kind: ItemKind,
    /// Whether this host has it, or it needs nothing of a host because it holds types only. Having it is not granting it.
    pub is_known: bool,
}

/// What a component offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Export {
    /// Without its version.
    pub name: String,
    /// Such as `0.1.0`.
    pub version: Option<String>,
    /// What it is.
    pub kind: ItemKind,
    /// Functions: those of an interface; 1 for a function, methods of resources counted like others.
    pub n_functions: usize,
    /// The functions that it lacks, when it is an interface of ours.
    #[serde(skip)]
    pub(super) lacks: Vec<&'static str>,
}

/// What an import or export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A function.
    Function,
    /// An interface: functions and types under one name.
    Interface,
    /// A type.
    Type,
    /// A module, a component or a value.
    Other,
}

/// A name as it stands in a component.
#[derive(Clone, Copy)]
pub(super) struct InterfaceName<'a> {
    /// `wasi:io/poll`.
    pub(super) path: &'a str,
    /// `0.2.6`.
    pub(super) version: Option<&'a str>,
}

impl<'a> InterfaceName<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        match text.split_once('@') {
            Some((path, version)) => Self {
                path,
                version: Some(version),
            },
            None => Self {
                path: text,
                version: None,
            },
        }
    }

    /// `wasi:io`; none for a bare name.
    pub(super) fn package(self) -> Option<&'a str> {
        Some(self.path.split_once('/')?.0)
    }

    pub(super) fn is_of_wasi(path: &str) -> bool {
        path.starts_with("wasi:")
    }

    /// For people.
    pub(super) fn shown(self) -> String {
        let version = self
            .version
            .map_or_else(String::new, |version| format!("@{version}"));
        plain_line(&format!("{}{version}", self.path), NAME_CHARS_MAX)
    }
}

/// Major and minor number of a released version.
///
/// Within one of both, when the major number is 0, or one of the major alone, all versions serve each other. A version before a
/// release (`0.2.0-rc-…`) is not supported: none.
pub(super) fn line_of(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(|number| number.parse::<u64>().ok());
    let (major, minor, _patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some((major, minor))
}

impl Import {
    pub(super) fn name(&self) -> InterfaceName<'_> {
        InterfaceName {
            path: &self.name,
            version: self.version.as_deref(),
        }
    }

    pub(super) fn is_of_later_wasi(&self) -> bool {
        let line = self.version.as_deref().and_then(line_of);
        InterfaceName::is_of_wasi(&self.name) && line.is_some_and(|line| line > host::WASI)
    }
}

/// Without `types` an interface is taken to hold more than types.
pub(super) fn imports(parts: &Parts<'_>, types: Option<&Types>) -> Vec<Import> {
    let imports = parts.imports.iter().map(|(text, kind)| {
        let name = InterfaceName::new(text);
        let is_brought_along = match kind {
            ItemKind::Type => true,
            ItemKind::Interface => types.is_some_and(|types| holds_only_types(text, types)),
            ItemKind::Function | ItemKind::Other => false,
        };
        Import {
            name: plain_line(name.path, NAME_CHARS_MAX),
            version: name
                .version
                .map(|version| plain_line(version, NAME_CHARS_MAX)),
            kind: *kind,
            is_known: is_brought_along || (*kind == ItemKind::Interface && host::has(name)),
        }
    });
    imports.collect()
}

/// Whether an imported interface needs nothing of a host: no function and no resource, only names for shapes of values.
fn holds_only_types(import: &str, types: &Types) -> bool {
    let Some(ComponentEntityType::Instance(id)) =
        types.component_item_for_import(import).map(|item| item.ty)
    else {
        return false;
    };
    let is_value_type = |ty: &ComponentEntityType| match ty {
        ComponentEntityType::Type { referenced, .. } => {
            !matches!(referenced, ComponentAnyTypeId::Resource(_))
        }
        _ => false,
    };
    types[id]
        .exports
        .values()
        .all(|item| is_value_type(&item.ty))
}

/// Without `types` the numbers of functions are not known, and 0.
pub(super) fn exports(parts: &Parts<'_>, types: Option<&Types>) -> Vec<Export> {
    let exports = parts.exports.iter().map(|(text, kind)| {
        let name = InterfaceName::new(text);
        let functions = functions(text, types);
        let lacks = |name: &&str| !functions.contains(name);
        Export {
            name: plain_line(name.path, NAME_CHARS_MAX),
            version: name
                .version
                .map(|version| plain_line(version, NAME_CHARS_MAX)),
            kind: *kind,
            n_functions: functions.len(),
            lacks: match types {
                Some(_) => wanted(name.path).iter().copied().filter(lacks).collect(),
                None => Vec::new(),
            },
        }
    });
    exports.collect()
}

/// The functions an interface of ours must have.
fn wanted(interface: &str) -> &'static [&'static str] {
    match interface {
        super::TOOLS => super::TOOLS_FUNCTIONS,
        super::STRATEGIES => super::STRATEGIES_FUNCTIONS,
        _ => &[],
    }
}

fn functions<'a>(export: &'a str, types: Option<&'a Types>) -> Vec<&'a str> {
    let Some(types) = types else {
        return Vec::new();
    };
    match types.component_item_for_export(export).map(|item| item.ty) {
        Some(ComponentEntityType::Func(_)) => vec![export],
        Some(ComponentEntityType::Instance(id)) => {
            let items = types[id].exports.iter();
            let functions =
                items.filter(|(_, item)| matches!(item.ty, ComponentEntityType::Func(_)));
            functions.map(|(name, _)| name.as_str()).collect()
        }
        _ => Vec::new(),
    }
}
