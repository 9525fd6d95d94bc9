//! Shell completion: the shell asks the program what can be typed next, so that tools, plugins and rules are those of this
//! moment.
//!
//! Nothing is compiled or pinned for it: plugins are those that `zeph.lock` knows.

mod shells;
mod stored;
mod values;

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::CompleteEnv;
use zeph_config::{Config, lock_of};
use zeph_core::tool::Tool;
use zeph_plugins::author::Language;
use zeph_plugins::component::Component;
use zeph_plugins::lock::Lock;

use self::shells::{SHELLS, is_printable};
use super::args::{CliArgs, Global};
use super::context::Context;
use super::error::CliError;
use super::out;
use crate::filtering::Filtering;
use crate::host;

/// The variable by which a shell's script asks.
const VARIABLE: &str = "ZEPH_HOST_COMPLETE";

/// What completes an argument.
type Candidates = fn() -> Vec<CompletionCandidate>;

/// Arguments whose values the program knows: the command, the argument's identifier, and what it may be.
const KNOWN: [(&str, &str, Candidates); 40] = [
    ("call", "tool", tools),
    ("explain", "tool", tools),
    ("run", "provider", providers),
    ("run", "resume", stored::sessions),
    ("run", "conversation", stored::conversations),
    ("acp", "provider", providers),
    ("call", "conversation", stored::conversations),
    ("explain", "conversation", stored::conversations),
    ("approve", "which", stored::pending),
    ("conversations delete", "id", stored::conversations),
    ("scheduler cancel", "name", stored::tasks),
    ("secret set", "name", secrets),
    ("secret rm", "name", secrets),
    ("token revoke", "name", stored::tokens),
    ("tools show", "name", tools),
    ("audit query", "tool", tools),
    ("audit query", "plugin", all_plugins),
    ("audit query", "category", categories),
    ("plugin info", "name", all_plugins),
    ("plugin remove", "name", plugins),
    ("plugin grant", "name", all_plugins),
    ("plugin revoke", "name", all_plugins),
    ("plugin suggest", "name", all_plugins),
    ("plugin approve", "name", plugins),
    ("plugin update", "name", plugins),
    ("plugin disable", "name", plugins),
    ("plugin enable", "name", plugins),
    ("plugin new", "lang", languages),
    ("filters show", "name", rules),
    ("mcp info", "name", servers),
    ("mcp test", "name", servers),
    ("mcp approve", "name", servers),
    ("mcp update", "name", servers),
    ("mcp forget", "name", pinned_servers),
    ("mcp login", "name", servers),
    ("mcp logout", "name", servers),
    ("trust reset", "tool", tools),
    ("trust set", "tool", tools),
    ("trust set", "level", levels),
    ("hook", "agent", agents),
];

/// What completes a word of which a part is typed: it keeps to that part.
type Continuations = fn(&OsStr) -> Vec<CompletionCandidate>;

/// Arguments of several parts: the command (the program itself for global options), the argument's identifier, and what follows the part that is typed.
const PARTED: [(&str, &str, Continuations); 11] = [
    ("filter", "command", values::command_line),
    ("filters why", "command", values::command_line),
    ("wrap", "command", values::command_line),
    ("run", "prompt", values::prompt),
    ("call", "arguments", values::arguments),
    ("explain", "arguments", values::arguments),
    ("explain", "allow", values::allow),
    ("run", "allow", values::allow),
    ("serve", "allow", values::allow),
    ("acp", "allow", values::allow),
    ("", "set", values::settings),
];

/// Answers the question of a shell's script; whether there was one.
///
/// Errors: an unknown shell, or standard output cannot be written.
pub(super) fn answer(typed: &[OsString]) -> Result<bool, CliError> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(typed.iter().cloned(), here.as_deref())
        .map_err(|error| CliError::user("the shell's question cannot be answered").because(error))
}

/// Prints the script that makes a shell ask.
pub(super) fn register(shell: Shell) -> Result<(), CliError> {
    let cannot = |error| CliError::internal("the completions cannot be made").because(error);
    let name = shell.to_string();
    let completer = SHELLS
        .completer(&name)
        .ok_or_else(|| CliError::user(format!("there are no completions for `{name}`")))?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, "zeph_host", "zeph-host", "zeph-host", &mut script)
        .map_err(cannot)?;
    out::data(&String::from_utf8_lossy(&script))
}

