//! Which commands need the network beyond the machine.
//!
//! Only a hint in the refusal: the jail has no network in any case. So what has no address in its arguments
//! may run, and so may what names an address that is known only when it runs: `curl "$URL"` may mean a server of its own.

use crate::command::SimpleCommand;

/// Whether `command` is known for reaching the network and names something else than this machine, or nothing.
pub(super) fn leaves(command: &SimpleCommand) -> bool {
    let arguments: Vec<&str> = command.arguments.iter().map(String::as_str).collect();
    if let [only] = arguments[..]
        && matches!(only, "--version" | "--help" | "-h" | "-V")
    {
        return false;
    }
    match command.base_name().to_ascii_lowercase().as_str() {
        "curl" | "wget" => !all_local(&urls(&arguments), Empty::IsRemote),
        "ssh" => !all_local(&hosts(&arguments), Empty::IsRemote),
        "nc" | "ncat" | "netcat" => {
            !listens(&arguments) && !all_local(&hosts(&arguments), Empty::IsRemote)
        }
        // Copies between folders of this machine name no host.
        "scp" | "rsync" => !all_local(&copies(&arguments), Empty::IsLocal),
        "socat" => !all_local(&sockets(&arguments), Empty::IsLocal),
        "openssl" if arguments.first() == Some(&"s_client") => {
            !all_local(&hosts(&arguments[1..]), Empty::IsRemote)
        }
        _ => false,
    }
}

/// How a command without an address is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    IsLocal,
    IsRemote,
}

fn all_local(hosts: &[&str], empty: Empty) -> bool {
    if hosts.is_empty() {
        return empty == Empty::IsLocal;
    }
    hosts.iter().all(|host| may_be_local(host))
}

/// Whether `host` is this machine, or is known only when the command runs.
fn may_be_local(host: &str) -> bool {
    host.contains(['$', '`']) || is_loopback(host)
}

/// Whether `host` is this machine by its very name.
pub(in crate::policy) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The hosts of everything that looks like an address: `scheme://…`, or `name.tld/…`, `name:port` that is no option's value.
fn urls<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut after_option = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        match argument.split_once("://") {
            Some((_, rest)) if !argument.contains(char::is_whitespace) => {
                found.push(host_of(rest));
            }
            _ if !is_option && (!after_option || may_be_local(host_of(argument))) => {
                found.push(host_of(argument));
            }
            _ => {}
        }
        after_option = is_option;
    }
    found
}

/// The first word, or each word with a `:` or `@`, that is no option's value.
fn hosts<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let plain = arguments.iter().filter(|word| !word.starts_with('-'));
    let named: Vec<&str> = plain
        .clone()
        .filter(|word| may_be_local(host_of(word)) || word.contains(['.', '@']))
        .map(|word| host_of(word))
        .collect();
    if named.is_empty() {
        return plain.take(1).map(|word| host_of(word)).collect();
    }
    named
}

fn listens(arguments: &[&str]) -> bool {
    let is_cluster = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    arguments
        .iter()
        .filter(is_cluster)
        .any(|word| word.contains('l'))
        || arguments.contains(&"--listen")
}

/// The hosts of `host:path` and `rsync://host/path`.
fn copies<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let plain = arguments.iter().filter(|word| !word.starts_with('-'));
    plain
        .filter_map(|word| match word.split_once("://") {
            Some((_, rest)) => Some(host_of(rest)),
            None => {
                let (host, _) = word.split_once(':')?;
                (!host.contains('/')).then(|| host_of(host))
            }
        })
        .collect()
}

/// The hosts of socat's `TCP:host:port` and its like.
fn sockets<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let remote = |word: &&&str| {
        let kind = word.split(':').next().unwrap_or_default().to_uppercase();
        let is_socket = ["TCP", "UDP", "SSL", "OPENSSL", "SCTP", "SOCKS", "PROXY"]
            .iter()
            .any(|name| kind.starts_with(name));
        is_socket && !kind.contains("LISTEN")
    };
    let words = arguments.iter().filter(remote);
    words
        .map(|word| word.split_once(':').map_or("", |(_, rest)| host_of(rest)))
        .collect()
}

/// `user@host:port/path?query` → `host`.
pub(in crate::policy) fn host_of(address: &str) -> &str {
    let address = address.split(['/', '?', '#']).next().unwrap_or_default();
    let address = address.rsplit('@').next().unwrap_or_default();
    if address.starts_with('[') {
        let end = address.find(']').map_or(address.len(), |at| at + 1);
        return &address[..end];
    }
    address.split(':').next().unwrap_or_default()
}
