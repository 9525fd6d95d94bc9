//! What leaves the machine with a call, and where it goes.

use serde_json::Value;
use url::Url;

use super::LabelKind;
use super::program::{Reach, carries, remote, subcommand};
use crate::call::ResolvedCall;
use crate::command::SimpleCommand;
use crate::failure::one_line;
use crate::policy::guard::is_loopback;
use crate::policy::{Policy, SessionFacts};
use crate::tool::{Backend, ToolKind};

/// Most bytes of a line that stands for a destination.
const SHOWN_MAX: usize = 300;

/// Where a call can send something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// What a release is for: the tool or program, and the host as far as it is known.
    pub key: String,
    /// For messages.
    pub shown: String,
    /// Whether it matters only where something private was read: the call sends nothing but an address, or nothing is known of it.
    only_private: bool,
}

impl Destination {
    fn new(key: String, only_private: bool) -> Self {
        Self {
            shown: key.clone(),
            key,
            only_private,
        }
    }

    /// Whether content of this kind must not go there unasked.
    pub fn minds(&self, kind: LabelKind) -> bool {
        kind == LabelKind::Private || !self.only_private
    }
}

/// Where `call` can send something; `None` when nothing leaves the machine, or nothing that was not there already.
pub fn destination(
    policy: &Policy,
    facts: &SessionFacts<'_>,
    call: &ResolvedCall,
) -> Option<Destination> {
    let reaches = facts.flow.is_some_and(|flow| flow.reaches_network);
    match &call.tool.backend {
        Backend::Shell => of_line(policy, call),
        _ if !reaches => None,
        // Its user chose it, and there is no other tool that could have read anything.
        Backend::Mcp(tool) if policy.wrapped.as_ref() == Some(&tool.server) => None,
        Backend::Wasm(_)
            if call.tool.kind == ToolKind::Fetch && call.tool.annotations.read_only =>
        {
            of_address(facts, call)
        }
        Backend::Builtin | Backend::Wasm(_) | Backend::Mcp(_) => {
            let only_private = call.tool.annotations.read_only;
            Some(Destination::new(call.tool.qualified_name(), only_private))
        }
    }
}

/// The way that a command line has furthest.
fn of_line(policy: &Policy, call: &ResolvedCall) -> Option<Destination> {
    let line = call.command.as_ref().filter(|_| !policy.denies_network)?;
    // Bash connects for a redirection itself.
    let mut targets = line
        .redirections
        .iter()
        .filter_map(|to| to.target.as_deref());
    if let Some(target) = targets.find(|target| is_connection(target)) {
        return Some(Destination::new(target.to_owned(), false));
    }
    let is_known = line.unknown.is_empty();
    let reaches = line
        .commands
        .iter()
        .map(|command| (carries(command, is_known), command));
    match reaches.max_by_key(|(reach, _)| *reach) {
        Some((reach, command)) if reach != Reach::Stays => {
            Some(Destination::new(key(command), reach != Reach::Sends))
        }
        // What cannot be analysed may reach anything.
        _ if !is_known => Some(Destination::new(one_line(&line.text, SHOWN_MAX), true)),
        _ => None,
    }
}

/// Whether a file of a redirection is a connection to another machine.
fn is_connection(target: &str) -> bool {
    let address = ["/dev/tcp/", "/dev/udp/"]
        .iter()
        .find_map(|beginning| target.strip_prefix(beginning));
    let host = address.and_then(|address| address.split('/').next());
    host.is_some_and(|host| !is_loopback(host))
}

/// The program, what it is to do, and the host or remote it names.
fn key(command: &SimpleCommand) -> String {
    let words: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
    let name = command.base_name();
    let host = words.iter().filter_map(remote).next();
    let subcommand = subcommand(command).filter(|word| host.is_none() || remote(word).is_none());
    let named = match name {
        "git" => named_remote(command),
        _ => None,
    };
    let parts = [Some(name), subcommand, host.or(named)];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

/// `origin` of `git push origin main`.
fn named_remote(command: &SimpleCommand) -> Option<&str> {
    let wanted = subcommand(command)?;
    let words = command.arguments.iter().map(String::as_str);
    let mut after = words.skip_while(|word| *word != wanted).skip(1);
    after.find(|word| !word.starts_with('-'))
}

/// An address that the user or a result named carries nothing new; any other can.
fn of_address(facts: &SessionFacts<'_>, call: &ResolvedCall) -> Option<Destination> {
    let address = call.arguments.values.get("url").and_then(Value::as_str)?;
    if facts.heard.is_some_and(|heard| heard.knows(address)) {
        return None;
    }
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("?");
    (!is_loopback(host)).then(|| Destination::new(format!("{} {host}", call.tool.name), true))
}
