//! The text of a lock file. It depends on the content alone, and that of a plugin on that plugin alone.
//!
//! Written here and not by a TOML library: descriptions are read by people who decide, so every character they would not see (the
//! bidirectional ones, blanks at the end of a line) is escaped, which no such library does.

use std::fmt::Write as _;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use zeph_core::capability::Capability;
use zeph_core::manifest::Want;
use zeph_core::network::HostAccess;
use zeph_core::secret::SecretUse;
use zeph_core::tool::Tool;

use super::{Lock, LockedPlugin, NextVersion, PluginSource, Provenance, VERSION};
use crate::definitions::{canonical_json, kind_label, promises};
use crate::server::{LockedServer, NamedDefinition, own_name};
use crate::visible::{is_hidden, push_json_escape};

const HEAD: &str = "\
# What was accepted of each plugin. Written by zeph-host; made to be read and to be kept under version control.
#
# A plugin whose file or definitions differ from what stands here is off until `zeph-host plugin approve NAME`, which
# shows the difference. Change it with `zeph-host plugin …`: comments and other layout are lost with the next change.
";

const NAMES: &str = "
# Tools that can be called without `plugin__` before their name, and the plugin each of these names belongs to. It stays so when the
# plugin is off or removed; delete a line to let the next plugin have the name.
[names]
";

/// The whole file.
pub(super) fn text(lock: &Lock) -> String {
    let version = version(lock);
    let mut text = format!("{HEAD}version = {version}\n");
    if !lock.names.is_empty() {
        text.push_str(NAMES);
    }
    for (name, plugin) in &lock.names {
        push(&mut text, name.as_str(), &string(&plugin.0));
    }
    lock.plugins
        .iter()
        .for_each(|plugin| push_plugin(&mut text, plugin));
    if !lock.servers.is_empty() {
        text.push_str(SERVERS);
    }
    let servers = lock.servers.iter();
    servers.for_each(|server| push_server(&mut text, server));
    text
}

/// The first version that can say what is in the lock.
fn version(lock: &Lock) -> i64 {
    let is_served = |want: &Want| {
        matches!(
            want.capability,
            Capability::Embedder { .. } | Capability::Tool { .. }
        )
    };
    let mut plugins = lock.plugins.iter();
    if plugins.any(|one| one.definitions.wants().iter().any(is_served)) {
        return VERSION;
    }
    let is_known = |one: &LockedPlugin| one.provenance.is_some() || one.next.is_some();
    match (lock.plugins.iter().any(is_known), lock.servers.is_empty()) {
        (true, _) => 3,
        (false, false) => 2,
        (false, true) => 1,
    }
}

fn push_server(text: &mut String, server: &LockedServer) {
    let LockedServer {
        name,
        launch,
        install,
        accepted_at_ms,
        digest,
        definitions,
    } = server;
    text.push_str("\n[[server]]\n");
    push(text, "name", &string(name.as_str()));
    let words: Vec<String> = launch.iter().map(|word| line(word)).collect();
    push(text, "launch", &format!("[{}]", words.join(", ")));
    if !install.is_empty() {
        let pairs = install.iter();
        let pairs: Vec<String> = pairs
            .map(|(key, value)| format!("{} = {}", line(key), line(value)))
            .collect();
        push(text, "install", &format!("{{ {} }}", pairs.join(", ")));
    }
    push(text, "definitions", &string(&digest.to_string()));
    push(text, "accepted", &moment(*accepted_at_ms));
    if let Some(instructions) = definitions.instructions() {
        push(text, "instructions", &string(instructions));
    }
    if !definitions.others().is_empty() {
        let others = Value::Object(definitions.others().clone());
        push(text, "others", &json(&others));
    }
    for tool in definitions.tools() {
        push_tool(text, ("server", own_name(tool)), tool);
    }
    for (kind, list) in [
        ("prompt", definitions.prompts()),
        ("template", definitions.templates()),
    ] {
        for NamedDefinition { name, definition } in list {
            writeln!(text, "\n[[server.{kind}]]").expect(NEVER);
            push(text, "name", &string(name));
            push(text, "definition", &json(definition));
        }
    }
}

