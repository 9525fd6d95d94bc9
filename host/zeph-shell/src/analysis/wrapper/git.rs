//! git: what its options, settings and subcommands run.

use zeph_core::command::Wraps;
use zeph_core::git_config;

use super::super::value::Value;
use super::carriers::{after, named, values, with};
use super::options::{ProgramOptions, Read};
use super::{Look, UNREADABLE, WrappedCommand};

/// Options behind a subcommand whose value is a command.
const COMMANDS: &[&str] = &[
    "--exec",
    "--extcmd",
    "--setup",
    "--upload-pack",
    "--receive-pack",
    "--tree-filter",
    "--index-filter",
    "--msg-filter",
    "--env-filter",
    "--commit-filter",
    "--parent-filter",
    "--tag-name-filter",
    "--open-files-in-pager",
    "--to-cmd",
    "--cc-cmd",
    "--header-cmd",
    "--sendmail-cmd",
    "--access-hook",
    "--browser",
    "--httpd",
];

/// Subcommands that run what is not in their words.
const UNREADABLE_COMMANDS: &[&str] = &[
    "difftool--helper",
    "for-each-repo",
    "hook",
    "mergetool--lib",
    "remote-ext",
    "remote-fd",
    "shell",
    "submodule--helper",
    "web--browse",
];

const LEADS: &str = "a setting leads git to what it runs";

const OPTIONS: ProgramOptions = ProgramOptions {
    flags: "pPhv",
    valued: "cC",
    long_flags: &[
        "paginate",
        "no-pager",
        "bare",
        "version",
        "help",
        "html-path",
        "man-path",
        "info-path",
        "exec-path",
        "no-replace-objects",
        "literal-pathspecs",
        "glob-pathspecs",
        "noglob-pathspecs",
        "icase-pathspecs",
        "no-optional-locks",
        "no-lazy-fetch",
        "no-advice",
    ],
    long_valued: &[
        "git-dir",
        "work-tree",
        "namespace",
        "config-env",
        "super-prefix",
        "attr-source",
        "list-cmds",
    ],
};

/// What a line of git runs.
#[derive(Default)]
struct GitParts {
    inner: Vec<WrappedCommand>,
    unknown: Option<&'static str>,
}

pub(super) fn look(name: &str, arguments: &[Value]) -> Option<Look> {
    matches!(name, "git" | "hub").then(|| git(arguments))
}

fn git(arguments: &[Value]) -> Look {
    let Some(read) = OPTIONS.read(arguments) else {
        return Look::unknown(Wraps::WithEffect, UNREADABLE);
    };
    let mut found = GitParts::default();
    found.options(&read);
    let rest = arguments.get(read.next..).unwrap_or_default();
    if let Some((subcommand, rest)) = rest.split_first() {
        found.subcommand(&subcommand.text, rest);
    }
    Look {
        unknown: found.unknown,
        ..with(found.inner)
    }
}

impl GitParts {
    fn options(&mut self, read: &Read) {
        for met in &read.met {
            // The directory itself is taken for a repository, and may hold any settings.
            if met.name == "bare" {
                self.unknown = Some(LEADS);
            }
            let Some(value) = &met.value else { continue };
            match met.name.as_str() {
                "c" => self.assignment(value),
                // The value stands in a variable.
                "config-env" => {
                    let name = value.text.split('=').next().unwrap_or_default();
                    if git_config::runs(&last_part(name)) {
                        self.unknown = Some(LEADS);
                    }
                }
                "exec-path" => self.unknown = Some(LEADS),
                "git-dir" if !is_usual_directory(value) => self.unknown = Some(LEADS),
                _ => {}
            }
        }
    }

    fn subcommand(&mut self, name: &str, rest: &[Value]) {
        match name {
            "bisect" if rest.first().is_some_and(|word| word.text == "run") => {
                self.inner.push(WrappedCommand::Words(
                    rest.get(1..).unwrap_or_default().to_vec(),
                ));
            }
            "submodule" => self.submodule(rest),
            "rebase" | "difftool" => self.inner.extend(named(rest, &["-x"])),
            "grep" => {
                let pagers = rest.iter().filter_map(pager_of_grep);
                self.inner.extend(pagers.map(WrappedCommand::Text));
            }
            "config" => self.config(rest),
            "send-email" => {
                let servers = values(rest, "--smtp-server");
                let programs = servers
                    .into_iter()
                    .filter(|server| server.text.contains('/'));
                self.inner.extend(programs.map(WrappedCommand::Text));
            }
            "filter-repo" if rest.iter().any(|word| word.text.contains("-callback")) => {
                self.unknown = Some(LEADS);
            }
            "clone" | "init" => self.new_repository(rest),
            _ if UNREADABLE_COMMANDS.contains(&name) => self.unknown = Some(UNREADABLE),
            _ => {}
        }
        self.inner.extend(named(rest, COMMANDS));
        let address = |argument: &Value| match argument.text.split_once('=') {
            Some((option, address)) if option.starts_with("--") => argument.part(address),
            _ => argument.clone(),
        };
        let helpers = rest.iter().map(address);
        let helpers = helpers.filter_map(|address| after(&address, "ext::"));
        self.inner.extend(helpers.map(WrappedCommand::Text));
    }

