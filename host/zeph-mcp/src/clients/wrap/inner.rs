//! What a wrapped entry says about the server behind it.

use serde_json::{Map, Value};

use super::{END, HEADER, NAME, SECRET, SECRET_HEADER, URL, WRAP, headers_key, texts, url_key};
use crate::clients::Client;
use crate::clients::entry::{Edits, Field, is_host};
use crate::clients::started::ServerStart;

/// The server behind a wrapped entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::clients) struct Inner {
    /// What `wrap` calls it.
    name: Option<String>,
    start: Start,
    /// Variables or headers, each with the name of its secret.
    secrets: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Start {
    Program {
        command: String,
        args: Vec<String>,
    },
    Address {
        url: String,
        /// Those that are no secrets.
        headers: Vec<(String, String)>,
    },
}

impl Inner {
    /// Of an entry that starts `zeph-host wrap`; `None` of any other.
    pub(in crate::clients) fn of(entry: &Value) -> Option<Self> {
        let command = entry.get("command")?.as_str()?;
        let args = texts(entry.get("args"))?;
        let end = args.iter().position(|arg| arg == END);
        let options = &args[..end.unwrap_or(args.len())];
        if !is_host(command) || !options.iter().any(|option| option == WRAP) {
            return None;
        }
        if let Some(end) = end {
            let (command, args) = args[end + 1..].split_first()?;
            return Some(Self {
                name: values(options, NAME).pop(),
                start: Start::Program {
                    command: command.clone(),
                    args: args.to_vec(),
                },
                secrets: pairs(options, SECRET),
            });
        }
        Some(Self {
            name: values(options, NAME).pop(),
            start: Start::Address {
                url: values(options, URL).pop()?,
                headers: pairs(options, HEADER),
            },
            secrets: pairs(options, SECRET_HEADER),
        })
    }

    /// How the server is started.
    pub(in crate::clients) fn start(self) -> ServerStart {
        let (command, url) = match self.start {
            Start::Program { command, args } => ([vec![command], args].concat(), None),
            Start::Address { url, .. } => (Vec::new(), Some(url)),
        };
        ServerStart::Wrapped {
            name: self.name,
            command,
            url,
        }
    }

    /// Whether `entry` is what was wrapped.
    pub(in crate::clients) fn is_of(
        &self,
        client: &Client,
        wrapped: &Value,
        entry: &Value,
    ) -> bool {
        let mut entry = entry.clone();
        let table = match self.start {
            Start::Program { .. } => "env",
            Start::Address { .. } => headers_key(client),
        };
        if let Some(table) = entry.get_mut(table).and_then(Value::as_object_mut) {
            for (name, _) in &self.secrets {
                table.remove(name);
            }
        }
        plainest(self.bare(client, wrapped)) == plainest(entry)
    }

    /// The entry as it was before, but for the secrets.
    fn bare(&self, client: &Client, entry: &Value) -> Value {
        let mut entry = entry.clone();
        match &self.start {
            Start::Program { command, args } => {
                entry["command"] = command.as_str().into();
                entry["args"] = args.as_slice().into();
            }
            Start::Address { url, headers } => {
                if let Some(fields) = entry.as_object_mut() {
                    fields.remove("command");
                    fields.remove("args");
                }
                if let Some(key) = url_key(client) {
                    entry[key] = url.as_str().into();
                }
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.clone(), value.as_str().into()));
                entry[headers_key(client)] = Value::Object(headers.collect());
            }
        }
        entry
    }

    /// What makes the entry start its server, or name its address, itself.
    ///
    /// Errors: the name of a secret that is not there.
    pub(in crate::clients) fn edits(
        &self,
        client: &Client,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Edits, String> {
        let mut edits = Edits::default();
        let table = match &self.start {
            Start::Program { command, args } => {
                edits.set.push(("command", Field::Text(command.clone())));
                edits.set.push(("args", Field::List(args.clone())));
                "env"
            }
            Start::Address { url, headers } => {
                let key = url_key(client).unwrap_or("url");
                edits.set.push((key, Field::Text(url.clone())));
                edits.removed = vec!["command", "args"];
                match client.http.as_ref().and_then(|http| http.kind) {
                    Some(kind) => edits.set.push(("type", Field::Text(kind.to_owned()))),
                    None => edits.removed.push("type"),
                }
                let table = headers_key(client);
                let headers = headers.iter();
                let headers =
                    headers.map(|(name, value)| Field::Within(name.clone(), value.clone()));
                edits.set.extend(headers.map(|field| (table, field)));
                table
            }
        };
        for (variable, name) in &self.secrets {
            let value = secret(name).ok_or_else(|| name.clone())?;
            let field = Field::Within(variable.clone(), value);
            edits.set.push((table, field));
        }
        Ok(edits)
    }
}

/// An entry without what says nothing. How a server is reached is said by its other keys.
pub(super) fn plainest(entry: Value) -> Map<String, Value> {
    let mut fields = match entry {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.remove("type");
    for key in ["args", "env", "headers", "http_headers"] {
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

/// The values of `option`, which is followed by each, or by `=` and it.
fn values(options: &[String], option: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut options = options.iter();
    while let Some(word) = options.next() {
        let value = match word.strip_prefix(option) {
            Some("") => options.next().map(String::as_str),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        found.extend(value.map(str::to_owned));
    }
    found
}

/// Those of them that are a name and a value.
fn pairs(options: &[String], option: &str) -> Vec<(String, String)> {
    let values = values(options, option).into_iter();
    let pairs = values.filter_map(|value| {
        let (name, value) = value.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}
