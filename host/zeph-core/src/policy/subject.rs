//! What rules look at: the texts of a call, made ready once for all of them.

use std::cell::OnceCell;
use std::path::{Component, Path};

use serde_json::Value;

use super::Policy;
use super::globals;
use super::options::Apart;
use super::pattern::Pattern;
use super::possible::Possible;
use super::redirection::{self, Write};
use crate::call::ResolvedCall;
use crate::command::{CommandLine, SimpleCommand, Unknown, Wraps};
use crate::tool::{Backend, Tool};

/// The one name under which rules know the shell.
pub(super) const SHELL: &str = "bash";

/// The names of the tool whose rules are for whatever writes to a file, a redirection too.
pub(super) const WRITER: [&str; 2] = ["write", "file__write"];

/// Tools that rules distinguish by their URL.
const URL_TOOLS: [&str; 2] = ["fetch", "web_scrape"];

/// Deepest nesting of arguments that is looked into. The argument layer refuses deeper ones.
const DEPTH_MAX: u32 = 256;

/// A text as given, and as patterns want it.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) given: String,
    pub(super) lower: String,
}

/// One simple command of a line.
#[derive(Debug)]
pub(super) struct LinePart<'a> {
    pub(super) command: &'a SimpleCommand,
    /// Its place in the line.
    pub(super) idx: usize,
    /// Name and arguments.
    pub(super) text: Text,
    /// Name and arguments in lower case without the directories of the name, if it has some. Only for rules that deny or ask: an allow
    /// rule does not mean a program in an arbitrary directory.
    pub(super) bare: Option<String>,
    /// Name and arguments without the options that the program takes before its subcommand, if there are some.
    pub(super) without_globals: Option<Text>,
    /// In lower case without options of git that change nothing of what a subcommand does, if there are some; for rules that allow.
    plain_git: Option<PlainGit>,
    /// The text in lower case with marks that only wildcards fit where something is not known, for rules that allow.
    open: Option<String>,
    /// What it may become, in lower case.
    possible: OnceCell<Option<Possible>>,
    /// What its options may become, in lower case.
    options: OnceCell<Option<Possible>>,
    /// Its short options and the rest, as it stands and without the program's own options.
    apart: OnceCell<Vec<Apart>>,
}

/// A command of git without options that say how it prints, or in which directory below it works.
#[derive(Debug)]
struct PlainGit {
    lower: String,
    /// Whether it changes the directory, as `cd` does.
    moves: bool,
}

/// A command line with the texts of its parts.
#[derive(Debug)]
pub(super) struct LineTexts<'a> {
    pub(super) whole: Text,
    pub(super) parts: Vec<LinePart<'a>>,
    /// The redirections that need a rule.
    pub(super) writes: Vec<Write<'a>>,
    /// What cannot be known of it, and of where it writes.
    pub(super) unknown: Vec<Unknown>,
    /// Where files would be moved to and lost.
    pub(super) lost: &'a [String],
}

/// Everything rules ask about one call.
#[derive(Debug)]
pub(super) struct RuleSubject<'a> {
    pub(super) call: &'a ResolvedCall,
    /// The names under which rules know the tool, in lower case: the one it is offered by, and `plugin__tool`. `bash` alone for the
    /// shell.
    pub(super) names: Vec<String>,
    pub(super) line: Option<LineTexts<'a>>,
    /// The resolved paths.
    pub(super) paths: Vec<Text>,
    /// What patterns are matched against when there is no command: the paths, the address, or every string argument. Never empty then.
    pub(super) texts: Vec<Text>,
    /// Every string argument at any depth, for rules that refuse; empty when there is a command.
    pub(super) strings: Vec<Text>,
}

impl<'a> RuleSubject<'a> {
    /// Makes the texts of `call`.
    pub(super) fn new(policy: &Policy, call: &'a ResolvedCall) -> Self {
        let line = call.command.as_ref();
        let names = names(&call.tool);
        let paths: Vec<Text> = call.paths.iter().map(|path| Text::of_path(path)).collect();
        let strings = match line {
            Some(_) => Vec::new(),
            None => strings(call),
        };
        let texts = match line {
            Some(_) => Vec::new(),
            None => texts(call, &names, &strings),
        };
        Self {
            call,
            names,
            line: line.map(|line| LineTexts::new(policy, line)),
            paths,
            texts,
            strings: strings.into_iter().map(Text::new).collect(),
        }
    }
}

impl Text {
    pub(super) fn new(given: String) -> Self {
        let lower = given.to_lowercase();
        Self { given, lower }
    }

    pub(super) fn of_path(path: &Path) -> Self {
        Self::new(path.to_string_lossy().into_owned())
    }
}

