//! Lists, pipelines, simple commands and redirections.

use super::super::syntax::{
    CommandShape, Joint, List, Pipeline, Redirect, RedirectKind, SyntaxCommand, VariableAssignment,
    Word, WordPart,
};
use super::{PendingDocument, Reader, Syntax, ends_word};

/// Words that mean something where a command begins, longest first where one begins another.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "coproc", "time", "{", "}", "!", "[[",
];

/// Reserved words that end a list.
const CLOSERS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// What stands between two pipelines.
#[derive(Debug)]
struct Separator {
    joint: Joint,
    /// `&`.
    is_background: bool,
}

impl Reader<'_, '_> {
    /// Reads pipelines up to what closes the list: `)`, `;;`, a closing word, the end.
    ///
    /// It is lenient about separators: what bash refuses there runs nothing.
    pub(super) fn list(&mut self) -> Result<List, Syntax> {
        let mut pipelines: Vec<Pipeline> = Vec::new();
        loop {
            let separator = self.separators()?;
            if separator.is_background {
                in_background(&mut pipelines);
            }
            let is_closed = matches!(self.peek(), None | Some(')'))
                || self.looks_at(";;")
                || self.looks_at(";&")
                || self.reserved().is_some_and(|word| CLOSERS.contains(&word));
            if is_closed {
                return Ok(List { pipelines });
            }
            let mut pipeline = self.pipeline()?;
            pipeline.joint = separator.joint;
            pipelines.push(pipeline);
            self.blanks()?;
            if !matches!(self.peek(), None | Some('\n' | ';' | '&' | '|' | ')')) {
                // A closing word ends a list only where a command begins, as in `{ { ls; } }`.
                let is_closing = self.reserved().is_some_and(|word| CLOSERS.contains(&word));
                if !is_closing {
                    return self.fail("something stands where a command must end");
                }
            }
        }
    }

    fn separators(&mut self) -> Result<Separator, Syntax> {
        let mut separator = Separator {
            joint: Joint::Always,
            is_background: false,
        };
        loop {
            self.lines()?;
            if self.looks_at(";;") || self.looks_at(";&") {
                return Ok(separator);
            }
            if self.takes("&&") {
                separator.joint = Joint::And;
            } else if self.takes("||") {
                separator.joint = Joint::Or;
            } else if !self.looks_at("&>") && self.takes("&") {
                separator.is_background = true;
            } else if !self.takes(";") {
                return Ok(separator);
            }
        }
    }

