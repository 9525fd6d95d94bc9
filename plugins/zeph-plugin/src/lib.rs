//! The Rust SDK for tool plugins of zeph-host.
//!
//! A tool is a struct of arguments and a function over it; a plugin is a table of tools handed to [`export!`]. This
//! crate derives the schemas, reads the arguments, maps errors to the host's taxonomy and speaks the contract in
//! `wit/zeph-plugin`. It holds no capability: files and network arrive as plain `wasi:*`, and only if granted.
//! Everything but [`http`], [`log`], [`process`], [`embeddings`], [`server_tools`], [`progress`], [`files`] and [`walk`] also runs natively, where the [`context`] is made up and [`settings`]
//! are empty, so a tool's logic is tested like any code.

mod about;
#[doc(hidden)]
pub mod bindings;
pub mod context;
pub mod embeddings;
mod error;
pub mod http;
pub mod log;
mod output;
pub mod process;
pub mod progress;
mod question;
mod schema;
pub mod server_tools;
mod tool;

#[doc(hidden)]
pub use about::section;
pub use bindings::zeph::plugin::types::{
    Annotations, Answer, AnswerAction, Ask, Blob, CallContext as Context, Content,
    ErrorCategory as Category, FileLocation, Outcome, Question, ResourceBody, ResourceContent,
    ResourceLink, ToolDefinition, ToolError, ToolKind as Kind, ToolOutput as Output,
};
pub use bindings::zeph::plugin::{files, walk};
pub use context::settings;
pub use output::counted;
pub use question::Reply;
pub use schema::{input_schema, output_schema};
pub use tool::{Tool, call, list};

/// Makes a component of a function that returns the plugin's tools.
///
/// ```
/// use zeph_plugin::{Context, Output, Tool, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     /// Whom to greet.
///     name: String,
/// }
///
/// fn greet(args: Greet, _: &Context) -> Result<Output, ToolError> {
///     Ok(Output::text(format!("hello {}", args.name)))
/// }
///
/// pub fn tools() -> Vec<Tool> {
///     vec![Tool::new("greet", greet).describe("Greets somebody by name.").read_only()]
/// }
///
/// zeph_plugin::export!(tools);
/// ```
///
/// With the plugin's manifest, the path of which is relative to the file that says it as with `include_bytes!`:
///
/// ```text
/// zeph_plugin::export!(tools, manifest = "../plugin.toml");
/// ```
///
/// The version, description, authors and license of `Cargo.toml` go into the component as well. Does nothing in a native
/// build.
#[macro_export]
macro_rules! export {
    ($tools:path, manifest = $file:literal) => {
        $crate::export!($tools);
        $crate::manifest!($file);
    };
    ($tools:path) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            impl $crate::bindings::exports::zeph::plugin::tools::Guest for Component {
                fn list_tools() -> Result<Vec<$crate::ToolDefinition>, String> {
                    Ok($crate::list(&$tools()))
                }

                fn call_tool(
                    name: String,
                    arguments: String,
                    context: $crate::Context,
                ) -> Result<$crate::Outcome, $crate::ToolError> {
                    $crate::call(&$tools(), &name, &arguments, &context)
                }
            }

    $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
        $crate::about!();
    };
}
