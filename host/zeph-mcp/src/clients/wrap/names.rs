//! The names that wrapped servers and their secrets get.

use std::collections::{BTreeMap, BTreeSet};

use zeph_core::id::SERVER_NAME_CHARS_MAX;
use zeph_core::secret::{NAME_BYTES_MAX, value_problem};

use super::remote::{Remote, query};
use super::{Launch, MovedSecret, WrappedServer, Wrapper, is_reference};

/// How what stands in the place of a secret begins.
const REDACTED: &str = "[redacted: ";

/// The names that are given out.
pub(super) struct Names {
    servers: BTreeSet<String>,
    stored: BTreeMap<String, String>,
}

impl Names {
    pub(super) fn new(wrapper: &Wrapper<'_>) -> Self {
        Self {
            servers: BTreeSet::new(),
            stored: wrapper.stored.clone(),
        }
    }

    pub(super) fn server(
        &mut self,
        name: &str,
        launch: &Launch,
        wrapper: &Wrapper<'_>,
    ) -> WrappedServer {
        let (name, instead_of) = self.server_name(name, &launch.line(), wrapper);
        let mut server = WrappedServer {
            name,
            instead_of,
            launch: without_secrets(launch, wrapper),
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
        let exposed = secret_args(&launch.args, wrapper).into_iter();
        let exposed = exposed.map(|idx| format!("argument {}", idx + 1));
        server.exposed.extend(exposed);
        server
    }

    pub(super) fn remote(
        &mut self,
        name: &str,
        remote: &Remote,
        wrapper: &Wrapper<'_>,
    ) -> WrappedServer {
        let (name, instead_of) = self.server_name(name, &[&remote.url], wrapper);
        let mut server = WrappedServer {
            name,
            instead_of,
            launch: vec![remote.url.clone()],
            ..WrappedServer::default()
        };
        for (header, value) in &remote.headers {
            let is_login = header.eq_ignore_ascii_case("authorization");
            let is_secret = is_login || (wrapper.is_secret)(header, value);
            match (is_secret, value_problem(value)) {
                (true, None) => {
                    let secret = self.secret(&server.name, header, value);
                    server.secrets.push(secret);
                }
                (true, Some(_)) => server.exposed.push(format!("the header `{header}`")),
                (false, _) => {}
            }
        }
        if query(&remote.url).any(|(name, value)| (wrapper.is_secret)(name, value)) {
            server.exposed.push("the address".to_owned());
            server.launch = vec![redacted("address")];
        }
        server
    }

    /// A name of its own, of letters that names of servers have. One under which something else than `launch` is pinned is another's:
    /// of another project, say. With the name it would have had.
    fn server_name(
        &mut self,
        name: &str,
        launch: &[&str],
        wrapper: &Wrapper<'_>,
    ) -> (String, Option<String>) {
        let plain = plain(name.trim(), SERVER_NAME_CHARS_MAX);
        let base = plain.trim_matches(['-', '_']);
        let base = if base.is_empty() { "server" } else { base };
        let name = free(base, SERVER_NAME_CHARS_MAX, |name| {
            let pinned = (wrapper.pinned)(name);
            !self.servers.contains(name) && pinned.is_none_or(|pinned| may_be(&pinned, launch))
        });
        self.servers.insert(name.clone());
        let instead_of = (name != base).then(|| base.to_owned());
        (name, instead_of)
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

/// Whether `launch` may be what is pinned. A secret is not pinned, and what a client puts in the place of a variable is not known.
fn may_be(pinned: &[String], launch: &[&str]) -> bool {
    let may_be = |(there, word): (&String, &&str)| {
        there == word || there.contains(REDACTED) || is_reference(word)
    };
    pinned.len() == launch.len() && pinned.iter().zip(launch).all(may_be)
}

/// A word in the place of a secret.
fn redacted(what: &str) -> String {
    format!("{REDACTED}{what}]")
}

/// The command line without the arguments that look like secrets.
fn without_secrets(launch: &Launch, wrapper: &Wrapper<'_>) -> Vec<String> {
    let mut args = launch.args.clone();
    for idx in secret_args(&launch.args, wrapper) {
        args[idx] = redacted("argument");
    }
    std::iter::once(launch.command.clone())
        .chain(args)
        .collect()
}

/// The places of the arguments that look like secrets. The value of an option is named by the option.
fn secret_args(args: &[String], wrapper: &Wrapper<'_>) -> Vec<usize> {
    let mut name = "argument".to_owned();
    let mut places = Vec::new();
    for (idx, arg) in args.iter().enumerate() {
        let option = arg.trim_start_matches('-');
        if !is_reference(arg) && (wrapper.is_secret)(&name, arg) {
            places.push(idx);
        }
        name = match option.len() < arg.len() && !option.contains('=') {
            true => option.replace('-', "_"),
            false => "argument".to_owned(),
        };
    }
    places
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
