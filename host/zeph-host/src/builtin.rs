//! Tools the host runs itself, because they serve what only the host holds.

mod read_overflow;
mod turn_state;
pub(crate) mod update_plan;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::RawOutput;
use zeph_core::policy::AuthorizedCall;
use zeph_core::tool::Tool;

use crate::host::Rooms;
use crate::overflow::PAGE_CHARS_MIN;
use crate::scheduler::{self, tools::SchedulerWork};
use crate::session::Session;

/// The tool that reads stored outputs.
pub(crate) const READ_OVERFLOW: &str = read_overflow::NAME;

/// The names of all built-in tools: their schemas take longer to make than a command may take to start.
pub(crate) const NAMES: [&str; 3] = [read_overflow::NAME, turn_state::NAME, update_plan::NAME];

/// Characters that a result of this tool has room for, whatever the threshold for results is.
pub(crate) fn room_chars(tool: &str) -> Option<usize> {
    (tool == READ_OVERFLOW).then_some(PAGE_CHARS_MIN)
}

/// Every built-in tool.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        read_overflow::tool(),
        turn_state::tool(),
        update_plan::tool(),
    ]
}

/// What one call of a built-in tool asks for: its arguments, read once.
#[derive(Debug, Clone)]
pub(crate) enum BuiltinWork {
    /// `read_overflow`
    ReadOverflow(read_overflow::ReadOverflowArguments),
    /// `turn_state`
    TurnState(turn_state::TurnStateArguments),
    /// `update_plan`
    UpdatePlan(update_plan::UpdatePlanArguments),
    /// A tool that schedules calls.
    Scheduler(SchedulerWork),
}

impl BuiltinWork {
    /// Reads the arguments of a call of `tool`.
    ///
    /// Errors: `invalid_parameters`, and `tool_not_found` for a tool of another backend.
    pub(crate) fn read(tool: &Tool, arguments: &Map<String, Value>) -> Result<Self, ToolFailure> {
        match tool.name.as_str() {
            read_overflow::NAME => read_overflow::read(arguments).map(Self::ReadOverflow),
            turn_state::NAME => arguments_of(arguments).map(Self::TurnState),
            update_plan::NAME => arguments_of(arguments).map(Self::UpdatePlan),
            other => scheduler::tools::read(other, arguments).unwrap_or_else(|| {
                Err(ToolFailure::new(
                    ErrorCategory::ToolNotFound,
                    ErrorPhase::Setup,
                    format!("the host has no tool `{other}`"),
                ))
            }),
        }
    }
}

impl BuiltinWork {
    /// Whether it tells anything that its turn has not held already.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self, Self::ReadOverflow(_) | Self::Scheduler(_))
    }
}

/// Whether the results of the built-in `tool` only repeat what calls wrote, here or in other conversations.
pub(crate) fn only_repeats(tool: &str) -> bool {
    [turn_state::NAME, update_plan::NAME].contains(&tool) || scheduler::tools::ALL.contains(&tool)
}

/// Reads the arguments of a call.
///
/// Errors: `invalid_parameters`.
pub(crate) fn arguments_of<T: DeserializeOwned>(
    arguments: &Map<String, Value>,
) -> Result<T, ToolFailure> {
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| {
        ToolFailure::new(
            ErrorCategory::InvalidParameters,
            ErrorPhase::ParamHandling,
            error.to_string(),
        )
    })
}

/// A derived schema without the keywords some model providers refuse.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::SchemaGenerator::new(
        schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
        }),
    )
    .into_root_schema_for::<T>()
    .to_value();
    plain(&mut schema);
    for keyword in ["$schema", "title", "description"] {
        schema.as_object_mut().map(|object| object.remove(keyword));
    }
    schema
}

fn plain(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for keyword in ["format", "default"] {
                // A property may be called so; what it says is a schema then.
                if !object.get(keyword).is_some_and(Value::is_object) {
                    object.remove(keyword);
                }
            }
            object.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

/// Runs a built-in tool.
pub(crate) async fn call(
    host: &Rooms,
    session: &Session,
    call: AuthorizedCall<BuiltinWork>,
) -> Result<RawOutput, ToolFailure> {
    match call.work() {
        BuiltinWork::ReadOverflow(arguments) => {
            read_overflow::call(&host.overflow, call.frame().conversation, arguments).await
        }
        BuiltinWork::TurnState(arguments) => Ok(turn_state::call(session, call.frame(), arguments)),
        BuiltinWork::UpdatePlan(arguments) => {
            update_plan::call(host.overflow.store(), session, arguments).await
        }
        BuiltinWork::Scheduler(work) => scheduler::tools::call(host, session, &call, work).await,
    }
}

#[cfg(test)]
mod tests {
    use zeph_core::argument::Parameters;
    use zeph_core::tool::Tool;

    use super::{NAMES, scheduler, tools};
    use crate::host::Host;
    use crate::shell::Native;

    fn own() -> impl Iterator<Item = Tool> {
        let own = tools().into_iter();
        own.chain(scheduler::tools::tools()).chain(Native::tools())
    }

    /// A start takes them unseen.
    #[test]
    fn the_schemas_of_the_host_are_right() {
        for tool in own() {
            let schemas = std::iter::once(tool.parameters.schema()).chain(tool.output.as_deref());
            for schema in schemas {
                let taken = Parameters::new(schema.clone()).and_then(|taken| taken.check());
                assert_eq!(taken, Ok(()), "{}", tool.name);
            }
        }
    }

    #[test]
    fn every_tool_of_the_host_is_known_by_its_name() {
        let own: Vec<_> = own().map(|tool| tool.name.to_string()).collect();
        for name in &own {
            assert!(Host::has_own(name), "{name}");
        }
        let n_known = NAMES.len() + scheduler::tools::ALL.len() + zeph_shell::tools::ALL.len();
        assert_eq!(own.len(), n_known);
        assert!(!Host::has_own("read"));
    }
}
