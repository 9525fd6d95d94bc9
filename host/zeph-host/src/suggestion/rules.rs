//! The smallest rules under which recorded calls run again without a question: files by name, commands by their words, hosts by name.
//!
//! What a rule is about is a file that was used or a path that was named. A directory stands in a rule only when a call listed it or named it;
//! a rule over a directory holds for all below, so what lies there and was not used is told (`siblings`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::Value;
use zeph_core::failure::one_line;

use super::grants::place;
use super::siblings::{self, UnseenSiblings};
use crate::recording::{CallRecord, FileUseName, OwnerKind, RecordedFile};

/// Most rules of one section, and most globs of one rule (`config/schema.json`).
const RULES_MAX: usize = 256;

/// Most paths of one tool for which each is named; the glob over a directory that a plugin needs for temporary files counts, too.
const PATHS_MAX: usize = 256;

/// Programs that run what they read when no argument says what.
const RUN_INPUT: [&str; 17] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "perl",
    "ruby", "php", "lua", "Rscript", "psql",
];

/// The tool as which a redirection counts.
const WRITER: &str = "write";

/// Characters of a command in a note.
const COMMAND_CHARS_MAX: usize = 80;

/// Where the tools that come with the program write before they rename.
const OWN_TEMPORARY: &str = ".zeph-*.tmp";

/// What the recorded calls of one tool were about.
#[derive(Debug, Default)]
struct ToolUses {
    /// Globs of single files and of what was listed.
    globs: BTreeSet<String>,
    /// Directories that are allowed with all below.
    trees: BTreeSet<PathBuf>,
    /// `https://host:port`.
    hosts: BTreeSet<String>,
    /// Whether some call was about nothing that a rule can name.
    is_plain: bool,
    n_calls: u64,
}

/// What the recorded calls of all tools were about. Its size depends on what differs, not on the number of calls.
#[derive(Debug)]
pub(crate) struct ToolRules<'a> {
    /// The directories that tools may access now; nothing outside is suggested.
    roots: &'a [PathBuf],
    tools: BTreeMap<String, ToolUses>,
    commands: BTreeSet<String>,
    /// Commands whose words do not say what they run.
    unsaid: BTreeSet<String>,
    objects: BTreeSet<PathBuf>,
    denied: BTreeSet<(String, String)>,
    outside: BTreeSet<String>,
}

/// What an operator is advised to configure.
#[derive(Debug)]
pub(crate) struct RuleSuggestion {
    /// The rules as TOML, to be added to a configuration file.
    pub(crate) toml: String,
    /// Each rule on a line, for the comparison with those that are active.
    pub(crate) lines: Vec<String>,
    /// What the directories in the rules hold besides what was used.
    pub(crate) unseen: Vec<UnseenSiblings>,
    /// What calls tried and were refused.
    pub(crate) denied: Vec<(String, String)>,
    /// What was recorded and lies outside of what tools may access.
    pub(crate) outside: Vec<String>,
    /// What the rules allow beyond the recorded calls, one sentence each.
    pub(crate) notes: Vec<String>,
}

impl<'a> ToolRules<'a> {
    /// No call yet.
    pub(crate) fn new(roots: &'a [PathBuf]) -> Self {
        Self {
            roots,
            tools: BTreeMap::new(),
            commands: BTreeSet::new(),
            unsaid: BTreeSet::new(),
            objects: BTreeSet::new(),
            denied: BTreeSet::new(),
            outside: BTreeSet::new(),
        }
    }

    /// Adds what a call was about.
    pub(crate) fn add(&mut self, call: &CallRecord) {
        let denied = call.refused.iter();
        self.denied
            .extend(denied.map(|one| (one.path.clone(), one.rights.clone())));
        let kind = call.owner.as_ref().map(|owner| owner.kind);
        if kind == Some(OwnerKind::Command) && !call.commands.is_empty() {
            for words in &call.commands {
                match runs_input(words) {
                    true => drop(self.unsaid.insert(words.join(" "))),
                    false => drop(self.commands.insert(words.join(" "))),
                }
            }
            self.add_redirections(call);
            return;
        }
        let is_own = call
            .owner
            .as_ref()
            .is_some_and(|owner| owner.name.as_deref() == Some("file"));
        let mut uses = ToolUses::default();
        for named in &call.paths {
            self.add_named(&mut uses, Path::new(named));
        }
        for file in &call.files {
            self.add_file(&mut uses, file, is_own);
        }
        let hosts = call.hosts.iter().filter(|host| host.requests > 0);
        uses.hosts.extend(hosts.map(|host| {
            let scheme = if host.plain_http { "http" } else { "https" };
            format!("{scheme}://{}", host.host)
        }));
        uses.is_plain = uses.globs.is_empty() && uses.trees.is_empty() && uses.hosts.is_empty();
        uses.n_calls = 1;
        let known = self.tools.entry(call.tool.clone()).or_default();
        known.globs.append(&mut uses.globs);
        known.trees.append(&mut uses.trees);
        known.hosts.append(&mut uses.hosts);
        known.is_plain |= uses.is_plain;
        known.n_calls += 1;
    }

