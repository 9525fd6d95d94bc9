//! What the result of a call is made of.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::PrivatePaths;
use super::program::{Reach, prints_log, reach, subcommand};
use crate::call::ResolvedCall;
use crate::command::{CommandLine, Redirection, SimpleCommand, WordPlace, WordPlaces};
use crate::execution::HostUse;
use crate::policy::Policy;
use crate::policy::guard::is_loopback;
use crate::tool::{Backend, ToolKind};

/// Programs that say something about files, and nothing that stands in them.
const NAMES_ONLY: [&str; 21] = [
    "ls", "stat", "test", "[", "[[", "rm", "mv", "cp", "ln", "touch", "chmod", "chown", "mkdir",
    "rmdir", "realpath", "readlink", "basename", "dirname", "du", "find", "tree",
];

/// Commands of git that say something about files, and nothing that stands in them. `log` is one without an option for patches.
const GIT_NAMES_ONLY: [&str; 25] = [
    "add",
    "branch",
    "check-attr",
    "check-ignore",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "fetch",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "mv",
    "pull",
    "push",
    "rebase",
    "reset",
    "restore",
    "rm",
    "status",
    "switch",
    "tag",
];

/// Programs that open no file whose content they could show.
const OPENS_NONE: [&str; 29] = [
    "ls", "stat", "test", "[", "[[", "rm", "mv", "ln", "chmod", "chown", "mkdir", "rmdir",
    "realpath", "readlink", "basename", "dirname", "cd", "pwd", "echo", "printf", "true", "false",
    ":", "sleep", "which", "whoami", "id", "uname", "exit",
];

/// Programs besides those that show what they read and put it nowhere else.
const ONLY_SHOWS: [&str; 20] = [
    "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "wc", "diff", "cmp", "cut", "tr", "nl",
    "od", "xxd", "hexdump", "strings", "file", "jq", "find",
];

/// Programs that show nothing and give files another name: the last thing they are told, or before the rest with `-t`.
const GIVES_NAMES: [&str; 3] = ["cp", "mv", "ln"];

/// A private file that the result of a call may tell of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrivateSource {
    /// Its path.
    pub path: PathBuf,
    /// Whether it is the content that is there now; git also shows what a file held before.
    pub is_current: bool,
}

impl PrivateSource {
    fn current(path: PathBuf) -> Self {
        Self {
            path,
            is_current: true,
        }
    }
}

/// The private files that the result of `call` may tell of, by what the call names.
pub fn private_sources(private: &PrivatePaths, call: &ResolvedCall) -> Vec<PrivateSource> {
    if private.is_empty() {
        return Vec::new();
    }
    if let Some(line) = &call.command {
        return private_files_of(private, line);
    }
    let named = call.paths.iter().chain(&call.files.reach);
    let are_all_private = || call.paths.iter().all(|path| private.holds(path));
    let shown: Vec<&PathBuf> = match call.tool.kind {
        ToolKind::Delete => Vec::new(),
        // Under a name that is private as well, nothing is lost.
        ToolKind::Edit | ToolKind::Move if are_all_private() => Vec::new(),
        // A new name for a directory, or a copy of it, is one for all that it holds.
        ToolKind::Edit | ToolKind::Move if call.paths.len() > 1 => named
            .filter(|path| private.holds(path) || private.lies_below(path))
            .collect(),
        _ => named.filter(|path| private.holds(path)).collect(),
    };
    let shown = shown.into_iter().cloned();
    shown.map(PrivateSource::current).collect()
}

/// Whether a command line may leave what it read in a file: what it shows is then not all that it did with it.
pub fn may_keep_files(line: &CommandLine) -> bool {
    let only_shows = |command: &SimpleCommand| {
        let name = command.base_name();
        let gives_names = GIVES_NAMES.contains(&name);
        !gives_names && (OPENS_NONE.contains(&name) || ONLY_SHOWS.contains(&name))
    };
    let writes = |redirection: &Redirection| {
        redirection.writes && redirection.target.as_deref() != Some("/dev/null")
    };
    line.commands.is_empty()
        || !line.unknown.is_empty()
        || !line.commands.iter().all(only_shows)
        || line.redirections.iter().any(writes)
}

