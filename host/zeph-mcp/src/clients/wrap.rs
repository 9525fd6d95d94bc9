//! Entries of native servers turned into entries that start them through `zeph-host wrap`, and what such an entry was before.
//!
//! An entry keeps its place, its comments and the keys the host does not know. Its command becomes an argument of `wrap`; what it hands
//! over in `env` stays there and is let through by name, but for literal secrets, which the host keeps from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};
use zeph_core::secret::{NAME_BYTES_MAX, value_problem};

use super::entry::{Edits, Field, is_host};
use super::error::MergeError;
use super::{Client, Format};

/// The subcommand that wraps.
const WRAP: &str = "wrap";

/// Ends its options.
const END: &str = "--";

/// The option that hands a secret over as a variable.
const SECRET: &str = "--secret";

/// Longest name of a server.
const NAME_CHARS_MAX: usize = 32;

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
    /// The variable that has the value when the server runs.
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
    /// It is reached by an address.
    #[error("it is reached by an address; a wrapped server is a program")]
    Remote,
    /// It starts nothing that the host knows how to start.
    #[error("`{0}` has another type than the client expects, or is missing")]
    Shape(&'static str),
    /// Its variables come from a file that the client reads.
    #[error("its `envFile` may hold any variable; name each in `env` instead")]
    VariableFile,
    /// A variable has a name that no environment has.
    #[error("`{0}` cannot name a variable")]
    Variable(String),
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
        let mut file = WrappedFile {
            text: text.to_owned(),
            servers: Vec::new(),
        };
        let mut names = Names::new(wrapper);
        for (name, entry) in self.entries(text)? {
            let wrapped = match Launch::of(&entry) {
                Ok(launch) => {
                    let server = names.server(&name, &launch, wrapper);
                    let edits = edits(&launch, &server, wrapper);
                    file.text = self.edit(&file.text, &name, &edits)?;
                    Wrapped::Changed(server)
                }
                Err(why) => Wrapped::Unchanged(why),
            };
            file.servers.push((name, wrapped));
        }
        Ok(file)
    }

    /// The servers of a file, in their order.
    pub(super) fn entries(&self, text: &str) -> Result<Vec<(String, Value)>, MergeError> {
        match &self.format {
            Format::Json(dialect) => super::json::entries(text, dialect, self.servers),
            Format::Toml => super::toml::entries(text, self.servers),
        }
    }

    pub(super) fn edit(
        &self,
        text: &str,
        name: &str,
        edits: &Edits,
    ) -> Result<String, MergeError> {
        match &self.format {
            Format::Json(dialect) => super::json::edit(text, dialect, self.servers, name, edits),
            Format::Toml => super::toml::edit(text, self.servers, name, edits),
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

/// The names that are given out.
struct Names {
    servers: BTreeSet<String>,
    stored: BTreeMap<String, String>,
}

impl Names {
    fn new(wrapper: &Wrapper<'_>) -> Self {
        Self {
            servers: BTreeSet::new(),
            stored: wrapper.stored.clone(),
        }
    }

    fn server(&mut self, name: &str, launch: &Launch, wrapper: &Wrapper<'_>) -> WrappedServer {
        let mut server = WrappedServer {
            name: self.server_name(name),
            readable: (wrapper.readable)(&launch.args),
            ..WrappedServer::default()
        };
        for (variable, value) in &launch.env {
            let Some(value) = value.as_ref().filter(|value| !is_reference(value)) else {
                continue;
            };
            match (wrapper.is_secret)(variable, value) {
                true if value_problem(value).is_none() => {
                    let secret = self.secret(&server.name, variable, value);
                    server.secrets.push(secret);
                }
                true => server.exposed.push(format!("`env.{variable}`")),
                false => {}
            }
        }
        server.exposed.extend(exposed_args(&launch.args, wrapper));
        server
    }

    /// A name of its own, of letters that names of servers have.
    fn server_name(&mut self, name: &str) -> String {
        let plain = plain(name.trim(), NAME_CHARS_MAX);
        let base = plain.trim_matches(['-', '_']);
        let base = if base.is_empty() { "server" } else { base };
        let name = free(base, NAME_CHARS_MAX, |name| !self.servers.contains(name));
        self.servers.insert(name.clone());
        name
    }

    fn secret(&mut self, server: &str, variable: &str, value: &str) -> MovedSecret {
        let base = plain(&format!("{server}_{variable}"), NAME_BYTES_MAX);
        let stored = &self.stored;
        let is_free = |name: &str| stored.get(name).is_none_or(|there| there == value);
        let name = free(&base, NAME_BYTES_MAX, is_free);
        self.stored.insert(name.clone(), value.to_owned());
        MovedSecret {
            variable: variable.to_owned(),
            name,
            value: value.to_owned(),
        }
    }
}

/// The arguments that look like secrets. The value of an option is named by the option.
fn exposed_args(args: &[String], wrapper: &Wrapper<'_>) -> Vec<String> {
    let mut name = "argument".to_owned();
    let mut exposed = Vec::new();
    for (idx, arg) in args.iter().enumerate() {
        let option = arg.trim_start_matches('-');
        if !is_reference(arg) && (wrapper.is_secret)(&name, arg) {
            exposed.push(format!("argument {}", idx + 1));
        }
        name = match option.len() < arg.len() && !option.contains('=') {
            true => option.replace('-', "_"),
            false => "argument".to_owned(),
        };
    }
    exposed
}

/// `text` with a `-` for each character that names do not have.
fn plain(text: &str, chars_max: usize) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let plain = |letter: char| if is_plain(letter) { letter } else { '-' };
    text.chars().map(plain).take(chars_max).collect()
}

/// `base`, or the first of `base-2`, `base-3`… that is free.
fn free(base: &str, chars_max: usize, is_free: impl Fn(&str) -> bool) -> String {
    let numbered = |number: u32| match number {
        1 => base.to_owned(),
        _ => {
            let end = format!("-{number}");
            let kept = base.len().min(chars_max - end.len());
            format!("{}{end}", &base[..kept])
        }
    };
    let mut names = (1..u32::MAX).map(numbered);
    names.find(|name| is_free(name)).unwrap_or_default()
}

fn edits(launch: &Launch, server: &WrappedServer, wrapper: &Wrapper<'_>) -> Edits {
    let moved = |variable: &str| server.secrets.iter().any(|one| one.variable == variable);
    let named = launch.env.iter().map(|(name, _)| name);
    let passed: BTreeSet<&String> = named
        .filter(|name| !moved(name))
        .chain(&launch.forwarded)
        .collect();
    let mut args = vec![WRAP.to_owned(), "--name".to_owned(), server.name.clone()];
    args.extend_from_slice(wrapper.options);
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
    }
}

