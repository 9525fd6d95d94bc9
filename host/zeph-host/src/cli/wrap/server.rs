//! From the options of `wrap` to the configuration of its one server: checked like `[mcp.servers.NAME]`, and added to it if it is there.

use std::path::{Path, PathBuf};

use toml::Value;
use zeph_config::{
    CommandServer, Config, ConfigErrors, ServerConfig, ServerTransport, ServerValue, variable,
};
use zeph_core::id::ServerName;
use zeph_core::network::{ExitHost, HTTPS_PORT, HostPattern, Passage};
use zeph_core::secret::is_header;
use zeph_shell::jail::JailLabel;

use super::name::name_of;
use crate::cli::args::Wrap;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::shell;

/// The server to wrap.
#[derive(Debug)]
pub(super) struct WrappedServer {
    pub(super) name: ServerName,
    /// With this server alone.
    pub(super) config: Config,
    /// Whether the configuration has it.
    pub(super) is_configured: bool,
    /// What it is granted, if it is a program.
    pub(super) granted: Option<CommandServer>,
}

/// A name that no host has: a way out that leads to it alone leads nowhere, and tells what was tried.
const NOWHERE: &str = "nowhere.invalid";

/// The server of `options`, alone in the configuration.
///
/// Errors: what is wrong with the options; another server has this name.
pub(super) fn wrapped(context: &Context, options: &Wrap) -> Result<WrappedServer, CliError> {
    let name = name(options)?;
    let mut config = context.config()?;
    let configured = config.mcp_servers.remove(&name);
    let is_configured = configured.is_some();
    let is_typed = !options.command.is_empty() || options.url.is_some();
    let typed = is_typed
        .then(|| typed(context, options, &name))
        .transpose()?;
    let mut server = match (configured, typed) {
        (Some(configured), Some(typed)) => joined(&name, configured, typed)?,
        (Some(_), None) if has_grants(options) => return Err(needs_command(&name)),
        (Some(configured), None) => configured,
        (None, Some(typed)) => typed,
        (None, None) => return Err(no_command(options, &name)),
    };
    let mut granted = None;
    if let ServerTransport::Command(command) = &mut server.transport {
        read_roots(context, &config, command);
        granted = Some(command.clone());
        if options.learn && command.hosts.is_empty() && has_way_out(&config) {
            command.hosts.extend(nowhere());
        }
    }
    config.mcp_servers = [(name.clone(), server)].into();
    Ok(WrappedServer {
        name,
        config,
        is_configured,
        granted,
    })
}

/// Whether a server can be given a way out to hosts on this machine.
fn has_way_out(config: &Config) -> bool {
    let label = shell::jail(config).label().ok();
    matches!(label, Some(JailLabel::Full | JailLabel::None))
}

fn nowhere() -> Option<ExitHost> {
    let pattern = HostPattern::parse(NOWHERE, HTTPS_PORT).ok()?;
    Some(ExitHost {
        pattern,
        passage: Passage::Tls,
    })
}

fn name(options: &Wrap) -> Result<ServerName, CliError> {
    match &options.name {
        Some(name) => {
            ServerName::new(name.as_str()).map_err(|bad| CliError::user(format!("`{name}`: {bad}")))
        }
        None if options.url.is_none() && options.command.is_empty() => {
            Err(CliError::user("no command was given")
                .hint("such as `zeph-host wrap -- npx -y SERVER`"))
        }
        None => Ok(name_of(&options.command, options.url.as_deref())),
    }
}

/// The server as the options say, checked like one of the configuration.
fn typed(context: &Context, options: &Wrap, name: &ServerName) -> Result<ServerConfig, CliError> {
    let mut flags = context.flags.clone();
    let table = match &options.url {
        Some(url) => remote_table(url, &options.secret_header),
        None => table(context, options)?,
    };
    flags.set.push(format!("mcp.servers.{name}={table}"));
    // The configuration was right without it: whatever is wrong now was typed.
    let loaded = Config::load(&context.surroundings, &flags);
    let mut config = loaded.map_err(|errors| mistyped(&errors, name))?.config;
    let server = config.mcp_servers.remove(name);
    let mut server = server.ok_or_else(|| CliError::internal("the server was not configured"))?;
    match &mut server.transport {
        ServerTransport::Command(command) => {
            for given in &options.env {
                let (name, value) = environment(given)?;
                let value = value.map(ServerValue::Text);
                command.environment.extend(value.map(|value| (name, value)));
            }
        }
        ServerTransport::Http(remote) => {
            for given in &options.header {
                let (name, value) = header(given)?;
                remote.headers.insert(name, ServerValue::Text(value));
            }
        }
    }
    Ok(server)
}

