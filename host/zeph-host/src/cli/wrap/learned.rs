//! What a server was refused, as the smallest grant that would have allowed it: options of `wrap`, and a difference of its table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::Value;
use zeph_config::CommandServer;
use zeph_core::id::ServerName;
use zeph_plugins::refusal::quoted;
use zeph_shell::jail::DeniedPath;

use crate::servers::launch::Refusal;

/// So many paths directly in one directory are proposed one by one; for more it is the directory.
const SINGLE_PATHS_MAX: usize = 8;

/// What one server lacked, each once, and nothing that another grant holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
    hosts: BTreeSet<String>,
    /// Directories that hold more than was asked for, and what was.
    wider: BTreeMap<PathBuf, String>,
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
        learned.tidy();
        learned
    }

    /// The smallest grant for `denied` besides: the very file or directory, unless a name was to be added or removed, for which the
    /// directory is needed, or more than [`SINGLE_PATHS_MAX`] of one directory were asked for, which is proposed then unless it `is_private`.
    pub(super) fn add_watched(
        &mut self,
        denied: Vec<DeniedPath>,
        is_private: impl Fn(&Path) -> bool,
    ) {
        let proposed: Vec<DeniedPath> = denied
            .into_iter()
            .filter(|one| one.obstacle.is_none())
            .collect();
        let paths: BTreeSet<PathBuf> = proposed.iter().map(|one| one.path.clone()).collect();
        // A directory above something that is granted is there without a grant of its own.
        let is_there = |one: &DeniedPath| {
            let mut below = paths.iter().filter(|path| **path != one.path);
            one.is_looked_at && below.any(|path| path.starts_with(&one.path))
        };
        for denied in proposed {
            if is_there(&denied) {
                continue;
            }
            if denied.write && denied.wanted != denied.path && denied.path.is_dir() {
                let wanted = denied.wanted.to_string_lossy();
                let what = format!("`{}` was to be made, changed or removed", wanted);
                self.wider.entry(denied.path.clone()).or_insert(what);
            }
            let set = match denied.write {
                true => &mut self.write,
                false => &mut self.read,
            };
            set.insert(denied.path);
        }
        self.tidy();
        while let Some((directory, n_paths)) = crowded(&self.read, &is_private) {
            let what = format!("{n_paths} files and directories in it were asked for");
            self.wider.insert(directory.clone(), what);
            self.read.insert(directory);
            self.tidy();
        }
        let (read, write) = (&self.read, &self.write);
        self.wider
            .retain(|path, _| read.contains(path) || write.contains(path));
    }

    fn tidy(&mut self) {
        self.write = outermost(&self.write);
        let write = &self.write;
        let is_written = |path: &Path| write.iter().any(|written| path.starts_with(written));
        self.read.retain(|path| !is_written(path));
        self.read = outermost(&self.read);
    }

    /// A sentence for each grant that allows more than was asked for.
    pub(super) fn wider(&self) -> impl Iterator<Item = String> {
        self.wider.iter().map(|(path, what)| {
            format!(
                "a grant of `{}` is wider than what was seen: {what}",
                path.display()
            )
        })
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

/// A directory with too many single paths directly in it, and how many.
fn crowded(
    paths: &BTreeSet<PathBuf>,
    is_private: impl Fn(&Path) -> bool,
) -> Option<(PathBuf, usize)> {
    let mut counts = BTreeMap::<&Path, usize>::new();
    for parent in paths.iter().filter_map(|path| path.parent()) {
        *counts.entry(parent).or_default() += 1;
    }
    let mut crowded = counts
        .into_iter()
        .filter(|(parent, n_paths)| *n_paths > SINGLE_PATHS_MAX && !is_private(parent));
    let (parent, n_paths) = crowded.next()?;
    Some((parent.to_owned(), n_paths))
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
    fn what_was_watched_is_granted_no_wider_than_is_said() {
        let denied = |path: &str, write, wanted: &str, obstacle| DeniedPath {
            path: path.into(),
            write,
            wanted: wanted.into(),
            is_looked_at: false,
            obstacle,
        };
        let mut all = vec![
            DeniedPath {
                is_looked_at: true,
                ..denied("/data", false, "/data", None)
            },
            denied("/data/one.txt", false, "/data/one.txt", None),
            denied("/usr/share", true, "/usr/share/new", None),
            denied("/home/u/.ssh/id", false, "/home/u/.ssh/id", Some("secret")),
        ];
        all.extend((0..=SINGLE_PATHS_MAX).map(|n| {
            let path = format!("/many/{n}");
            denied(&path, false, &path, None)
        }));
        all.extend((0..=SINGLE_PATHS_MAX).map(|n| {
            let path = format!("/home/u/{n}");
            denied(&path, false, &path, None)
        }));
        let mut learned = Learned::default();
        learned.add_watched(all, |path| path == Path::new("/home/u"));
        let options = learned.options();
        assert!(
            options.contains("--allow-read /data/one.txt")
                && options.contains("--allow-read /home/u/0")
                && options.ends_with("--allow-read /many --allow-write /usr/share"),
            "{options}"
        );
        assert!(!options.contains("/.ssh"), "{options}");
        let wider: Vec<String> = learned.wider().collect();
        assert_eq!(
            wider,
            [
                "a grant of `/many` is wider than what was seen: 9 files and directories in it were asked for",
                "a grant of `/usr/share` is wider than what was seen: `/usr/share/new` was to be made, changed or removed",
            ]
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