/// Whether a command line may open files whose content it shows, as far as its words say.
pub fn may_show_files(line: &CommandLine) -> bool {
    let opens = |command: &SimpleCommand| !OPENS_NONE.contains(&command.base_name());
    line.commands.is_empty()
        || line.commands.iter().any(opens)
        || line
            .redirections
            .iter()
            .any(|redirection| !redirection.writes)
}

/// The private files that the output of a command may tell of.
pub fn private_files_of(private: &PrivatePaths, line: &CommandLine) -> Vec<PrivateSource> {
    if private.is_empty() {
        return Vec::new();
    }
    let commands = line.commands.iter();
    let words: Vec<&String> = commands
        .flat_map(|command| read_words(private, line, command))
        .collect();
    let named = line
        .places
        .words
        .iter()
        .filter(|place| words.contains(&&place.word));
    let renamed = line
        .commands
        .iter()
        .filter(|command| GIVES_NAMES.contains(&command.base_name()));
    let renamed: Vec<&String> = renamed
        .flat_map(|command| read_words(private, line, command))
        .collect();
    let paths_of = |place: &WordPlaces| match &place.place {
        WordPlace::Known(paths) => {
            let is_renamed = renamed.contains(&&place.word);
            let is_meant =
                |path: &&PathBuf| private.holds(path) || is_renamed && private.lies_below(path);
            let meant: Vec<PathBuf> = paths.iter().filter(is_meant).cloned().collect();
            match meant.is_empty() {
                true => Vec::from_iter(of_revision(private, line, place)),
                false => meant,
            }
        }
        WordPlace::Like { beginnings, end } => {
            let like = |beginning: &String| {
                let names = [beginning.clone(), format!("{beginning}x{end}")];
                names
                    .into_iter()
                    .map(PathBuf::from)
                    .find(|path| private.holds(path))
            };
            beginnings.iter().filter_map(like).collect()
        }
        WordPlace::Unknown => Vec::new(),
    };
    let of_words = named.flat_map(|place| {
        let is_current = !is_word_of_git(line, &place.word);
        let paths = paths_of(place).into_iter();
        paths.map(move |path| PrivateSource { path, is_current })
    });
    let read = line.redirections.iter().zip(&line.places.redirections);
    let of_redirections = read
        .filter(|(redirection, _)| !redirection.writes)
        .flat_map(|(_, places)| places.iter().flatten())
        .filter(|path| private.holds(path));
    let of_redirections = of_redirections.cloned().map(PrivateSource::current);
    let all: BTreeSet<PrivateSource> = of_words.chain(of_redirections).collect();
    all.into_iter().collect()
}

/// The words of a command that may name what it reads, or what it gives a name that is not private.
fn read_words<'a>(
    private: &PrivatePaths,
    line: &CommandLine,
    command: &'a SimpleCommand,
) -> &'a [String] {
    let name = command.base_name();
    let arguments = command.arguments.as_slice();
    if name == "git" && git_names_only(command) {
        return &[];
    }
    if !NAMES_ONLY.contains(&name) {
        return arguments;
    }
    let is_first = |word: &String| {
        word.starts_with("--target")
            || word.starts_with('-') && !word.starts_with("--") && word.contains('t')
    };
    match arguments {
        _ if !GIVES_NAMES.contains(&name) => &[],
        all if all.iter().any(is_first) => all,
        [sources @ .., to] if !leads_to_private(private, line, to) => sources,
        _ => &[],
    }
}

/// Whether a command of git shows nothing of what stands in files.
fn git_names_only(command: &SimpleCommand) -> bool {
    let Some(name) = subcommand(command) else {
        return true;
    };
    let is_patch = |word: &String| {
        let options = [
            "-p",
            "-u",
            "-U",
            "-L",
            "-c",
            "-m",
            "--patch",
            "--cc",
            "--unified",
        ];
        options.iter().any(|option| word.starts_with(option))
    };
    let mut rest = command.arguments.iter().skip_while(|word| *word != name);
    GIT_NAMES_ONLY.contains(&name) && (name != "log" || !rest.any(is_patch))
}

