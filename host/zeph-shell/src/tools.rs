//! The tools of this crate, as models see them: `bash`, `list_runs`, `kill_run`. No logic.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeph_core::argument::Parameters;
use zeph_core::id::ToolName;
use zeph_core::schema::Schema;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

/// Runs a command.
pub const BASH: &str = "bash";

/// Lists background runs.
pub const LIST_RUNS: &str = "list_runs";

/// Ends a background run.
pub const KILL_RUN: &str = "kill_run";

/// The names of all tools.
pub const ALL: [&str; 3] = [BASH, LIST_RUNS, KILL_RUN];

/// The arguments of `bash`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct BashArguments {
    /// The command line, as typed at a prompt. Several lines, pipes and here-documents are fine.
    pub(crate) command: String,
    /// Start it and return at once. Its output comes by itself at the beginning of the next turn.
    #[serde(default)]
    pub(crate) background: bool,
    /// Seconds after which it is ended, when it may take longer (or should take less) than usual.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 86_400))]
    pub(crate) timeout: Option<u64>,
    /// What it does, in a few words, for the person who watches.
    // Approvals hold whatever it says: nothing may depend on it.
    #[serde(default)]
    #[schemars(with = "String")]
    #[expect(dead_code, reason = "doors show it; running does not need it")]
    pub(crate) description: Option<String>,
}

/// The arguments of `list_runs`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ListRunsArguments {}

/// The arguments of `kill_run`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct KillRunArguments {
    /// The `run_id` that `bash` returned.
    pub(crate) run_id: String,
}

/// The tools.
pub fn tools() -> Vec<Tool> {
    vec![bash(), list_runs(), kill_run()]
}

fn bash() -> Tool {
    Tool {
        title: Some("Run a command".to_owned()),
        description: "Runs a command line with bash and returns what it prints, both streams as they arrive, and \
            `[exit code N]` when that is not 0. What goes to both streams at nearly the same time may change places; with `2>&1` it does \
            not. It runs in a jail: it reaches the working directory and the tools of this \
            machine, not the rest of the disk, and the network only where the operator opened it. The directory (`cd`) and \
            exported variables carry on to the next command of the same turn; processes do not, everything a command started \
            ends with it, and so does what it left in `/tmp` and in the home directory: what a later command needs belongs in the working \
            directory. Nothing can be typed into it: pass `-y`, `--no-pager` and the like. For what takes long or must keep \
            running, such as a server, set `background`. Prefer `read`, `edit`, `grep` and `find_path` to `cat`, `sed`, \
            `grep` and `find`."
            .to_owned(),
        output: Some(Schema::later(envelope)),
        kind: ToolKind::Execute,
        annotations: Annotations {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
        ..tool(BASH, schema::<BashArguments>)
    }
}

fn list_runs() -> Tool {
    Tool {
        title: Some("List background runs".to_owned()),
        description: "Lists the commands that `bash` runs in the background: `run_id`, how long each has been running, and the \
            command. The output of one that has ended comes by itself at the beginning of the next turn."
            .to_owned(),
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        ..tool(LIST_RUNS, schema::<ListRunsArguments>)
    }
}

fn kill_run() -> Tool {
    Tool {
        title: Some("End a background run".to_owned()),
        description: "Ends a command that `bash` runs in the background, with everything it started. What it printed until \
            then comes at the beginning of the next turn."
            .to_owned(),
        annotations: Annotations {
            // It ends only what a call of this session started, and that was authorised.
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        ..tool(KILL_RUN, schema::<KillRunArguments>)
    }
}

/// What a command came to.
fn envelope() -> Value {
    json!({
        "type": "object",
        "properties": {
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
            "exit_code": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "truncated": { "type": "boolean" },
            "sandbox": { "type": "string" },
            "run_id": { "type": "string" },
        },
    })
}

fn tool(name: &str, schema: fn() -> Value) -> Tool {
    Tool {
        name: ToolName::new(name).expect("bug: the name is a valid one"),
        title: None,
        description: String::new(),
        parameters: Parameters::trusted(Schema::later(schema)),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Shell,
    }
}

/// The derived schema without the keywords some model providers refuse.
fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(object) = schema.as_object_mut() {
        object
            .retain(|keyword, _| !matches!(keyword.as_str(), "$schema" | "title" | "description"));
        object.entry("properties").or_insert_with(|| json!({}));
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        if let Some(property) = property.as_object_mut() {
            property.retain(|keyword, _| !matches!(keyword.as_str(), "format" | "default"));
        }
    }
    schema
}

#[cfg(test)]
mod tests;
