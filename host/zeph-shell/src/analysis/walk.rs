//! From the tree to the list of commands.

use std::collections::BTreeMap;
use std::ops::Range;

use zeph_core::command::{CommandLine, Redirection, SimpleCommand, Unknown, Wraps};

use super::brace;
use super::numbers::{Certain, Chain, NameSet, Numbers};
use super::place;
use super::syntax::{
    CommandShape, ControlKind, Dialect, Expansion, ExpansionKind, Joint, List, Pipeline, Redirect,
    RedirectKind, Script, SyntaxCommand, VariableAssignment, Word, WordPart,
};
use super::value::Value;
use super::variables::{self, For};
use super::wrapper;

mod control;
mod function;
mod known;
mod number;
mod run;
mod setting;

pub(super) use self::run::command_of;

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

/// The option of bash with which a pattern that matches no file is left out. Whether a command turned it on is not tracked: a text that names it is read as if it were on throughout.
const DROPS_PATTERNS: &str = "nullglob";

/// What is being walked.
pub(super) struct ScriptWalk {
    pub(super) line: CommandLine,
    bytes: usize,
    numbers: Numbers,
    /// Functions that are defined for certain where the walk is.
    functions: Vec<String>,
    /// Which commands are calls of them.
    calls: Vec<usize>,
    /// Whether every variable that is set is exported from here on.
    exports_all: bool,
    /// What stands on the standard input of the command where the walk is.
    piped: Piped,
    /// Variables that are references to others.
    references: Vec<String>,
    /// Variables of loops. A loop over a reference leads it to each of its words.
    rounds: Vec<String>,
    /// What functions set for certain.
    ends: BTreeMap<String, NameSet>,
}

/// What a command finds on its standard input.
#[derive(Debug, Clone)]
enum Piped {
    /// What the line as a whole has there: nothing.
    Nothing,
    /// This text.
    Text(String),
    /// The content of files, which is as good as the files themselves.
    Files,
    /// Anything.
    Anything,
}

impl Piped {
    /// What a builtin prints, with each of its words in a line of its own too. Escapes can stand for any character.
    fn printed(texts: &[&str]) -> Self {
        let escapes = |text: &&str| {
            let after = text.split('\\').skip(1);
            after
                .into_iter()
                .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "xuUc".contains(c)))
        };
        match texts.iter().any(escapes) {
            true => Self::Anything,
            false => Self::Text(format!("{}\n{}", texts.join(" "), texts.join("\n"))),
        }
    }

    /// What a command before a `|` prints.
    fn by(at: WalkPosition<'_>, command: &SyntaxCommand) -> Self {
        let CommandShape::Simple { words, .. } = &command.shape else {
            return Self::Anything;
        };
        let values = values(at, words);
        let texts: Option<Vec<&str>> = values.iter().map(Value::as_literal).collect();
        match texts.as_deref() {
            Some(["echo" | "printf", texts @ ..]) => Self::printed(texts),
            Some(["cat", words @ ..]) if command.redirects.is_empty() && are_files(words) => {
                Self::Files
            }
            _ => Self::Anything,
        }
    }
}

/// Whether the words of a `cat` name files, and not what it finds on its own standard input.
fn are_files(words: &[&str]) -> bool {
    let mut operands = words
        .iter()
        .filter(|word| !word.starts_with("-") || **word == "-");
    let is_named = operands.clone().next().is_some();
    is_named && operands.all(|word| !wrapper::is_input(word))
}

/// Where the walk is.
#[derive(Clone, Copy)]
struct WalkPosition<'s> {
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
    /// Whether it runs in any case, and in the shell that reads the text.
    is_certain: bool,
    /// Whether it runs in the shell that reads the text, if it runs, and no program or wrapper stands before it.
    is_own: bool,
    /// Whether a pattern that matches no file may be no word at all.
    drops_patterns: bool,
}

