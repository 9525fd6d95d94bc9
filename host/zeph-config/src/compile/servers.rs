//! `[mcp.servers.NAME]`: each server checked by itself.

mod choice;
mod http;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use globset::Error;
use zeph_core::failure::one_line;
use zeph_core::id::ServerName;
use zeph_core::network::{EgressSettings, ExitHost, Inspection, Methods, Passage};
use zeph_core::policy::tool_key;
use zeph_core::secret::{self, SecretUse};
use zeph_core::server::{self, SERVER_TOOL_PREFIX};

pub(super) use self::http::url_problem;
use super::Compiling;
use super::plugins::is_full;
use crate::raw::{RawMcp, RawSecretValue, RawServer, RawServerValue, RawTrustLevel};
use crate::servers::{
    CommandServer, ListedTool, ServerConfig, ServerTransport, ServerValue, TrustLevel,
};

/// Characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 200;

/// The keys that are of servers with a `command`.
const OF_COMMANDS: [&str; 7] = [
    "args",
    "env",
    "cwd",
    "allow_read",
    "allow_write",
    "secrets",
    "install_scripts",
];

impl Compiling<'_> {
    /// The MCP servers; those with a problem are omitted.
    pub(super) fn servers(
        &mut self,
        raw: &RawMcp,
        egress: &EgressSettings,
    ) -> BTreeMap<ServerName, ServerConfig> {
        let timeout = Duration::from_secs(raw.tool_timeout.into());
        let mut servers = BTreeMap::new();
        for (name, server) in &raw.servers {
            let room = ServerRoom {
                key: format!("mcp.servers.{name}"),
                egress,
                timeout,
            };
            // Checked when it was read: a key that is no name is unknown.
            if let Ok(name) = ServerName::new(name.as_str()) {
                servers.extend(self.server(&room, server).map(|server| (name, server)));
            }
        }
        self.names_apart(servers.keys());
        self.chosen_names_apart(&servers);
        servers
    }

    /// A name means one tool, whatever runs: no other server's, and no other choice's.
    fn chosen_names_apart(&mut self, servers: &BTreeMap<ServerName, ServerConfig>) {
        let mut seen = BTreeSet::new();
        for (server, config) in servers {
            for (tool, choice) in &config.tools {
                let Some(name) = &choice.name else { continue };
                let key = tool_key(name.as_str());
                let owner = server::owner(&key, servers.keys());
                let problem = if key.starts_with(SERVER_TOOL_PREFIX) && owner != Some(server) {
                    let own = server::prefix(server);
                    format!(
                        "a name that begins with `{SERVER_TOOL_PREFIX}` and not with `{own}` belongs to another server"
                    )
                } else if !seen.insert(key) {
                    "another tool has the same name".to_owned()
                } else {
                    continue;
                };
                let message = format!("`{}.name`: {problem}", one_line(tool, 100));
                self.merged
                    .problem(&format!("mcp.servers.{server}.tools"), &message);
            }
        }
    }

    /// Each has directories of its own, also where names that differ in case only are one.
    fn names_apart<'n>(&mut self, names: impl Iterator<Item = &'n ServerName>) {
        let mut seen = BTreeSet::new();
        let twice: Vec<&ServerName> = names
            .filter(|name| !seen.insert(name.as_str().to_ascii_lowercase()))
            .collect();
        for name in twice {
            let message = "another server has the same name but for capitals; rename one of them";
            self.merged.problem(&format!("mcp.servers.{name}"), message);
        }
    }

    fn server(&mut self, room: &ServerRoom<'_>, raw: &RawServer) -> Option<ServerConfig> {
        let transport = self.transport(room, raw);
        let allowed_tools = self.listed(room, "allowed_tools", &raw.allowed_tools);
        let denied_tools = self.listed(room, "denied_tools", &raw.denied_tools);
        let choices = raw.tools.iter();
        let tools = choices
            .map(|(tool, choice)| (tool.clone(), self.choice(room, tool, choice)))
            .collect();
        let timeout = Duration::from_secs(raw.tool_timeout.into());
        Some(ServerConfig {
            disabled: raw.disabled,
            transport: transport?,
            allowed_tools,
            denied_tools,
            trust: trust(raw.trust_level),
            calls_per_minute_max: NonZeroU32::new(raw.rate_limit.max_calls_per_minute),
            tool_timeout: match timeout.is_zero() {
                true => room.timeout,
                false => timeout,
            },
            tools,
        })
    }

    /// The entries of a list of tools that can be used.
    fn listed(&mut self, room: &ServerRoom<'_>, field: &str, tools: &[String]) -> Vec<ListedTool> {
        if tools.iter().any(String::is_empty) {
            self.wrong(room, field, "a tool has a name; one of these is empty");
        }
        let listed = tools.iter().filter_map(|text| {
            let listed = ListedTool::new(text);
            let wrong = |error: &Error| {
                let (text, why) = (one_line(text, 200), error.kind());
                self.wrong(room, field, &format!("`{text}` is not a pattern: {why}"));
            };
            listed.inspect_err(wrong).ok()
        });
        listed.collect()
    }

    fn transport(&mut self, room: &ServerRoom<'_>, raw: &RawServer) -> Option<ServerTransport> {
        match (raw.command.is_empty(), raw.url.is_empty()) {
            (false, true) => {
                if !raw.headers.is_empty() {
                    self.wrong(room, "headers", "these are of servers with a `url`");
                }
                self.command(room, raw).map(ServerTransport::Command)
            }
            (true, false) => {
                self.of_commands_only(room, raw);
                self.http(room, raw).map(ServerTransport::Http)
            }
            (true, true) => {
                let message = "it has neither `command` nor `url`";
                self.merged.problem(&room.key, message);
                None
            }
            (false, false) => {
                self.wrong(room, "url", "`url` and `command` exclude each other");
                None
            }
        }
    }

    fn of_commands_only(&mut self, room: &ServerRoom<'_>, raw: &RawServer) {
        let is_set = [
            !raw.args.is_empty(),
            !raw.env.is_empty(),
            !raw.cwd.is_empty(),
            !raw.allow_read.is_empty(),
            !raw.allow_write.is_empty(),
            !raw.secrets.is_empty(),
            raw.install_scripts,
        ];
        for (field, _) in OF_COMMANDS.iter().zip(is_set).filter(|(_, is_set)| *is_set) {
            self.wrong(room, field, "this is of servers with a `command`");
        }
    }

    fn command(&mut self, room: &ServerRoom<'_>, raw: &RawServer) -> Option<CommandServer> {
        let program = self.program(room, &raw.command)?;
        if raw.args.iter().any(|text| text.contains('\0')) {
            self.wrong(room, "args", "an argument contains a NUL character");
        }
        let read = self.granted(room, "allow_read", &raw.allow_read);
        let write = self.granted(room, "allow_write", &raw.allow_write);
        let texts = [raw.allow_read.as_slice(), &raw.allow_write].concat();
        Some(CommandServer {
            program,
            arguments: raw.args.clone(),
            environment: self.environment(room, &raw.env),
            directory: self.directory(room, &raw.cwd),
            spellings: self.spellings(&texts, &[read.as_slice(), &write].concat()),
            read,
            write,
            hosts: self.server_hosts(room, raw),
            install_scripts: raw.install_scripts,
        })
    }

    /// A bare name, or a whole path: what lies in the working directory came with a repository.
    fn program(&mut self, room: &ServerRoom<'_>, text: &str) -> Option<String> {
        let shown = one_line(text, SHOWN_CHARS_MAX);
        let path = match text {
            _ if text.contains('\0') => Err("a path cannot contain a NUL character".to_owned()),
            _ if !text.contains('/') => return Some(text.to_owned()),
            _ if !is_full(text) => Err(format!(
                "`{shown}` starts at the working directory; write a name, an absolute path, or a path that starts with `~/`"
            )),
            _ => self.base().absolute(text),
        };
        let text = path.and_then(|path| {
            let path = path.into_os_string().into_string();
            path.map_err(|_| format!("`{shown}` lies in a path that is not UTF-8"))
        });
        text.map_err(|message| self.wrong(room, "command", &message))
            .ok()
    }

    fn environment(
        &mut self,
        room: &ServerRoom<'_>,
        raw: &BTreeMap<String, RawServerValue>,
    ) -> BTreeMap<String, ServerValue> {
        let mut values = BTreeMap::new();
        for (name, value) in raw {
            let is_name = !name.is_empty() && !name.contains(['=', '\0']);
            let holds_nul = |text: &str| text.contains('\0');
            if !is_name {
                let message = format!("`{}` is not a valid variable name", one_line(name, 100));
                self.wrong(room, "env", &message);
            }
            if matches!(value, RawServerValue::Text(text) if holds_nul(text)) {
                let message = format!("the value of `{name}` contains a NUL character");
                self.wrong(room, "env", &message);
            }
            values.extend(
                self.value(room, "env", value)
                    .map(|value| (name.clone(), value)),
            );
        }
        values
    }

    fn value(
        &mut self,
        room: &ServerRoom<'_>,
        field: &str,
        raw: &RawServerValue,
    ) -> Option<ServerValue> {
        match raw {
            RawServerValue::Text(text) => Some(ServerValue::Text(text.clone())),
            RawServerValue::Secret(RawSecretValue { secret, prefix }) => {
                if !secret::is_name(secret) {
                    let shown = one_line(secret, 100);
                    let message = format!(
                        "`{shown}` is not the name of a secret, which has 1 to 64 of `A-Z a-z 0-9 _ -`"
                    );
                    self.wrong(room, field, &message);
                    return None;
                }
                Some(ServerValue::Secret {
                    name: secret.clone(),
                    prefix: prefix.clone(),
                })
            }
        }
    }

    fn directory(&mut self, room: &ServerRoom<'_>, text: &str) -> Option<PathBuf> {
        if text.is_empty() {
            return None;
        }
        let path = self.base().directory(text);
        path.map_err(|message| self.wrong(room, "cwd", &message))
            .ok()
    }

    fn granted(&mut self, room: &ServerRoom<'_>, field: &str, texts: &[String]) -> Vec<PathBuf> {
        let working = self.surroundings.working_directory.clone();
        match texts {
            [] => Vec::new(),
            texts => self.places(&room.field(field), texts, &[working]),
        }
    }

    fn server_hosts(&mut self, room: &ServerRoom<'_>, raw: &RawServer) -> Vec<ExitHost> {
        let key = room.field("hosts");
        let patterns: Vec<_> = raw
            .hosts
            .iter()
            .filter_map(|text| self.exit_pattern(&key, text))
            .collect();
        let mut inspected: Vec<ExitHost> = Vec::new();
        for text in &raw.secrets {
            let used = match text.parse::<SecretUse>() {
                Ok(used) => used,
                Err(bad) => {
                    self.wrong(room, "secrets", &bad.to_string());
                    continue;
                }
            };
            if !patterns.iter().any(|pattern| pattern.covers(&used.host)) {
                let message = format!("`{}` is not among `hosts`, so it is not reached", used.host);
                self.wrong(room, "secrets", &message);
                continue;
            }
            with_secret(&mut inspected, used);
        }
        inspected.extend(patterns.into_iter().map(|pattern| ExitHost {
            pattern,
            passage: Passage::Tls,
        }));
        inspected
    }

    fn wrong(&mut self, room: &ServerRoom<'_>, field: &str, message: &str) {
        self.merged.problem(&room.field(field), message);
    }
}

