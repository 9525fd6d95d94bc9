//! From the tree to the list of commands.

use std::ops::Range;

use zeph_core::command::{CommandLine, Redirection, SimpleCommand, Unknown, Wraps};

use super::place;
use super::reader;
use super::syntax::{
    Assignment, Command, Dialect, Expansion, ExpansionKind, List, Part, Pipeline, Redirect,
    RedirectKind, Script, Shape, Word,
};
use super::value::Value;
use super::variables;
use super::wrapper::{self, Inner};

/// Most wrappers around one command: people write three.
const WRAPPERS_MAX: usize = 16;

/// Most commands a line is taken apart into.
const COMMANDS_MAX: usize = 1_000;

/// Most bytes all names and arguments take: wrappers repeat what they wrap.
const BYTES_MAX: usize = 1024 * 1024;

/// Most things that are reported unknown; one is enough to ask.
const UNKNOWN_MAX: usize = 100;

/// Most characters of a part of the text that is shown.
const PART_MAX: usize = 200;

/// What is being walked.
pub(super) struct Walk {
    pub(super) line: CommandLine,
    bytes: usize,
}

/// Where the walk is.
#[derive(Clone, Copy)]
struct At<'s> {
    script: &'s Script,
    /// Levels of nesting so far, over all texts.
    depth: usize,
    /// Wrappers so far.
    wrappers: usize,
    /// Whether the rule of a runner around it is enough.
    is_within: bool,
    /// Whether it may run more than once.
    is_repeated: bool,
    /// Whether a wrapper around it may have gone to another directory.
    is_elsewhere: bool,
}

impl Walk {
    pub(super) fn new(text: &str) -> Self {
        Self {
            line: CommandLine {
                text: text.to_owned(),
                ..CommandLine::default()
            },
            bytes: 0,
        }
    }

    pub(super) fn unknown(&mut self, reason: &str, part: &str) {
        if self.line.unknown.len() < UNKNOWN_MAX {
            self.line.unknown.push(Unknown {
                reason: reason.to_owned(),
                part: part.chars().take(PART_MAX).collect(),
            });
        }
    }

    /// Walks what a whole text runs.
    pub(super) fn script(&mut self, script: &Script) {
        let at = At {
            script,
            depth: 0,
            wrappers: 0,
            is_within: false,
            is_repeated: false,
            is_elsewhere: false,
        };
        self.list(at, &script.list);
    }

    fn list(&mut self, at: At<'_>, list: &List) {
        let at = At {
            depth: at.depth + 1,
            ..at
        };
        for pipeline in &list.pipelines {
            if self.is_full() {
                return;
            }
            self.pipeline(at, pipeline);
        }
    }

    /// Whether there are too many commands; the line is unknown then.
    pub(super) fn is_full(&self) -> bool {
        self.line.commands.len() >= COMMANDS_MAX || self.bytes > BYTES_MAX
    }

    fn pipeline(&mut self, at: At<'_>, pipeline: &Pipeline) {
        if pipeline.is_timed {
            let words = match pipeline.commands.first().map(|command| &command.shape) {
                Some(Shape::Simple { words, .. }) => words.iter().map(Value::of).collect(),
                _ => Vec::new(),
            };
            self.push(&Value::literal("time"), &words, Wraps::Transparently);
        }
        for command in &pipeline.commands {
            self.command(at, command);
        }
    }

    fn command(&mut self, at: At<'_>, command: &Command) {
        let again = At {
            is_repeated: true,
            ..at
        };
        let first = self.line.commands.len();
        let mut end = None;
        match &command.shape {
            Shape::Simple { assignments, words } => {
                let values: Vec<Value> = words.iter().map(Value::of).collect();
                self.run(at, &values, &command.redirects);
                end = Some(self.line.commands.len());
                self.assignments(at, assignments);
                self.words(at, words);
            }
            Shape::Group(list) => self.list(at, list),
            Shape::Control { words, lists } => {
                self.words(at, words);
                for list in lists {
                    self.list(again, list);
                }
            }
            Shape::Select { words, lists } => {
                self.unknown("`select` runs what a person answers", "select");
                self.words(at, words);
                for list in lists {
                    self.list(again, list);
                }
            }
            Shape::Function(body) | Shape::Coprocess(body) => self.command(again, body),
        }
        let commands = first..end.unwrap_or(self.line.commands.len());
        for redirect in &command.redirects {
            self.redirect(at, redirect, commands.clone());
        }
    }

    fn assignments(&mut self, at: At<'_>, assignments: &[Assignment]) {
        for assignment in assignments {
            for value in &assignment.values {
                let fixed = value.fixed_text();
                if fixed.contains("$(") || fixed.contains('`') {
                    self.unknown(
                        "a variable holds a substitution, which arithmetic would run",
                        &fixed,
                    );
                }
                self.variable(at, &assignment.name, &Value::of(value));
            }
            self.words(at, &assignment.values);
        }
    }

