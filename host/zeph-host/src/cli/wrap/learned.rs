//! What a server was refused, as the smallest grant that would have allowed it: options of `wrap`, and a difference of its table. Pure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toml::Value;
use zeph_config::CommandServer;
use zeph_core::id::ServerName;
use zeph_plugins::refusal::quoted;

use crate::servers::launch::Refusal;

/// What one server lacked, each once, and nothing that another grant holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
    hosts: BTreeSet<String>,
}

impl Learned {
    /// The smallest grant for all of `refusals`.
    pub(super) fn of(refusals: impl IntoIterator<Item = Refusal>) -> Self {
        let mut learned = Self::default();
        for refusal in refusals {
            match refusal {
                Refusal::Path { path, write: false } => drop(learned.read.insert(path)),
                Refusal::Path { path, write: true } => drop(learned.write.insert(path)),
                Refusal::Host(host) => drop(learned.hosts.insert(host)),
            }
        }
        learned.write = outermost(&learned.write);
        let write = &learned.write;
        let is_written = |path: &Path| write.iter().any(|written| path.starts_with(written));
        learned.read.retain(|path| !is_written(path));
        learned.read = outermost(&learned.read);
        learned
    }

    /// Whether nothing was lacking.
    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty() && self.hosts.is_empty()
    }

    /// The options that allow it, as they are typed.
    pub(super) fn options(&self) -> String {
        let paths = |flag: &str, paths: &BTreeSet<PathBuf>| -> Vec<String> {
            let word = |path: &PathBuf| format!("{flag} {}", quoted(&path.to_string_lossy()));
            paths.iter().map(word).collect()
        };
        let host = |host: &String| format!("--host {}", quoted(host));
        let mut options = paths("--allow-read", &self.read);
        options.extend(paths("--allow-write", &self.write));
        options.extend(self.hosts.iter().map(host));
        options.join(" ")
    }

    /// The difference of the server's table: `server` is what it is granted now, `is_configured` whether that stands in the configuration.
    pub(super) fn difference(
        &self,
        name: &ServerName,
        server: &CommandServer,
        is_configured: bool,
    ) -> String {
        let texts = |paths: &[PathBuf]| -> Vec<String> {
            let text = |path: &PathBuf| path.to_string_lossy().into_owned();
            paths.iter().map(text).collect()
        };
        let new = |paths: &BTreeSet<PathBuf>| texts(&paths.iter().cloned().collect::<Vec<_>>());
        let hosts = server.hosts.iter().map(|host| host.pattern.to_string());
        let mark = if is_configured { ' ' } else { '+' };
        let mut lines = format!("{mark}[mcp.servers.{name}]\n");
        if !is_configured {
            lines.push_str(&format!("+command = {}\n", value(&server.program)));
            if !server.arguments.is_empty() {
                lines.push_str(&format!("+args = {}\n", list(&server.arguments)));
            }
        }
        for (key, old, new) in [
            ("allow_read", texts(&server.read), new(&self.read)),
            ("allow_write", texts(&server.write), new(&self.write)),
            (
                "hosts",
                hosts.collect(),
                self.hosts.iter().cloned().collect(),
            ),
        ] {
            lines.push_str(&changed(key, &old, &new, is_configured));
        }
        lines
    }
}

/// The lines of one key that gets `new` besides `old`.
fn changed(key: &str, old: &[String], new: &[String], is_configured: bool) -> String {
    let all = [old, new].concat();
    let removed = match is_configured && !old.is_empty() && !new.is_empty() {
        true => format!("-{key} = {}\n", list(old)),
        false => String::new(),
    };
    match (is_configured, new.is_empty(), all.is_empty()) {
        // It stands there, and stays.
        (true, true, _) | (_, _, true) => String::new(),
        _ => format!("{removed}+{key} = {}\n", list(&all)),
    }
}

/// The paths that lie below no other.
fn outermost(paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let lies_below = |path: &PathBuf| {
        let mut others = paths.iter().filter(|other| *other != path);
        others.any(|other| path.starts_with(other))
    };
    paths
        .iter()
        .filter(|path| !lies_below(path))
        .cloned()
        .collect()
}

fn list(texts: &[String]) -> String {
    let items: Vec<String> = texts.iter().map(|text| value(text)).collect();
    format!("[{}]", items.join(", "))
}

fn value(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned() -> Learned {
        let path = |path: &str, write| Refusal::Path {
            path: path.into(),
            write,
        };
        let host = || Refusal::Host("api.example.com".into());
        Learned::of([
            path("/data/a", false),
            path("/data", false),
            path("/out/x", false),
            path("/out", true),
            host(),
            host(),
            path("/a b", false),
        ])
    }

    #[test]
    fn the_smallest_grant_holds_each_thing_once() {
        assert!(Learned::of([]).is_empty());
        assert_eq!(
            learned().options(),
            "--allow-read '/a b' --allow-read /data --allow-write /out --host api.example.com"
        );
    }

    #[test]
    fn a_table_that_is_there_is_added_to() {
        let name = ServerName::new("files").unwrap();
        let mut server = CommandServer::new("files", vec!["-v".to_owned()]);
        server.read = vec!["/work".into()];
        let there = learned().difference(&name, &server, true);
        assert_eq!(
            there,
            " [mcp.servers.files]\n-allow_read = [\"/work\"]\n+allow_read = [\"/work\", \"/a b\", \"/data\"]\n\
             +allow_write = [\"/out\"]\n+hosts = [\"api.example.com\"]\n"
        );
        let new =
            Learned::of([Refusal::Host("h.example.com".into())]).difference(&name, &server, false);
        assert_eq!(
            new,
            "+[mcp.servers.files]\n+command = \"files\"\n+args = [\"-v\"]\n+allow_read = [\"/work\"]\n+hosts = [\"h.example.com\"]\n"
        );
    }
}
