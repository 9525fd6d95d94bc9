//! What is known of a shell command line before it runs: the simple commands it consists of, and what cannot be known.
//!
//! Rules and filters look at this, never at the text: quoting, wrappers and nesting are already undone. It is for the
//! user's convenience; the jail decides what a command can really do. The parser is in `zeph-shell`.

use std::ops::Range;
use std::path::PathBuf;

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The command line as given.
    pub text: String,
    /// Every simple command in it, in order of occurrence: of all branches, loops, functions, substitutions, traps and of
    /// what wrappers such as `sudo` or `bash -c` would run. A wrapper comes before what it wraps. A command that uses variables
    /// whose values the line itself sets is followed by the command with these values ([`Wraps::Within`]).
    pub commands: Vec<SimpleCommand>,
    /// What cannot be known without running it; empty for an ordinary command.
    pub unknown: Vec<Unknown>,
    /// Every redirection that opens a file, in order of occurrence: of simple commands, groups, loops, functions, and of what nested
    /// shells run.
    pub redirections: Vec<Redirection>,
    /// Where the line changes its working directory to (`cd`, `pushd`), in order of occurrence, each relative to where it was
    /// before; `None` for a directory that cannot be known.
    pub moves: Vec<Option<String>>,
    /// Where its paths lead on this machine. Empty means unknown: the analysis does not access the file system.
    pub places: LinePlaces,
    /// The segment of the line whose output comes last.
    pub last: Option<Segment>,
}

/// One program, builtin or function with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The name, unquoted, as written: it may hold a path.
    pub name: String,
    /// The arguments, unquoted; a part that cannot be known is written as it stands in the text.
    pub arguments: Vec<String>,
    /// Whether name and arguments are all literal.
    pub is_literal: bool,
    /// Where the arguments are not, in order.
    pub holes: Vec<Hole>,
    /// Whether it is a wrapper, and of which kind.
    pub wraps: Wraps,
}

/// A piece of an argument that is made while the line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Which argument. The number of arguments stands for those that are added while the line runs, as `xargs` does.
    pub argument: usize,
    /// The first of its bytes in the text of the argument.
    pub start: usize,
    /// The end of its bytes.
    pub end: usize,
    /// What it may become.
    pub becomes: Becomes,
}

/// What a [`Hole`] may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Becomes {
    /// Any text, which is a part of one word: `"$x"`.
    Text,
    /// Any text, several words or none: `$x`, `"$@"`.
    Words,
    /// Names of files; the whole argument stands for one or more words then: `*.o`.
    Names,
    /// Text that does not begin with a `-`, in one word or in several of this kind: `~`, the `{}` of `find`.
    Operand,
}

/// Whether a command runs another command that is named in its arguments, or is run by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wraps {
    /// It does not.
    Nothing,
    /// It adds nothing of its own: `env`, `time`, `nohup`, `timeout`, `nice`, `command`, `exec`, `bash -c`. A rule for the
    /// inner command is enough.
    Transparently,
    /// The command before it covers it, and only rules that deny or ask apply to it: a program started by a runner (`poetry run`,
    /// `npx -c`), or the command before it with the values of variables that the line itself sets.
    Within,
    /// It changes what the inner command may do or what it is applied to, and needs its own rule: `sudo`, `xargs`, `find -exec`,
    /// `ssh`.
    WithEffect,
}

/// A redirection that opens a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The operator with its descriptor, as written: `>`, `2>>`, `&>`, `<`, `{fd}>`.
    pub operator: String,
    /// The file, unquoted; `None` when it cannot be known. It begins with `~` only when that stands for the home directory.
    pub target: Option<String>,
    /// Whether it may change the file.
    pub writes: bool,
    /// The places in [`CommandLine::commands`] of the commands it is for.
    pub commands: Range<usize>,
}

/// Where the paths of a command line lead on this machine: absolute, resolved through symbolic links as far as they exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinePlaces {
    /// Every directory the line may be in while it runs; `None` when one cannot be known.
    pub directories: Option<Vec<PathBuf>>,
    /// For each of [`CommandLine::redirections`], every file it may open; `None` when that cannot be known.
    pub redirections: Vec<Option<Vec<PathBuf>>>,
    /// Every word of its commands that may name a file. Only filled where a rule looks at them.
    pub words: Vec<WordPlaces>,
    /// Whether `/tmp` is made for this command alone.
    pub has_private_tmp: bool,
    /// Words that name where `mv` would take files of the user to, and that ends with the command.
    pub lost: Vec<String>,
}

/// Where a word of a command may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPlaces {
    /// The word as written.
    pub word: String,
    /// What is known of the file.
    pub place: WordPlace,
}

/// What is known of a file before the line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPlace {
    /// The file is one of these.
    Known(Vec<PathBuf>),
    /// The path begins with one of `beginnings` and ends with `end`: a pattern such as `src/*.rs`.
    Like {
        /// Absolute and resolved as far as they are whole names.
        beginnings: Vec<String>,
        /// Empty when any end fits.
        end: String,
    },
    /// The file is not known.
    Unknown,
}

/// A part of a command line that is known only when the line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The reason, such as "`eval` runs text that is made while it runs".
    pub reason: String,
    /// The part of the text it is about, at most 200 characters.
    pub part: String,
}

/// The pipeline whose output filters apply to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The first command of the pipeline, through transparent wrappers; variable assignments before it are omitted.
    pub command: SimpleCommand,
    /// The names of the commands its output is piped through, in order.
    pub pipes: Vec<String>,
    /// Whether several segments of the line print (`a; b`, `a && b`, loops).
    pub is_one_of_several: bool,
}

impl SimpleCommand {
    /// The name without directories.
    ///
    /// Shape: `/usr/bin/rm` → `rm`.
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Name and arguments joined by single spaces: what patterns of rules are matched against.
    pub fn text(&self) -> String {
        let mut text = self.name.clone();
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(argument);
        }
        text
    }
}