/// The private file that a word names as git has it in a revision: `HEAD:.env`, from the top of the repository, which may be any directory
/// above.
fn of_revision(private: &PrivatePaths, line: &CommandLine, place: &WordPlaces) -> Option<PathBuf> {
    let (_, name) = place.word.rsplit_once(':')?;
    let is_of_git = is_word_of_git(line, &place.word);
    let WordPlace::Known(paths) = &place.place else {
        return None;
    };
    let mut tops = paths.iter().flat_map(|path| path.ancestors().skip(1));
    tops.find_map(|top| Some(top.join(name)).filter(|path| is_of_git && private.holds(path)))
}

fn is_word_of_git(line: &CommandLine, word: &String) -> bool {
    let mut commands = line.commands.iter();
    commands.any(|command| command.base_name() == "git" && command.arguments.contains(word))
}

/// Whether all that a word may name is private.
fn leads_to_private(private: &PrivatePaths, line: &CommandLine, word: &str) -> bool {
    let mut places = line.places.words.iter().filter(|place| place.word == word);
    let is_private = |place: &WordPlaces| match &place.place {
        WordPlace::Known(paths) => paths.iter().all(|path| private.holds(path)),
        WordPlace::Like { .. } | WordPlace::Unknown => false,
    };
    let first = places.next();
    first.is_some_and(is_private) && places.all(is_private)
}

/// Which results of a call have content of the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum UntrustedResult {
    /// None.
    #[default]
    Never,
    /// Those for which something was received from a host beyond this machine.
    OfHosts,
    /// All: from those hosts, or else from this.
    From(String),
}

impl UntrustedResult {
    /// Where the content of one result is from, which received this from `hosts`.
    pub fn source(&self, hosts: &[HostUse]) -> Option<String> {
        let name = |host: &HostUse| {
            let name = host.host.rsplit_once(':');
            name.map_or(host.host.clone(), |(name, _)| name.to_owned())
        };
        let mut beyond = hosts
            .iter()
            .filter(|host| host.received_bytes > 0 && !is_loopback(&name(host)));
        match self {
            Self::Never => None,
            Self::OfHosts => beyond.next().map(name),
            Self::From(other) => Some(beyond.next().map_or_else(|| other.clone(), name)),
        }
    }
}

/// Which results of `call` have content of the network. `is_remote`: the tool itself is elsewhere.
pub fn untrusted_result(policy: &Policy, call: &ResolvedCall, is_remote: bool) -> UntrustedResult {
    let of_remote = |name: String| match is_remote {
        true => UntrustedResult::From(name),
        false => UntrustedResult::OfHosts,
    };
    match (&call.tool.backend, &call.command) {
        (Backend::Shell, Some(line)) => untrusted_line(policy, line),
        (Backend::Mcp(tool), _) => of_remote(tool.server.to_string()),
        _ => of_remote(call.tool.qualified_name()),
    }
}

/// Whether the output of a command has content of the network. What package managers and version control print is a log of their own;
/// what they fetch is read by nobody yet.
pub fn untrusted_line(policy: &Policy, line: &CommandLine) -> UntrustedResult {
    let shown = line.commands.iter().filter(|command| !prints_log(command));
    let is_known = line.unknown.is_empty();
    let reaches = shown.map(|command| (reach(command, is_known), command));
    match reaches.max_by_key(|(reach, _)| *reach) {
        None | Some((Reach::Stays, _)) if is_known => UntrustedResult::Never,
        None | Some((Reach::Stays, _)) => UntrustedResult::OfHosts,
        Some((Reach::Unknown, _)) => UntrustedResult::OfHosts,
        Some((Reach::Contacts | Reach::Sends, command)) => match policy.denies_network {
            true => UntrustedResult::OfHosts,
            false => UntrustedResult::From(command.base_name().to_owned()),
        },
    }
}