    /// The reserved word that stands here, if a command may begin here.
    pub(super) fn reserved(&mut self) -> Option<&'static str> {
        self.peek();
        let rest = self.rest();
        RESERVED.iter().copied().find(|word| {
            rest.strip_prefix(word)
                .is_some_and(|rest| rest.chars().next().is_none_or(ends_word))
        })
    }

    /// Passes over the reserved word `expected`.
    pub(super) fn expect_word(&mut self, expected: &'static str) -> Result<(), Syntax> {
        self.lines()?;
        match self.reserved() {
            Some(word) if word == expected => {
                self.at += word.len();
                Ok(())
            }
            _ => self.fail("a closing word is missing"),
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Syntax> {
        let mut before = pipeline();
        let start = self.at;
        loop {
            self.blanks()?;
            match self.reserved() {
                Some("!") => {
                    self.at += 1;
                    before.is_negated = !before.is_negated;
                }
                Some("time") => {
                    let word = self.at;
                    self.at += 4;
                    self.blanks()?;
                    self.time_options()?;
                    // With other options it is the program of this name in some modes of some shells; else what looks like an option is run.
                    if self.looks_at("-") {
                        let rest = self.rest().strip_prefix('-').unwrap_or_default();
                        if !rest.starts_with(|c| c != 'p') {
                            return self
                                .fail("`time` is followed by what may be an option or a command");
                        }
                        self.at = word;
                        before.may_be_timed = true;
                        break;
                    }
                    before.is_timed = true;
                }
                _ => break,
            }
        }
        // `time` and `!` alone are whole pipelines.
        let is_bare = self.at > start
            && self.reserved() != Some("time")
            && !self.looks_at("&>")
            && matches!(self.peek(), None | Some('\n' | ';' | '&' | ')'));
        if is_bare {
            return Ok(before);
        }
        loop {
            before.commands.push(self.nested(Self::command)?);
            self.blanks()?;
            let is_piped = !self.looks_at("||") && (self.takes("|&") || self.takes("|"));
            if !is_piped {
                return Ok(before);
            }
            self.lines()?;
        }
    }

    /// Passes over the options of `time`.
    fn time_options(&mut self) -> Result<(), Syntax> {
        for option in ["-p", "--"] {
            let is_option = self
                .rest()
                .strip_prefix(option)
                .is_some_and(|rest| rest.chars().next().is_none_or(ends_word));
            if is_option {
                self.at += option.len();
                self.blanks()?;
            }
        }
        Ok(())
    }

    pub(super) fn command(&mut self) -> Result<SyntaxCommand, Syntax> {
        self.blanks()?;
        let shape = match self.peek() {
            Some('(') => self.parenthesis()?,
            _ => match self.reserved() {
                Some(word) if CLOSERS.contains(&word) => {
                    return self.fail("a closing word stands where a command must begin");
                }
                // After a `|` it is the program of this name.
                Some("time") => return self.simple(),
                Some(word) => {
                    self.at += word.len();
                    self.compound(word)?
                }
                None => return self.simple(),
            },
        };
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            match self.redirect_after_compound()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(SyntaxCommand { shape, redirects }),
            }
        }
    }

    fn redirect_after_compound(&mut self) -> Result<Option<Redirect>, Syntax> {
        let start = self.at;
        if matches!(self.peek(), Some('0'..='9' | '{')) {
            let word = self.word()?;
            if let Some(descriptor) = self.descriptor(&word) {
                return self.redirect(descriptor).map(Some);
            }
            self.no_element(&word)?;
            self.at = start;
        }
        if self.is_at_redirect() {
            return self.redirect(String::new()).map(Some);
        }
        Ok(None)
    }

    fn simple(&mut self) -> Result<SyntaxCommand, Syntax> {
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            if self.is_at_redirect() {
                redirects.push(self.redirect(String::new())?);
                continue;
            }
            match self.peek() {
                Some('(') if words.len() == 1 && assignments.is_empty() && redirects.is_empty() => {
                    let name = words.first().cloned().unwrap_or_default();
                    return self.function_after_name(&name);
                }
                Some('(') => return self.fail("a parenthesis stands inside a command"),
                // What is a word here, even when it begins with `<(`.
                Some(c) if !ends_word(c) || c == '<' || c == '>' => {}
                _ => break,
            }
            let start = self.at;
            let word = self.word()?;
            if let Some(descriptor) = self.descriptor(&word) {
                // Elsewhere `{v}>f` and `10>f` are a word and a redirection.
                if descriptor.len() > 1 {
                    self.only_bash()?;
                }
                redirects.push(self.redirect(descriptor)?);
                continue;
            }
            self.no_element(&word)?;
            if words.is_empty() && has_open_subscript(&word, false) {
                return self.fail("a subscript holds what elsewhere ends a word");
            }
            if words.is_empty() && self.is_in_quotes && self.has_bare_subscript(start, &word) {
                return self.fail("quotes around a substitution may undo those of a subscript");
            }
            if words.is_empty()
                && word
                    .plain()
                    .is_some_and(|w| w != "time" && RESERVED.contains(&w))
            {
                return self.fail("a reserved word is written in an unusual way");
            }
            match self.assignment(&word)? {
                Some(assignment) if words.is_empty() => assignments.push(assignment),
                Some(assignment) => words.push(with_elements(word, &assignment.values)),
                None => words.push(word),
            }
        }
        let is_nothing = assignments.is_empty() && words.is_empty() && redirects.is_empty();
        if is_nothing {
            return self.fail("a command is missing");
        }
        Ok(SyntaxCommand {
            shape: CommandShape::Simple { assignments, words },
            redirects,
        })
    }

    /// Whether a `$'…'` stands in a word since `start` that may begin with a subscript: its text may lose its quotes.
    fn has_bare_subscript(&self, start: usize, word: &Word) -> bool {
        let is_subscript = |text: &str| text.split_once('[').is_some_and(|(name, _)| is_name(name));
        let begins = matches!(word.parts.first(), Some(WordPart::Text(text)) if is_subscript(text));
        begins && self.since(start).replace("\\\n", "").contains("$'")
    }

    /// Reads `word` as an assignment, with the elements of an array that follow it.
    fn assignment(&mut self, word: &Word) -> Result<Option<VariableAssignment>, Syntax> {
        let Some((name, value)) = split_assignment(word) else {
            return Ok(None);
        };
        let mut values = vec![value];
        // An array only where the parenthesis follows at once.
        let is_open = ends_with_equals(word) && self.peek() == Some('(');
        if is_open {
            self.pass('(')?;
            loop {
                self.lines()?;
                if self.takes(")") {
                    break;
                }
                let element = self.word()?;
                if has_open_subscript(&element, true) {
                    return self.fail("a subscript holds what elsewhere ends a word");
                }
                values.push(element);
            }
            if self.peek().is_some_and(|c| !ends_word(c)) {
                return self.fail("something follows the elements of an array");
            }
        }
        let is_array = is_open
            || matches!(values.first().and_then(|v| v.parts.first()), Some(WordPart::Text(text)) if text.starts_with('['));
        let is_added = matches!(
            word.parts.first(),
            Some(WordPart::Text(text)) if text[name.len()..].starts_with('+')
        );
        Ok(Some(VariableAssignment {
            name,
            is_added,
            is_array,
            values,
        }))
    }

    /// The descriptor that `word` is, when a redirection follows it at once.
    fn descriptor(&mut self, word: &Word) -> Option<String> {
        let text = word.plain()?;
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let inside = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let is_variable = inside.is_some_and(|inside| is_name(before_number(inside)));
        let is_followed = matches!(self.peek(), Some('<' | '>')) && self.is_at_redirect();
        ((is_number || is_variable) && is_followed).then(|| text.to_owned())
    }

    /// Refuses `{name[subscript]}` before a redirection: the subscript is run.
    fn no_element(&mut self, word: &Word) -> Result<(), Syntax> {
        let text = word.fixed_text();
        let is_element = text.starts_with('{') && text.contains('[') && text.ends_with("]}");
        match is_element && matches!(self.peek(), Some('<' | '>')) {
            true => self.fail("a descriptor is put into an element of an array"),
            false => Ok(()),
        }
    }

    fn is_at_redirect(&mut self) -> bool {
        let is_substitution = self.looks_at("<(") || self.looks_at(">(");
        !is_substitution && (self.looks_at("<") || self.looks_at(">") || self.looks_at("&>"))
    }

    fn redirect(&mut self, descriptor: String) -> Result<Redirect, Syntax> {
        const OPERATORS: &[(&str, RedirectKind)] = &[
            ("&>>", RedirectKind::Write),
            ("&>", RedirectKind::Write),
            ("<<<", RedirectKind::HereString),
            ("<<-", RedirectKind::HereDocument(1)),
            ("<<", RedirectKind::HereDocument(0)),
            ("<&", RedirectKind::Duplicate { is_output: false }),
            (">&", RedirectKind::Duplicate { is_output: true }),
            ("<>", RedirectKind::Write),
            (">>", RedirectKind::Write),
            (">|", RedirectKind::Write),
            (">", RedirectKind::Write),
            ("<", RedirectKind::Read),
        ];
        for (operator, kind) in OPERATORS {
            if !self.takes(operator) {
                continue;
            }
            // Elsewhere `a &>f b` is `a &` and then `b`.
            if operator.starts_with('&') {
                self.only_bash()?;
            }
            while let Some(c @ (' ' | '\t')) = self.peek() {
                self.pass(c)?;
            }
            let kind = match kind {
                RedirectKind::HereDocument(tabs) => self.here(*tabs == 1)?,
                other => *other,
            };
            let target = match kind {
                RedirectKind::HereDocument(_) => Word::default(),
                // What stands behind `>&-` is a word of its own.
                RedirectKind::Duplicate { .. } if self.takes("-") => Word {
                    parts: vec![WordPart::Text("-".to_owned())],
                },
                _ => self.word()?,
            };
            return Ok(Redirect {
                kind,
                operator,
                descriptor,
                target,
            });
        }
        self.fail("a redirection is not understood")
    }

    /// Reads the delimiter of a here-document.
    fn here(&mut self, strips_tabs: bool) -> Result<RedirectKind, Syntax> {
        if self.is_counted {
            return self.fail("a here-document may hold what ends something around it");
        }
        let word = self.word()?;
        let mut delimiter = String::new();
        let mut is_quoted = false;
        for part in &word.parts {
            match part {
                WordPart::Text(text) => delimiter.push_str(text),
                WordPart::Quoted(text) => {
                    is_quoted = true;
                    delimiter.push_str(text);
                }
                WordPart::Expansion(_) => return self.fail("a delimiter holds an expansion"),
            }
        }
        // Elsewhere no line is such a delimiter: its tabs are gone.
        if strips_tabs && delimiter.starts_with('\t') {
            self.only_bash()?;
        }
        let slot = self.shared.documents.len();
        self.shared.documents.push(Word::default());
        self.pending.push(PendingDocument {
            slot,
            delimiter,
            is_quoted,
            strips_tabs,
        });
        Ok(RedirectKind::HereDocument(slot))
    }
}