    fn submodule(&mut self, rest: &[Value]) {
        let mut words = rest.iter().filter(|word| !word.text.starts_with('-'));
        if words.next().is_some_and(|word| word.text == "foreach") {
            let words: Vec<Value> = words.cloned().collect();
            self.inner
                .push(WrappedCommand::Text(super::builtins::joined(&words)));
        }
    }

    /// `config [set] [options] NAME VALUE`.
    fn config(&mut self, rest: &[Value]) {
        let words = rest.iter().filter(|word| !word.text.starts_with('-'));
        let words: Vec<&Value> = words.collect();
        for pair in words.windows(2) {
            if let [name, value] = pair
                && name.text.contains('.')
            {
                self.setting(&name.text, value);
            }
        }
    }

    /// A template brings hooks.
    fn new_repository(&mut self, rest: &[Value]) {
        if !values(rest, "--template").is_empty() {
            self.unknown = Some(LEADS);
        }
        let settings = ["-c", "--config"].map(|option| values(rest, option));
        for setting in settings.iter().flatten() {
            self.assignment(setting);
        }
        self.inner.extend(named(rest, &["-u"]));
    }

    /// A name for a subcommand with its options: rules look at what it stands for.
    fn alias(&mut self, value: &Value) {
        let words = value.text.split_whitespace().map(Value::literal);
        let words: Vec<Value> = std::iter::once(Value::literal("git"))
            .chain(words)
            .collect();
        match value.is_literal {
            true => self.inner.push(WrappedCommand::Words(words)),
            false => self.unknown = Some(LEADS),
        }
    }

    /// A setting `NAME=VALUE`.
    fn assignment(&mut self, value: &Value) {
        if let Some((name, text)) = value.text.split_once('=') {
            self.setting(name, &value.part(text));
        }
    }

    fn setting(&mut self, name: &str, value: &Value) {
        let name = name.to_ascii_lowercase();
        let key = last_part(&name);
        if leads_to_helper(&name, &key, value) {
            self.unknown = Some(LEADS);
            return;
        }
        if name.starts_with("alias.") && !value.text.starts_with('!') {
            return self.alias(value);
        }
        let is_run = git_config::runs(&key)
            || name.starts_with("pager.")
            || value.text.starts_with('!')
            || (name.starts_with("submodule.") && key == "update" && value.text.contains('!'));
        let is_switch = ["true", "false", "yes", "no", ""].contains(&value.text.as_str());
        if !is_run || is_switch {
            return;
        }
        if git_config::leads(&key) && !value.text.starts_with('!') {
            // Nothing is found there.
            if value.text != "/dev/null" {
                self.unknown = Some(LEADS);
            }
            return;
        }
        let text = value.text.trim_start_matches('!');
        self.inner.push(WrappedCommand::Text(value.part(text)));
    }
}

/// Whether a setting lets an address run a command (`ext::COMMAND`), or is an address that does.
fn leads_to_helper(name: &str, key: &str, value: &Value) -> bool {
    let is_address = matches!(key, "insteadof" | "pushinsteadof" | "url" | "pushurl");
    let opens = matches!(name, "protocol.allow" | "protocol.ext.allow") && value.text != "never";
    let is_program = matches!(name, "instaweb.httpd")
        || name.starts_with("sendemail.") && key == "smtpserver" && value.text.contains('/');
    opens || is_program || is_address && (name.contains("ext::") || value.text.contains("ext::"))
}

/// The pager in `-Oless`, `-nOless`: behind a letter that may stand among others, and never in the next word.
fn pager_of_grep(word: &Value) -> Option<Value> {
    const FLAGS: &str = "aEFGHILPchilnopqrvwWz";
    let letters = word.text.strip_prefix('-')?;
    let (before, pager) = letters.split_once('O')?;
    let is_option = before.chars().all(|letter| FLAGS.contains(letter));
    (is_option && !pager.is_empty()).then(|| word.part(pager))
}

/// Whether this is the directory that a repository has below its root. What is in it is protected; another one may hold any settings.
fn is_usual_directory(value: &Value) -> bool {
    value.is_literal && (value.text == ".git" || value.text.ends_with("/.git"))
}

fn last_part(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.to_ascii_lowercase()
}
