//! What must survive in a recorded output, found in the output itself.
//!
//! The lists in the rule files name what their author thought of. This file reads the raw recordings as each tool writes them
//! and knows nothing of the filters: no expression of theirs is used, so that a failure they do not see is seen here.

mod compilers;
mod go;
mod javascript;
mod python;
mod ruby;
mod rust;
mod systems;

use std::collections::BTreeSet;

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FactKind {
    /// The name of a test that failed, or of what takes its place: a package, a file, a resource.
    Name,
    /// `path:line` of the user's own code.
    Place,
    /// The first line of an error or a warning.
    Message,
    /// A line of the tool's own about the whole.
    Total,
}

/// One thing that a reader needs; any of its spellings will do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fact {
    pub(crate) kind: FactKind,
    pub(crate) spellings: Vec<String>,
}

impl Fact {
    /// Whether a text tells it.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.spellings
            .iter()
            .any(|spelling| text.contains(spelling))
    }
}

/// The facts of one output; each is counted once.
#[derive(Debug, Default)]
pub(crate) struct Facts(BTreeSet<Fact>);

impl Facts {
    fn add(&mut self, kind: FactKind, text: &str) {
        self.add_any(kind, vec![text.trim().to_owned()]);
    }

    fn add_any(&mut self, kind: FactKind, spellings: Vec<String>) {
        if spellings.iter().all(|spelling| !spelling.is_empty()) {
            self.0.insert(Fact { kind, spellings });
        }
    }

    /// Every `path:line` of a line but those in folders of libraries. `./path` is the same place as `path`.
    fn add_places(&mut self, line: &str) {
        for place in places(line) {
            self.add(FactKind::Place, place.strip_prefix("./").unwrap_or(place));
        }
    }

    /// A finding of a linter in one line: its place, the names it quotes and its rule. Its words may stand elsewhere.
    fn add_finding(&mut self, place: &str, text: &str, rule: &str) {
        self.add(FactKind::Place, place);
        for name in quoted(text) {
            self.add(FactKind::Message, name);
        }
        if !rule.is_empty() {
            self.add(FactKind::Name, rule);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter()
    }
}

/// What `command` printed that must not be lost.
pub(crate) fn facts(command: &str, raw: &[u8]) -> Facts {
    let text = plain(&String::from_utf8_lossy(raw));
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut facts = Facts::default();
    let words: Vec<&str> = command.split_whitespace().collect();
    let is = |names: &[&str]| words.iter().take(4).any(|word| names.contains(word));
    if words.first() == Some(&"cargo") {
        rust::read(&lines, &mut facts);
    } else if is(&["pytest"]) {
        python::read_pytest(&lines, &mut facts);
    } else if is(&["unittest"]) {
        python::read_unittest(&lines, &mut facts);
    } else if is(&["rspec", "ruby", "rake"]) {
        ruby::read_tests(&lines, &mut facts);
    } else if is(&["rubocop"]) {
        ruby::read_rubocop(&lines, &mut facts);
    } else if is(&["ctest"]) {
        compilers::read_ctest(&lines, &mut facts);
    } else if is(&["ruff", "mypy", "pylint", "flake8"]) {
        python::read_linters(&lines, &mut facts);
    } else if words.starts_with(&["go", "test"]) {
        go::read(&lines, &mut facts);
    } else if words.first() != Some(&"make") && is(&["jest", "vitest", "mocha", "test", "--test"]) {
        javascript::read_tests(&lines, &mut facts);
    } else if is(&["tsc", "eslint"]) {
        javascript::read_linters(&lines, &mut facts);
    } else if is(&["make", "cmake", "ninja", "./gradlew", "gradle", "mvn"]) {
        compilers::read(&lines, &mut facts);
        if lines
            .iter()
            .any(|line| line.contains("short test summary info"))
        {
            python::read_pytest(&lines, &mut facts);
        }
        if lines.iter().any(|line| line.contains("% tests passed")) {
            compilers::read_ctest(&lines, &mut facts);
        }
    } else {
        systems::read(&words, &lines, &mut facts);
    }
    facts
}

/// The text as a terminal shows it: without colours, and of a line that overwrites itself the last state.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for line in text.split_inclusive('\n') {
        let line = without_colours(line.trim_end_matches(['\n', '\r']));
        plain.push_str(line.rsplit('\r').next().unwrap_or_default());
        plain.push('\n');
    }
    plain
}

/// Takes out `ESC [ … letter` and `ESC ] … BEL`, all that the recordings hold.
fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 1..];
        let is_end = |c: char| match sequence.starts_with('[') {
            true => c.is_ascii_alphabetic(),
            false => c == '\u{7}' || c == '\\',
        };
        let end = sequence.find(is_end).map_or(sequence.len(), |n| n + 1);
        rest = &sequence[end..];
    }
    plain.push_str(rest);
    plain
}

/// What stands in quotes of one kind.
fn quoted(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for quote in ['\'', '"', '`'] {
        let parts: Vec<&str> = text.split(quote).collect();
        if parts.len() % 2 == 1 {
            names.extend(parts.into_iter().skip(1).step_by(2));
        }
    }
    names.retain(|name| !name.trim().is_empty());
    names
}

/// Folders that hold nobody's own code.
const LIBRARIES: [&str; 10] = [
    "/rustc/",
    ".cargo/registry/",
    "site-packages",
    "/usr/lib/",
    "node_modules",
    "node:",
    "/usr/local/go/",
    "/usr/share/",
    "/usr/bin/",
    "/gems/",
];

/// The words of a line that are `path.suffix:12`, with a column or without.
fn places(line: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| "()[]{},;\"'`".contains(c);
    line.split(move |c: char| c.is_whitespace() || is_around(c))
        .filter_map(place)
        .filter(|place| !LIBRARIES.iter().any(|library| place.contains(library)))
}

/// The part of a word that is a place.
fn place(word: &str) -> Option<&str> {
    let (path, rest) = word.split_once(':')?;
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let suffix = path
        .rsplit('.')
        .next()
        .filter(|suffix| suffix.len() < path.len())?;
    let is_file =
        (1..=6).contains(&suffix.len()) && suffix.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_host = path.parse::<std::net::Ipv4Addr>().is_ok() || path.contains("localhost");
    (n_digits > 0 && is_file && !is_host).then(|| &word[..path.len() + 1 + n_digits])
}

#[cfg(test)]
mod tests;
