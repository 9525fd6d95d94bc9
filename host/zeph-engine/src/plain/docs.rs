//! What the author of a plain component says about its functions and types.
//!
//! No tool chain keeps the comments of WIT in a component, so they are taken from two custom sections, of the component or of a core
//! module in it: [`WIT_SECTION`], the author's WIT text as it is, and `package-docs`, the JSON that WIT packages carry. The first
//! wins. A section that cannot be read is passed over: the tools work without.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wasmparser::{Parser, Payload};
use wit_parser::{SourceMap, TypeDefKind, TypeOwner, UnresolvedPackage, WorldItem, WorldKey};
use zeph_core::text::plain_text;

/// The custom section with the author's WIT text.
pub(crate) const WIT_SECTION: &str = "zeph:wit";

/// The custom section of the WIT tools.
const PACKAGE_DOCS_SECTION: &str = "package-docs";

/// Most bytes of a section that is looked at, and most sections. WIT with the comments of a hundred functions has some 50 KiB.
const SECTION_BYTES_MAX: usize = 512 * 1024;
const SECTIONS_MAX: usize = 16;

/// Most bytes of what is said about one thing.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// What is said about everything. The component itself is the interface with the empty name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Docs {
    interfaces: BTreeMap<String, InterfaceDocs>,
}

/// What is said about one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct InterfaceDocs {
    text: Option<String>,
    functions: BTreeMap<String, String>,
    types: BTreeMap<String, TypeDocs>,
}

/// What is said about one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TypeDocs {
    pub(crate) text: Option<String>,
    /// By the WIT name of the field, case or flag.
    pub(crate) members: BTreeMap<String, String>,
}

impl Docs {
    /// Reads the sections of a component. Whatever is wrong with it, there is a result.
    pub(crate) fn read(component: &[u8]) -> Self {
        let mut docs = Self::default();
        let mut packages = Vec::new();
        let payloads = Parser::new(0).parse_all(component).map_while(Result::ok);
        let sections = payloads.filter_map(|payload| match payload {
            Payload::CustomSection(section) => Some((section.name(), section.data())),
            _ => None,
        });
        let sections = sections
            .filter(|(name, data)| {
                [WIT_SECTION, PACKAGE_DOCS_SECTION].contains(name)
                    && data.len() <= SECTION_BYTES_MAX
            })
            .take(SECTIONS_MAX);
        for (name, data) in sections {
            if name == WIT_SECTION {
                docs.add_wit(data);
            } else {
                packages.push(data);
            }
        }
        for data in packages {
            docs.add_package_docs(data);
        }
        docs
    }

    /// What is said about a function.
    pub(crate) fn of_function(&self, interface: &str, name: &str) -> Option<&str> {
        let functions = &self.interfaces.get(interface)?.functions;
        functions.get(name).map(String::as_str)
    }

    /// What is said about an interface.
    pub(crate) fn of_interface(&self, interface: &str) -> Option<&str> {
        self.interfaces.get(interface)?.text.as_deref()
    }

    /// What is said about a type, where the function stands or, as types are taken over from there, in any other interface.
    pub(crate) fn of_type(&self, interface: &str, name: &str) -> Option<&TypeDocs> {
        let here = self.interfaces.get(interface);
        let found = here.and_then(|here| here.types.get(name));
        found.or_else(|| {
            let mut all = self.interfaces.values();
            all.find_map(|other| other.types.get(name))
        })
    }

    fn interface(&mut self, name: &str) -> &mut InterfaceDocs {
        self.interfaces.entry(name.to_owned()).or_default()
    }

    fn add_wit(&mut self, data: &[u8]) {
        let Ok(text) = std::str::from_utf8(data) else {
            return;
        };
        let mut source = SourceMap::default();
        source.push_str("zeph.wit", text);
        match source.parse() {
            Ok(group) => {
                self.add_package(&group.main);
                group
                    .nested
                    .iter()
                    .for_each(|package| self.add_package(package));
            }
            Err((_source, error)) => {
                tracing::debug!(%error, "the WIT text of a component cannot be read");
            }
        }
    }