    /// A redirection counts as a call of `write`.
    fn add_redirections(&mut self, call: &CallRecord) {
        for path in call.paths.iter().map(Path::new) {
            if path.starts_with("/dev") || path.starts_with("/tmp") && !self.is_granted(path) {
                continue;
            }
            if self.is_inside(path) {
                let known = self.tools.entry(WRITER.to_owned()).or_default();
                known.globs.insert(escaped(path));
                self.objects.insert(path.to_owned());
            }
        }
    }

    /// A path that a call named: a directory is one that it was about as a whole.
    fn add_named(&mut self, uses: &mut ToolUses, path: &Path) {
        if !self.is_inside(path) {
            return;
        }
        self.objects.insert(path.to_owned());
        match path.is_dir() {
            true => drop(uses.trees.insert(path.to_owned())),
            false => drop(uses.globs.insert(escaped(path))),
        }
    }

    fn add_file(&mut self, uses: &mut ToolUses, file: &RecordedFile, is_own: bool) {
        let Some(path) = place(file).filter(|path| self.is_inside(path)) else {
            return;
        };
        let has = |used| file.uses.contains(&used);
        if has(FileUseName::Temporary) {
            match is_own {
                true => drop(
                    uses.globs
                        .insert(format!("{}/{OWN_TEMPORARY}", escaped(&path))),
                ),
                // Under which names cannot be known.
                false => drop(uses.trees.insert(path.clone())),
            }
        }
        if has(FileUseName::List) {
            uses.trees.insert(path.clone());
        }
        // The rule that denies all else would hide the directory from the call.
        if file.directory && has(FileUseName::Look) && !self.roots.contains(&path) {
            match is_own {
                true => drop(uses.globs.insert(escaped(&path))),
                false => drop(uses.trees.insert(path.clone())),
            }
        }
        if !file.directory || has(FileUseName::Create) || has(FileUseName::Delete) {
            uses.globs.insert(escaped(&path));
        }
        self.objects.insert(path);
    }