/// The options of a server that is reached over HTTP as a table of TOML on one line.
fn remote_table(url: &str, headers: &[String]) -> String {
    let (headers, _) = secrets(headers);
    format!(
        "{{ url = {}, headers = {{ {} }} }}",
        text(url),
        headers.join(", ")
    )
}

fn header(given: &str) -> Result<(String, String), CliError> {
    let (name, value) = given.split_once('=').unwrap_or((given, ""));
    let name = name.to_ascii_lowercase();
    match is_header(&name) && !value.is_empty() {
        true => Ok((name, value.to_owned())),
        false => Err(
            CliError::user(format!("`--header {name}` is not a header that can be set"))
                .hint("such as --header X-Team=blue"),
        ),
    }
}

/// Options, and the keys of a server that they stand for.
const OPTIONS: [(&str, &str); 8] = [
    ("allow_read", "--allow-read"),
    ("allow_write", "--allow-write"),
    ("hosts", "--host"),
    ("secrets", "--secret"),
    ("env", "--secret"),
    ("headers", "--secret-header"),
    ("url", "--url"),
    ("command", "the command"),
];

/// What is wrong with the table that was made of the options, as what is wrong with them.
fn mistyped(errors: &ConfigErrors, name: &ServerName) -> CliError {
    let problems = errors.problems.iter().map(|problem| {
        let named = OPTIONS.iter().find_map(|(key, option)| {
            let key = format!("`mcp.servers.{name}.{key}`");
            problem
                .message
                .strip_prefix(&key)
                .map(|rest| (option, rest))
        });
        match named {
            Some((option, rest)) if option.starts_with('-') => format!("`{option}`{rest}"),
            Some((option, rest)) => format!("{option}{rest}"),
            None => problem.message.clone(),
        }
    });
    let problems: Vec<String> = problems.collect();
    CliError::user(problems.join("; "))
}

/// The options as a table of TOML on one line. Values of variables are not among them: they may be secrets, and errors quote it.
fn table(context: &Context, options: &Wrap) -> Result<String, CliError> {
    let here = &context.surroundings.working_directory;
    let (program, args) = options.command.split_first().unwrap_or((&EMPTY, &[]));
    let (bound, used) = secrets(&options.secret);
    let fields = [
        format!("command = {}", text(&program_path(here, program)?)),
        format!("args = {}", texts(args)),
        format!("allow_read = {}", texts(&paths(here, &options.allow_read)?)),
        format!(
            "allow_write = {}",
            texts(&paths(here, &options.allow_write)?)
        ),
        format!("hosts = {}", texts(&options.host)),
        format!("secrets = {}", texts(&used)),
        format!("env = {{ {} }}", bound.join(", ")),
    ];
    Ok(format!("{{ {} }}", fields.join(", ")))
}

static EMPTY: String = String::new();

