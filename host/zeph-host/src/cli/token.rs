//! `zeph-host token`: who may use the MCP endpoint.

use serde_json::{Value, json};
use zeph_config::{Config, StoreLocation};
use zeph_core::failure::one_line;
use zeph_core::id::Digest;
use zeph_core::nearest::nearest;
use zeph_core::tool::Tool;
use zeph_mcp::subset::ToolSubset;
use zeph_mcp::token::{NewToken, check_name};
use zeph_store::{Store, TokenRecord};

use super::args::{Token, TokenAdd, TokenCommand};
use super::complete::known_tools;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::{out, time};
use crate::clock::now_ms;
use crate::run::table;
use crate::servers;

/// Runs the command.
pub(super) fn run(context: &Context, options: Token) -> Result<Exit, CliError> {
    let config = context.config()?;
    let store = match options.command {
        Some(TokenCommand::List { .. }) | None => context.store_to_look(&config)?,
        Some(TokenCommand::Add(_) | TokenCommand::Revoke { .. }) => context.store(&config)?,
    };
    let unknown = match &options.command {
        Some(TokenCommand::Add(TokenAdd { tools, .. })) => unknown_tools(&config, tools.as_deref()),
        _ => Vec::new(),
    };
    let done = context::block_on(async {
        match options.command {
            Some(TokenCommand::Add(options)) => add(&config, &store, options).await,
            Some(TokenCommand::Revoke { name }) => revoke(&store, name).await,
            Some(TokenCommand::List { json }) => list(&store, json.json).await,
            None => list(&store, options.json.json).await,
        }
    })?;
    context.notes(&unknown);
    Ok(done)
}

/// A sentence for each pattern of a token that no tool meets. It is added all the same: a plugin or a server may bring such a tool later.
fn unknown_tools(config: &Config, patterns: Option<&[String]>) -> Vec<String> {
    let Some(patterns) = patterns else {
        return Vec::new();
    };
    let known = known_tools(config);
    let may_come = |pattern: &str| servers::may_have(&config.mcp_servers, pattern);
    patterns
        .iter()
        .filter(|pattern| !may_come(pattern))
        .filter_map(|pattern| unknown_tool(&known, pattern))
        .collect()
}

fn unknown_tool(known: &[(String, Tool)], pattern: &str) -> Option<String> {
    // One that cannot be read is refused.
    let subset = ToolSubset::new([pattern]).ok()?;
    let mut named = known.iter();
    if named.any(|(name, tool)| subset.has(name, &tool.qualified_name())) {
        return None;
    }
    let names = known.iter().map(|(name, _)| name.as_str());
    let meant = nearest(pattern, names).map(|near| format!("; did you mean `{near}`?"));
    let meant = meant.unwrap_or_default();
    let shown = one_line(pattern, 100);
    Some(format!(
        "`--tools`: no tool is named `{shown}` now, and the token is for those that will be{meant}"
    ))
}

async fn add(config: &Config, store: &Store, options: TokenAdd) -> Result<Exit, CliError> {
    if config.store == StoreLocation::Memory {
        return Err(CliError::user("there is no store to keep a token in")
            .hint("set `store.path` to a file; it is `:memory:`"));
    }
    let token = NewToken::random()
        .map_err(|error| CliError::internal("no token can be made").because(error))?;
    let record = record(&token, options)?;
    let name = record.name.clone();
    if !store.add_token(record).await? {
        return Err(
            CliError::user(format!("there is a token `{name}` already")).hint(format!(
                "`zeph-host token revoke {name}` revokes it, after which the name is free"
            )),
        );
    }
    if let Err(error) = out::data(&format!("{}\n", token.text)) {
        // Nobody has it.
        store.revoke_token(name.clone()).await?;
        return Err(error.hint(format!("no token was made; the name `{name}` is free")));
    }
    out::remark("it is not shown again; clients send it as `Authorization: Bearer TOKEN`");
    Ok(Exit::Success)
}

/// What is kept of a token with these options.
fn record(token: &NewToken, options: TokenAdd) -> Result<TokenRecord, CliError> {
    check_name(&options.name).map_err(|error| CliError::user(error.to_string()))?;
    let patterns = options.tools.as_deref().unwrap_or_default();
    if patterns.iter().any(|pattern| pattern.trim().is_empty()) {
        let problem = "`--tools` has an empty name; omit the option to allow all tools";
        return Err(CliError::user(problem));
    }
    ToolSubset::new(patterns.iter().map(String::as_str))
        .map_err(|error| CliError::user(format!("`--tools`: {error}")))?;
    let now_ms = now_ms();
    let expires = options.expires.map(|text| time::expiry(&text, now_ms));
    Ok(TokenRecord {
        name: options.name,
        digest: Digest::new(token.digest.0),
        tools: options.tools,
        rate: options.rate,
        created_at_ms: now_ms,
        expires_at_ms: expires.transpose().map_err(CliError::user)?,
    })
}

async fn revoke(store: &Store, name: String) -> Result<Exit, CliError> {
    if !store.revoke_token(name.clone()).await? {
        let shown = one_line(&name, 70);
        return Err(CliError::user(format!("there is no token `{shown}`"))
            .hint("`zeph-host token` lists them"));
    }
    if store.list_tokens().await?.is_empty() {
        out::note(
            "no token is left: a server that is started on a loopback address from now on answers every local program",
        );
    }
    Ok(Exit::Success)
}

async fn list(store: &Store, json: bool) -> Result<Exit, CliError> {
    let tokens = store.list_tokens().await?;
    match json {
        true => out::json(&tokens.iter().map(as_json).collect::<Vec<Value>>()),
        false => out::styled(&as_table(&tokens)),
    }?;
    Ok(Exit::Success)
}

fn as_json(token: &TokenRecord) -> Value {
    json!({
        "name": token.name,
        "tools": token.tools,
        "rate": token.rate,
        "created": time::shown(token.created_at_ms),
        "expires": token.expires_at_ms.map(time::shown),
        "expired": token.has_expired(now_ms()),
    })
}

fn as_table(tokens: &[TokenRecord]) -> String {
    let rows: Vec<[String; 5]> = tokens.iter().map(row).collect();
    table::render(["NAME", "TOOLS", "RATE", "EXPIRES", "CREATED"], &rows, None)
}

fn row(token: &TokenRecord) -> [String; 5] {
    let expires = match token.expires_at_ms {
        Some(end_ms) if token.has_expired(now_ms()) => format!("{} (expired)", time::shown(end_ms)),
        Some(end_ms) => time::shown(end_ms),
        None => "never".to_owned(),
    };
    [
        token.name.clone(),
        token
            .tools
            .as_ref()
            .map_or("all".to_owned(), |tools| tools.join(",")),
        token
            .rate
            .map_or("-".to_owned(), |rate| format!("{rate}/min")),
        expires,
        time::shown(token.created_at_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::unknown_tool;
    use crate::builtin;

    #[test]
    fn names_that_no_tool_has_are_told() {
        let tools = builtin::tools().into_iter();
        let known: Vec<_> = tools.map(|tool| (tool.name.to_string(), tool)).collect();
        for pattern in ["read_overflow", "read_*", "*", "{read_overflow,other}", "{"] {
            assert_eq!(unknown_tool(&known, pattern), None, "{pattern}");
        }
        for (pattern, ending) in [
            ("read_overflwo", "; did you mean `read_overflow`?"),
            ("qqqq__*", "those that will be"),
        ] {
            let told = unknown_tool(&known, pattern).expect(pattern);
            assert!(told.contains(pattern) && told.ends_with(ending), "{told}");
        }
    }
}