    fn is_granted(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Whether tools may access the path at all; else it is told.
    fn is_inside(&mut self, path: &Path) -> bool {
        let is_inside = self.is_granted(path);
        if !is_inside {
            self.outside.insert(path.to_string_lossy().into_owned());
        }
        is_inside
    }

    /// The smallest rules for all of it.
    pub(crate) fn suggestion(self) -> RuleSuggestion {
        let mut rules = RuleText::default();
        for (tool, uses) in &self.tools {
            rules.tool(tool, uses, self.roots);
        }
        for command in &self.commands {
            rules.command(command);
        }
        let unsaid = self.unsaid.iter().map(|command| {
            let command = one_line(command, COMMAND_CHARS_MAX);
            format!("`{command}` ran what it read: a rule for it would allow any other program, so none is suggested")
        });
        rules.notes.extend(unsaid.take(RULES_MAX));
        let trees = self.tools.values().flat_map(|uses| &uses.trees);
        let trees: BTreeSet<&Path> = trees.map(PathBuf::as_path).collect();
        RuleSuggestion {
            unseen: siblings::unseen(trees, &self.objects),
            toml: rules.toml(),
            lines: rules.lines,
            denied: self.denied.into_iter().collect(),
            outside: self.outside.into_iter().collect(),
            notes: rules.notes,
        }
    }
}

/// Whether the words of a command leave open what it runs: `sh`, `python3 -`.
fn runs_input(words: &[String]) -> bool {
    let Some((name, arguments)) = words.split_first() else {
        return false;
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_file_of_input = |word: &String| word.starts_with("/dev/") || word.starts_with("/proc/");
    RUN_INPUT.contains(&name)
        && arguments
            .iter()
            .all(|word| word.starts_with('-') || is_file_of_input(word))
}

/// Rules as they are written.
#[derive(Debug, Default)]
struct RuleText {
    policy: Vec<String>,
    permissions: Vec<String>,
    lines: Vec<String>,
    notes: Vec<String>,
}

impl RuleText {
    fn tool(&mut self, tool: &str, uses: &ToolUses, roots: &[PathBuf]) {
        let mut globs = uses.globs.clone();
        let trees: BTreeSet<String> = uses.trees.iter().map(|tree| escaped(tree)).collect();
        let is_below = |glob: &String| {
            let mut slashes = glob.match_indices('/');
            slashes.any(|(at, _)| trees.contains(&glob[..at]))
        };
        globs.retain(|glob| !is_below(glob));
        for tree in &uses.trees {
            globs.insert(escaped(tree));
            globs.insert(format!("{}/**", escaped(tree)));
        }
        if globs.len() > PATHS_MAX {
            self.notes.push(format!(
                "`{tool}` used {} files, more than a rule can name ({PATHS_MAX}): no rule is suggested for it",
                globs.len()
            ));
            return;
        }
        if !globs.is_empty() {
            let globs: Vec<String> = globs.into_iter().collect();
            self.rule("allow", tool, &[("paths", list(&globs))]);
            let all: Vec<String> = roots
                .iter()
                .map(|root| format!("{}/**", escaped(root)))
                .collect();
            self.rule("deny", tool, &[("paths", list(&all))]);
        }
        if !uses.hosts.is_empty() {
            let hosts: Vec<String> = uses.hosts.iter().map(|host| address(host)).collect();
            let expression = format!("^(?:{})(?:[/?#]|$)", hosts.join("|"));
            self.rule("allow", tool, &[("args_match", value(&expression))]);
        }
        if uses.is_plain {
            self.notes.push(format!(
                "calls of `{tool}` name neither files nor hosts: no rule can tell one from another, so none is suggested; \
                 `--allow {tool}` allows all of them"
            ));
        }
    }

    fn rule(&mut self, effect: &str, tool: &str, conditions: &[(&str, String)]) {
        if self.policy.len() >= RULES_MAX {
            return;
        }
        let conditions: Vec<String> = conditions
            .iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        self.policy.push(format!(
            "[[tools.policy.rules]]\neffect = \"{effect}\"\ntool = {}\n{}\n",
            value(&glob_escaped(tool)),
            conditions.join("\n")
        ));
        self.lines
            .push(format!("{effect} {tool} {}", conditions.join(" ")));
    }

    fn command(&mut self, command: &str) {
        if self.permissions.len() >= RULES_MAX {
            return;
        }
        self.permissions.push(format!(
            "[[tools.permissions.bash]]\npattern = {}\naction = \"allow\"\n",
            value(&glob_escaped(command))
        ));
        self.lines.push(format!("allow bash {command}"));
    }

    fn toml(&self) -> String {
        let mut sections = Vec::new();
        if !self.policy.is_empty() {
            sections.push(
                "[tools.policy]\nenabled = true\n# Calls that no rule is about are decided by [tools.permissions], as before.\n\
                 default_effect = \"allow\"\n"
                    .to_owned(),
            );
            sections.extend_from_slice(&self.policy);
        }
        sections.extend_from_slice(&self.permissions);
        sections.join("\n")
    }
}

fn escaped(path: &Path) -> String {
    let text = glob_escaped(&path.to_string_lossy());
    text.trim_end_matches('/').to_owned()
}

/// `text` as a glob that fits nothing else.
fn glob_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// The beginning of addresses at a host, as a regular expression; the port of the scheme may be omitted.
fn address(host: &str) -> String {
    let optional = [("https://", ":443"), ("http://", ":80")];
    for (scheme, port) in optional {
        if let Some(bare) = host
            .strip_prefix(scheme)
            .and_then(|rest| rest.strip_suffix(port))
        {
            return format!("{scheme}{}(?:{port})?", regex::escape(bare));
        }
    }
    regex::escape(host)
}

fn list(texts: &[String]) -> String {
    let items: Vec<String> = texts.iter().map(|text| value(text)).collect();
    format!("[{}]", items.join(", "))
}

fn value(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests;
