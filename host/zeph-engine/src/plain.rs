//! Components without our world: the plain functions they export, as tools.
//!
//! Everything needed for a call is read from the compiled component, so that a recalled plugin needs nothing else; only what the
//! author says about the functions is read from the bytes, once, when the tools are asked for. Nothing here compiles, caches or
//! limits: a plain plugin runs on the same threads and within the same limits as any other.

mod docs;
mod exports;
mod name;
mod read;
mod schema;
mod shape;
mod types;
mod write;

use std::sync::Arc;

use serde_json::{Map, Value};
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre, Val};
use zeph_core::argument::Parameters;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::output::RawOutput;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use self::docs::Docs;
use self::exports::Exports;
use self::name::{ExportPlace, FieldName};
use self::schema::{Direction, Schemas};
use self::shape::{Field, Shape};
use self::types::TypeNames;

/// Most functions of one component that become tools, as for the tools of typed plugins.
const FUNCTIONS_MAX: usize = 256;

/// Most bytes of the two schemas of one tool together.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// A plain component that is ready to be instantiated.
pub(crate) struct Plain<T: 'static> {
    pre: InstancePre<T>,
    scopes: Vec<ExportScope>,
    functions: Vec<Arc<Function>>,
    skipped: Vec<SkippedExport>,
}

/// An exported function that cannot be a tool, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedExport {
    /// As in WIT: `demo:geo/shapes#area`.
    pub function: String,
    /// One clause: "it uses a resource".
    pub reason: String,
}

/// A component without our world that has nothing to offer either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPlain {
    /// It is a program with a `main`.
    #[error(
        "it is a command (it exports `{0}`), which runs once from start to end; a plugin exports `zeph:plugin/tools`, or plain functions"
    )]
    Command(String),
    /// It answers HTTP requests.
    #[error(
        "it is an HTTP server (it exports `{0}`); a plugin exports `zeph:plugin/tools`, or plain functions"
    )]
    Server(String),
    /// It exports nothing that can be called.
    #[error("it exports no function; a plugin exports `zeph:plugin/tools`, or plain functions")]
    Empty,
    /// None of its functions can be a tool.
    #[error("none of its functions can be a tool: {}", list(.0))]
    NothingLeft(Vec<SkippedExport>),
    /// It has too many.
    #[error("it exports {0} functions; the limit is {FUNCTIONS_MAX}")]
    TooMany(usize),
    /// Two functions would have one name.
    #[error("two of its functions would both be the tool `{0}`")]
    SameName(String),
}

/// The component itself, or an interface it exports.
struct ExportScope {
    place: ExportPlace,
    types: TypeNames,
}

/// An exported function that is a tool.
struct Function {
    tool: ToolName,
    /// In [`Plain::scopes`].
    scope: usize,
    name: String,
    params: Vec<Field>,
    result: Option<Shape>,
    index: ComponentExportIndex,
}