/// What is known of a server besides its own keys.
struct ServerRoom<'a> {
    /// `mcp.servers.NAME`.
    key: String,
    egress: &'a EgressSettings,
    /// Of a call of any server.
    timeout: Duration,
}

impl ServerRoom<'_> {
    fn field(&self, name: &str) -> String {
        format!("{}.{name}", self.key)
    }
}

fn trust(raw: Option<RawTrustLevel>) -> TrustLevel {
    match raw {
        Some(RawTrustLevel::Trusted) => TrustLevel::Trusted,
        Some(RawTrustLevel::Untrusted) | None => TrustLevel::Untrusted,
        Some(RawTrustLevel::Sandboxed) => TrustLevel::Sandboxed,
    }
}

/// Adds a secret to the requests of its host. The methods it is bound to bind the secret, not the host.
fn with_secret(hosts: &mut Vec<ExitHost>, used: SecretUse) {
    let known = hosts.iter_mut().find(|host| host.pattern == used.host);
    if let Some(ExitHost {
        passage: Passage::Inspected(inspection),
        ..
    }) = known
    {
        return inspection.secrets.push(used);
    }
    hosts.push(ExitHost {
        pattern: used.host.clone(),
        passage: Passage::Inspected(Inspection {
            methods: None::<Methods>,
            paths: None,
            secrets: vec![used],
            placeholders: Vec::new(),
        }),
    });
}