/// `declare -a x=(…)` as one word. The first of the values is what stands before the parenthesis.
fn with_elements(mut word: Word, values: &[Word]) -> Word {
    let Some((_, elements)) = values.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return word;
    };
    word.push_text('(');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            word.parts.push(WordPart::Quoted(" ".to_owned()));
        }
        word.parts.extend(element.parts.iter().cloned());
    }
    word.parts.push(WordPart::Quoted(")".to_owned()));
    word
}

/// Marks the pipelines that the last `&` puts into the background: back to the last that no `&&` or `||` joins to the one before.
fn in_background(pipelines: &mut [Pipeline]) {
    for pipeline in pipelines.iter_mut().rev() {
        pipeline.is_background = true;
        if pipeline.joint == Joint::Always {
            return;
        }
    }
}

fn pipeline() -> Pipeline {
    Pipeline {
        is_timed: false,
        may_be_timed: false,
        is_negated: false,
        joint: Joint::Always,
        is_background: false,
        commands: Vec::new(),
    }
}

fn is_name(text: &str) -> bool {
    let is_word = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_word && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// The name of an array of which `text` is an element with a plain number; else the text.
fn before_number(text: &str) -> &str {
    let element = text.strip_suffix(']').and_then(|rest| rest.split_once('['));
    let is_number = |subscript: &str| subscript.bytes().all(|b| b.is_ascii_digit());
    match element {
        Some((name, subscript)) if is_number(subscript) => name,
        _ => text,
    }
}

/// Whether a word begins with a name (an element of an array: with none) and a subscript that goes on behind it: where a command or an element
/// begins, blanks and operators do not end one.
fn has_open_subscript(word: &Word, is_element: bool) -> bool {
    let Some(WordPart::Text(first)) = word.parts.first() else {
        return false;
    };
    if !first.find('[').is_some_and(|start| match is_element {
        true => start == 0,
        false => is_name(&first[..start]),
    }) {
        return false;
    }
    behind_subscript(word).is_none()
}

/// What stands in `word` at once behind the bracket that closes its first one. None when it is never closed.
fn behind_subscript(word: &Word) -> Option<&str> {
    let mut depth = 0_usize;
    for part in &word.parts {
        let WordPart::Text(text) = part else {
            continue;
        };
        for (at, c) in text.char_indices() {
            match c {
                '[' => depth += 1,
                ']' if depth == 1 => return text.get(at + 1..),
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    None
}

fn ends_with_equals(word: &Word) -> bool {
    matches!(word.parts.last(), Some(WordPart::Text(text)) if text.ends_with('='))
}

/// The name of an assignment, and its value with the subscript, if it has one.
pub(in super::super) fn split_assignment(word: &Word) -> Option<(String, Word)> {
    let Some(WordPart::Text(first)) = word.parts.first() else {
        return None;
    };
    let end = first.find(['=', '+', '['])?;
    let (name, rest) = first.split_at(end);
    if !is_name(name) {
        return None;
    }
    let is_subscript = rest.starts_with('[');
    let rest = match is_subscript {
        true => rest,
        false => rest.strip_prefix('+').unwrap_or(rest).strip_prefix('=')?,
    };
    let is_assigned = |behind: &str| behind.starts_with('=') || behind.starts_with("+=");
    if is_subscript && !behind_subscript(word).is_some_and(is_assigned) {
        return None;
    }
    let mut parts = vec![WordPart::Text(rest.to_owned())];
    parts.extend(word.parts.iter().skip(1).cloned());
    Some((name.to_owned(), Word { parts }))
}
