//! `zeph-host trust`: how far tools are trusted, and which are blocked.

use serde_json::{Value, json};
use zeph_config::{Config, StoreLocation};
use zeph_core::failure::one_line;
use zeph_core::policy::{ToolOwner, TrustLevel, TrustSubject};
use zeph_engine::Cancel;
use zeph_store::{Store, TrustRecord};

use super::args::{Trust, TrustCommand};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::page::print_json;
use super::{out, time};
use crate::clock::now_ms;
use crate::host::Host;
use crate::run::table;

/// Runs the command.
pub(super) fn run(context: &Context, options: Trust) -> Result<Exit, CliError> {
    let config = context.config()?;
    context::block_on(async {
        match options.command {
            Some(TrustCommand::Reset { tool, json }) => {
                reset(context, config, &tool, json.json).await
            }
            Some(TrustCommand::Set { tool, level, json }) => {
                set(context, config, (&tool, level), json.json).await
            }
            Some(TrustCommand::List { json }) => list(context, &config, json.json).await,
            None => list(context, &config, options.json.json).await,
        }
    })
}

async fn list(context: &Context, config: &Config, json: bool) -> Result<Exit, CliError> {
    let records = context.store_to_look(config)?.trust().await?.records;
    match json {
        true => print_json(&records.iter().map(as_json).collect::<Value>()),
        false => out::styled(&as_table(&records)),
    }?;
    Ok(Exit::Success)
}

async fn reset(
    context: &Context,
    config: Config,
    tool: &str,
    json: bool,
) -> Result<Exit, CliError> {
    must_be_kept(&config)?;
    let store = context.store(&config)?;
    let subject = match kept(&store, tool).await? {
        Some(subject) => subject,
        None => found(context, config, tool).await?,
    };
    if store.reset_trust(subject.clone()).await? == 0 {
        let shown = one_line(&subject.to_string(), 200);
        let error = CliError::user(format!(
            "no trust was set in `{shown}`, and it is not blocked"
        ));
        return Err(match subject.whole().filter(|_| subject.tool.is_some()) {
            Some(whole) => error.hint(format!(
                "`zeph-host trust` lists what is; all tools of its owner are `{whole}`"
            )),
            None => error.hint("`zeph-host trust` lists what is"),
        });
    }
    told(&subject, None, json)
}

async fn set(
    context: &Context,
    config: Config,
    (tool, level): (&str, TrustLevel),
    json: bool,
) -> Result<Exit, CliError> {
    must_be_kept(&config)?;
    let store = context.store(&config)?;
    let subject = match kept(&store, tool).await? {
        Some(subject) => subject,
        None => found(context, config, tool).await?,
    };
    store.set_trust(subject.clone(), level, now_ms()).await?;
    told(&subject, Some(level), json)
}

fn told(subject: &TrustSubject, level: Option<TrustLevel>, json: bool) -> Result<Exit, CliError> {
    let text = subject.to_string();
    match (json, level) {
        (true, _) => {
            print_json(&json!({ "subject": text, "level": level.map(TrustLevel::label) }))?;
        }
        (false, Some(level)) => {
            out::remark(&format!(
                "`{}` is {level} from the next call on",
                one_line(&text, 200)
            ));
        }
        (false, None) => {
            out::remark(&format!(
                "`{}` is trusted as by default again, from the next call on",
                one_line(&text, 200)
            ));
        }
    }
    Ok(Exit::Success)
}

fn must_be_kept(config: &Config) -> Result<(), CliError> {
    match config.store {
        StoreLocation::Memory => Err(CliError::user("there is no store to keep trust in")
            .hint("set `store.path` to a file; it is `:memory:`")),
        StoreLocation::File(_) | StoreLocation::Server(_) => Ok(()),
    }
}

/// The subject of that text of which something is kept, whether it is still there or not.
async fn kept(store: &Store, text: &str) -> Result<Option<TrustSubject>, CliError> {
    let records = store.trust().await?.records.into_iter();
    let mut subjects = records.map(|record| record.subject);
    Ok(subjects.find(|subject| subject.to_string() == text))
}

/// What the text names among the tools, plugins and servers of this moment.
async fn found(context: &Context, config: Config, text: &str) -> Result<TrustSubject, CliError> {
    let read: Result<TrustSubject, _> = text.parse();
    let servers: Vec<_> = config.mcp_servers.keys().cloned().collect();
    let host = context.start(config, false, Vec::new(), None).await?;
    if let Ok(subject) = &read
        && subject.tool.is_none()
    {
        let is_there = match &subject.owner {
            ToolOwner::Server(server) => servers.contains(server),
            ToolOwner::Plugin(plugin) => has_plugin(&host, &plugin.0).await,
            ToolOwner::Host => false,
        };
        return is_there
            .then(|| subject.clone())
            .ok_or_else(|| unknown(text, None));
    }
    host.awaits_tool(text, &Cancel::new()).await;
    let problem = match host.catalog().resolve(text).map(TrustSubject::of_tool) {
        Ok(subject) => return Ok(subject),
        Err(failure) => failure.message,
    };
    // One that is offered by another name, or by none.
    host.settled().await;
    let catalog = host.catalog();
    let mut tools = catalog.tools().map(TrustSubject::of_tool);
    let is_it = |subject: &TrustSubject| subject.to_string() == text;
    tools
        .find(is_it)
        .ok_or_else(|| unknown(text, Some(problem)))
}

async fn has_plugin(host: &Host, name: &str) -> bool {
    host.settled().await;
    let plugins = host.plugins();
    let is_own = || {
        let catalog = host.catalog();
        let mut tools = catalog.tools().map(TrustSubject::of_tool);
        tools.any(|tool| matches!(&tool.owner, ToolOwner::Plugin(plugin) if plugin.0 == name))
    };
    plugins.standing(name).is_some() || is_own()
}

fn unknown(text: &str, problem: Option<String>) -> CliError {
    let shown = one_line(text, 100);
    let problem = problem.unwrap_or_else(|| format!("there is no `{shown}`"));
    CliError::user(problem).hint(
        "name a tool as in `zeph-host tools`, or `plugin:NAME` or `server:NAME` for all tools of one",
    )
}

fn as_json(record: &TrustRecord) -> Value {
    json!({
        "subject": record.subject.to_string(),
        "caller": record.caller,
        "level": record.level.label(),
        "reason": record.reason,
        "is_automatic": record.is_automatic,
        "at": time::shown(record.at_ms),
    })
}

fn as_table(records: &[TrustRecord]) -> String {
    let rows: Vec<[String; 5]> = records.iter().map(row).collect();
    table::render(
        ["TOOL", "LEVEL", "FOR", "SINCE", "WHY"],
        &rows,
        out::width(),
    )
}

fn row(record: &TrustRecord) -> [String; 5] {
    let why = match record.is_automatic {
        true => format!("{} (tools.anomaly)", record.reason),
        false => "set".to_owned(),
    };
    [
        record.subject.to_string(),
        record.level.to_string(),
        record.caller.clone().unwrap_or_else(|| "all".to_owned()),
        time::shown(record.at_ms),
        why,
    ]
}