impl<T: Send + 'static> Plain<T> {
    /// Reads what a component exports.
    ///
    /// Errors: [`NotPlain`] when no function of it can be a tool.
    pub(crate) fn new(pre: InstancePre<T>) -> Result<Self, NotPlain> {
        let found = Exports::component(pre.component());
        found.check()?;
        let named = found.functions.iter().map(|function| {
            let place = &found.scopes[function.scope].place;
            (place, function.name.as_str())
        });
        let named: Vec<(&ExportPlace, &str)> = named.collect();
        let names = name::tool_names(&named).map_err(NotPlain::SameName)?;
        let functions = found.functions.into_iter().zip(names);
        Ok(Self {
            pre,
            scopes: found.scopes,
            functions: functions
                .map(|(one, name)| Arc::new(one.named(name)))
                .collect(),
            skipped: found.skipped,
        })
    }

    /// The functions as tools, described with what `component`, the bytes, says about them.
    ///
    /// They promise nothing: a type says nothing about effects.
    pub(crate) fn tools(&self, plugin: &PluginId, component: &[u8]) -> Vec<Tool> {
        let docs = Docs::read(component);
        let tools = self.functions.iter();
        tools
            .filter_map(|function| self.tool(plugin, function, &docs))
            .collect()
    }

    /// The functions that are no tools.
    pub(crate) fn skipped(&self) -> &[SkippedExport] {
        &self.skipped
    }

    fn tool(&self, plugin: &PluginId, function: &Function, docs: &Docs) -> Option<Tool> {
        let scope = &self.scopes[function.scope];
        let (mut parameters, mut output) = function.schemas(scope, docs);
        if parameters.to_string().len() > SCHEMA_BYTES_MAX {
            // Without what is said about the types it is always shorter: see the limits of a shape.
            (parameters, output) = function.schemas(scope, &Docs::default());
        }
        Some(Tool {
            name: function.tool.clone(),
            title: None,
            description: function.describe(plugin, scope, docs),
            // An object schema by construction.
            parameters: Parameters::new(parameters).ok()?,
            output: output.map(Schema::from),
            kind: ToolKind::Other,
            annotations: Annotations {
                read_only: false,
                destructive: true,
                idempotent: false,
                open_world: true,
            },
            backend: Backend::Wasm(plugin.clone()),
        })
    }

    /// Calls the function that is `tool` in a new instance.
    ///
    /// Errors: a trap or a limit. What is wrong with the arguments is part of what is returned: no instance was made for them.
    pub(crate) async fn call(
        &self,
        store: &mut Store<T>,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> wasmtime::Result<PlainResult> {
        let mut functions = self.functions.iter();
        let Some(function) = functions.find(|known| known.tool.as_str() == tool) else {
            return Ok(PlainResult(Err(gone(tool))));
        };
        let params = match read::arguments(&function.params, arguments) {
            Ok(params) => params,
            Err(failure) => return Ok(PlainResult(Err(failure))),
        };
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let Some(exported) = instance.get_func(&mut *store, function.index) else {
            return Ok(PlainResult(Err(gone(tool))));
        };
        // Overwritten by the call.
        let mut values = match function.result {
            Some(_) => vec![Val::Bool(false)],
            None => Vec::new(),
        };
        exported
            .call_async(&mut *store, &params, &mut values)
            .await?;
        Ok(PlainResult(Ok((Arc::clone(function), values))))
    }
}

/// What a call gave back, as the guest returned it.
pub(crate) struct PlainResult(Result<(Arc<Function>, Vec<Val>), ToolFailure>);

impl PlainResult {
    /// As the result of the tool.
    ///
    /// Errors: see [`Plain::call`] for the arguments; what the function itself said is wrong; more than `output_bytes_max`.
    pub(crate) fn finish(self, output_bytes_max: u64) -> Result<RawOutput, ToolFailure> {
        let (function, values) = self.0?;
        write::result(function.result.as_ref(), values, output_bytes_max)
    }
}

impl Function {
    /// Of the arguments and of the structured result.
    fn schemas(&self, scope: &ExportScope, docs: &Docs) -> (Value, Option<Value>) {
        let schemas = |direction| Schemas {
            direction,
            names: &scope.types,
            docs,
        };
        let parameters = schemas(Direction::Input).object(&self.params, None);
        let output = returned(self.result.as_ref());
        let output = output.map(|shape| schemas(Direction::Output).returned(shape));
        (parameters, output)
    }

    /// What the author says about it, or its signature.
    fn describe(&self, plugin: &PluginId, scope: &ExportScope, docs: &Docs) -> String {
        let interface = scope.types.interface();
        if let Some(said) = docs.of_function(interface, &self.name) {
            return said.to_owned();
        }
        let result = self.result.as_ref();
        let signature = scope.types.signature(&self.name, &self.params, result);
        let of = if interface.is_empty() {
            format!("`{plugin}`")
        } else {
            format!("`{interface}` in `{plugin}`")
        };
        match docs.of_interface(interface) {
            Some(said) => format!("`{signature}` of {of}. {said}"),
            None => format!("`{signature}` of {of}."),
        }
    }
}

/// What a success has in it: a function's own `result` is not a part of it.
fn returned(result: Option<&Shape>) -> Option<&Shape> {
    match result {
        Some(Shape::Result { ok, .. }) => ok.as_deref(),
        other => other,
    }
}

/// The item of a tuple of several types as a field.
fn item_field((idx, shape): (usize, &Shape)) -> Field {
    Field {
        name: FieldName::new(&format!("item-{idx}")),
        shape: shape.clone(),
    }
}

fn list(skipped: &[SkippedExport]) -> String {
    let reasons: Vec<String> = skipped
        .iter()
        .take(4)
        .map(|SkippedExport { function, reason }| format!("`{function}`: {reason}"))
        .collect();
    let more = skipped.len().saturating_sub(reasons.len());
    match more {
        0 => reasons.join("; "),
        more => format!("{}; and {more} more", reasons.join("; ")),
    }
}

fn gone(tool: &str) -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Setup,
        format!("the plugin has no function for `{tool}` any more"),
    )
}

#[cfg(test)]
mod tests;
