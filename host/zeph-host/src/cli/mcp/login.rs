//! `zeph-host mcp login` and `logout`: the tokens for a remote server.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::sync::Arc;

use serde_json::json;
use url::Url;
use zeph_config::{Config, HttpServer, ServerTransport};
use zeph_core::id::ServerName;
use zeph_egress::Egress;
use zeph_mcp::client::oauth::{ClientIdentity, LoginError};

use super::{is_json, known, named};
use crate::cli::args::{McpLogin, McpName};
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::{out, secret as stored_secret};
use crate::known_secrets::{self, KnownSecrets};
use crate::servers::login::{self, Browser, Logins, Trip};

/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// Runs `mcp login`.
pub(super) fn run(context: &Context, options: &McpLogin) -> Result<Exit, CliError> {
    let config = context.config()?;
    let name = named(&config, &options.name)?;
    let server = login::remote(&name, remote(&config, &name)?).map_err(failed)?;
    let identity = identity(&config, options)?;
    let logins = logins(&config)?;
    let egress = Egress::new(&config.egress);
    let (trip, browser) = match options.no_browser {
        true => (Trip::Elsewhere, Terminal { is_elsewhere: true }),
        false => (
            Trip::Browser,
            Terminal {
                is_elsewhere: false,
            },
        ),
    };
    context::block_on(async {
        let logging_in = login::log_in(&logins, &egress, &server, &identity, trip, &browser);
        logging_in.await.map_err(failed)
    })?;
    out::remark(&format!("logged in to `{name}`"));
    Ok(Exit::Success)
}

/// Runs `mcp logout`.
pub(super) fn forget(context: &Context, options: &McpName) -> Result<Exit, CliError> {
    let config = context.config()?;
    // A login may be older than the configuration.
    let name = ServerName::new(options.name.as_str());
    let name = name.map_err(|bad| CliError::user(bad.to_string()))?;
    let logins = logins(&config)?;
    let forgetting = async { logins.forget(&name).await.map_err(failed) };
    let was_there = context::block_on(forgetting)?;
    if !was_there {
        known(&config, &options.name).map_err(|error| {
            error.hint("there is no login to it either; `zeph-host mcp list` lists the servers")
        })?;
    }
    match (is_json(&options.json), was_there) {
        (true, _) => out::json(&json!({ "name": name.as_str(), "was_logged_in": was_there }))?,
        (false, true) => out::remark(&format!("the login to `{name}` is forgotten")),
        (false, false) => out::remark(&format!("there was no login to `{name}`")),
    }
    Ok(Exit::Success)
}

/// The server by URL.
///
/// Errors: a program needs no login; a header of the operator's is what counts.
fn remote<'c>(config: &'c Config, name: &ServerName) -> Result<&'c HttpServer, CliError> {
    let server = config.mcp_servers.get(name.as_str());
    let Some(ServerTransport::Http(server)) = server.map(|server| &server.transport) else {
        let problem =
            format!("MCP server `{name}` is a program; only servers with a `url` take a login");
        return Err(CliError::user(problem));
    };
    if server.headers.contains_key("authorization") {
        let problem =
            format!("MCP server `{name}` has an `authorization` header in the configuration");
        let hint = format!("remove it from `mcp.servers.{name}.headers` to log in instead");
        return Err(CliError::user(problem).hint(hint));
    }
    Ok(server)
}

fn logins(config: &Config) -> Result<Logins, CliError> {
    let secrets = Arc::new(KnownSecrets::open(config));
    Logins::new(config, &secrets).ok_or_else(|| {
        CliError::user("there is no place to keep a login in")
            .hint("set `store.path` to a file; it is `:memory:`")
    })
}

/// How this client is known to the authorization server.
fn identity(config: &Config, options: &McpLogin) -> Result<ClientIdentity, CliError> {
    let client_secret = match &options.client_secret {
        Some(name) => Some(secret(config, name)?),
        None => None,
    };
    Ok(ClientIdentity {
        client_id: options.client_id.clone(),
        client_secret,
        metadata_url: None,
        scopes: options.scope.clone(),
    })
}

fn secret(config: &Config, name: &str) -> Result<String, CliError> {
    let folder = known_secrets::folder(config);
    let stored = folder.map(|folder| folder.read()).transpose();
    let stored = stored.map_err(stored_secret::failed)?;
    let mut stored = stored.unwrap_or_default().into_iter();
    let found = stored.find(|secret| secret.name == name);
    found.map(|secret| secret.value).ok_or_else(|| {
        let shown = zeph_core::failure::one_line(name, 70);
        CliError::user(format!("there is no secret `{shown}`"))
            .hint(format!("`zeph-host secret set {shown}` stores it"))
    })
}

pub(super) fn failed(error: LoginError) -> CliError {
    let failed = CliError::internal(error.to_string());
    match error.hint() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// The person at the terminal.
struct Terminal {
    is_elsewhere: bool,
}

impl Browser for Terminal {
    fn show(&self, url: &Url) {
        let host = url.host_str().unwrap_or_default();
        out::remark(&format!("log in at {host}:"));
        out::remark(url.as_str());
        if self.is_elsewhere {
            out::remark(
                "then the browser opens a page of 127.0.0.1 that does not load; paste its whole URL here:",
            );
        }
    }

    fn typed(&self) -> Result<Option<String>, String> {
        let mut line = String::new();
        let mut input = BufReader::new(io::stdin().lock().take(LINE_BYTES_MAX));
        let read = input.read_line(&mut line);
        read.map_err(|error| format!("standard input cannot be read: {error}"))?;
        Ok(Some(line.trim().to_owned()).filter(|line| !line.is_empty()))
    }
}
