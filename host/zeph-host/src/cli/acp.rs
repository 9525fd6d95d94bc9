//! `zeph-host acp`: an agent for editors over the Agent Client Protocol. Makes the hosts of its sessions, and converts the end to an exit
//! code.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Value;
use zeph_acp::agent::{McpServer, NamedValue};
use zeph_config::{CommandServer, Config, Flags, ServerConfig, ServerTransport, ServerValue};
use zeph_core::id::ServerName;
use zeph_core::secret::is_header;
use zeph_core::server;

use super::args::AcpArgs;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use crate::host::Host;
use crate::run::interrupt::Interrupts;
use crate::serve::acp::place::{HostSource, Place, PlaceError, StartingHost};
use crate::serve::acp::{self, Ended};

/// Runs the command.
#[inline(never)]
pub(super) fn run(context: Context, options: AcpArgs) -> Result<Exit, CliError> {
    // What is wrong with the configuration is told before an editor waits.
    let config = context.config()?;
    context.allow(&options.allow, &config)?;
    if io::stdin().is_terminal() {
        let note = "an editor speaks the Agent Client Protocol on standard input; editors start this command themselves";
        context.notes(&[note.to_owned()]);
    }
    context.record(options.record.as_deref())?;
    context::block_on_threads(async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let hosts = Arc::new(Workshop { context, options });
        match acp::serve(hosts, &mut interrupts).await {
            Ok(Ended::AtEnd) => Ok(Exit::Success),
            Ok(Ended::Interrupted(interruption)) => Ok(Exit::Interrupted(interruption)),
            Ok(Ended::OutputClosed) => Ok(Exit::BrokenPipe),
            Err(error) => Err(CliError::internal("a thread cannot be started").because(error)),
        }
    })
}

/// Makes the hosts of the sessions of one client.
#[derive(Debug)]
struct Workshop {
    context: Context,
    options: AcpArgs,
}

impl HostSource for Workshop {
    fn start<'a>(&'a self, place: &'a Place) -> StartingHost<'a> {
        Box::pin(self.host(place))
    }

    fn home(&self) -> &Path {
        &self.context.surroundings.working_directory
    }

    fn provider(&self) -> Option<&str> {
        self.options.provider.as_deref()
    }

    fn remark(&self, text: &str) {
        self.context.notes(&[text.to_owned()]);
    }
}

impl Workshop {
    async fn host(&self, place: &Place) -> Result<Host, PlaceError> {
        let (context, mut config) = self.at(place)?;
        let of_operator: BTreeSet<ServerName> = config.mcp_servers.keys().cloned().collect();
        for server in &place.servers {
            self.add(&context, (&mut config, &of_operator), server)?;
        }
        let failed = |error: CliError| PlaceError::Failed(error.problems.join("; "));
        let allow = context
            .allow(&self.options.allow, &config)
            .map_err(failed)?;
        context
            .start(config, true, allow, None)
            .await
            .map_err(failed)
    }

    /// The command as if it had been typed in the directory of the session, and its configuration. What the operator allows as directories
    /// holds: a client chooses among them.
    fn at(&self, place: &Place) -> Result<(Context, Config), PlaceError> {
        let usual = self.context.moved_to(place.directory.clone(), self.flags());
        let config = load(&usual)?;
        let roots: Vec<&PathBuf> = config.file.roots.iter().map(|root| &root.path).collect();
        let is_usual = self.context.flags.roots.is_empty() && roots == [&place.directory];
        let wanted = std::iter::once(&place.directory).chain(&place.more);
        if is_usual && place.more.is_empty() {
            return Ok((usual, config));
        }
        let outside = wanted
            .clone()
            .find(|path| !is_usual && !roots.iter().any(|root| path.starts_with(root)));
        if let Some(path) = outside {
            return Err(PlaceError::Refused(format!(
                "`{}` is outside the directories that the tools may access; `tools.file.allowed_paths` or `--root` name them",
                path.display()
            )));
        }
        let mut flags = Flags {
            roots: wanted.clone().cloned().collect(),
            ..self.flags()
        };
        let is_command_usual = is_usual && config.shell.allowed_paths == [place.directory.clone()];
        if !is_command_usual {
            flags.set.push(command_directories(
                &config.shell.allowed_paths,
                wanted.collect(),
            ));
        }
        let context = self.context.moved_to(place.directory.clone(), flags);
        let config = load(&context)?;
        Ok((context, config))
    }

    /// The flags, with paths that mean the same in every directory.
    fn flags(&self) -> Flags {
        let here = &self.context.surroundings.working_directory;
        let flags = &self.context.flags;
        let absolute = |paths: &[PathBuf]| paths.iter().map(|path| here.join(path)).collect();
        Flags {
            config: flags.config.as_ref().map(|path| here.join(path)),
            roots: absolute(&flags.roots),
            plugins: absolute(&flags.plugins),
            ..flags.clone()
        }
    }