fn text(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn texts(texts: &[String]) -> String {
    let items: Vec<String> = texts.iter().map(|item| text(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A program that is named by a path starts where the command was typed.
fn program_path(here: &Path, program: &str) -> Result<String, CliError> {
    match program.contains('/') && !program.starts_with("~/") {
        true => unicode(here.join(program)),
        false => Ok(program.to_owned()),
    }
}

fn paths(here: &Path, paths: &[PathBuf]) -> Result<Vec<String>, CliError> {
    let paths = paths.iter().map(|path| match path.starts_with("~") {
        // Not expanded by the client that has it in its file.
        true => unicode(path.clone()),
        false => unicode(here.join(path)),
    });
    paths.collect()
}

fn unicode(path: PathBuf) -> Result<String, CliError> {
    path.into_os_string().into_string().map_err(|path| {
        CliError::user(format!("`{}` is not valid Unicode", path.to_string_lossy()))
    })
}

/// `VARIABLE=SECRET` as fields of `env`, and the others, which go to requests.
fn secrets(given: &[String]) -> (Vec<String>, Vec<String>) {
    let (used, bound): (Vec<&String>, Vec<&String>) =
        given.iter().partition(|given| given.contains(':'));
    let field = |given: &String| {
        let (name, secret) = given.split_once('=').unwrap_or((given, given));
        format!("{} = {{ secret = {} }}", text(name), text(secret))
    };
    (
        bound.into_iter().map(field).collect(),
        used.into_iter().cloned().collect(),
    )
}

/// A variable of the server: with its value, or with the one it has here, if it has one.
fn environment(given: &str) -> Result<(String, Option<String>), CliError> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (given, None),
    };
    if name.is_empty() || given.contains('\0') {
        return Err(CliError::user(format!("`--env {given}` names no variable")));
    }
    let value = match value {
        Some(value) => Some(value),
        None => variable(name),
    };
    Ok((name.to_owned(), value))
}

/// The configured server with what was typed besides.
///
/// Errors: they are two servers.
fn joined(
    name: &ServerName,
    mut configured: ServerConfig,
    typed: ServerConfig,
) -> Result<ServerConfig, CliError> {
    let (there, here) = match (&mut configured.transport, typed.transport) {
        (ServerTransport::Command(there), ServerTransport::Command(here)) => (there, here),
        (ServerTransport::Http(there), ServerTransport::Http(here)) if there.url == here.url => {
            there.headers.extend(here.headers);
            return Ok(configured);
        }
        _ => return Err(another(name)),
    };
    if (&there.program, &there.arguments) != (&here.program, &here.arguments) {
        return Err(another(name));
    }
    there.environment.extend(here.environment);
    there.read.extend(here.read);
    there.write.extend(here.write);
    there.spellings.extend(here.spellings);
    there.hosts.extend(here.hosts);
    Ok(configured)
}

/// Lets the server read where the client works: the directories of the roots. One that the home directory is in would be everything.
fn read_roots(context: &Context, config: &Config, command: &mut CommandServer) {
    let home = context.surroundings.home.as_deref();
    let home = home.map(|home| home.canonicalize().unwrap_or(home.to_owned()));
    let is_typed = !context.flags.roots.is_empty();
    for root in &config.file.roots {
        let holds_home = home
            .as_ref()
            .is_none_or(|home| home.starts_with(&root.path));
        let is_new = !command.read.contains(&root.path);
        if is_new && (is_typed || !holds_home) {
            command.read.push(root.path.clone());
        }
    }
    let names = config.shell.spellings.iter();
    let names = names.filter(|(_, place)| command.read.iter().any(|root| place.starts_with(root)));
    command.spellings.extend(names.cloned());
}

fn has_grants(options: &Wrap) -> bool {
    let paths = [&options.allow_read, &options.allow_write];
    let texts = [&options.host, &options.env, &options.secret];
    paths.iter().any(|list| !list.is_empty()) || texts.iter().any(|list| !list.is_empty())
}

fn needs_command(name: &ServerName) -> CliError {
    CliError::user(format!(
        "grants of a server without its command belong into [mcp.servers.{name}]"
    ))
    .hint("or repeat the command behind `--`")
}

fn another(name: &ServerName) -> CliError {
    CliError::user(format!(
        "[mcp.servers.{name}] of the configuration is another server"
    ))
    .hint("--name gives this one another name")
}

fn no_command(options: &Wrap, name: &ServerName) -> CliError {
    let missing = match &options.name {
        Some(_) => {
            format!("the configuration has no [mcp.servers.{name}], and no command was given")
        }
        None => "no command was given".to_owned(),
    };
    CliError::user(missing).hint("such as `zeph-host wrap -- npx -y SERVER`")
}

#[cfg(test)]
mod tests {
    use zeph_config::{Problem, ValueOrigin};

    use super::*;
    use crate::cli::exit::Exit;

    #[test]
    fn a_variable_has_a_value_or_the_one_it_has_here() {
        let value = |given| environment(given).unwrap();
        assert_eq!(value("A=b=c"), ("A".to_owned(), Some("b=c".to_owned())));
        assert_eq!(value("ZEPH_NO_SUCH_VARIABLE").1, None);
        assert!(environment("=x").is_err());
    }

    #[test]
    fn what_was_typed_is_named_as_it_was_typed() {
        let table = [
            (
                "`mcp.servers.cat.hosts`: `a b` is no host",
                "`--host`: `a b` is no host",
            ),
            (
                "`mcp.servers.cat.env`: `B=C` is no name",
                "`--secret`: `B=C` is no name",
            ),
            (
                "`mcp.servers.cat.command`: it is empty",
                "the command: it is empty",
            ),
            ("something else", "something else"),
        ];
        let name = ServerName::new("cat").unwrap();
        for (message, expect) in table {
            let errors = ConfigErrors {
                problems: vec![Problem {
                    origin: ValueOrigin::BuiltIn { line: 0 },
                    column: 0,
                    message: message.to_owned(),
                }],
            };
            let error = mistyped(&errors, &name);
            assert_eq!(error.problems, [expect]);
            assert_eq!(error.exit(), Exit::Usage);
        }
    }

    #[test]
    fn secrets_are_variables_or_headers() {
        let given = ["T=hub", "hub=api.example.com:authorization"].map(str::to_owned);
        let (bound, used) = secrets(&given);
        assert_eq!(bound, ["\"T\" = { secret = \"hub\" }"]);
        assert_eq!(used, ["hub=api.example.com:authorization"]);
    }
}