/// The command line with what its arguments may be.
fn command() -> Command {
    let command = KNOWN
        .into_iter()
        .fold(CliArgs::command(), |command, known| {
            let (path, argument, candidates) = known;
            let add = |arg: Arg| arg.add(ArgValueCandidates::new(candidates));
            with(command, &path_of(path), argument, &add)
        });
    PARTED.into_iter().fold(command, |command, parted| {
        let (path, argument, continuations) = parted;
        let add = |arg: Arg| arg.add(ArgValueCompleter::new(continuations));
        with(command, &path_of(path), argument, &add)
    })
}

fn path_of(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

fn with(command: Command, path: &[&str], argument: &str, add: &dyn Fn(Arg) -> Arg) -> Command {
    match path {
        [] => command.mut_arg(argument, add),
        [first, rest @ ..] => {
            command.mut_subcommand(first, |below| with(below, rest, argument, add))
        }
    }
}

/// The line that is typed, as far as it can be read.
fn typed() -> Option<ArgMatches> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    CliArgs::command()
        .ignore_errors(true)
        .try_get_matches_from(words)
        .ok()
}

/// What the typed line would be run with, once `change` has altered its global options.
fn context(change: impl FnOnce(&mut Global)) -> Option<Context> {
    let mut global = Global::from_arg_matches(&typed()?).ok()?;
    // Whatever is printed besides candidates would be taken for one.
    (global.quiet, global.verbose) = (1, 0);
    change(&mut global);
    Context::new(global, Component::first_party()).ok()
}

/// The configuration that the typed line would be run with; `None` when it cannot be had, and then nothing is offered.
fn config() -> Option<(Context, Config)> {
    let context = context(|_| {})?;
    let config = context.config().ok()?;
    Some((context, config))
}

fn tools() -> Vec<CompletionCandidate> {
    let tools = config().map_or_else(Vec::new, |(_, config)| known_tools(&config));
    let named = tools.into_iter();
    candidates(named.map(|(name, tool)| (name, tool.description)))
}

/// The tools that are known without a plugin or a server being run, each by each name that it can be called by.
pub(super) fn known_tools(config: &Config) -> Vec<(String, Tool)> {
    let own = host::fixed(config, &Component::first_party());
    let own = own.into_iter();
    let mut named: Vec<_> = own.map(|tool| (tool.name.to_string(), tool)).collect();
    for plugin in locks(config).iter().flat_map(Lock::plugins) {
        for tool in plugin.definitions.tools() {
            named.push((format!("{}__{}", plugin.name, tool.name), tool.clone()));
            if !named.iter().any(|(name, _)| *name == tool.name.as_str()) {
                named.push((tool.name.to_string(), tool.clone()));
            }
        }
    }
    let servers = config.mcp_lock.as_deref().map(Lock::read);
    for server in servers.iter().flatten().flat_map(Lock::servers) {
        let tools = server.definitions.tools().iter();
        named.extend(tools.map(|tool| (tool.name.to_string(), tool.clone())));
    }
    named
}

fn plugins() -> Vec<CompletionCandidate> {
    let locks = config().map_or_else(Vec::new, |(_, config)| locks(&config));
    let plugins = locks.iter().flat_map(Lock::plugins);
    candidates(plugins.map(|plugin| (plugin.name.to_string(), String::new())))
}

/// Those of the program, too.
fn all_plugins() -> Vec<CompletionCandidate> {
    let own = Component::first_party().into_iter();
    let own = candidates(own.map(|component| (component.name.to_owned(), String::new())));
    own.into_iter().chain(plugins()).collect()
}

fn servers() -> Vec<CompletionCandidate> {
    let servers = config().map_or_else(Default::default, |(_, config)| config.mcp_servers);
    candidates(
        servers
            .into_keys()
            .map(|name| (name.to_string(), String::new())),
    )
}

