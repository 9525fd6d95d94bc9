//! From the tree to the list of commands.

use std::ops::Range;

use zeph_core::command::{CommandLine, Redirection, SimpleCommand, Unknown, Wraps};

use super::brace;
use super::numbers::Numbers;
use super::place;
use super::syntax::{
    CommandShape, Dialect, Expansion, ExpansionKind, List, Pipeline, Redirect, RedirectKind,
    Script, SyntaxCommand, VariableAssignment, Word, WordPart,
};
use super::value::Value;
use super::variables::{self, For};
use super::wrapper;

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
                is_certain: pipeline.is_certain && pipeline.commands.len() == 1,
                ..at
            };
            this.pipeline(at, pipeline);
        });
    }

    /// Walks pipelines one after the other. What one sets that may not run is known to the end of its chain of `&&` and `||`.
    fn pipelines(&mut self, list: &List, mut walk: impl FnMut(&mut Self, &Pipeline)) {
        let mut before = self.numbers.literals.clone();
        for pipeline in &list.pipelines {
            if self.is_full() {
                return;
            }
            if pipeline.is_certain {
                self.numbers.literals.keep_common(&before);
            }
            walk(self, pipeline);
            if pipeline.is_certain {
                before.clone_from(&self.numbers.literals);
            }
        }
        self.numbers.literals.keep_common(&before);
    }

    fn pipeline(&mut self, at: WalkPosition<'_>, pipeline: &Pipeline) {
        if pipeline.is_timed {
            let words = match pipeline.commands.first().map(|command| &command.shape) {
                Some(CommandShape::Simple { words, .. }) => values(at, words),
                _ => Vec::new(),
            };
            self.push(&Value::literal("time"), &words, Wraps::Transparently);
        }
        if let [command] = pipeline.commands.as_slice() {
            return self.command(at, command);
        }
        // Each runs in a shell of its own.
        let before = self.numbers.literals.clone();
        let around = self.piped.clone();
        for command in &pipeline.commands {
            self.command(at, command);
            self.numbers.literals.keep_common(&before);
            self.piped = Piped::by(at, command);
        }
        self.piped = around;
    }

    fn command(&mut self, at: WalkPosition<'_>, command: &SyntaxCommand) {
        let first = self.line.commands.len();
        let mut end = None;
        let around = self.piped.clone();
        if let Some(given) = run::given(at, &command.redirects) {
            self.piped = given;
        }
        match &command.shape {
            CommandShape::Simple { assignments, words } => {
                end = Some(self.simple(at, assignments, words, &command.redirects));
            }
            CommandShape::Group(list) => self.list(at, list),
            CommandShape::Control { words, lists } => self.lists(at, words, lists),
            CommandShape::For {
                variable,
                words,
                body,
            } => {
                self.round(variable, words);
                self.lists(at, words, std::slice::from_ref(body));
            }
            CommandShape::Test(words) => {
                self.test(words);
                self.lists(at, words, &[]);
            }
            CommandShape::Select { words, lists } => {
                self.unknown("`select` runs what a person answers", "select");
                self.numbers.literals.forget_all();
                self.lists(at, words, lists);
            }
            CommandShape::Function(name, body) => self.function(at, name.as_deref(), body),
            CommandShape::Coprocess { name, body } => {
                if let Some(name) = name {
                    self.sets_number(name);
                }
                self.piped = Piped::Anything;
                self.command(uncertain(at), body);
            }
        }
        // `exec < FILE` is for all that follows.
        if !is_for_the_rest(command) {
            self.piped = around;
        }
        let commands = first..end.unwrap_or(self.line.commands.len());
        for redirect in &command.redirects {
            self.redirect(at, redirect, commands.clone());
        }
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
        self.condition(words);
        let known = self.known(at, words);
        let around = self.lend(assignments, !words.is_empty());
        match self.is_function(&values) {
            true => self.call(&values),
            false => self.run(at, &values, redirects),
        }
        let end = self.line.commands.len();
        self.run_known(at, known, redirects);
        self.origins(words);
        self.quoted_compounds(words);
        self.give_back(around);
        self.assignments(at, assignments, whom);
        self.declared_values(words);
        self.words(at, words);
        end
    }

    /// Words, and the lists they decide about.
    fn lists(&mut self, at: WalkPosition<'_>, words: &[Word], lists: &[List]) {
        if words.iter().any(|word| Value::of(word).is_stream) {
            self.unknown("a process substitution runs beside it", "<(");
        }
        self.words(at, words);
        for list in lists {
            self.list(uncertain(at), list);
        }
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
            self.list(at, list);
        }
    }

    fn redirect(&mut self, at: WalkPosition<'_>, redirect: &Redirect, commands: Range<usize>) {
        let target = Value::of(&redirect.target);
        let variable = redirect.descriptor.strip_prefix('{');
        if let Some(name) = variable.and_then(|name| name.strip_suffix('}')) {
            self.sets_number(variables::whole_name(name));
        }
        let known = Value::of(&self.numbers.literals.put_whole(&redirect.target));
        if place::is_network(&known) {
            self.unknown("a redirection opens a network connection", &target.text);
        } else if place::may_be_network(&known) {
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
        if is_file && place::may_be_expanded(&known) {
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
    braced(at, words).iter().map(Value::of).collect()
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
