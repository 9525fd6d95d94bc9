//! The configuration of git of the user and of the machine, without what holds a secret or runs a program of the user's: who commits, and
//! how. Git itself decides in the jail which of the files that it includes count for a repository, so their conditions stay.
//!
//! A filter that commands do not get makes git refuse: without it, what must not be committed would be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zeph_core::git_config::{self, GitUser, settings};

use super::git::small;
use super::trusted;

/// Sections that are kept, in lower case.
const SECTIONS: [&str; 38] = [
    "advice",
    "alias",
    "apply",
    "author",
    "blame",
    "branch",
    "checkout",
    "clean",
    "color",
    "column",
    "commit",
    "committer",
    "diff",
    "feature",
    "fetch",
    "format",
    "gc",
    "grep",
    "help",
    "i18n",
    "init",
    "interactive",
    "log",
    "merge",
    "pretty",
    "pull",
    "push",
    "rebase",
    "rerere",
    "revert",
    "safe",
    "stash",
    "status",
    "submodule",
    "tag",
    "user",
    "versionsort",
    "worktree",
];

/// Sections in which every key is a name of the user's.
const OF_NAMES: [&str; 2] = ["alias", "pretty"];

/// Keys of `core` that are kept.
const CORE: [&str; 20] = [
    "abbrev",
    "autocrlf",
    "bigfilethreshold",
    "checkstat",
    "commentchar",
    "commentstring",
    "compression",
    "eol",
    "filemode",
    "ignorecase",
    "longpaths",
    "precomposeunicode",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "safecrlf",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "whitespace",
];

/// Keys of `diff` that are kept for a kind of file.
const DIFF: [&str; 5] = ["algorithm", "binary", "funcname", "wordregex", "xfuncname"];

/// Keys that are dropped besides those whose values git runs: they name keys, programs and files that are not in the jail.
const DROPPED: [&str; 6] = [
    "forcesignannotated",
    "gpgsign",
    "signaturefile",
    "signingkey",
    "template",
    "tool",
];

/// Files whose content git takes for every repository, and their usual names.
const TAKEN: [(&str, &str); 2] = [
    ("core.excludesfile", "ignore"),
    ("core.attributesfile", "attributes"),
];

/// Filters that run in the jail; they lie beside git.
const FILTERS: [&str; 4] = ["cat", "git-crypt", "git-lfs", "nbstripout"];

/// What stands in the place of other filters.
const NO_FILTER: &str =
    "echo 'this filter of your own configuration of git does not run in the jail' >&2; exit 1";

/// How far files include others, and how many do at most; git gives up there, and real ones include two or three.
const DEPTH_MAX: usize = 10;
const FILES_MAX: usize = 64;

/// What commands get of it.
#[derive(Debug, Default)]
pub(super) struct CleanConfig {
    /// Files in the home of commands, with their content.
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    /// What a commit is without.
    pub(super) missing: Missing,
}

/// What the user's configuration adds to a commit, and the jail does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// The folder of hooks, as it is spelled.
    pub(super) hooks: Option<String>,
    pub(super) is_signature: bool,
}

/// Reads the configuration of the `user` and of the machine, for commands whose home is `inside` and that write to `writable`.
pub(super) fn cleaned(user: &GitUser, inside: &Path, writable: &[PathBuf]) -> CleanConfig {
    let mut cleaner = Cleaner {
        user,
        inside,
        writable,
        config: CleanConfig::default(),
        filters: BTreeSet::new(),
        n_included: 0,
    };
    let mut text = String::new();
    for file in user.files() {
        text.push_str(&cleaner.file(&file, 0).unwrap_or_default());
    }
    let mut whole = String::new();
    // What a filter lacks passes everything on, as it does outside.
    for filter in std::mem::take(&mut cleaner.filters) {
        for (key, value) in [("clean", "cat"), ("smudge", "cat"), ("required", "true")] {
            put(&mut whole, &format!("filter.{filter}.{key}"), Some(value));
        }
    }
    whole.push_str(&text);
    for (_, name) in TAKEN {
        let usual = user
            .config_folder()
            .map(|folder| folder.join("git").join(name));
        let content = usual.and_then(|usual| trusted::read(&usual, writable));
        let path = inside.join(".config/git").join(name);
        cleaner
            .config
            .files
            .extend(content.map(|content| (path, content.into_bytes())));
    }
    if !whole.is_empty() {
        let path = inside.join(".gitconfig");
        cleaner.config.files.push((path, whole.into_bytes()));
    }
    cleaner.config
}

struct Cleaner<'a> {
    user: &'a GitUser,
    inside: &'a Path,
    writable: &'a [PathBuf],
    config: CleanConfig,
    filters: BTreeSet<String>,
    n_included: usize,
}