const SERVERS: &str = "
# What was accepted of each MCP server. One whose command line, installed package or definitions differ from what stands here is off until
# `zeph-host mcp approve NAME`, which shows the difference.
";

fn push_plugin(text: &mut String, plugin: &LockedPlugin) {
    let LockedPlugin {
        name,
        file,
        pin,
        accepted_at_ms,
        disabled,
        operator_wants,
        provenance,
        next,
        definitions,
    } = plugin;
    text.push_str("\n[[plugin]]\n");
    push(text, "name", &string(&name.0));
    push(text, "file", &string(file));
    push(text, "wasm", &string(&pin.wasm.to_string()));
    push(text, "tools", &string(&pin.tools.to_string()));
    push(text, "accepted", &moment(*accepted_at_ms));
    if *disabled {
        push(text, "disabled", "true");
    }
    if *operator_wants {
        push(text, "operator_wants", "true");
    }
    for (key, value) in provenance.iter().flat_map(members) {
        push(text, key, &value);
    }
    if let Some(next) = next {
        push(text, "next", &next_version(next));
    }
    if !definitions.wants().is_empty() {
        text.push_str("wants = [\n");
        for want in definitions.wants() {
            writeln!(text, "    {},", self::want(want)).expect(NEVER);
        }
        text.push_str("]\n");
    }
    definitions
        .tools()
        .iter()
        .for_each(|tool| push_tool(text, ("plugin", tool.name.as_str()), tool));
}

/// `source`, `version` and `signer`, each with its value.
fn members(provenance: &Provenance) -> Vec<(&'static str, String)> {
    let Provenance {
        source,
        version,
        signer,
    } = provenance;
    let source = match source {
        PluginSource::Registry {
            reference,
            manifest,
        } => format!(
            "{{ reference = {}, manifest = \"{manifest}\" }}",
            line(reference)
        ),
        PluginSource::Url { url } => format!("{{ url = {} }}", line(url)),
        PluginSource::File { path } => format!("{{ file = {} }}", line(&path.to_string_lossy())),
    };
    let mut members = vec![("source", source)];
    if let Some(version) = version {
        members.push(("version", line(&version.to_string())));
    }
    if let Some(signer) = signer {
        let (name, key) = (line(&signer.name), line(&signer.key));
        members.push(("signer", format!("{{ name = {name}, key = {key} }}")));
    }
    members
}

fn next_version(next: &NextVersion) -> String {
    let members = members(&next.provenance).into_iter();
    let members: Vec<String> = members
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ wasm = \"{}\", {} }}", next.wasm, members.join(", "))
}

/// A tool of the last plugin or server, under its own name there.
fn push_tool(text: &mut String, (owner, own): (&str, &str), tool: &Tool) {
    let Tool {
        name: _,
        title,
        description,
        parameters,
        output,
        kind,
        annotations,
        backend: _,
    } = tool;
    writeln!(text, "\n[[{owner}.tool]]").expect(NEVER);
    push(text, "name", &string(own));
    if let Some(title) = title {
        push(text, "title", &string(title));
    }
    push(text, "description", &string(description));
    push(text, "kind", &string(kind_label(*kind)));
    let held = promises(*annotations);
    let held: Vec<_> = held
        .iter()
        .filter(|(_, held)| *held)
        .map(|(name, _)| string(name))
        .collect();
    push(text, "annotations", &format!("[{}]", held.join(", ")));
    push(text, "parameters", &json(parameters.schema()));
    if let Some(output) = output {
        push(text, "output", &json(output));
    }
}

const NEVER: &str = "bug: writing to a string cannot fail";

fn push(text: &mut String, key: &str, value: &str) {
    writeln!(text, "{key} = {value}").expect(NEVER);
}