    fn add_package(&mut self, package: &UnresolvedPackage) {
        // Interfaces written inside a world are named where the world exports them.
        let mut names: BTreeMap<_, String> = BTreeMap::new();
        for (id, interface) in &package.interfaces {
            names.extend(interface.name.clone().map(|name| (id, name)));
        }
        for (_, world) in &package.worlds {
            for (key, item) in &world.exports {
                match (key, item) {
                    (WorldKey::Name(name), WorldItem::Function(function)) => {
                        let text = function.docs.contents.as_deref();
                        say(&mut self.interface("").functions, name, text);
                    }
                    (WorldKey::Name(name), WorldItem::Interface { id, .. }) => {
                        names.insert(*id, name.clone());
                    }
                    _ => {}
                }
            }
        }
        for (id, name) in &names {
            let interface = &package.interfaces[*id];
            let said = self.interface(name);
            if said.text.is_none() {
                said.text = cleaned(interface.docs.contents.as_deref());
            }
            for (function, found) in &interface.functions {
                say(
                    &mut said.functions,
                    function,
                    found.docs.contents.as_deref(),
                );
            }
        }
        for (_, ty) in &package.types {
            let interface = match ty.owner {
                TypeOwner::Interface(id) => names.get(&id).map_or("", String::as_str),
                TypeOwner::World(_) | TypeOwner::None => "",
            };
            let Some(name) = &ty.name else {
                continue;
            };
            let docs = type_docs(ty.docs.contents.as_deref(), &ty.kind);
            if docs != TypeDocs::default() {
                let types = &mut self.interface(interface).types;
                types.entry(name.clone()).or_insert(docs);
            }
        }
    }

    /// One byte of version, then JSON.
    fn add_package_docs(&mut self, data: &[u8]) {
        let Some((0 | 1, json)) = data.split_first() else {
            return;
        };
        let Ok(docs) = serde_json::from_slice::<Value>(json) else {
            return;
        };
        for (_, world) in entries(&docs, "worlds") {
            self.add_members("", world, &["func_exports", "funcs"]);
            for list in ["interface_exports", "interfaces"] {
                for (name, interface) in entries(world, list) {
                    self.add_members(name, interface, &["funcs"]);
                }
            }
        }
        for (name, interface) in entries(&docs, "interfaces") {
            self.add_members(name, interface, &["funcs"]);
        }
    }

    fn add_members(&mut self, interface: &str, found: &Value, functions: &[&str]) {
        let said = self.interface(interface);
        if !interface.is_empty() && said.text.is_none() {
            said.text = cleaned(text(found));
        }
        for (name, function) in functions.iter().flat_map(|list| entries(found, list)) {
            say(&mut said.functions, name, text(function));
        }
        for (name, ty) in entries(found, "types") {
            let mut docs = TypeDocs {
                text: cleaned(text(ty)),
                ..TypeDocs::default()
            };
            for (member, item) in entries(ty, "items") {
                say(&mut docs.members, member, text(item));
            }
            said.types.entry(name.clone()).or_insert(docs);
        }
    }
}

fn type_docs(text: Option<&str>, kind: &TypeDefKind) -> TypeDocs {
    let mut docs = TypeDocs {
        text: cleaned(text),
        ..TypeDocs::default()
    };
    let members = &mut docs.members;
    match kind {
        TypeDefKind::Record(record) => {
            for field in &record.fields {
                say(members, &field.name, field.docs.contents.as_deref());
            }
        }
        TypeDefKind::Variant(variant) => {
            for case in &variant.cases {
                say(members, &case.name, case.docs.contents.as_deref());
            }
        }
        TypeDefKind::Enum(cases) => {
            for case in &cases.cases {
                say(members, &case.name, case.docs.contents.as_deref());
            }
        }
        TypeDefKind::Flags(flags) => {
            for flag in &flags.flags {
                say(members, &flag.name, flag.docs.contents.as_deref());
            }
        }
        _ => {}
    }
    docs
}

/// Keeps what was said first.
fn say(said: &mut BTreeMap<String, String>, name: &str, text: Option<&str>) {
    if let Some(text) = cleaned(text) {
        said.entry(name.to_owned()).or_insert(text);
    }
}

/// The entries of an object in an object; none where there is something else.
fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let found = value.get(key).and_then(Value::as_object);
    found.into_iter().flat_map(Map::iter)
}

/// Either the text itself or the `docs` of an object.
fn text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("docs")?.as_str())
}

/// Within limits, and without what could deceive; none when nothing is left.
fn cleaned(text: Option<&str>) -> Option<String> {
    let text = text?;
    let text = plain_text(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
    (!text.is_empty()).then_some(text)
}