impl ScriptWalk {
    pub(super) fn new(text: &str) -> Self {
        Self {
            line: CommandLine {
                text: text.to_owned(),
                ..CommandLine::default()
            },
            bytes: 0,
            numbers: Numbers::default(),
            functions: Vec::new(),
            calls: Vec::new(),
            exports_all: false,
            piped: Piped::Nothing,
            references: Vec::new(),
            rounds: Vec::new(),
            ends: BTreeMap::new(),
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
        let at = WalkPosition {
            script,
            depth: 0,
            wrappers: 0,
            is_within: false,
            is_repeated: false,
            is_elsewhere: false,
            is_certain: true,
            is_own: true,
            drops_patterns: self.line.text.contains(DROPS_PATTERNS),
        };
        self.top(at, &script.list);
        self.finish();
    }

    /// What only the whole text tells.
    fn finish(&mut self) {
        let doubtful: Vec<String> = self
            .numbers
            .doubtful()
            .into_iter()
            .map(str::to_owned)
            .collect();
        for part in doubtful {
            self.unknown("arithmetic would run what comes from outside", &part);
        }
        for part in self.numbers.refused().to_vec() {
            self.unknown("bash refuses this arithmetic, and what follows it", &part);
        }
        for name in self.numbers.decisive().to_vec() {
            self.unknown(
                "a variable that decides what is run is set where it is looked at",
                &name,
            );
        }
        if let Some(word) = self.numbers.compound().map(str::to_owned) {
            self.unknown(
                "the elements of an array are made of text that is read once more",
                &word,
            );
        }
        let led = self
            .rounds
            .iter()
            .find(|name| self.references.contains(name));
        if let Some(name) = led.cloned() {
            self.unknown("a loop leads a reference to other variables", &name);
        }
        // A function that is removed leaves the program of its name.
        let removes = |command: &SimpleCommand| command.base_name() == "unset";
        if self.line.commands.iter().any(removes) {
            for call in std::mem::take(&mut self.calls) {
                if let Some(command) = self.line.commands.get_mut(call) {
                    command.wraps = Wraps::Nothing;
                }
            }
        }
    }

    fn list(&mut self, at: WalkPosition<'_>, list: &List) {
        let at = WalkPosition {
            depth: at.depth + 1,
            is_certain: false,
            ..at
        };
        let before = self.numbers.literals.clone();
        self.pipelines(list, |this, pipeline| this.pipeline(at, pipeline));
        self.numbers.literals.keep_common(&before);
    }

    /// Whether there are too many commands; the line is unknown then.
    pub(super) fn is_full(&self) -> bool {
        self.line.commands.len() >= COMMANDS_MAX || self.bytes > BYTES_MAX
    }

    /// Walks a list whose pipelines run one after the other in the shell itself, whatever happens.
    fn top(&mut self, at: WalkPosition<'_>, list: &List) {
        self.pipelines(list, |this, pipeline| {
            let at = WalkPosition {
                depth: at.depth + 1,
                is_certain: pipeline.is_certain() && pipeline.commands.len() == 1,
                ..at
            };
            this.pipeline(at, pipeline);
        });
    }

    /// Walks pipelines one after the other. What one sets that may not run is known to the end of its chain of `&&` and `||`.
    fn pipelines(&mut self, list: &List, mut walk: impl FnMut(&mut Self, &Pipeline)) {
        let mut before = self.numbers.literals.clone();
        let mut chain = Chain::new(self.numbers.certain.always);
        for pipeline in &list.pipelines {
            if self.is_full() {
                return;
            }
            if pipeline.is_certain() {
                self.numbers.literals.keep_common(&before);
            }
            if pipeline.joint == Joint::Always {
                chain = Chain::new(chain.end().always);
            }
            self.numbers.certain = chain.start(pipeline);
            walk(self, pipeline);
            chain.add(pipeline, self.numbers.certain);
            if pipeline.is_certain() {
                before.clone_from(&self.numbers.literals);
            }
        }
        self.numbers.certain = chain.end();
        self.numbers.literals.keep_common(&before);
    }

    fn pipeline(&mut self, at: WalkPosition<'_>, pipeline: &Pipeline) {
        let words = match pipeline.commands.first().map(|command| &command.shape) {
            Some(CommandShape::Simple { words, .. }) => values(at, words),
            _ => Vec::new(),
        };
        match words.as_slice() {
            words if pipeline.is_timed => {
                self.push(&Value::literal("time"), words, Wraps::Transparently);
            }
            [_, option, words @ ..] if pipeline.may_be_timed => {
                self.push(option, words, Wraps::Nothing);
            }
            _ => {}
        }
        if let [command] = pipeline.commands.as_slice() {
            return self.command(at, command);
        }
        // Each runs in a shell of its own.
        let before = self.numbers.literals.clone();
        let around = self.piped.clone();
        let certain = self.numbers.certain;
        for command in &pipeline.commands {
            self.numbers.certain = certain;
            self.command(at, command);
            self.numbers.literals.keep_common(&before);
            self.piped = Piped::by(at, command);
        }
        self.piped = around;
        self.numbers.certain = certain;
        if pipeline.commands.len() > 1 {
            self.numbers.set("PIPESTATUS");
        }
    }

    fn command(&mut self, at: WalkPosition<'_>, command: &SyntaxCommand) {
        let first = self.line.commands.len();
        let mut end = None;
        let around = self.piped.clone();
        if let Some(given) = run::given(at, &command.redirects) {
            self.piped = given;
        }
        let before = self.numbers.certain.always;
        match &command.shape {
            CommandShape::Simple { assignments, words } => {
                end = Some(self.simple(at, assignments, words, &command.redirects));
            }
            CommandShape::Group(list) => self.list(at, list),
            CommandShape::Subshell(list) => self.aside(|this| this.list(at, list)),
            CommandShape::Control { kind, words, lists } => self.control(at, *kind, words, lists),
            CommandShape::For {
                variable,
                words,
                body,
            } => self.rounds(at, variable, words, body),
            CommandShape::Test(words) => {
                self.test(words);
                self.aside(|this| this.looked_at(at, words));
            }
            CommandShape::Select { words, lists } => {
                self.unknown("`select` runs what a person answers", "select");
                self.numbers.literals.forget_all();
                self.aside(|this| this.control(at, ControlKind::While, words, lists));
            }
            CommandShape::Function(name, body) => self.function(at, name.as_deref(), body),
            CommandShape::Coprocess { name, body } => {
                self.aside(|this| {
                    this.piped = Piped::Anything;
                    this.command(uncertain(at), body);
                });
                if let Some(name) = name {
                    self.sets_number(name);
                    self.numbers.set(name);
                }
            }
        }
        // `exec < FILE` is for all that follows.
        let is_for_the_rest = is_for_the_rest(command);
        if !is_for_the_rest {
            self.piped = around;
        }
        let after = self.numbers.certain;
        self.numbers.certain = Certain::at(before);
        let commands = first..end.unwrap_or(self.line.commands.len());
        for redirect in &command.redirects {
            self.redirect(at, redirect, commands.clone());
        }
        self.numbers.certain = after;
        self.redirected(command, before);
    }

    /// Takes back what a command sets if one of its redirections fails: it does not run then.
    fn redirected(&mut self, command: &SyntaxCommand, before: NameSet) {
        let is_assignment =
            matches!(&command.shape, CommandShape::Simple { words, .. } if words.is_empty());
        if !command.redirects.is_empty() && !is_assignment {
            self.numbers.certain.always = self.numbers.certain.always.both(before);
        }
        if is_for_the_rest(command) {
            let names = command.redirects.iter().filter_map(|r| r.variable());
            for name in names {
                self.numbers.set_on_success(name);
            }
        }
    }

    /// Walks what sets nothing for the shell around it.
    fn aside(&mut self, walk: impl FnOnce(&mut Self)) {
        let certain = self.numbers.certain;
        walk(self);
        self.numbers.certain = certain;
    }

    /// Takes in a simple command; where the commands end that are its own.
    fn simple(
        &mut self,
        at: WalkPosition<'_>,
        assignments: &[VariableAssignment],
        words: &[Word],
        redirects: &[Redirect],
    ) -> usize {
        let values = values(at, words);
        let whom = match values.first() {
            Some(program) => For::Program(&program.text),
            None if self.exports_all => For::All,
            None => For::Shell,
        };
        let before = self.numbers.certain;
        self.condition(words);
        let known = self.known(at, words);
        let around = self.lend(assignments, !words.is_empty());
        match self.is_function(&values) {
            true => self.call(at, &values),
            false => self.run(at, &values, redirects),
        }
        let end = self.line.commands.len();
        self.run_known(at, known, redirects);
        self.origins(at, words);
        self.quoted_compounds(words);
        self.give_back(around);
        // Words are expanded before the command runs.
        let ran = std::mem::replace(&mut self.numbers.certain, before);
        match words.is_empty() {
            true => self.assignments(at, assignments, whom),
            false => self.aside(|this| this.assignments(at, assignments, whom)),
        }
        self.declared_values(words);
        self.words(at, words);
        self.numbers.certain = Certain::merged(before, self.numbers.certain, ran);
        end
    }

    fn words(&mut self, at: WalkPosition<'_>, words: &[Word]) {
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
                if let WordPart::Expansion(expansion) = part {
                    self.expansion(at, expansion);
                }
            }
        }
    }

    fn expansion(&mut self, at: WalkPosition<'_>, expansion: &Expansion) {
        match expansion.kind {
            ExpansionKind::Value => self.parameter(expansion),
            ExpansionKind::Arithmetic => self.arithmetic(&expansion.source),
            // The program that is given its name is looked at instead.
            ExpansionKind::Process => {}
            ExpansionKind::Prompt => {
                self.unknown("`@P` runs what a variable holds", &expansion.source);
            }
        }
        for list in &expansion.lists {
            self.aside(|this| this.list(at, list));
        }
    }

    fn redirect(&mut self, at: WalkPosition<'_>, redirect: &Redirect, commands: Range<usize>) {
        let target = Value::of(&redirect.target);
        if let Some(name) = redirect.variable() {
            self.sets_number(variables::whole_name(name));
        }
        let known = Value::of(&self.numbers.literals.put_whole(&redirect.target));
        let is_sure = !at.is_repeated && self.are_certain(&redirect.target);
        let sure = if is_sure { &known } else { &target };
        if place::is_network(&known) {
            self.unknown("a redirection opens a network connection", &target.text);
        } else if place::may_be_network(&known) || place::may_be_network(sure) {
            self.unknown("a redirection may open a network connection", &target.text);
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
        let is_file = matches!(redirect.kind, RedirectKind::Duplicate { .. }) && writes.is_some();
        if is_file && place::may_be_expanded(sure) {
            self.unknown(
                "bash expands the name of a file behind `>&` twice",
                &target.text,
            );
        }
        let is_pipe = matches!(
            redirect.target.parts.as_slice(),
            [WordPart::Expansion(expansion)] if expansion.kind == ExpansionKind::Process
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
                    if let WordPart::Expansion(expansion) = part {
                        self.expansion(at, expansion);
                    }
                }
            }
            _ => self.words(at, std::slice::from_ref(&redirect.target)),
        }
    }
}

/// Whether a command only redirects the shell itself.
fn is_for_the_rest(command: &SyntaxCommand) -> bool {
    let is_exec = |words: &[Word]| matches!(words, [word] if Value::of(word).text == "exec");
    matches!(&command.shape, CommandShape::Simple { words, .. } if is_exec(words))
}

/// The words that a command gets.
fn values(at: WalkPosition<'_>, words: &[Word]) -> Vec<Value> {
    let values = braced(at, words).into_iter().map(|word| Value::of(&word));
    match at.drops_patterns {
        true => values.map(Value::without_match).collect(),
        false => values.collect(),
    }
}

/// The words with their braces expanded, which not every shell does.
fn braced(at: WalkPosition<'_>, words: &[Word]) -> Vec<Word> {
    match at.script.dialect {
        Dialect::Bash => words.iter().flat_map(brace::expand).collect(),
        Dialect::Portable => words.to_vec(),
    }
}

/// For commands of which it is unknown whether, where and how often they run.
fn uncertain(at: WalkPosition<'_>) -> WalkPosition<'_> {
    WalkPosition {
        is_certain: false,
        is_repeated: true,
        ..at
    }
}
