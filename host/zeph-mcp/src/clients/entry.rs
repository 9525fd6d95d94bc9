//! What stands under a server's name, before it is spelled in a format.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;
use url::Url;

use super::error::MergeError;
use super::wrap::Inner;
use super::{Client, TokenEntry};

/// The name that the program's own entry gets.
pub const OWN_NAME: &str = "zeph";

/// The program whose entries the host takes for its own.
const PROGRAM: &str = "zeph-host";

/// Whether a command starts the host, under its own name or one that says which build it is.
pub fn is_host(command: &str) -> bool {
    let program = Path::new(command).file_name().and_then(OsStr::to_str);
    let rest = program.and_then(|name| name.strip_prefix(PROGRAM));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

/// The server that a client is told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The name it gets in the client.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// The client starts it and speaks over its standard streams.
    Stdio {
        /// The program; absolute.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It runs already.
    Http {
        /// The address of its endpoint.
        url: String,
        /// The name of the variable with the token, if one is needed.
        token: Option<String>,
    },
}

/// A server in a client's words.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    /// In the order in which they are written.
    pub(super) fields: Vec<(&'static str, Field)>,
    /// A value that the client has to ask its user for.
    pub(super) input: Option<&'a str>,
    /// The key that says where the server is: its value decides whose entry it is, its presence which transport it has.
    location: &'static str,
}

/// The value of a key of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    Text(String),
    List(Vec<String>),
    /// One key of a table; other keys there are the user's.
    Within(String, String),
}

impl<'a> Entry<'a> {
    /// The entry of `server` for `client`.
    ///
    /// Errors: the client cannot use such a server.
    pub(super) fn new(client: &Client, server: &'a Server) -> Result<Self, MergeError> {
        match &server.transport {
            Transport::Stdio { command, args } => {
                let kind = client
                    .stdio_type
                    .map(|kind| ("type", Field::Text(kind.into())));
                let place = [
                    ("command", Field::Text(command.clone())),
                    ("args", Field::List(args.clone())),
                ];
                Ok(Self {
                    name: &server.name,
                    fields: kind.into_iter().chain(place).collect(),
                    input: None,
                    location: "command",
                })
            }
            Transport::Http { url, token } => Self::http(client, server, url, token.as_deref()),
        }
    }

    fn http(
        client: &Client,
        server: &'a Server,
        url: &str,
        token: Option<&'a str>,
    ) -> Result<Self, MergeError> {
        let http = client
            .http
            .as_ref()
            .ok_or(MergeError::NoHttp(client.title))?;
        let kind = http.kind.map(|kind| ("type", Field::Text(kind.into())));
        let place = (http.url, Field::Text(url.into()));
        let mut this = Self {
            name: &server.name,
            fields: kind.into_iter().chain([place]).collect(),
            input: None,
            location: http.url,
        };
        let Some(variable) = token else {
            return Ok(this);
        };
        let bearer = |before: &str, after: &str| {
            let value = format!("Bearer {before}{variable}{after}");
            ("headers", Field::Within("Authorization".into(), value))
        };
        this.fields.push(match http.token {
            TokenEntry::Header(before, after) => bearer(before, after),
            TokenEntry::Input => {
                this.input = Some(variable);
                bearer("${input:", "}")
            }
            TokenEntry::Key(key) => (key, Field::Text(variable.into())),
            TokenEntry::None => return Err(MergeError::NoToken(client.title)),
        });
        Ok(this)
    }

    /// What happens to an entry of this name that is already there.
    ///
    /// Errors: it is another program's, or another server behind `wrap`, and `force` is not given.
    pub(super) fn over(&self, old: &Value, force: bool) -> Result<Change, MergeError> {
        let text = |key: &str| old.get(key).and_then(Value::as_str);
        let there = text(self.location);
        let is_ours =
            text("command").is_some_and(is_host) || there.is_some_and(|it| self.is_at(it));
        match (is_ours && Inner::of(old).is_none(), there.is_some()) {
            (true, true) => Ok(Change::Update),
            (true, false) => Ok(Change::Replace),
            (false, _) if force => Ok(Change::Replace),
            (false, _) => Err(MergeError::Foreign(self.name.to_owned())),
        }
    }

    /// Whether it is this program or at this address; under the name that the program gives, also at another port of the same host.
    fn is_at(&self, place: &str) -> bool {
        let own = self.fields.iter().find_map(|(key, field)| match field {
            Field::Text(own) if *key == self.location => Some(own.as_str()),
            _ => None,
        });
        let without_port = |address: &str| {
            let mut url = Url::parse(address).ok()?;
            url.set_port(None).ok()?;
            Some(url)
        };
        let is_moved = |own: &str| {
            let own = without_port(own);
            self.name == OWN_NAME && own.is_some() && own == without_port(place)
        };
        own.is_some_and(|own| own == place || is_moved(own))
    }
}

/// What happens to an entry that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Its keys get the values of the new one; other keys stay.
    Update,
    /// The new one takes its place: it has another transport, or another program, whose keys mean nothing here.
    Replace,
}

/// What is changed in an entry that stays: the keys that get another value, and those that go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Edits {
    pub(super) set: Vec<(&'static str, Field)>,
    /// Each the key of a table, and a key in it.
    pub(super) unset: Vec<(&'static str, String)>,
    /// Keys of the entry itself.
    pub(super) removed: Vec<&'static str>,
}