    /// Looks at a variable that is set, here or for a command.
    fn variable(&mut self, at: At<'_>, name: &str, value: &Value) {
        if variables::is_command(name) {
            if !value.text.is_empty() {
                self.text(at, value, Dialect::Portable);
            }
        } else if variables::loads_code(name) && !variables::is_tame(name, value) {
            self.unknown("a variable is set from which a program loads code", name);
        } else if name == "PATH" && !variables::leads_to_installed(&value.text) {
            self.unknown(
                "programs are looked for in a folder of somebody's choice",
                &value.text,
            );
        }
    }

    fn words(&mut self, at: At<'_>, words: &[Word]) {
        for word in words {
            // Arithmetic, `[[ -v` and others run a substitution that stands in a subscript.
            let fixed = word.fixed_text();
            if fixed.contains("[$(") || fixed.contains("[`") {
                self.unknown(
                    "a subscript may be run wherever its text is a number",
                    &fixed,
                );
            }
            for part in &word.parts {
                if let Part::Expansion(expansion) = part {
                    self.expansion(at, expansion);
                }
            }
        }
    }

    fn expansion(&mut self, at: At<'_>, expansion: &Expansion) {
        match expansion.kind {
            ExpansionKind::Value => {}
            ExpansionKind::Process => {
                self.unknown("a process substitution runs beside it", &expansion.source);
            }
            ExpansionKind::Prompt => {
                self.unknown("`@P` runs what a variable holds", &expansion.source);
            }
        }
        for list in &expansion.lists {
            self.list(at, list);
        }
    }

    fn redirect(&mut self, at: At<'_>, redirect: &Redirect, commands: Range<usize>) {
        let target = Value::of(&redirect.target);
        let is_network = ["/dev/tcp/", "/dev/udp/"]
            .iter()
            .any(|folder| target.text.starts_with(folder));
        if is_network {
            self.unknown("a redirection opens a network connection", &target.text);
        }
        let is_descriptor = {
            let digits = target.text.strip_suffix('-').unwrap_or(&target.text);
            digits.bytes().all(|b| b.is_ascii_digit())
        };
        let writes = match redirect.kind {
            RedirectKind::Write => Some(true),
            RedirectKind::Duplicate { is_output } => (is_output && !is_descriptor).then_some(true),
            RedirectKind::Read => Some(false),
            RedirectKind::HereString | RedirectKind::HereDocument(_) => None,
        };
        let is_pipe = matches!(
            redirect.target.parts.as_slice(),
            [Part::Expansion(expansion)] if expansion.kind == ExpansionKind::Process
        );
        if let Some(writes) = writes.filter(|_| !is_pipe) {
            let path = place::path(&target);
            self.line.redirections.push(Redirection {
                operator: format!("{}{}", redirect.descriptor, redirect.operator),
                target: path.filter(|path| !at.is_elsewhere || place::is_anchored(path)),
                writes,
                commands,
            });
        }
        match redirect.kind {
            RedirectKind::HereDocument(slot) => {
                let document = at.script.documents.get(slot).cloned().unwrap_or_default();
                for part in &document.parts {
                    if let Part::Expansion(expansion) = part {
                        self.expansion(at, expansion);
                    }
                }
            }
            _ => self.words(at, std::slice::from_ref(&redirect.target)),
        }
    }

    /// Takes in a command and what it wraps.
    fn run(&mut self, at: At<'_>, values: &[Value], redirects: &[Redirect]) {
        let Some((name, arguments)) = values.split_first() else {
            return;
        };
        if at.wrappers > WRAPPERS_MAX || at.depth > reader::DEPTH_MAX {
            return self.unknown("it is wrapped too deeply", &name.text);
        }
        if !name.is_name {
            self.unknown(
                "the name of a command is made while the line runs",
                &name.text,
            );
            self.push(name, arguments, Wraps::Nothing);
            return;
        }
        // In the texts that rules look at, it could not be told from a name with arguments.
        let word = name.text.split('/').next().unwrap_or_default();
        if word.contains(char::is_whitespace) {
            self.unknown("the name of a command holds a space", &name.text);
        }
        let base = name.text.rsplit('/').next().unwrap_or(&name.text);
        let look = wrapper::look(base, arguments);
        if let Some(reason) = look.unknown {
            self.unknown(reason, &name.text);
        }
        let wraps = match at.is_within {
            true => Wraps::Within,
            false => look.wraps,
        };
        if !self.push(name, arguments, wraps) {
            return;
        }
        self.names(at, base, arguments);
        self.line.moves.extend(place::moves(
            base,
            arguments,
            at.is_repeated || at.is_elsewhere,
        ));
        let at = At {
            wrappers: at.wrappers + 1,
            is_elsewhere: at.is_elsewhere || !place::stays(base, arguments),
            ..at
        };
        for inner in &look.inner {
            match inner {
                Inner::Words(words) => self.run(at, words, redirects),
                Inner::Within(words) => {
                    let at = At {
                        is_within: true,
                        ..at
                    };
                    self.run(at, words, redirects);
                }
                Inner::Text(text) => self.text(at, text, Dialect::Portable),
                Inner::Bash(text) => self.text(at, text, Dialect::Bash),
                Inner::Same(text) => self.text(at, text, at.script.dialect),
                Inner::Input => self.input(at, &name.text, redirects),
            }
        }
    }

