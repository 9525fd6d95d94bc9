//! From what a server says to what is offered of it: its lists, how far it is believed, and what the operator chose. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use zeph_config::{ListedTool, ServerConfig, TrustLevel};
use zeph_core::argument::Parameters;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_core::id::{ServerName, ToolName};
use zeph_core::nearest::nearest;
use zeph_core::policy::tool_key;
use zeph_core::schema::Schema;
use zeph_core::server::ServerTool;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_mcp::client::{Definitions, ServerInfo, ToolDefinition};
use zeph_plugins::server::{NamedDefinition, ServerDefinitions, own_name};

use super::choice::Choices;
use super::naming::{Naming, renamed};

/// The fields of a tool that a pin holds apart; all others are pinned as one value.
const TOLD_APART: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
];

/// Why a tool that is called as a task alone is not offered.
const NEEDS_TASK: &str = "its server runs it only as a task (`taskSupport` is \"required\"), which zeph-host does not ask for";

/// What a server's tool promises when nothing it says is believed.
const NO_PROMISES: Annotations = Annotations {
    read_only: false,
    destructive: true,
    idempotent: false,
    open_world: true,
};

/// A tool that is offered.
#[derive(Debug, Clone)]
pub(crate) struct OfferedTool {
    /// As models see it.
    pub(crate) tool: Tool,
    /// The server's own arguments.
    pub(crate) own: Parameters,
}

impl OfferedTool {
    /// The server's name for it.
    pub(crate) fn own_name(&self) -> &str {
        own_name(&self.tool)
    }

    /// The arguments that the server gets for a call with `given`.
    ///
    /// Errors: `policy_blocked` when the operator's rules for arguments forbid it.
    pub(crate) fn sent(
        &self,
        config: &ServerConfig,
        given: &Map<String, Value>,
    ) -> Result<Map<String, Value>, ToolFailure> {
        let Backend::Mcp(named) = &self.tool.backend else {
            return Ok(given.clone());
        };
        Choices::new(named.server.as_str(), &config.tools)
            .sent(&named.tool, self.own.schema(), given.clone())
            .map_err(|refusal| refusal.failure())
    }
}

/// What is offered of a server, and what is not.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// In the order of the server.
    pub(crate) tools: Vec<OfferedTool>,
    /// The server's names of tools that are not, and why.
    pub(crate) left_out: Vec<(String, String)>,
    /// The tools that have a hash in their names, one sentence each.
    renamed: Vec<String>,
}

impl Offered {
    /// What the operator should know of names, one sentence each.
    pub(crate) fn notes(&self, naming: &Naming<'_>) -> impl Iterator<Item = String> {
        naming.notes().chain(self.renamed.iter().cloned())
    }
}

/// What the configuration says of tools that are not among `tools`, the names of the server `server`: most likely misspelt, and without
/// effect. One sentence each.
pub(crate) fn idle_entries(
    server: &ServerName,
    config: &ServerConfig,
    tools: &[&str],
) -> Vec<String> {
    let lists = [
        ("allowed_tools", &config.allowed_tools),
        ("denied_tools", &config.denied_tools),
    ];
    let meant = |name: &str| match nearest(name, tools.iter().copied()) {
        Some(meant) => format!("; did you mean `{}`?", one_line(meant, 80)),
        None => String::new(),
    };
    let missing = lists.into_iter().flat_map(|(key, list)| {
        let is_idle = |listed: &&ListedTool| !tools.iter().any(|tool| listed.is(tool));
        list.iter().filter(is_idle).map(move |listed| {
            let (name, meant) = (one_line(listed.text(), 80), meant(listed.text()));
            format!("`{key}` lists `{name}`, which the server does not have{meant}")
        })
    });
    let choices = Choices::new(server.as_str(), &config.tools).of_nothing(tools);
    let of_nothing = choices
        .into_iter()
        .map(|key| format!("`{key}` is about a tool that the server does not have"));
    missing.chain(of_nothing).collect()
}

/// What is offered of `definitions`. `is_confined`: the server cannot reach a network.
pub(crate) fn offered(
    naming: &Naming<'_>,
    config: &ServerConfig,
    definitions: &Definitions,
    is_confined: bool,
) -> Offered {
    let mut offered = Offered::default();
    let (mut own, mut names) = (BTreeSet::new(), BTreeSet::new());
    for definition in &definitions.tools {
        let (named, why) = naming.named(&definition.name);
        let told = why.map(|why| renamed(&definition.name, &named, &why));
        let shown = match own.insert(&definition.name) {
            true => shown(named, naming, (config, definition), is_confined),
            false => Err("the server lists it twice".to_owned()),
        };
        match shown {
            Ok(tool) if !names.insert(tool_key(tool.tool.name.as_str())) => {
                let why = format!("another of its tools is named `{}`", tool.tool.name);
                offered.left_out.push((definition.name.clone(), why));
            }
            Ok(tool) => {
                let is_chosen = tool.tool.name.as_str() != tool.tool.qualified_name();
                offered.renamed.extend(told.filter(|_| !is_chosen));
                offered.tools.push(tool);
            }
            Err(why) => offered.left_out.push((definition.name.clone(), why)),
        }
    }
    offered
}

