//! Entries of native servers turned into entries that start them through `zeph-host wrap`, and what such an entry was before.
//!
//! An entry keeps its place, its comments and the keys the host does not know. Its command becomes an argument of `wrap`; what it hands
//! over in `env` stays there and is let through by name, but for literal secrets, which the host keeps from then on.

mod inner;
mod names;
mod remote;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

pub(super) use self::inner::Inner;
use self::names::Names;
use self::remote::{Remote, headers_key, url_key};
use super::entry::{Edits, Field, is_host};
use super::error::MergeError;
use super::{Client, Format};

/// The subcommand that wraps.
const WRAP: &str = "wrap";

/// Ends its options.
const END: &str = "--";

/// The options of a server that is reached by an address.
const URL: &str = "--url";
const HEADER: &str = "--header";
const SECRET_HEADER: &str = "--secret-header";

/// The option that names a server.
const NAME: &str = "--name";

/// The option that hands a secret over as a variable.
const SECRET: &str = "--secret";

/// What the entries of a file are wrapped with.
pub struct Wrapper<'a> {
    /// This program; absolute.
    pub program: &'a str,
    /// Options of `wrap` for every server.
    pub options: &'a [String],
    /// Whether the value under this name is a secret.
    pub is_secret: &'a dyn Fn(&str, &str) -> bool,
    /// Directories among the arguments of a server, which it is allowed to read.
    pub readable: &'a dyn Fn(&[String]) -> Vec<String>,
    /// What is pinned under the name of a server, or what the name was given for: its command line, or its address, without secrets.
    pub pinned: &'a dyn Fn(&str) -> Option<Vec<String>>,
    /// Whether a variable makes programs load other code than the one that is named. No server gets such a variable.
    pub loads_code: &'a dyn Fn(&str) -> bool,
    /// The values that the host keeps already, by name.
    pub stored: BTreeMap<String, String>,
}

impl fmt::Debug for Wrapper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is stored is secret.
        f.debug_struct("Wrapper")
            .field("program", &self.program)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A file with its servers wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedFile {
    /// Its text.
    pub text: String,
    /// What became of each server, in the order of the file.
    pub servers: Vec<(String, Wrapped)>,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrapped {
    /// It starts the host, which starts the server.
    Changed(WrappedServer),
    /// It is as it was.
    Unchanged(Unwrappable),
}

/// How a server is wrapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrappedServer {
    /// The name under which the host knows it.
    pub name: String,
    /// The name it would have, were that not another server's.
    pub instead_of: Option<String>,
    /// Its command line, or its address, as [`Wrapper::pinned`] returns it: without what looks like a secret.
    pub launch: Vec<String>,
    /// Directories it may read besides the one it is started in.
    pub readable: Vec<String>,
    /// What the host keeps for it from now on.
    pub secrets: Vec<MovedSecret>,
    /// Where a literal secret stays in the file, in words.
    pub exposed: Vec<String>,
}

/// A value that the host keeps instead of the client's file.
#[derive(Clone, PartialEq, Eq)]
pub struct MovedSecret {
    /// The variable that has the value when the server runs, or the header that has it.
    pub variable: String,
    /// The name of the secret.
    pub name: String,
    /// The value.
    pub value: String,
}

impl fmt::Debug for MovedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.variable, self.name)
    }
}

/// Why an entry is not wrapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwrappable {
    /// It starts the host.
    #[error("it starts zeph-host already")]
    Host,
    /// It is reached by an address, and what its client sends is not known.
    #[error(
        "it is reached by an address; such a server is wrapped only if all its credentials are literal headers"
    )]
    Remote,
    /// It is reached by an address with a login, which the host does not take.
    #[error(
        "its address holds a user or a password; write them as the header `Authorization` to have it wrapped"
    )]
    Login,
    /// It is reached in another way than this program reaches servers.
    #[error(
        "its type is `{0}`; a server behind an address is wrapped only if it is reached over streamable HTTP (`http`)"
    )]
    Kind(String),
    /// It runs in a container.
    #[error(
        "`{0}` starts it in a container, and has no access to its service in a sandbox; start the server itself to have it wrapped"
    )]
    Container(String),
    /// It starts nothing that the host knows how to start.
    #[error("`{0}` has another type than the client expects, or is missing")]
    Shape(&'static str),
    /// Its variables come from a file that the client reads.
    #[error("its `envFile` may hold any variable; name each in `env` instead")]
    VariableFile,
    /// A variable has a name that no environment has.
    #[error("`{0}` cannot name a variable")]
    Variable(String),
    /// A variable of it is not passed.
    #[error(
        "`{0}` makes programs load other code than the one that is named, so it is not passed; remove it from the entry to have it wrapped"
    )]
    Loader(String),
}

