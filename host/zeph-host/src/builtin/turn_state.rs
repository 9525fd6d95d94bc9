//! `turn_state`: the addresses, paths and JSON that the outputs of this turn held.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use zeph_core::argument::Parameters;
use zeph_core::call::CallFrame;
use zeph_core::id::ToolName;
use zeph_core::output::RawOutput;
use zeph_core::redact::Redactor;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use crate::session::Session;

/// The tool's name.
pub(super) const NAME: &str = "turn_state";

/// The arguments of one call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct TurnStateArguments {
    /// Only one kind. Without it, all three.
    #[serde(default)]
    #[schemars(with = "StateKind")]
    kind: Option<StateKind>,
}

/// What outputs hold.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StateKind {
    Urls,
    Paths,
    Json,
}

/// The tool as a model sees it.
pub(super) fn tool() -> Tool {
    Tool {
        name: ToolName::new(NAME).expect("bug: the name is a valid one"),
        title: Some("Read turn state".to_owned()),
        description: "The URLs, file paths and JSON values that earlier outputs of this turn contained, the latest last. \
            Commands find the same as a JSON file named in ZEPH_TURN_STATE."
            .to_owned(),
        parameters: Parameters::trusted(Schema::later(super::schema_of::<TurnStateArguments>)),
        output: None,
        kind: ToolKind::Read,
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        backend: Backend::Builtin,
    }
}

/// Runs it.
pub(super) fn call(
    session: &Session,
    frame: &CallFrame,
    arguments: &TurnStateArguments,
) -> RawOutput {
    // The line removes secrets from what a call gives.
    let mut state = session.turn_states().of(frame, &Redactor::default());
    if let Some(kind) = arguments.kind {
        let kind = match kind {
            StateKind::Urls => "urls",
            StateKind::Paths => "paths",
            StateKind::Json => "json",
        };
        state = json!({ kind: state[kind].take() });
    }
    let text = serde_json::to_string_pretty::<Value>(&state).unwrap_or_default();
    RawOutput {
        structured: Some(state),
        ..RawOutput::text(text)
    }
}
