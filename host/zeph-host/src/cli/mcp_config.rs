//! `zeph-host mcp-config`: tells an MCP client about this server.

mod file;
mod unwrap;
mod wrap;

use std::path::{Path, PathBuf};

use zeph_config::variable;
use zeph_mcp::clients::{Client, ClientFile, MergeError, Server, StartDirectory, Transport};

use self::file::{Backup, ConfigFile, Written};
use super::args::McpConfig;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::out;

/// The path of the endpoint.
const ENDPOINT: &str = "/mcp";

/// Longest name of a server. Clients put it in front of the names of tools, which models get 64 characters of.
const NAME_MAX: usize = 32;

/// Runs the command.
pub(super) fn run(context: &Context, options: &McpConfig) -> Result<Exit, CliError> {
    let client = Client::by_name(&options.client)
        .ok_or_else(|| CliError::user(format!("there is no client `{}`", options.client)))?;
    if options.wrap {
        return wrap::run(context, client, options);
    }
    if options.unwrap {
        return unwrap::run(context, client, options);
    }
    let server = server(context, client, options)?;
    match options.write {
        true => write(context, client, &server, options),
        false => print(context, client, &server),
    }?;
    Ok(Exit::Success)
}

fn print(context: &Context, client: &Client, server: &Server) -> Result<(), CliError> {
    let snippet = client.snippet(server).map_err(|error| unusable(&error))?;
    if let Ok(path) = place(context, client) {
        let note = format!("for `{}`; --write adds it there", path.display());
        context.notes(&[note]);
    }
    out::data(&snippet)
}

fn write(
    context: &Context,
    client: &Client,
    server: &Server,
    options: &McpConfig,
) -> Result<(), CliError> {
    let file = open(context, client, options.file.as_deref())?;
    let merged = client.merge(&file.text, server, options.force);
    let merged = merged.map_err(|error| refused(&error, &file.path, &server.name))?;
    let path = file.path.display().to_string();
    let note = match file.replace(&merged, Backup::Numbered)? {
        Written::Unchanged => format!("`{path}` has the server `{}` already", server.name),
        Written::New => format!("`{path}`: made, with the server `{}`", server.name),
        Written::Changed { backup } => format!(
            "`{path}`: the server `{}` is added; the old file is {}",
            server.name,
            backup.map_or_else(
                || "gone".to_owned(),
                |backup| format!("`{}`", backup.display())
            )
        ),
    };
    context.notes(&[format!("{}: {note}", client.title)]);
    Ok(())
}

/// The client's file, or the one that was named.
///
/// Errors: there is no such place; a file of the project lies outside of it; it cannot be read.
fn open(context: &Context, client: &Client, named: Option<&Path>) -> Result<ConfigFile, CliError> {
    let here = &context.surroundings.working_directory;
    if let Some(named) = named {
        return ConfigFile::open_to_change(&here.join(named));
    }
    let file = ConfigFile::open_to_change(&place(context, client)?)?;
    let is_of_project = matches!(client.file, ClientFile::Project(_));
    // A project is written by others: its symbolic links must not choose which of the user's files is changed.
    if is_of_project && !file.path.starts_with(here) {
        return Err(CliError::user(format!(
            "a symbolic link leads out of the project, to `{}`",
            file.path.display()
        ))
        .hint(format!(
            "if that is the file to change: --file {}",
            file.path.display()
        )));
    }
    Ok(file)
}

/// Where the client keeps its servers.
pub(super) fn place(context: &Context, client: &Client) -> Result<PathBuf, CliError> {
    let surroundings = &context.surroundings;
    let home = surroundings.home.as_ref();
    let below_home = |path: &str| home.map(|home| home.join(path));
    let path = match client.file {
        ClientFile::Project(path) => Some(surroundings.working_directory.join(path)),
        ClientFile::Config(path) => surroundings
            .config_home
            .as_ref()
            .map(|base| base.join(path)),
        ClientFile::Application(path) if cfg!(target_os = "macos") => {
            below_home("Library/Application Support").map(|base| base.join(path))
        }
        ClientFile::Application(path) => surroundings
            .config_home
            .as_ref()
            .map(|base| base.join(path)),
        ClientFile::Own {
            variable: name,
            otherwise,
            file,
        } => {
            let own = variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            own.or_else(|| below_home(otherwise))
                .map(|base| base.join(file))
        }
    };
    path.ok_or_else(|| {
        CliError::user("there is no home directory").hint("name the file with --file")
    })
}

/// The server as the client is told about it.
fn server(context: &Context, client: &Client, options: &McpConfig) -> Result<Server, CliError> {
    let name = options.name.clone();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_letter) {
        return Err(
            CliError::user(format!("`{name}` is not a valid name of a server"))
                .hint(format!("letters, digits, `_` and `-`, at most {NAME_MAX}")),
        );
    }
    let transport = match &options.http {
        Some(url) => Transport::Http {
            url: endpoint(url)?,
            token: options.token_var.clone().map(token_variable).transpose()?,
        },
        None => Transport::Stdio {
            command: unicode(program()?)?,
            args: args(context, client)?,
        },
    };
    Ok(Server { name, transport })
}