    /// Adds a server of the client, checked like one of the configuration. One of the operator's that has its name stays; where another one
    /// of the client has it, this one gets a number.
    fn add(
        &self,
        context: &Context,
        (config, of_operator): (&mut Config, &BTreeSet<ServerName>),
        server: &McpServer,
    ) -> Result<(), PlaceError> {
        let (shown, given) = match server {
            McpServer::Stdio { name, env, .. } => (name, env),
            McpServer::Remote { name, headers, .. } => (name, headers),
        };
        let near = ServerName::near(shown);
        if of_operator.contains(&near) {
            self.remark(&format!(
                "the editor's MCP server `{near}` is not used: [mcp.servers.{near}] of the configuration is"
            ));
            return Ok(());
        }
        let near = match server::owner(&server::prefix(&near), of_operator) {
            None => near,
            Some(owner) => {
                let apart = ServerName::near(&near.as_str().replace('_', "-"));
                self.remark(&format!(
                    "the editor's MCP server {shown:?} is `{apart}` here: tool names that begin with `{}` belong to [mcp.servers.{owner}]",
                    server::prefix(owner)
                ));
                apart
            }
        };
        let name = free_name(&near, &config.mcp_servers);
        if name != near {
            self.remark(&format!(
                "the editor's MCP server {shown:?} is `{name}` here: another one of the editor is `{near}`"
            ));
        }
        let mut flags = context.flags.clone();
        flags
            .set
            .push(format!("mcp.servers.{name}={}", table(server)?));
        let loaded = Config::load(&context.surroundings, &flags);
        let loaded = loaded.map_err(|error| {
            PlaceError::Refused(format!("the MCP server `{name}` cannot be used: {error}"))
        })?;
        let mut servers = loaded.config.mcp_servers;
        let Some(mut checked) = servers.remove(&name) else {
            return Err(PlaceError::Failed(
                "the server was not configured".to_owned(),
            ));
        };
        self.give(config, &name, &mut checked, given)?;
        config.mcp_servers.insert(name, checked);
        Ok(())
    }

    /// What a server gets besides its command: values, and the directories of the session to read.
    fn give(
        &self,
        config: &Config,
        name: &ServerName,
        server: &mut ServerConfig,
        given: &[NamedValue],
    ) -> Result<(), PlaceError> {
        match &mut server.transport {
            ServerTransport::Command(command) => {
                command.environment = values(name, given, variable)?;
                self.read_roots(config, command);
            }
            ServerTransport::Http(remote) => {
                let headers = values(name, given, header)?;
                remote.headers.extend(headers);
            }
        }
        Ok(())
    }

    /// Lets a server read where the session works; a directory that the home directory is in would be everything.
    fn read_roots(&self, config: &Config, command: &mut CommandServer) {
        let home = self.context.surroundings.home.as_deref();
        let home = home.map(|home| home.canonicalize().unwrap_or(home.to_owned()));
        for root in &config.file.roots {
            let holds_home = home
                .as_ref()
                .is_none_or(|home| home.starts_with(&root.path));
            if !holds_home && !command.read.contains(&root.path) {
                command.read.push(root.path.clone());
            }
        }
    }
}

/// The value of `tools.shell.allowed_paths` in a session that wants `wanted`: what the operator allows within that, or all that is
/// allowed where that is nothing.
fn command_directories(allowed: &[PathBuf], wanted: Vec<&PathBuf>) -> String {
    let mut kept: Vec<&PathBuf> = Vec::new();
    for path in wanted {
        match allowed.iter().any(|root| path.starts_with(root)) {
            true => kept.push(path),
            false => kept.extend(allowed.iter().filter(|root| root.starts_with(path))),
        }
    }
    if kept.is_empty() {
        kept = allowed.iter().collect();
    }
    let texts = kept.into_iter().map(|path| path.to_string_lossy());
    let list = toml::Value::Array(texts.map(|text| text.into_owned().into()).collect());
    format!("tools.shell.allowed_paths={list}")
}

fn load(context: &Context) -> Result<Config, PlaceError> {
    let loaded = Config::load(&context.surroundings, &context.flags);
    loaded
        .map(|loaded| loaded.config)
        .map_err(|error| PlaceError::Refused(error.to_string()))
}

/// The name, with the first number from 2 on that makes it one no other server has. Names in letters of other scripts are alike.
fn free_name(near: &ServerName, taken: &BTreeMap<ServerName, ServerConfig>) -> ServerName {
    let mut number = 1;
    let mut name = near.clone();
    while taken.contains_key(&name) {
        number += 1;
        name = near.numbered(number);
    }
    name
}

/// A server as a table of TOML on one line. Values of variables and headers are not among it: they may be secrets, and errors quote it.
fn table(server: &McpServer) -> Result<String, PlaceError> {
    let text = |text: &str| Value::String(text.to_owned()).to_string();
    match server {
        McpServer::Stdio { command, args, .. } => {
            let args: Vec<String> = args.iter().map(|arg| text(arg)).collect();
            Ok(format!(
                "{{ command = {}, args = [{}] }}",
                text(command),
                args.join(", ")
            ))
        }
        McpServer::Remote { kind, url, .. } if kind == "http" => {
            Ok(format!("{{ url = {} }}", text(url)))
        }
        McpServer::Remote { name, .. } => Err(PlaceError::Refused(format!(
            "the MCP server {name:?} is reached by server-sent events, which is not supported; over HTTP it is"
        ))),
    }
}

/// The values a client gives, each under the name that `named` makes of its own.
fn values(
    server: &ServerName,
    given: &[NamedValue],
    named: fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, ServerValue>, PlaceError> {
    let values = given.iter().map(|given| {
        let name = named(&given.name).filter(|_| !given.value.contains('\0'));
        let value = ServerValue::Text(given.value.clone());
        name.map(|name| (name, value)).ok_or_else(|| {
            let name: String = given.name.chars().take(80).collect();
            PlaceError::Refused(format!("the MCP server `{server}`: {name:?} cannot be set"))
        })
    });
    values.collect()
}

fn variable(name: &str) -> Option<String> {
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    is_name.then(|| name.to_owned())
}

fn header(name: &str) -> Option<String> {
    Some(name.to_ascii_lowercase()).filter(|name| is_header(name))
}