fn want(want: &Want) -> String {
    let Want { capability, reason } = want;
    let named = |kind: &str, name: &str| format!("kind = \"{kind}\", name = {}", string(name));
    let capability = match capability {
        Capability::Directory { path, rights } => {
            format!(
                "kind = \"directory\", path = {}, rights = \"{rights}\"",
                string(path)
            )
        }
        Capability::Host(access) => host(access),
        Capability::Program { name } => named("program", name),
        Capability::Variable { name } => named("variable", name),
        Capability::Limit { name, value } => {
            format!("kind = \"limit\", name = \"{name}\", value = {value}")
        }
        Capability::Secret(secret) => self::secret(secret),
        Capability::Embedder { name } => named("embedder", name),
        Capability::Tool { name } => named("tool", name),
    };
    format!("{{ {capability}, reason = {} }}", line(reason))
}

fn host(access: &HostAccess) -> String {
    let mut text = format!(
        "kind = \"host\", name = {}",
        string(&access.name.to_string())
    );
    if let Some(methods) = &access.methods {
        let names: Vec<_> = methods.names().map(string).collect();
        write!(text, ", methods = [{}]", names.join(", ")).expect(NEVER);
    }
    if access.plain_http {
        text.push_str(", plain_http = true");
    }
    text
}

fn secret(used: &SecretUse) -> String {
    let mut text = format!(
        "kind = \"secret\", name = {}, host = {}, header = {}",
        line(&used.name),
        line(&used.host.to_string()),
        line(&used.header)
    );
    if let Some(methods) = &used.methods {
        let names: Vec<_> = methods.names().map(line).collect();
        write!(text, ", methods = [{}]", names.join(", ")).expect(NEVER);
    }
    text
}

/// The moment in UTC, to the second. One that no calendar has is the beginning of time.
fn moment(at_ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp(at_ms.div_euclid(1000))
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
        .format(&Rfc3339)
        .unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned())
}

/// JSON in a TOML string without escapes of TOML: what TOML could not take is escaped as JSON.
fn json(value: &Value) -> String {
    let mut text = String::from("'");
    for character in canonical_json(value).chars() {
        if character == '\'' || is_hidden(character) {
            push_json_escape(&mut text, character);
        } else {
            text.push(character);
        }
    }
    text.push('\'');
    text
}

/// A TOML string: over several lines when the text has several.
fn string(text: &str) -> String {
    if text.contains('\n') {
        block(text)
    } else {
        line(text)
    }
}

/// A TOML string on one line.
fn line(text: &str) -> String {
    let mut quoted = String::from("\"");
    text.chars()
        .for_each(|character| push_escaped(&mut quoted, character));
    quoted.push('"');
    quoted
}

/// A TOML string over several lines. A space at the end of a line is escaped: editors would remove it.
fn block(text: &str) -> String {
    let mut quoted = String::from("\"\"\"\n");
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => quoted.push('\n'),
            ' ' if matches!(characters.peek(), None | Some('\n')) => quoted.push_str("\\u0020"),
            // Only a row of them, or one before the end, could be taken for the end.
            '"' if !matches!(characters.peek(), None | Some('"')) => quoted.push('"'),
            other => push_escaped(&mut quoted, other),
        }
    }
    quoted.push_str("\"\"\"");
    quoted
}

/// Escapes what TOML does not take, and what a person would not see.
fn push_escaped(quoted: &mut String, character: char) {
    match character {
        '"' => quoted.push_str("\\\""),
        '\\' => quoted.push_str("\\\\"),
        '\n' => quoted.push_str("\\n"),
        '\t' => quoted.push_str("\\t"),
        '\r' => quoted.push_str("\\r"),
        hidden if is_hidden(hidden) => match u32::from(hidden) {
            code @ ..=0xffff => write!(quoted, "\\u{code:04x}").expect(NEVER),
            code => write!(quoted, "\\U{code:08x}").expect(NEVER),
        },
        plain => quoted.push(plain),
    }
}