impl Cleaner<'_> {
    /// What is kept of a file.
    fn file(&mut self, file: &Path, depth: usize) -> Option<String> {
        let text = trusted::read(file, self.writable)?;
        let mut kept = String::new();
        for setting in settings(&text) {
            let name = setting.name.as_str();
            let value = setting.value.as_deref();
            let Some((section, subsection, key)) = parts(name) else {
                continue;
            };
            self.note_missing(name, value, depth);
            match (section, subsection, key) {
                ("include" | "includeif", _, "path") => {
                    let included = value.and_then(|value| self.include(file, value, depth));
                    let (Some(path), Some(name)) = (included, conditioned(self.user, file, name))
                    else {
                        continue;
                    };
                    put(&mut kept, &name, Some(&path));
                }
                ("filter", Some(filter), "clean" | "smudge" | "process") => {
                    self.filters.insert(filter.to_owned());
                    let command = value.unwrap_or_default();
                    if is_filter(command) {
                        put(&mut kept, name, value);
                    } else {
                        for key in ["clean", "smudge"]
                            .into_iter()
                            .filter(|side| key == *side || key == "process")
                        {
                            put(
                                &mut kept,
                                &format!("filter.{filter}.{key}"),
                                Some(NO_FILTER),
                            );
                        }
                    }
                }
                _ if TAKEN.iter().any(|(taken, _)| name == *taken) => {
                    let path = value.and_then(|value| self.user.path(value, small));
                    let content = path.and_then(|path| trusted::read(&path, self.writable));
                    let path = content.and_then(|content| self.put_file(content));
                    if let Some(path) = path {
                        put(&mut kept, name, Some(&path));
                    }
                }
                ("safe", None, "directory") => {
                    let path = value.filter(|value| value.starts_with('~'));
                    let path = path.and_then(|value| self.user.path(value, small));
                    let path = path.map(|path| path.display().to_string());
                    put(&mut kept, name, path.as_deref().or(value));
                }
                _ if is_kept(section, subsection, key) => put(&mut kept, name, value),
                _ => {}
            }
        }
        Some(kept)
    }

    /// Where commands find a file that `file` includes.
    fn include(&mut self, file: &Path, value: &str, depth: usize) -> Option<String> {
        let path = file.parent()?.join(self.user.path(value, small)?);
        if depth >= DEPTH_MAX || self.n_included >= FILES_MAX {
            return None;
        }
        self.n_included += 1;
        let kept = self.file(&path, depth + 1)?;
        self.put_file(kept)
    }

    fn put_file(&mut self, content: String) -> Option<String> {
        let number = self.config.files.len();
        let path = self.inside.join(format!(".config/git/included-{number}"));
        let spelled = path.to_str()?.to_owned();
        self.config.files.push((path, content.into_bytes()));
        Some(spelled)
    }

    /// A value that is included may count for some repositories only.
    fn note_missing(&mut self, name: &str, value: Option<&str>, depth: usize) {
        let missing = &mut self.config.missing;
        match name {
            "core.hookspath" => {
                let hooks = value.filter(|value| !value.is_empty()).map(str::to_owned);
                missing.hooks = hooks.or(missing.hooks.take().filter(|_| depth > 0));
            }
            "commit.gpgsign" => {
                let value = value.map(str::to_ascii_lowercase);
                let no = [Some("false"), Some("no"), Some("off"), Some("0"), Some("")];
                let signs = !no.contains(&value.as_deref());
                missing.is_signature = signs || (missing.is_signature && depth > 0);
            }
            _ => {}
        }
    }
}

fn is_kept(section: &str, subsection: Option<&str>, key: &str) -> bool {
    let is_fine = !git_config::runs(key) && !DROPPED.contains(&key);
    match (section, subsection) {
        ("core", None) => CORE.contains(&key),
        ("color", Some(_)) => true,
        ("diff", Some(_)) => DIFF.contains(&key),
        (_, None) => SECTIONS.contains(&section) && (is_fine || OF_NAMES.contains(&section)),
        _ => false,
    }
}

/// Whether a command is a filter that commands get.
fn is_filter(command: &str) -> bool {
    let Some(program) = command.split_whitespace().next() else {
        return true;
    };
    let name = Path::new(program).file_name();
    name.is_some_and(|name| FILTERS.iter().any(|filter| name == *filter))
}

/// The name of a setting that includes a file, with a condition that means the same in another file and another home.
fn conditioned(user: &GitUser, file: &Path, name: &str) -> Option<String> {
    let Some(condition) = name.strip_prefix("includeif.") else {
        return Some(name.to_owned());
    };
    let condition = condition.strip_suffix(".path")?;
    for kind in ["gitdir:", "gitdir/i:"] {
        let Some(pattern) = condition.strip_prefix(kind) else {
            continue;
        };
        let base = if pattern.starts_with("~/") {
            user.home.clone()?
        } else if pattern.starts_with("./") {
            file.canonicalize().ok()?.parent()?.to_owned()
        } else {
            break;
        };
        return Some(format!(
            "includeif.{kind}{}{}.path",
            base.to_str()?,
            &pattern[1..]
        ));
    }
    Some(name.to_owned())
}

/// Section, subsection and key of the name of a setting.
fn parts(name: &str) -> Option<(&str, Option<&str>, &str)> {
    let (section, rest) = name.split_once('.')?;
    Some(match rest.rsplit_once('.') {
        Some((subsection, key)) => (section, Some(subsection), key),
        None => (section, None, rest),
    })
}

/// Writes a setting as git reads it.
fn put(text: &mut String, name: &str, value: Option<&str>) {
    let (section, subsection, key) = parts(name).unwrap_or((name, None, ""));
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let escaped = |text: &str| {
        quoted(text)
            .replace('\n', "\\n")
            .replace('\t', "\\t")
            .replace('\u{8}', "\\b")
    };
    let head = match subsection {
        Some(subsection) => format!("[{section} \"{}\"]", quoted(subsection)),
        None => format!("[{section}]"),
    };
    let value = value.map(|value| format!(" = \"{}\"", escaped(value)));
    let lines = [
        &head,
        "\n\t",
        key,
        value.as_deref().unwrap_or_default(),
        "\n",
    ];
    text.extend(lines);
}

#[cfg(test)]
mod tests;
