//! Goes through what a component exports and sorts it: functions that can be tools, and the others with a reason.

use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex};
use zeph_core::id::ToolName;
use zeph_core::text::plain_line;

use super::name::ExportPlace;
use super::shape::{Field, Reader, Shape};
use super::types::TypeNames;
use super::{ExportScope, FUNCTIONS_MAX, Function, NotPlain, SkippedExport};

/// Most items of a component and its interfaces that are looked at.
const ITEMS_MAX: usize = 4_096;

/// Most functions of which is said why they are no tools.
const SKIPPED_MAX: usize = 64;

/// Functions that tool chains export for their own use, by interface, name and first parameter. Calling one would start the
/// interpreter anew.
const OF_TOOL_CHAINS: [(&str, &str, &str); 2] = [
    ("", "init", "shim"),            // componentize-qjs
    ("exports", "init", "app-name"), // componentize-py
];

/// What was found so far.
#[derive(Default)]
pub(super) struct Exports {
    pub(super) scopes: Vec<ExportScope>,
    /// Their tools are not named yet.
    pub(super) functions: Vec<Unnamed>,
    pub(super) skipped: Vec<SkippedExport>,
    n_functions: usize,
    n_items: usize,
    wasi: Vec<String>,
}

/// A function that can be a tool.
pub(super) struct Unnamed {
    pub(super) scope: usize,
    pub(super) name: String,
    params: Vec<Field>,
    result: Option<Shape>,
    index: ComponentExportIndex,
}

impl Unnamed {
    pub(super) fn named(self, tool: ToolName) -> Function {
        Function {
            tool,
            scope: self.scope,
            name: self.name,
            params: self.params,
            result: self.result,
            index: self.index,
        }
    }
}

impl Exports {
    /// Goes through all exports.
    pub(super) fn component(component: &Component) -> Self {
        let mut found = Self::default();
        let types = found.root_types(component);
        found.scopes.push(ExportScope {
            place: ExportPlace::default(),
            types,
        });
        let ty = component.component_type();
        for (name, item) in ty.exports(component.engine()) {
            if !found.may_look() {
                break;
            }
            match item.ty {
                ComponentItem::ComponentFunc(function) => {
                    let index = component.get_export_index(None, name);
                    found.function(0, name, &function, index);
                }
                ComponentItem::ComponentInstance(instance) => {
                    found.instance(component, name, &instance);
                }
                _ => {}
            }
        }
        found
    }

    /// Whether there is something to offer.
    pub(super) fn check(&self) -> Result<(), NotPlain> {
        if self.n_functions > FUNCTIONS_MAX {
            return Err(NotPlain::TooMany(self.n_functions));
        }
        if !self.functions.is_empty() {
            return Ok(());
        }
        if !self.skipped.is_empty() {
            return Err(NotPlain::NothingLeft(self.skipped.clone()));
        }
        let exports = |start: &str| {
            self.wasi
                .iter()
                .find(|name| name.starts_with(start))
                .cloned()
        };
        if let Some(run) = exports("wasi:cli/run") {
            return Err(NotPlain::Command(run));
        }
        match exports("wasi:http/") {
            Some(handler) => Err(NotPlain::Server(handler)),
            None => Err(NotPlain::Empty),
        }
    }

    fn instance(&mut self, component: &Component, export: &str, instance: &ComponentInstance) {
        if export.starts_with("wasi:") {
            self.wasi.push(plain_line(export, 80));
            return;
        }
        let place = ExportPlace::parse(export);
        let mut types = TypeNames::new(&place.interface);
        self.add_types(&mut types, component, instance);
        let scope = self.scopes.len();
        self.scopes.push(ExportScope { place, types });
        let parent = component.get_export_index(None, export);
        for (name, item) in instance.exports(component.engine()) {
            if !self.may_look() {
                break;
            }
            if let ComponentItem::ComponentFunc(function) = item.ty {
                let index = component.get_export_index(parent.as_ref(), name);
                self.function(scope, name, &function, index);
            }
        }
    }

    /// The types that the world itself has: its own, and those it takes over from interfaces with `use`, which are imported for
    /// that.
    fn root_types(&mut self, component: &Component) -> TypeNames {
        let mut types = TypeNames::new("");
        let (ty, engine) = (component.component_type(), component.engine());
        for (name, item) in ty.imports(engine).chain(ty.exports(engine)) {
            if !self.may_look() {
                break;
            }
            add_type(&mut types, name, &item.ty);
        }
        for (name, item) in ty.imports(engine) {
            if let ComponentItem::ComponentInstance(instance) = &item.ty
                && !name.starts_with("wasi:")
            {
                self.add_types(&mut types, component, instance);
            }
        }
        types
    }

    fn add_types(
        &mut self,
        types: &mut TypeNames,
        component: &Component,
        instance: &ComponentInstance,
    ) {
        for (name, item) in instance.exports(component.engine()) {
            if !self.may_look() {
                break;
            }
            add_type(types, name, &item.ty);
        }
    }

    /// Counts one more item.
    fn may_look(&mut self) -> bool {
        self.n_items += 1;
        self.n_items <= ITEMS_MAX
    }

    fn function(
        &mut self,
        scope: usize,
        name: &str,
        function: &ComponentFunc,
        index: Option<ComponentExportIndex>,
    ) {
        let interface = self.scopes[scope].place.interface.as_str();
        let first = function.params().next().map_or("", |(name, _)| name);
        if OF_TOOL_CHAINS.contains(&(interface, name, first)) {
            return;
        }
        self.n_functions += 1;
        if self.n_functions > FUNCTIONS_MAX {
            return;
        }
        let refused = match (signature(name, function), index) {
            (Ok((params, result)), Some(index)) => {
                self.functions.push(Unnamed {
                    scope,
                    name: name.to_owned(),
                    params,
                    result,
                    index,
                });
                return;
            }
            (Ok(_), None) => "it cannot be reached".to_owned(),
            (Err(reason), _) => reason,
        };
        if self.skipped.len() < SKIPPED_MAX {
            let shown = match interface {
                "" => plain_line(name, 80),
                interface => plain_line(&format!("{interface}#{name}"), 80),
            };
            self.skipped.push(SkippedExport {
                function: shown,
                reason: refused,
            });
        }
    }
}

/// Parameters and result.
///
/// Errors: why the function cannot be a tool, as a clause.
fn signature(name: &str, function: &ComponentFunc) -> Result<(Vec<Field>, Option<Shape>), String> {
    // `[method]…`, `[static]…`, `[constructor]…`
    if name.starts_with('[') {
        return Err("it belongs to a resource".to_owned());
    }
    let uses = |what: &str| format!("it uses {what}");
    let mut reader = Reader::new();
    let params = function.params();
    let params = params.map(|(name, ty)| reader.field(name, &ty));
    let params = params.collect::<Result<_, _>>().map_err(uses)?;
    let result = function.results().next();
    let result = result.map(|ty| reader.read(&ty)).transpose();
    Ok((params, result.map_err(uses)?))
}

fn add_type(types: &mut TypeNames, name: &str, item: &ComponentItem) {
    if let ComponentItem::Type(ty) = item
        && let Ok(shape) = Reader::new().read(ty)
    {
        types.add(name, &shape);
    }
}