/// What an entry starts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Launch {
    command: String,
    args: Vec<String>,
    /// In the order of the file; `None` for a value that is no text.
    env: Vec<(String, Option<String>)>,
    /// Variables of the client that it hands on.
    forwarded: Vec<String>,
}

impl Client {
    /// The client's file with every server that is a program wrapped.
    ///
    /// Errors: `text` is not in the client's format, has something else where the servers should be, or names one twice.
    pub fn wrap(&self, text: &str, wrapper: &Wrapper<'_>) -> Result<WrappedFile, MergeError> {
        let (mut servers, mut edited) = (Vec::new(), Vec::new());
        let mut names = Names::new(wrapper);
        for (name, entry) in self.entries(text)? {
            let launch = Launch::of(&entry).and_then(|launch| launch.checked(wrapper));
            let rewritten = match launch {
                Ok(launch) => {
                    let server = names.server(&name, &launch, wrapper);
                    Ok((edits(&launch, &server, wrapper), server))
                }
                Err(Unwrappable::Remote) => Remote::of(self, &entry).map(|remote| {
                    let server = names.remote(&name, &remote, wrapper);
                    (self.remote_edits(&remote, &server, wrapper), server)
                }),
                Err(why) => Err(why),
            };
            let wrapped = match rewritten {
                Ok((edits, server)) => {
                    edited.push((name.clone(), edits));
                    Wrapped::Changed(server)
                }
                Err(why) => Wrapped::Unchanged(why),
            };
            servers.push((name, wrapped));
        }
        let text = self.edit(text, &edited)?;
        Ok(WrappedFile { text, servers })
    }

    /// The servers of a file, in their order.
    pub(super) fn entries(&self, text: &str) -> Result<Vec<(String, Value)>, MergeError> {
        match &self.format {
            Format::Json(dialect) => super::json::entries(text, dialect, self.servers),
            Format::Toml => super::toml::entries(text, self.servers),
        }
    }

    fn remote_edits(
        &self,
        remote: &Remote,
        server: &WrappedServer,
        wrapper: &Wrapper<'_>,
    ) -> Edits {
        let moved = |header: &str| server.secrets.iter().find(|one| one.variable == header);
        let mut args = opening(server, wrapper);
        let mut add = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
        add(URL, remote.url.clone());
        for (name, value) in &remote.headers {
            match moved(name) {
                Some(secret) => add(SECRET_HEADER, format!("{name}={}", secret.name)),
                None => add(HEADER, format!("{name}={value}")),
            }
        }
        let mut set = vec![
            ("command", Field::Text(wrapper.program.to_owned())),
            ("args", Field::List(args)),
        ];
        let mut removed: Vec<&'static str> = url_key(self).into_iter().collect();
        removed.push(headers_key(self));
        match self.stdio_type {
            Some(kind) => set.push(("type", Field::Text(kind.to_owned()))),
            None => removed.push("type"),
        }
        Edits {
            set,
            removed,
            ..Edits::default()
        }
    }

    /// `text` with these changes in the entries of these names; without any, as it is.
    pub(super) fn edit(&self, text: &str, edits: &[(String, Edits)]) -> Result<String, MergeError> {
        match &self.format {
            _ if edits.is_empty() => Ok(text.to_owned()),
            Format::Json(dialect) => super::json::edit(text, dialect, self.servers, edits),
            Format::Toml => super::toml::edit(text, self.servers, edits),
        }
    }
}

