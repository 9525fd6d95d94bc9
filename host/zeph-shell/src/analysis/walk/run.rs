//! Commands, what they wrap, and the texts that shells read.

use zeph_core::command::{Hole, SimpleCommand, Unknown, Wraps};

use super::super::place;
use super::super::reader;
use super::super::syntax::{Dialect, Redirect, RedirectKind, WordPart};
use super::super::value::Value;
use super::super::wrapper::{self, WrappedCommand};
use super::{DROPS_PATTERNS, Piped, ScriptWalk, WRAPPERS_MAX, WalkPosition, uncertain};

/// Why the walk ends early.
const TOO_DEEP: &str = "it is wrapped too deeply";
const TOO_MANY: &str = "it holds too many commands";

impl ScriptWalk {
    /// Takes in a command and what it wraps.
    pub(super) fn run(&mut self, at: WalkPosition<'_>, values: &[Value], redirects: &[Redirect]) {
        let Some((name, arguments)) = values.split_first() else {
            return;
        };
        if at.wrappers > WRAPPERS_MAX || at.depth > reader::DEPTH_MAX {
            return self.unknown(TOO_DEEP, &name.text);
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
        let names_option = |word: &Value| word.text.contains(DROPS_PATTERNS);
        if !at.drops_patterns && arguments.iter().any(names_option) {
            self.unknown(
                "an option that drops patterns is not spelled out",
                &name.text,
            );
        }
        if !streams_are_read(base, arguments, &look) {
            self.unknown("a process substitution runs beside it", &name.text);
        }
        let wraps = match at.is_within {
            true => Wraps::Within,
            false => look.wraps,
        };
        if !self.push(name, arguments, wraps) {
            return;
        }
        for (name, arguments) in wrapper::usual(base, arguments) {
            self.push(&name, &arguments, Wraps::Within);
        }
        self.names(at, base, arguments, &look);
        self.line.moves.extend(place::moves(
            base,
            arguments,
            at.is_repeated || at.is_elsewhere,
        ));
        // Some signals come more than once: `trap 'cd ..' DEBUG`.
        let at = match base {
            "trap" => uncertain(at),
            _ => at,
        };
        let at = WalkPosition {
            wrappers: at.wrappers + 1,
            is_elsewhere: at.is_elsewhere || !place::stays(base, arguments),
            is_own: false,
            ..at
        };
        self.wrapped(at, (&name.text, base), &look, redirects);
    }

    /// Takes in what a command wraps.
    fn wrapped(
        &mut self,
        at: WalkPosition<'_>,
        (name, base): (&str, &str),
        look: &wrapper::Look,
        redirects: &[Redirect],
    ) {
        for inner in &look.inner {
            match inner {
                WrappedCommand::Words(words) => self.run(at, words, redirects),
                WrappedCommand::Within(words) => {
                    let at = WalkPosition {
                        is_within: true,
                        ..at
                    };
                    self.run(at, words, redirects);
                }
                WrappedCommand::Guess(words) => self.guess(at, words, redirects),
                WrappedCommand::Text(text) => self.text(at, text, Dialect::Portable),
                WrappedCommand::Bash(text) => self.text(at, text, Dialect::Bash),
                WrappedCommand::Same(text) => self.same(at, text),
                WrappedCommand::Input => self.input(at, name, redirects),
                WrappedCommand::Statements => self.statements(at, base, redirects),
            }
        }
    }

    /// Takes in words that may be a command: its commands are seen, and what is not known of them does not count.
    fn guess(&mut self, at: WalkPosition<'_>, words: &[Value], redirects: &[Redirect]) {
        let n_unknown = self.line.unknown.len();
        let n_moves = self.line.moves.len();
        let at = WalkPosition {
            is_within: true,
            ..at
        };
        self.run(at, words, redirects);
        self.line.moves.truncate(n_moves);
        let added = self.line.unknown.split_off(n_unknown);
        let ends = |unknown: &Unknown| [TOO_DEEP, TOO_MANY].contains(&unknown.reason.as_str());
        self.line.unknown.extend(added.into_iter().filter(ends));
    }

    /// Takes in a text that a shell of its own reads.
    pub(super) fn text(&mut self, at: WalkPosition<'_>, text: &Value, dialect: Dialect) {
        if !text.is_literal {
            self.unknown("the text it runs is made while it runs", &text.text);
        }
        if at.wrappers >= WRAPPERS_MAX {
            return self.unknown(TOO_DEEP, &text.text);
        }
        let functions = std::mem::take(&mut self.functions);
        let exported = self.numbers.literals.exported();
        let literals = std::mem::replace(&mut self.numbers.literals, exported);
        let around = self.numbers.enter_shell();
        self.script_text(at, text, dialect, true);
        self.numbers.leave_shell(around);
        self.numbers.literals = literals;
        self.functions = functions;
    }

    fn script_text(&mut self, at: WalkPosition<'_>, text: &Value, dialect: Dialect, is_own: bool) {
        match reader::read(&text.text, dialect, at.depth) {
            Ok(script) => {
                let inner = WalkPosition {
                    script: &script,
                    wrappers: at.wrappers + 1,
                    is_certain: false,
                    is_own: true,
                    ..at
                };
                match is_own {
                    true => self.top(inner, &script.list),
                    false => self.list(inner, &script.list),
                }
            }
            Err(error) => self.unknown(error.reason, &error.part),
        }
    }

    /// Takes in a text that the shell reads that runs it.
    fn same(&mut self, at: WalkPosition<'_>, text: &Value) {
        if !text.is_literal {
            self.unknown("the text it runs is made while it runs", &text.text);
        }
        if at.wrappers >= WRAPPERS_MAX {
            return self.unknown(TOO_DEEP, &text.text);
        }
        // A trap runs whenever a signal comes.
        let around = self.numbers.enter(None, false);
        self.script_text(at, text, at.script.dialect, false);
        self.numbers.leave(around);
    }

    /// Takes in what a shell finds on its standard input.
    fn input(&mut self, at: WalkPosition<'_>, name: &str, redirects: &[Redirect]) {
        let dialect = match name.ends_with("bash") {
            true => Dialect::Bash,
            false => Dialect::Portable,
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
                    .all(|part| matches!(part, WordPart::Quoted(_)));
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

    /// Takes in the statements that a program finds on its standard input.
    fn statements(&mut self, at: WalkPosition<'_>, name: &str, redirects: &[Redirect]) {
        const REASON: &str = "it can run commands that stand in what it reads";
        let given = given(at, redirects).unwrap_or_else(|| self.piped.clone());
        let acts = match given {
            Piped::Nothing | Piped::Files => false,
            Piped::Text(text) => wrapper::statements_act(name, &text.replace("\\n", "\n")),
            Piped::Anything => true,
        };
        if acts {
            self.unknown(REASON, name);
        }
    }

    /// Notes a command; whether there was room for it.
    pub(super) fn push(&mut self, name: &Value, arguments: &[Value], wraps: Wraps) -> bool {
        let arguments_bytes: usize = arguments
            .iter()
            .map(|argument| argument.text.len() + 1)
            .sum();
        self.bytes += name.text.len() + arguments_bytes;
        self.numbers.calls(&name.text);
        if !name.text.is_empty() && !self.is_full() {
            self.line.commands.push(command_of(name, arguments, wraps));
        }
        if self.is_full() {
            self.unknown(TOO_MANY, &name.text);
        }
        !self.is_full()
    }
}

/// What redirections put on the standard input; `None` when they leave it as it is.
pub(super) fn given(at: WalkPosition<'_>, redirects: &[Redirect]) -> Option<Piped> {
    let redirect = redirects.iter().rev().find(is_input)?;
    Some(match redirect.kind {
        RedirectKind::HereDocument(slot) => {
            let document = at.script.documents.get(slot).map(Value::of);
            Piped::Text(document.map(|value| value.text).unwrap_or_default())
        }
        RedirectKind::HereString => Piped::Text(Value::of(&redirect.target).text),
        RedirectKind::Read => match Value::of(&redirect.target) {
            target if target.is_literal && !wrapper::is_input(&target.text) => Piped::Files,
            _ => Piped::Anything,
        },
        _ => Piped::Anything,
    })
}

/// Whether a redirection is of the standard input.
fn is_input(redirect: &&Redirect) -> bool {
    let writes = matches!(
        redirect.kind,
        RedirectKind::Write | RedirectKind::Duplicate { is_output: true }
    );
    matches!(redirect.descriptor.as_str(), "" | "0") && !writes
}

/// Programs that only read what `<(…)` gives them, and write what `>(…)` takes.
const READERS: &[&str] = &[
    "[",
    "b3sum",
    "base64",
    "cat",
    "cksum",
    "cmp",
    "colordiff",
    "column",
    "comm",
    "cp",
    "cut",
    "delta",
    "diff",
    "diff3",
    "difft",
    "echo",
    "egrep",
    "expand",
    "fgrep",
    "file",
    "fmt",
    "fold",
    "grep",
    "gunzip",
    "gzip",
    "head",
    "hexdump",
    "icdiff",
    "iconv",
    "join",
    "jq",
    "md5sum",
    "nl",
    "od",
    "paste",
    "printf",
    "rev",
    "rg",
    "sdiff",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "shuf",
    "sort",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "tee",
    "test",
    "tr",
    "uniq",
    "wc",
    "xxd",
    "yq",
    "zcat",
];

/// Whether everything that another command prints beside this one is read, and no more.
fn streams_are_read(base: &str, arguments: &[Value], look: &wrapper::Look) -> bool {
    let count = |words: &[Value]| words.iter().filter(|word| word.is_stream).count();
    let n = count(arguments);
    let is_diff = base == "git" && arguments.first().is_some_and(|word| word.text == "diff");
    let wraps = |inner: &WrappedCommand| matches!(inner, WrappedCommand::Words(words) | WrappedCommand::Within(words) if count(words) == n);
    n == 0 || READERS.contains(&base) || is_diff || look.inner.iter().any(wraps)
}

/// The command that words make.
pub(in super::super) fn command_of(
    name: &Value,
    arguments: &[Value],
    wraps: Wraps,
) -> SimpleCommand {
    let words = arguments.iter().filter(|argument| !argument.is_added);
    let mut holes: Vec<Hole> = Vec::new();
    for (argument, value) in words.clone().enumerate() {
        holes.extend(value.holes.iter().map(|hole| Hole { argument, ..*hole }));
    }
    let arguments_given: Vec<String> = words.map(|argument| argument.text.clone()).collect();
    let added = arguments
        .iter()
        .filter(|argument| argument.is_added)
        .take(1);
    holes.extend(added.flat_map(|value| &value.holes).map(|hole| Hole {
        argument: arguments_given.len(),
        ..*hole
    }));
    SimpleCommand {
        name: name.text.clone(),
        arguments: arguments_given,
        is_literal: name.is_literal && arguments.iter().all(|argument| argument.is_literal),
        holes,
        wraps,
    }
}
