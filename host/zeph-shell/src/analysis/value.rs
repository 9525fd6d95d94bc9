//! What is known of a word without running anything.

use zeph_core::command::{Becomes, Hole};

use super::syntax::{Expansion, ExpansionKind, Word, WordPart};

/// How substitutions begin; those of the last two kinds are none in a subscript.
const SUBSTITUTIONS: [&str; 4] = ["$(", "`", "<(", ">("];

/// A word, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// Unquoted; what cannot be known as it stands in the text.
    pub(super) text: String,
    /// Where it is not known.
    pub(super) holes: Vec<Hole>,
    /// Whether `text` is exactly what a command would get.
    pub(super) is_literal: bool,
    /// Whether it becomes exactly one word.
    pub(super) is_one_word: bool,
    /// Whether the program it names is known: a path below the home directory is, a pattern is not.
    pub(super) is_name: bool,
    /// Whether it stands for arguments that are added while the line runs, and is not in the text.
    pub(super) is_added: bool,
    /// Whether it names what another command prints: `<(…)`.
    pub(super) is_stream: bool,
    /// Whether a substitution stands as text in a part of it that is not known.
    pub(super) hides_substitution: bool,
}

impl Value {
    /// The value of a word whose braces are expanded, or never are.
    pub(super) fn of(word: &Word) -> Self {
        let mut this = Self {
            is_name: false,
            ..Self::literal("")
        };
        for part in &word.parts {
            this.push(part);
        }
        this.tildes(word);
        let has_pattern = has_glob(word) || has_brace(word);
        if has_pattern {
            this.patterns(word);
        }
        let has_tilde =
            matches!(word.parts.first(), Some(WordPart::Text(first)) if first.starts_with('~'));
        let is_fixed = word
            .parts
            .iter()
            .all(|part| !matches!(part, WordPart::Expansion(_)));
        this.is_one_word &= !has_pattern;
        this.is_name = is_fixed
            && !has_pattern
            && !this.text.is_empty()
            && (!has_tilde || this.text.contains('/'));
        this.is_literal = this.holes.is_empty();
        this
    }

    fn push(&mut self, part: &WordPart) {
        let expansion = match part {
            WordPart::Text(part) | WordPart::Quoted(part) => return self.text.push_str(part),
            WordPart::Expansion(expansion) => expansion,
        };
        self.is_one_word &= expansion.is_one_word;
        self.is_stream |= expansion.kind == ExpansionKind::Process;
        let start = self.text.len();
        self.text.push_str(&expansion.source);
        self.holes
            .push(hole(start, self.text.len(), becomes(expansion)));
    }

    /// `~` at the start, and in what looks like an assignment.
    fn tildes(&mut self, word: &Word) {
        let Some(WordPart::Text(first)) = word.parts.first() else {
            return;
        };
        let is_assignment = first.contains('=');
        let begins = |at: usize| {
            let before = first.get(..at).unwrap_or_default();
            at == 0 || is_assignment && before.ends_with(['=', ':'])
        };
        let starts: Vec<usize> = first
            .match_indices('~')
            .map(|(at, _)| at)
            .filter(|at| begins(*at))
            .collect();
        for start in starts {
            let rest = first.get(start..).unwrap_or_default();
            let end = start + rest.find(['/', ':']).unwrap_or(rest.len());
            self.holes.push(hole(start, end, Becomes::Operand));
        }
        self.holes.sort_by_key(|hole| hole.start);
    }

    /// The characters that match names of files. From a `[` on, and where braces are too unusual to be expanded, nothing is known.
    fn patterns(&mut self, word: &Word) {
        let whole = |word: &Word| has_brace(word) || unquoted(word).any(|text| text.contains('['));
        if whole(word) {
            let becomes = match has_brace(word) {
                true => Becomes::Words,
                false => Becomes::Names,
            };
            self.holes = vec![hole(0, self.text.len(), becomes)];
            self.hides_substitution = quotes_substitutions(word);
            return;
        }
        let mut start = 0;
        for part in &word.parts {
            let length = match part {
                WordPart::Text(text) => {
                    for (at, piece) in text.match_indices(['*', '?']) {
                        self.pattern(start + at, piece.len());
                    }
                    text.len()
                }
                WordPart::Quoted(text) => text.len(),
                WordPart::Expansion(expansion) => expansion.source.len(),
            };
            start += length;
        }
        self.holes.sort_by_key(|hole| hole.start);
    }

    /// A character that matches names of files; what may be a home directory is one pattern with it.
    fn pattern(&mut self, start: usize, length: usize) {
        let mut holes = self.holes.iter_mut();
        match holes.find(|hole| (hole.start..hole.end).contains(&start)) {
            Some(around) => around.becomes = Becomes::Names,
            None => self.holes.push(hole(start, start + length, Becomes::Names)),
        }
    }

    /// The same where a pattern that matches no file is no word.
    pub(super) fn without_match(mut self) -> Self {
        for hole in &mut self.holes {
            if hole.becomes == Becomes::Names {
                hole.becomes = Becomes::Words;
            }
        }
        self
    }