/// The address of the endpoint behind what was typed.
fn endpoint(typed: &str) -> Result<String, CliError> {
    let wrong = |why: &str| {
        CliError::user(format!("`{typed}` is not a valid address: {why}"))
            .hint("such as http://127.0.0.1:8765/mcp")
    };
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| typed.strip_prefix(scheme))
        .ok_or_else(|| wrong("it must start with http:// or https://"))?;
    if typed
        .chars()
        .any(|letter| !letter.is_ascii_graphic() || "\"\\<>`{}$".contains(letter))
    {
        return Err(wrong("it has characters that no address has"));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match (authority, path) {
        ("", _) => Err(wrong("the host is missing")),
        (with_user, _) if with_user.contains('@') => {
            Err(wrong("it must not contain credentials; use --token-var"))
        }
        (_, "" | "/") => Ok(format!("{}{ENDPOINT}", typed.trim_end_matches('/'))),
        _ => Ok(typed.to_owned()),
    }
}

fn token_variable(name: String) -> Result<String, CliError> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_name && !name.is_empty() {
        true => Ok(name),
        false => Err(
            CliError::user("`--token-var` takes the name of a variable, not a token")
                .hint("such as --token-var ZEPH_TOKEN"),
        ),
    }
}

/// This program, by the name on the search path that leads to it if there is one: that name outlives an update.
fn program() -> Result<PathBuf, CliError> {
    let itself = std::env::current_exe().map_err(|error| {
        CliError::internal("the path of this program cannot be found").because(error)
    })?;
    let folders = variable("PATH").unwrap_or_default();
    let mut named = std::env::split_paths(&folders).map(|folder| folder.join("zeph-host"));
    let leads_here =
        |path: &PathBuf| path.is_absolute() && path.canonicalize().is_ok_and(|real| real == itself);
    Ok(named.find(leads_here).unwrap_or(itself))
}

/// The arguments that start the server with the options that were given here.
fn args(context: &Context, client: &Client) -> Result<Vec<String>, CliError> {
    let mut args = vec!["serve".to_owned()];
    args.extend(settings(context)?);
    args.extend(roots(context, client)?);
    args.extend(no_project(context));
    Ok(args)
}

/// The directories that the tools can access, unless it is the one in which the client starts its servers.
fn roots(context: &Context, client: &Client) -> Result<Vec<String>, CliError> {
    let mut args = Vec::new();
    let (roots, here) = (
        &context.flags.roots,
        &context.surroundings.working_directory,
    );
    let mut add = |value: String| args.extend(["--root".to_owned(), value]);
    match client.starts_in {
        _ if !roots.is_empty() => {
            for root in roots {
                add(unicode(here.join(root))?);
            }
        }
        StartDirectory::Project => {}
        StartDirectory::Variable(variable) => add(variable.to_owned()),
        StartDirectory::Unknown => add(unicode(here.clone())?),
    }
    Ok(args)
}

/// The other global options that were given here.
fn settings(context: &Context) -> Result<Vec<String>, CliError> {
    let (flags, here) = (&context.flags, &context.surroundings.working_directory);
    let mut args = Vec::new();
    let mut add = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
    if let Some(file) = &flags.config {
        add("--config", unicode(here.join(file))?);
    }
    for setting in &flags.set {
        add("--set", setting.clone());
    }
    for folder in &flags.plugins {
        add("--plugins", unicode(here.join(folder))?);
    }
    Ok(args)
}

fn no_project(context: &Context) -> Option<String> {
    let given = context.flags.no_project;
    given.then(|| "--no-project".to_owned())
}

fn unicode(path: PathBuf) -> Result<String, CliError> {
    path.into_os_string().into_string().map_err(|path| {
        let path = path.to_string_lossy().into_owned();
        CliError::user(format!(
            "`{path}` is not valid Unicode; the client's file cannot name it"
        ))
    })
}

/// The client has no such server.
fn unusable(error: &MergeError) -> CliError {
    let this = CliError::user(error.to_string());
    match error {
        MergeError::NoHttp(_) => this.hint("without --http, the client starts the server itself"),
        MergeError::NoToken(_) => this.hint(
            "without --token-var, the entry has no token; the client asks for one or has it in `headers`",
        ),
        _ => this,
    }
}

fn refused(error: &MergeError, path: &Path, name: &str) -> CliError {
    let this =
        |what: &str| CliError::user(format!("`{}`: {what}; nothing was changed", path.display()));
    match error {
        MergeError::Foreign(_) => this(&error.to_string()).hint(format!(
            "--name gives this one another name than `{name}`; --force replaces the other"
        )),
        MergeError::NoHttp(_) | MergeError::NoToken(_) => unusable(error),
        _ => this(&error.to_string())
            .hint("correct the file, or add by hand what the same command prints without --write"),
    }
}