fn shown(
    named: ServerTool,
    naming: &Naming<'_>,
    (config, definition): (&ServerConfig, &ToolDefinition),
    is_confined: bool,
) -> Result<OfferedTool, String> {
    if !config.offers(&definition.name) {
        return Err(why_not(config, &definition.name).to_owned());
    }
    if definition.needs_task {
        return Err(NEEDS_TASK.to_owned());
    }
    let chosen = chosen_name(config, &definition.name);
    if let Some(chosen) = chosen.as_ref().filter(|name| naming.is_taken(name, &named)) {
        return Err(format!("another of its tools is named `{chosen}`"));
    }
    let name = chosen.unwrap_or_else(|| named.plain_name());
    let choices = Choices::new(named.server.as_str(), &config.tools);
    let own = definition.parameters.schema();
    let chosen = choices.shown(&definition.name, &definition.description, own);
    let chosen = chosen.map_err(|error| error.to_string())?;
    let parameters = match chosen.schema == *own {
        true => definition.parameters.clone(),
        false => Parameters::new(chosen.schema).map_err(|error| error.to_string())?,
    };
    let tool = Tool {
        name,
        title: definition.title.clone(),
        description: chosen.description,
        parameters,
        output: definition.output.clone().map(Schema::from),
        kind: ToolKind::Other,
        annotations: believed(config.trust, definition.annotations, is_confined),
        backend: Backend::Mcp(named),
    };
    Ok(OfferedTool {
        own: definition.parameters.clone(),
        tool,
    })
}

fn chosen_name(config: &ServerConfig, tool: &str) -> Option<ToolName> {
    config.tools.get(tool)?.name.clone()
}

fn why_not(config: &ServerConfig, tool: &str) -> &'static str {
    let is_enabled = config.tools.get(tool).is_none_or(|choice| choice.enabled);
    if !is_enabled {
        return "`enabled` is false";
    }
    match config.denied_tools.iter().any(|listed| listed.is(tool)) {
        true => "`denied_tools` lists it",
        false if config.allowed_tools.is_empty() => {
            "`trust_level` is \"sandboxed\", and `allowed_tools` does not list it"
        }
        false => "`allowed_tools` does not list it",
    }
}

/// What counts of the promises of a server. Where there is no network, no promise about it is needed.
fn believed(trust: TrustLevel, said: Annotations, is_confined: bool) -> Annotations {
    match trust {
        TrustLevel::Trusted => Annotations {
            open_world: said.open_world && !is_confined,
            ..said
        },
        TrustLevel::Untrusted | TrustLevel::Sandboxed => NO_PROMISES,
    }
}

/// What is pinned: everything as the server sent it, not as it is shown. Of two tools with one name, the first.
pub(crate) fn pinned(
    server: &ServerName,
    info: &ServerInfo,
    definitions: &Definitions,
) -> ServerDefinitions {
    let tools = definitions.tools.iter().map(|tool| sent(server, tool));
    let named = |name: &str, sent: &Value| NamedDefinition {
        name: name.to_owned(),
        definition: sent.clone(),
    };
    let prompts = definitions.prompts.iter();
    let templates = definitions.templates.iter();
    let (said, _twice) = ServerDefinitions::new(
        info.instructions_sent.clone(),
        tools.collect(),
        prompts
            .map(|prompt| named(&prompt.shown.name, &prompt.sent))
            .collect(),
        templates
            .map(|template| named(&template.shown.uri_template, &template.sent))
            .collect(),
    );
    let others = definitions.tools.iter().filter_map(|tool| {
        let others = others(&tool.listed.sent);
        (!others.is_empty()).then(|| (tool.name.clone(), Value::Object(others)))
    });
    said.with_others(others.collect())
}

/// A tool as the server sent it.
fn sent(server: &ServerName, definition: &ToolDefinition) -> Tool {
    let sent = &definition.listed.sent;
    let text = |key: &str| sent.get(key).and_then(Value::as_str).map(str::to_owned);
    let named = ServerTool::new(server.clone(), definition.name.clone());
    let schema = sent.get("inputSchema").cloned();
    let schema = schema.and_then(|schema| Parameters::new(schema).ok());
    Tool {
        name: named.plain_name(),
        title: text("title"),
        description: text("description").unwrap_or_default(),
        parameters: schema.unwrap_or_else(|| definition.parameters.clone()),
        output: sent.get("outputSchema").cloned().map(Schema::from),
        kind: ToolKind::Other,
        annotations: definition.annotations,
        backend: Backend::Mcp(named),
    }
}

/// What else a server sent with a tool: icons, metadata, the title among its annotations.
fn others(sent: &Value) -> Map<String, Value> {
    let fields = sent.as_object().into_iter().flatten();
    let others = fields.filter(|(key, _)| !TOLD_APART.contains(&key.as_str()));
    let mut others: Map<String, Value> = others
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(title) = sent.get("annotations").and_then(|hints| hints.get("title")) {
        others.insert("annotations.title".to_owned(), title.clone());
    }
    others
}