impl<'a> LineTexts<'a> {
    fn new(policy: &Policy, line: &'a CommandLine) -> Self {
        let writes = redirection::writes(policy, line);
        let mut unknown = line.unknown.clone();
        let hidden = writes.iter().filter(|write| write.places.is_none());
        unknown.extend(hidden.map(|write| Unknown {
            reason: "the file it writes to is known only then".to_owned(),
            part: write.shown(),
        }));
        Self {
            whole: Text::new(line.text.trim().to_owned()),
            parts: line
                .commands
                .iter()
                .enumerate()
                .map(|(idx, command)| LinePart::new(idx, command))
                .collect(),
            writes,
            unknown,
            lost: &line.places.lost,
        }
    }

    /// The parts that need a rule of their own: all but wrappers that add nothing and what another part's rule covers, unless there is
    /// nothing else.
    pub(super) fn required(&self) -> Vec<&LinePart<'a>> {
        self.parts
            .iter()
            .filter(|part| self.requires(part))
            .collect()
    }

    /// Whether `part`, one of this line, needs a rule of its own.
    pub(super) fn requires(&self, part: &LinePart<'_>) -> bool {
        let adds = |part: &LinePart<'_>| {
            !matches!(part.command.wraps, Wraps::Transparently | Wraps::Within)
        };
        adds(part) || !self.parts.iter().any(adds)
    }
}

impl<'a> LinePart<'a> {
    pub(super) fn new(idx: usize, command: &'a SimpleCommand) -> Self {
        let text = Text::new(command.text());
        let name = command.name.len() - command.base_name().len();
        let bare = (name > 0).then(|| command.text()[name..].to_lowercase());
        let without_globals = globals::end(command).map(|at| {
            let words = command.arguments.iter().skip(at).map(String::as_str);
            let words: Vec<&str> = std::iter::once(command.base_name()).chain(words).collect();
            Text::new(words.join(" "))
        });
        Self {
            command,
            idx,
            text,
            bare,
            without_globals,
            plain_git: plain_git(command),
            open: (!command.holes.is_empty()).then(|| open(command).to_lowercase()),
            possible: OnceCell::new(),
            options: OnceCell::new(),
            apart: OnceCell::new(),
        }
    }

    /// Whether a pattern that allows fits, whatever the arguments that are not known turn out to be.
    pub(super) fn is_allowed_by(&self, pattern: &Pattern) -> bool {
        let is_spelled = || pattern.text.contains(['$', '~', '`']);
        match &self.open {
            Some(open) => {
                pattern.fits_command(open) || is_spelled() && pattern.fits_command(&self.text.lower)
            }
            None => pattern.fits_command(&self.text.lower),
        }
    }

    /// Whether a pattern that allows fits without such options of git. Only where the rule comes from a preset, which allows `cd`, may these
    /// change the directory.
    pub(super) fn is_allowed_plainly_by(&self, pattern: &Pattern, is_preset: bool) -> bool {
        let plain = self.plain_git.as_ref();
        let plain = plain.filter(|plain| is_preset || !plain.moves);
        plain.is_some_and(|plain| pattern.fits_command(&plain.lower))
    }

    /// Whether a pattern that refuses or asks fits.
    pub(super) fn is_meant_by(&self, pattern: &Pattern) -> bool {
        let other = [
            &self.bare,
            &self.without_globals.as_ref().map(|text| text.lower.clone()),
        ];
        pattern.fits_command(&self.text.lower)
            || other
                .into_iter()
                .flatten()
                .any(|text| pattern.fits_command(text))
            || self.fits_options(pattern)
    }

    /// Whether a pattern fits with the short options written in another way.
    fn fits_options(&self, pattern: &Pattern) -> bool {
        let make = || Apart::of_command(self.command);
        let mut forms = self.apart.get_or_init(make).iter();
        forms.any(|form| pattern.fits_options(form))
    }

    /// Whether a pattern that refuses would fit what this may become.
    pub(super) fn may_be_refused_by(&self, pattern: &Pattern) -> bool {
        let make = || Possible::new(self.command, true);
        self.may_fit(self.possible.get_or_init(make).as_ref(), pattern)
    }

    /// Whether a pattern that asks would fit the options this may have.
    pub(super) fn may_be_asked_by(&self, pattern: &Pattern) -> bool {
        let make = || Possible::options(self.command);
        self.names().iter().any(|name| pattern.names(name))
            && self.may_fit(self.options.get_or_init(make).as_ref(), pattern)
    }

    fn names(&self) -> [String; 2] {
        [self.command.name.as_str(), self.command.base_name()].map(str::to_lowercase)
    }

    /// Whether a pattern fits when a long option is written out of which the beginning stands there.
    fn fits_written_out(&self, pattern: &Pattern) -> bool {
        let options = pattern.long_options();
        let words = || self.command.arguments.iter().enumerate();
        let fits = |option: &String, at: usize| {
            let written = words().map(|(idx, word)| match idx == at {
                true => option.clone() + word.find('=').map_or("", |value| &word[value..]),
                false => word.clone(),
            });
            let name = self.command.base_name();
            let written: Vec<String> = written.collect();
            let words = std::iter::once(name).chain(written.iter().map(String::as_str));
            let text: Vec<&str> = words.collect();
            let apart = Apart::new(name, written.iter().map(String::as_str), true);
            pattern.fits_command(&text.join(" ").to_lowercase())
                || apart.is_some_and(|apart| pattern.fits_options(&apart))
        };
        options.iter().any(|option| {
            let is_begun = |word: &str| {
                let name = word.split('=').next().unwrap_or_default();
                name.len() > 2 && name.len() < option.len() && option.starts_with(name)
            };
            words().any(|(at, word)| is_begun(word) && fits(option, at))
        })
    }