/// What a wrapped entry says about the server behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inner {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// Variables, each with the name of its secret.
    pub(super) secrets: Vec<(String, String)>,
}

impl Inner {
    /// Of an entry that starts `zeph-host wrap`; `None` of any other.
    pub(super) fn of(entry: &Value) -> Option<Self> {
        let command = entry.get("command")?.as_str()?;
        let args = texts(entry.get("args"))?;
        let end = args.iter().position(|arg| arg == END)?;
        let (options, launch) = (&args[..end], &args[end + 1..]);
        let is_wrap = is_host(command) && options.iter().any(|option| option == WRAP);
        let (command, args) = launch.split_first().filter(|_| is_wrap)?;
        Some(Self {
            command: command.clone(),
            args: args.to_vec(),
            secrets: secrets(options),
        })
    }

    /// The entry as it was before, but for the secrets.
    pub(super) fn bare(&self, entry: &Value) -> Value {
        let mut entry = entry.clone();
        entry["command"] = self.command.as_str().into();
        entry["args"] = self.args.as_slice().into();
        entry
    }

    /// Whether `entry` is what was wrapped.
    pub(super) fn is_of(&self, wrapped: &Value, entry: &Value) -> bool {
        let mut entry = entry.clone();
        if let Some(env) = entry.get_mut("env").and_then(Value::as_object_mut) {
            for (variable, _) in &self.secrets {
                env.remove(variable);
            }
        }
        plainest(self.bare(wrapped)) == plainest(entry)
    }
}

/// An entry without what says nothing.
fn plainest(entry: Value) -> Map<String, Value> {
    let mut fields = match entry {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for key in ["args", "env"] {
        let is_empty = fields.get(key).is_some_and(|value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(items) => items.is_empty(),
            other => other.is_null(),
        });
        if is_empty {
            fields.remove(key);
        }
    }
    fields
}

/// The values of `--secret`.
fn secrets(options: &[String]) -> Vec<(String, String)> {
    let mut secrets = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = match option.strip_prefix(SECRET) {
            Some("") => options.next().map(String::as_str),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        let pair = value.and_then(|value| value.split_once('='));
        secrets.extend(pair.map(|(variable, name)| (variable.to_owned(), name.to_owned())));
    }
    secrets
}

#[cfg(test)]
mod tests;