impl Launch {
    fn of(entry: &Value) -> Result<Self, Unwrappable> {
        let remote = ["url", "httpUrl", "serverUrl"];
        if entry.get("command").is_none() && remote.iter().any(|key| entry.get(key).is_some()) {
            return Err(Unwrappable::Remote);
        }
        let command = entry.get("command").and_then(Value::as_str);
        let command = command.filter(|command| !command.is_empty());
        let command = command.ok_or(Unwrappable::Shape("command"))?.to_owned();
        if is_host(&command) {
            return Err(Unwrappable::Host);
        }
        if let Some(program) = container_program(&command) {
            return Err(Unwrappable::Container(program.to_owned()));
        }
        if entry.get("envFile").is_some() {
            return Err(Unwrappable::VariableFile);
        }
        let args = texts(entry.get("args")).ok_or(Unwrappable::Shape("args"))?;
        let forwarded = forwarded(entry.get("env_vars"));
        let env = variables(entry.get("env")).ok_or(Unwrappable::Shape("env"))?;
        let named = env.iter().map(|(name, _)| name).chain(&forwarded);
        if let Some(bad) = named.into_iter().find(|name| !is_variable(name)) {
            return Err(Unwrappable::Variable(bad.clone()));
        }
        Ok(Self {
            command,
            args,
            env,
            forwarded,
        })
    }

    /// Itself, if the server gets all its variables.
    ///
    /// Errors: [`Unwrappable::Loader`].
    fn checked(self, wrapper: &Wrapper<'_>) -> Result<Self, Unwrappable> {
        let mut named = self.env.iter().map(|(name, _)| name).chain(&self.forwarded);
        match named.find(|name| (wrapper.loads_code)(name)) {
            Some(loader) => Err(Unwrappable::Loader(loader.clone())),
            None => Ok(self),
        }
    }

    /// Its words.
    fn line(&self) -> Vec<&str> {
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(String::as_str).collect()
    }
}

/// The program that asks a service to start containers, if it is one. Of those that are not known here the error says what they lack.
fn container_program(command: &str) -> Option<&str> {
    let name = command.rsplit('/').next().unwrap_or(command);
    ["docker", "nerdctl", "podman"]
        .contains(&name)
        .then_some(name)
}

/// A list of texts; an absent one is empty.
fn texts(list: Option<&Value>) -> Option<Vec<String>> {
    let list = match list {
        None => return Some(Vec::new()),
        Some(list) => list.as_array()?,
    };
    let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
    texts.collect()
}

/// Names in a list of variables that the client hands on: each a text, or an object with a `name`.
fn forwarded(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    let names = items.filter_map(|item| item.as_str().or_else(|| item.get("name")?.as_str()));
    names.map(str::to_owned).collect()
}

fn variables(env: Option<&Value>) -> Option<Vec<(String, Option<String>)>> {
    let env = match env {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(env) => env.as_object()?,
    };
    let pairs = env.iter();
    Some(
        pairs
            .map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned)))
            .collect(),
    )
}

fn is_variable(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    // Of an empty name, there is no first.
    let starts_well = name.starts_with(|first: char| !first.is_ascii_digit());
    starts_well && name.bytes().all(is_letter)
}

/// Whether the client puts something else in the place of a value, or of a part of it: a variable, or what it asked its user for.
fn is_reference(value: &str) -> bool {
    let is_bare = |word: &str| word.strip_prefix('$').is_some_and(is_variable);
    value.contains("${") || value.split_whitespace().any(is_bare)
}

fn edits(launch: &Launch, server: &WrappedServer, wrapper: &Wrapper<'_>) -> Edits {
    let moved = |variable: &str| server.secrets.iter().any(|one| one.variable == variable);
    let named = launch.env.iter().map(|(name, _)| name);
    let passed: BTreeSet<&String> = named
        .filter(|name| !moved(name))
        .chain(&launch.forwarded)
        .collect();
    let mut args = opening(server, wrapper);
    let mut add = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
    for folder in &server.readable {
        add("--allow-read", folder.clone());
    }
    for name in passed {
        add("--env", name.clone());
    }
    for secret in &server.secrets {
        add(SECRET, format!("{}={}", secret.variable, secret.name));
    }
    args.extend([END.to_owned(), launch.command.clone()]);
    args.extend_from_slice(&launch.args);
    let unset = |secret: &MovedSecret| ("env", secret.variable.clone());
    Edits {
        set: vec![
            ("command", Field::Text(wrapper.program.to_owned())),
            ("args", Field::List(args)),
        ],
        unset: server.secrets.iter().map(unset).collect(),
        removed: Vec::new(),
    }
}

/// How every command line of a wrapped server begins.
fn opening(server: &WrappedServer, wrapper: &Wrapper<'_>) -> Vec<String> {
    let mut args = vec![WRAP.to_owned(), NAME.to_owned(), server.name.clone()];
    args.extend_from_slice(wrapper.options);
    args
}

#[cfg(test)]
mod tests;