    /// Looks at the variables that a builtin, `env` or `sudo` sets by its arguments.
    fn names(&mut self, at: At<'_>, command: &str, arguments: &[Value]) {
        match command {
            "env" | "sudo" => self.exported(at, arguments),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                // They need a rule of their own, so a search path for all that follows is that rule's matter.
                let is_path = |word: &&Value| word.text.starts_with("PATH=");
                let others = arguments.iter().filter(|word| !is_path(word));
                self.exported(at, &others.cloned().collect::<Vec<_>>());
            }
            _ => {}
        }
        if variables::sets_by_name(command, arguments) {
            self.unknown(
                "a variable that decides what is run is set by its name",
                command,
            );
        }
    }

    /// Looks at the variables that arguments of the form `NAME=value` set.
    fn exported(&mut self, at: At<'_>, arguments: &[Value]) {
        for argument in arguments {
            if let Some((name, text)) = argument.text.split_once('=') {
                let value = Value {
                    text: text.to_owned(),
                    ..argument.clone()
                };
                self.variable(at, name, &value);
            }
        }
    }

    /// Takes in a text that a shell reads.
    fn text(&mut self, at: At<'_>, text: &Value, dialect: Dialect) {
        if !text.is_literal {
            self.unknown("the text it runs is made while it runs", &text.text);
        }
        if at.wrappers >= WRAPPERS_MAX {
            return self.unknown("it is wrapped too deeply", &text.text);
        }
        match reader::read(&text.text, dialect, at.depth) {
            Ok(script) => {
                let inner = At {
                    script: &script,
                    wrappers: at.wrappers + 1,
                    ..at
                };
                self.list(inner, &script.list);
            }
            Err(error) => self.unknown(error.reason, &error.part),
        }
    }

    /// Takes in what a shell finds on its standard input.
    fn input(&mut self, at: At<'_>, name: &str, redirects: &[Redirect]) {
        let dialect = match name.ends_with("bash") {
            true => Dialect::Bash,
            false => Dialect::Portable,
        };
        let is_input = |redirect: &&Redirect| {
            matches!(redirect.descriptor.as_str(), "" | "0")
                && !matches!(
                    redirect.kind,
                    RedirectKind::Write | RedirectKind::Duplicate { is_output: true }
                )
        };
        let Some(redirect) = redirects.iter().rev().find(is_input) else {
            return self.unknown("a shell runs what it reads", name);
        };
        match redirect.kind {
            RedirectKind::HereDocument(slot) => {
                let document = at.script.documents.get(slot).cloned().unwrap_or_default();
                let is_literal = document
                    .parts
                    .iter()
                    .all(|part| matches!(part, Part::Quoted(_)));
                let value = Value {
                    is_literal,
                    ..Value::of(&document)
                };
                self.text(at, &value, dialect);
            }
            RedirectKind::HereString => {
                let value = Value::of(&redirect.target);
                self.unknown("a shell runs what it reads", &value.text);
                self.text(at, &value, dialect);
            }
            // As good as the file.
            RedirectKind::Read if Value::of(&redirect.target).is_literal => {
                let target = Value::of(&redirect.target);
                if target.text.contains("/fd/") || target.text.ends_with("/stdin") {
                    self.unknown("a shell runs what it reads", &target.text);
                }
            }
            _ => self.unknown("a shell runs what it reads", name),
        }
    }

    /// Notes a command; whether there was room for it.
    fn push(&mut self, name: &Value, arguments: &[Value], wraps: Wraps) -> bool {
        let arguments_bytes: usize = arguments
            .iter()
            .map(|argument| argument.text.len() + 1)
            .sum();
        self.bytes += name.text.len() + arguments_bytes;
        if !name.text.is_empty() && !self.is_full() {
            self.line.commands.push(command_of(name, arguments, wraps));
        }
        if self.is_full() {
            self.unknown("it holds too many commands", &name.text);
        }
        !self.is_full()
    }
}

/// The command that words make.
pub(super) fn command_of(name: &Value, arguments: &[Value], wraps: Wraps) -> SimpleCommand {
    SimpleCommand {
        name: name.text.clone(),
        arguments: arguments
            .iter()
            .filter(|argument| !argument.is_added)
            .map(|argument| argument.text.clone())
            .collect(),
        is_literal: name.is_literal && arguments.iter().all(|argument| argument.is_literal),
        wraps,
    }
}