/// The servers that are pinned and not in the configuration.
fn pinned_servers() -> Vec<CompletionCandidate> {
    let Some((_, config)) = config() else {
        return Vec::new();
    };
    let lock = config.mcp_lock.as_deref().map(Lock::read);
    let pinned = lock.iter().flatten().flat_map(Lock::servers);
    let pinned = pinned.filter(|server| !config.mcp_servers.contains_key(&server.name));
    candidates(pinned.map(|server| (server.name.to_string(), String::new())))
}

fn providers() -> Vec<CompletionCandidate> {
    let providers = config().map_or_else(Vec::new, |(_, config)| config.providers);
    candidates(providers.into_iter().map(|one| (one.name, one.model)))
}

fn secrets() -> Vec<CompletionCandidate> {
    let Some((_, config)) = config() else {
        return Vec::new();
    };
    let names = super::secret::names(&config);
    candidates(names.into_iter().map(|name| (name, String::new())))
}

/// What was accepted in each directory of plugins; one that cannot be read is passed over.
fn locks(config: &Config) -> Vec<Lock> {
    let folders = config.plugins.folders.iter();
    let lock = |folder: &std::path::PathBuf| Lock::read(&lock_of(folder)).ok();
    folders.filter_map(lock).collect()
}

fn rules() -> Vec<CompletionCandidate> {
    let Some((_, config)) = config() else {
        return Vec::new();
    };
    let (filtering, _) = Filtering::new(&config);
    let rules = filtering.filters().rules().into_iter();
    candidates(rules.map(|rule| (rule.name.clone(), rule.matches())))
}

fn categories() -> Vec<CompletionCandidate> {
    let all = zeph_core::category::ErrorCategory::ALL.into_iter();
    candidates(all.map(|category| (category.label().to_owned(), String::new())))
}

fn levels() -> Vec<CompletionCandidate> {
    let all = zeph_core::policy::TrustLevel::ALL.into_iter();
    candidates(all.map(|level| (level.label().to_owned(), String::new())))
}

fn languages() -> Vec<CompletionCandidate> {
    let all = Language::ALL.into_iter();
    candidates(all.map(|language| (language.to_string(), String::new())))
}

fn agents() -> Vec<CompletionCandidate> {
    candidates(["claude", "codex"].map(|agent| (agent.to_owned(), String::new())))
}

/// Names with what is said of them: its first line. A name that cannot stand on a line is omitted.
fn candidates(named: impl IntoIterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let candidate = |(name, help): (String, String)| {
        let help = help.lines().next();
        let help = help.map(|line| line.replace(char::is_control, " "));
        CompletionCandidate::new(name).help(help.map(Into::into))
    };
    let named = named.into_iter().filter(|(name, _)| is_printable(name));
    named.map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::{KNOWN, PARTED, SHELLS, command, path_of};

    /// An argument that was renamed would complete nothing, silently.
    #[test]
    fn every_argument_with_known_values_exists() {
        let mut command = command();
        command.build();
        let known = KNOWN.map(|(path, argument, _)| (path, argument));
        let parted = PARTED.map(|(path, argument, _)| (path, argument));
        for (path, argument) in known.into_iter().chain(parted) {
            let below = path_of(path).iter().fold(&command, |command, name| {
                let found = command.find_subcommand(name);
                found.unwrap_or_else(|| panic!("there is no command `{path}`"))
            });
            let mut arguments = below.get_arguments();
            let is_there = arguments.any(|arg| arg.get_id() == argument);
            assert!(is_there, "`{path}` has no argument `{argument}`");
        }
    }

    #[test]
    fn scripts_have_no_place_left_to_fill() {
        for shell in [Shell::Bash, Shell::Zsh] {
            let completer = SHELLS.completer(&shell.to_string()).unwrap();
            let mut script = Vec::new();
            completer
                .write_registration("ASK", "name", "program", "program", &mut script)
                .unwrap();
            let script = String::from_utf8(script).unwrap();
            let is_place = script.contains("@VARIABLE@") || script.contains("@NAME@");
            assert!(script.contains("ASK=") && !is_place, "{script}");
        }
    }
}