    fn may_fit(&self, possible: Option<&Possible>, pattern: &Pattern) -> bool {
        if self.fits_written_out(pattern) {
            return true;
        }
        let Some(possible) = possible else {
            return false;
        };
        let can_begin = self.names().map(|name| pattern.may_begin_with(&name));
        can_begin.contains(&true) && possible.may_fit(pattern.automaton())
    }
}

/// The text of a command whose holes are marked.
fn open(command: &SimpleCommand) -> String {
    const MARK: &str = "\u{fffc}\u{fffc}";
    let mut text = command.name.clone();
    for (at, word) in command.arguments.iter().enumerate() {
        text.push(' ');
        let mut done = 0;
        for hole in command.holes.iter().filter(|hole| hole.argument == at) {
            text.push_str(word.get(done..hole.start).unwrap_or_default());
            text.push_str(MARK);
            done = hole.end;
        }
        text.push_str(word.get(done..).unwrap_or_default());
    }
    text
}

/// The names under which rules know `tool`.
pub(super) fn names(tool: &Tool) -> Vec<String> {
    let offered = tool_key(tool.name.as_str());
    let qualified = tool.qualified_name().to_lowercase();
    match qualified == offered || tool.backend == Backend::Shell {
        true => vec![offered],
        false => vec![offered, qualified],
    }
}

/// How rules name a tool: lower case, and one name for the shell.
///
/// Two tools that rules could not tell apart have one key.
pub fn tool_key(name: &str) -> String {
    let name = name.trim().to_lowercase();
    match name.as_str() {
        "sh" | "shell" => SHELL.to_owned(),
        _ => name,
    }
}

/// The command line of a call of the shell that was not analysed: everything in it is unknown.
pub(super) fn unanalysed(call: &ResolvedCall) -> Option<CommandLine> {
    if call.command.is_some() || call.tool.backend != Backend::Shell {
        return None;
    }
    let text = call.arguments.values.get("command")?.as_str()?;
    Some(CommandLine {
        text: text.to_owned(),
        unknown: vec![Unknown {
            reason: "the command could not be analysed".to_owned(),
            part: crate::failure::one_line(text, 200),
        }],
        ..CommandLine::default()
    })
}

fn strings(call: &ResolvedCall) -> Vec<String> {
    let mut found = Vec::new();
    for value in call.arguments.values.values() {
        collect(value, DEPTH_MAX, &mut found);
    }
    found
}

fn texts(call: &ResolvedCall, names: &[String], strings: &[String]) -> Vec<Text> {
    let values = &call.arguments.values;
    let mut found = Vec::new();
    if !call.paths.is_empty() {
        found.extend(
            call.paths
                .iter()
                .map(|path| path.to_string_lossy().into_owned()),
        );
    } else if let Some(Value::String(url)) = values.get("url")
        && names.iter().any(|name| URL_TOOLS.contains(&name.as_str()))
    {
        found.push(url.clone());
    } else {
        found.extend_from_slice(strings);
    }
    // A call without arguments is judged too: `*` fits it.
    if found.is_empty() {
        found.push(String::new());
    }
    found.into_iter().map(Text::new).collect()
}

fn collect(value: &Value, depth: u32, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) if depth > 0 => items
            .iter()
            .for_each(|item| collect(item, depth - 1, found)),
        Value::Object(members) if depth > 0 => members
            .values()
            .for_each(|member| collect(member, depth - 1, found)),
        _ => {}
    }
}

fn plain_git(command: &SimpleCommand) -> Option<PlainGit> {
    let is_known = command.name == "git" && command.holes.is_empty();
    let end = globals::end(command).filter(|_| is_known)?;
    let mut moves = false;
    let mut options = command.arguments[..end].iter().map(String::as_str);
    while let Some(option) = options.next() {
        match option {
            "--no-pager" | "-P" | "--no-optional-locks" | "--no-advice" => {}
            "-C" if options.next().is_some_and(is_below) => moves = true,
            _ => return None,
        }
    }
    let words = command.arguments[end..].iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once("git").chain(words).collect();
    let lower = words.join(" ").to_lowercase();
    Some(PlainGit { lower, moves })
}

/// Whether a word names a directory below the one where the command is.
fn is_below(word: &str) -> bool {
    let mut parts = Path::new(word).components();
    let is_plain = !word.is_empty() && !word.starts_with(['-', '~']);
    is_plain && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
