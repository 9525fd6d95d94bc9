//! One pass over the sections of a component: what stands on its outermost level, its custom sections on every level, and what all levels
//! come to.
//!
//! Nothing is judged here but the form. The nesting is followed on a heap, so that no depth of it can hurt.

use wasmparser::{
    Chunk, ComponentExternalKind, ComponentTypeRef, CustomSectionReader, Parser, Payload,
};
use zeph_core::manifest::SECTION;

use super::error::InspectError;
use super::names::ItemKind;
use super::unfold::{Unfolded, Unfolding};

/// Most imports or exports of one component; a Python component with every interface of WASI has some forty.
const ITEMS_MAX: usize = 1_000;

/// The most components and modules in each other: what composes components needs some ten, and the validator's time grows
/// with the square.
const DEPTH_MAX: usize = 100;

/// Most custom sections that are looked at, over all levels. A Python component has some hundred.
const CUSTOM_MAX: usize = 4_096;

/// Custom sections that say something about a component; of others only the bytes are skipped.
const CUSTOM_NAMES: [&str; 9] = [
    SECTION,
    "component-name",
    "producers",
    "version",
    "description",
    "authors",
    "licenses",
    "homepage",
    "source",
];

/// What stands in a component, as it stands there.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) imports: Vec<(&'a str, ItemKind)>,
    pub(super) exports: Vec<(&'a str, ItemKind)>,
    pub(super) customs: Vec<Custom<'a>>,
    pub(super) unfolded: Unfolded,
}

/// A custom section.
pub(super) struct Custom<'a> {
    pub(super) reader: CustomSectionReader<'a>,
    /// 0 for the outermost component.
    pub(super) depth: usize,
}

/// Reads the sections.
///
/// Errors: those of the form; [`InspectError::Truncated`] exactly when more bytes could still make it whole.
pub(super) fn parts(bytes: &[u8]) -> Result<Parts<'_>, InspectError> {
    if let Some(error) = InspectError::of_header(bytes) {
        return Err(error);
    }
    let mut parts = Parts::default();
    let mut parents: Vec<Parser> = Vec::new();
    let mut unfolding = Unfolding::new();
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    loop {
        // On the outermost level a component may end between two sections, and only there. Inner ones are whole by now.
        let may_end = rest.is_empty() || !parents.is_empty();
        let chunk = parser
            .parse(rest, may_end)
            .map_err(|error| InspectError::invalid(&error))?;
        let (consumed, payload) = match chunk {
            Chunk::NeedMoreData(_) => return Err(InspectError::Truncated),
            Chunk::Parsed { consumed, payload } => (consumed, payload),
        };
        rest = &rest[consumed..];
        match payload {
            Payload::ModuleSection { .. } => unfolding.enter_module(),
            Payload::ComponentSection { .. } => unfolding.enter_component(),
            _ => unfolding.add(&payload),
        }
        match payload {
            Payload::ModuleSection {
                parser: inner,
                unchecked_range,
            }
            | Payload::ComponentSection {
                parser: inner,
                unchecked_range,
            } => {
                if unchecked_range.end > bytes.len() {
                    return Err(InspectError::Truncated);
                }
                if parents.len() == DEPTH_MAX {
                    return Err(InspectError::Invalid(format!(
                        "it holds components more than {DEPTH_MAX} deep in each other"
                    )));
                }
                parents.push(std::mem::replace(&mut parser, inner));
            }
            Payload::End(_) => {
                parts.unfolded = unfolding.leave();
                match parents.pop() {
                    Some(parent) => parser = parent,
                    None => return Ok(parts),
                }
            }
            payload => parts.add(payload, parents.len())?,
        }
    }
}

impl<'a> Parts<'a> {
    fn add(&mut self, payload: Payload<'a>, depth: usize) -> Result<(), InspectError> {
        match payload {
            Payload::CustomSection(reader) if CUSTOM_NAMES.contains(&reader.name()) => {
                // The manifest is never among those that are passed over.
                if self.customs.len() < CUSTOM_MAX || reader.name() == SECTION {
                    self.customs.push(Custom { reader, depth });
                }
                return Ok(());
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    let import = import.map_err(|error| InspectError::invalid(&error))?;
                    self.imports.push((import.name.name, of_type(import.ty)));
                    check_number("imports", self.imports.len())?;
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export.map_err(|error| InspectError::invalid(&error))?;
                    self.exports.push((export.name.name, of_kind(export.kind)));
                    check_number("exports", self.exports.len())?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn check_number(what: &str, number: usize) -> Result<(), InspectError> {
    match number > ITEMS_MAX {
        true => Err(InspectError::Invalid(format!(
            "it has more than {ITEMS_MAX} {what}"
        ))),
        false => Ok(()),
    }
}

fn of_type(ty: ComponentTypeRef) -> ItemKind {
    match ty {
        ComponentTypeRef::Func(_) => ItemKind::Function,
        ComponentTypeRef::Instance(_) => ItemKind::Interface,
        ComponentTypeRef::Type(_) => ItemKind::Type,
        ComponentTypeRef::Module(_)
        | ComponentTypeRef::Component(_)
        | ComponentTypeRef::Value(_) => ItemKind::Other,
    }
}

fn of_kind(kind: ComponentExternalKind) -> ItemKind {
    match kind {
        ComponentExternalKind::Func => ItemKind::Function,
        ComponentExternalKind::Instance => ItemKind::Interface,
        ComponentExternalKind::Type => ItemKind::Type,
        ComponentExternalKind::Module
        | ComponentExternalKind::Component
        | ComponentExternalKind::Value => ItemKind::Other,
    }
}