    /// A word that stands for itself.
    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            holes: Vec::new(),
            is_literal: true,
            is_one_word: true,
            is_name: !text.is_empty(),
            is_added: false,
            is_stream: false,
            hides_substitution: false,
        }
    }

    /// The arguments that `xargs` and its like add at the end.
    pub(super) fn added() -> Self {
        Self {
            holes: vec![hole(0, 0, Becomes::Words)],
            is_literal: false,
            is_one_word: false,
            is_added: true,
            ..Self::literal("")
        }
    }

    /// The same, when `marker` in it is replaced while the line runs.
    pub(super) fn replaced(mut self, marker: &str, becomes: Becomes) -> Self {
        let places: Vec<(usize, usize)> = self
            .text
            .match_indices(marker)
            .map(|(at, _)| (at, at + marker.len()))
            .collect();
        if places.is_empty() {
            return self;
        }
        match self.is_literal {
            true => {
                let places = places.into_iter();
                self.holes = places
                    .map(|(start, end)| hole(start, end, becomes))
                    .collect();
            }
            false => self.holes = vec![hole(0, self.text.len(), Becomes::Words)],
        }
        Self {
            is_literal: false,
            is_name: false,
            ..self
        }
    }

    /// A piece of it, which is a word of its own.
    pub(super) fn part(&self, text: &str) -> Self {
        let holes = match self.text.strip_suffix(text) {
            _ if self.is_literal => Vec::new(),
            Some(before) => {
                let shifted = self.holes.iter().filter(|hole| hole.end > before.len());
                let start = |hole: &Hole| hole.start.saturating_sub(before.len());
                shifted
                    .map(|h| hole(start(h), h.end - before.len(), h.becomes))
                    .collect()
            }
            None => vec![hole(0, text.len(), Becomes::Words)],
        };
        Self {
            text: text.to_owned(),
            holes,
            ..self.clone()
        }
    }

    /// Whether it is one word and no option, whatever it becomes.
    pub(super) fn is_operand(&self) -> bool {
        let may_be_option = !self.is_literal && self.text.starts_with(['$', '`']);
        self.is_one_word && !may_be_option
    }

    /// Whether a quoted substitution stands in its first `end` bytes: nothing has looked at what it runs where the text is expanded again.
    pub(super) fn quotes_substitution(&self, end: usize) -> bool {
        self.quotes(&SUBSTITUTIONS[..2], end)
    }

    /// Whether it quotes what runs a command where elements of an array are read once more.
    pub(super) fn quotes_command(&self) -> bool {
        self.quotes(&SUBSTITUTIONS, self.text.len())
    }

    fn quotes(&self, marks: &[&str], end: usize) -> bool {
        let is_in_hole = |at: usize| self.holes.iter().any(|h| (h.start..h.end).contains(&at));
        let mut places = marks.iter().flat_map(|mark| self.text.match_indices(mark));
        self.hides_substitution || places.any(|(at, _)| at < end && !is_in_hole(at))
    }

    /// The text, if it is what a command would get.
    pub(super) fn as_literal(&self) -> Option<&str> {
        self.is_literal.then_some(self.text.as_str())
    }
}

/// A hole of a word; which argument it is in is said when the command is put together.
fn hole(start: usize, end: usize, becomes: Becomes) -> Hole {
    Hole {
        argument: 0,
        start,
        end,
        becomes,
    }
}

fn becomes(expansion: &Expansion) -> Becomes {
    match expansion.kind {
        // `/dev/fd/63`.
        ExpansionKind::Process => Becomes::Operand,
        _ if expansion.is_one_word => Becomes::Text,
        _ => Becomes::Words,
    }
}

/// Whether it matches the names of files.
fn has_glob(word: &Word) -> bool {
    if word.plain() == Some("[") {
        return false;
    }
    let has = |wanted: char| unquoted(word).any(|text| text.contains(wanted));
    has('*') || has('?') || (has('[') && has(']'))
}

/// Whether it may become several words, as `{a,b}` and `{1..3}` do.
fn has_brace(word: &Word) -> bool {
    let has = |wanted: &str| unquoted(word).any(|text| text.contains(wanted));
    has("{") && has("}") && (has(",") || has(".."))
}

/// Whether substitutions stand in the text of a word without being expanded.
fn quotes_substitutions(word: &Word) -> bool {
    let has = |text: &str| SUBSTITUTIONS.iter().any(|mark| text.contains(mark));
    word.parts.iter().any(|part| match part {
        WordPart::Text(text) | WordPart::Quoted(text) => has(text),
        WordPart::Expansion(_) => false,
    })
}

fn unquoted(word: &Word) -> impl Iterator<Item = &str> {
    word.parts.iter().filter_map(|part| match part {
        WordPart::Text(text) => Some(text.as_str()),
        WordPart::Quoted(_) | WordPart::Expansion(_) => None,
    })
}
