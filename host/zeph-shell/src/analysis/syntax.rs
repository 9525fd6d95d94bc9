//! The tree of a script: what the reader makes and the walk goes through.
//!
//! It keeps what matters for knowing which commands may run and what is set when they do, and no more: a loop is the words it looks at and the
//! lists it may run.

/// Pipelines, in order, whatever joins them.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    pub(super) pipelines: Vec<Pipeline>,
}

/// Commands joined by `|`.
#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    /// Whether the reserved word `time` stands before it.
    pub(super) is_timed: bool,
    /// Whether its `time` is the program of this name to some shells, and to others the reserved word: then what looks like an option is run.
    pub(super) may_be_timed: bool,
    /// Whether an odd number of `!` stands before it.
    pub(super) is_negated: bool,
    /// What joins it to the pipeline before it.
    pub(super) joint: Joint,
    /// Whether `&` puts it into the background, with all that `&&` and `||` join to it.
    pub(super) is_background: bool,
    pub(super) commands: Vec<SyntaxCommand>,
}

/// When a pipeline runs, as far as the one before it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// Whatever that one did.
    Always,
    /// `&&`.
    And,
    /// `||`.
    Or,
}

impl Pipeline {
    /// Whether it runs in this shell, whatever the pipeline before it did.
    pub(super) fn is_certain(&self) -> bool {
        self.joint == Joint::Always && !self.is_background
    }
}

/// A command with its redirections.
#[derive(Debug, Clone)]
pub(super) struct SyntaxCommand {
    pub(super) shape: CommandShape,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug, Clone)]
pub(super) enum CommandShape {
    /// Assignments and words; either may be missing.
    Simple {
        assignments: Vec<VariableAssignment>,
        words: Vec<Word>,
    },
    /// `{ …; }`.
    Group(List),
    /// `( … )`.
    Subshell(List),
    /// Everything with branches or rounds, and arithmetic: the words looked at, the lists that may run.
    Control {
        kind: ControlKind,
        words: Vec<Word>,
        lists: Vec<List>,
    },
    /// A loop over words, with the variable that becomes each of them. Without words it is over `$@`.
    For {
        variable: String,
        words: Vec<Word>,
        body: List,
    },
    /// `[[ … ]]`: everything in it that is a word, operators too.
    Test(Vec<Word>),
    /// `select`, which runs its lists as often as a person answers.
    Select { words: Vec<Word>, lists: Vec<List> },
    /// The name of a function, if it is plain, and its body.
    Function(Option<String>, Box<SyntaxCommand>),
    /// What a coprocess runs, and the variable that gets its descriptors, if it is named.
    Coprocess {
        name: Option<String>,
        body: Box<SyntaxCommand>,
    },
}

/// When which of the lists of a command run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlKind {
    /// Conditions, each followed by what runs if it holds; at the end, what runs if none does.
    If,
    /// A condition, and what runs as long as it holds.
    While,
    /// A condition, and what runs until it holds.
    Until,
    /// One of the lists at least, if one of the patterns matches anything.
    Case { is_exhaustive: bool },
    /// `((…))`, which has no lists.
    Arithmetic,
    /// `for ((…))` and its body.
    ArithmeticFor,
}

/// `name=value`, `name[…]=value` or `name=(…)`.
#[derive(Debug, Clone)]
pub(super) struct VariableAssignment {
    pub(super) name: String,
    /// Whether the value is added to what is there: `name+=value`.
    pub(super) is_added: bool,
    /// Whether the variable is an array from then on: an element is set, or all of them.
    pub(super) is_array: bool,
    /// The value; the elements of an array; the subscript is part of the first.
    pub(super) values: Vec<Word>,
}

/// A word before any expansion.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<WordPart>,
}

#[derive(Debug, Clone)]
pub(super) enum WordPart {
    /// Unquoted text: a `*`, `{` or `~` in it means something.
    Text(String),
    /// Text that stands for itself.
    Quoted(String),
    /// Text that is made while the line runs.
    Expansion(Expansion),
}

#[derive(Debug, Clone)]
pub(super) struct Expansion {
    /// As it stands in the text.
    pub(super) source: String,
    /// What it runs.
    pub(super) lists: Vec<List>,
    pub(super) kind: ExpansionKind,
    /// Whether it gives exactly one word: it stands in double quotes and is not `$@`.
    pub(super) is_one_word: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpansionKind {
    /// A parameter, a command substitution.
    Value,
    /// `$((…))`, `$[…]` and `((…))`.
    Arithmetic,
    /// `<(…)` or `>(…)`.
    Process,
    /// `${name@P}`, which runs the substitutions in the value of `name`.
    Prompt,
}

#[derive(Debug, Clone)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    /// The operator as written.
    pub(super) operator: &'static str,
    /// The descriptor before the operator, as written; empty when there is none.
    pub(super) descriptor: String,
    /// The file; the text of a here-string; the delimiter of a here-document.
    pub(super) target: Word,
}

impl Redirect {
    /// The variable that gets the number of the descriptor: `{name}>file`.
    pub(super) fn variable(&self) -> Option<&str> {
        self.descriptor.strip_prefix('{')?.strip_suffix('}')
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    /// `<&` and `>&`, the second of which writes to a file when its target is no descriptor.
    Duplicate {
        is_output: bool,
    },
    HereString,
    /// The number of its text in [`Script::documents`].
    HereDocument(usize),
}

/// Which shell reads a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    #[default]
    Bash,
    /// `sh`, which is bash here and another shell there: what the two read differently is refused.
    Portable,
}

/// A whole text, read.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) dialect: Dialect,
    pub(super) list: List,
    /// The texts of the here-documents.
    pub(super) documents: Vec<Word>,
}

impl Word {
    /// A word that stands for itself.
    pub(super) fn quoted(text: &str) -> Self {
        Self {
            parts: vec![WordPart::Quoted(text.to_owned())],
        }
    }

    /// The text of a word that is unquoted and plain.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [WordPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What is written in it; a line end stands for what is made while it runs.
    pub(super) fn fixed_text(&self) -> String {
        let texts = self.parts.iter().map(|part| match part {
            WordPart::Text(text) | WordPart::Quoted(text) => text.as_str(),
            WordPart::Expansion(_) => "\n",
        });
        texts.collect()
    }

    /// Adds unquoted text.
    pub(super) fn push_text(&mut self, c: char) {
        match self.parts.last_mut() {
            Some(WordPart::Text(text)) => text.push(c),
            _ => self.parts.push(WordPart::Text(c.to_string())),
        }
    }

    /// Adds text that stands for itself.
    pub(super) fn push_quoted(&mut self, c: char) {
        match self.parts.last_mut() {
            Some(WordPart::Quoted(text)) => text.push(c),
            _ => self.parts.push(WordPart::Quoted(c.to_string())),
        }
    }
}
