//! The text of arithmetic: which names stand in it, and which it sets.

use super::NumberOrigin;
use super::counter::of_substitution;
use super::formula::is_formula;

/// Operators that change the variable before them.
const CHANGES: [&str; 12] = [
    "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>=", "++", "--",
];

/// What was found in a text.
#[derive(Debug, Default)]
pub(in super::super) struct Scan {
    /// What the text looks at.
    pub(in super::super) origin: NumberOrigin,
    /// What it sets to numbers whenever it is read.
    pub(in super::super) assigned: Vec<String>,
    /// What it may set: in a subscript, or where there is no value.
    pub(in super::super) assigned_inside: Vec<(String, NumberOrigin)>,
    /// Whether it may set what it sets, or not.
    pub(in super::super) is_conditional: bool,
    /// Whether bash refuses it, and the rest of the line.
    pub(in super::super) is_refused: bool,
    /// What it makes another number of.
    pub(in super::super) changed: Vec<String>,
    /// What stands in the subscripts of arrays.
    pub(in super::super) subscripts: Vec<(String, NumberOrigin)>,
}

impl Scan {
    /// Looks through arithmetic.
    pub(in super::super) fn text(&mut self, text: &str) {
        let mut rest = text;
        // Whether a value or a name ends here: what follows at once makes another name of it.
        let mut is_joined = false;
        while let Some(c) = rest.chars().next() {
            let is_expansion = matches!(c, '$' | '`');
            let is_part = is_expansion || c.is_ascii_alphanumeric() || c == '_';
            self.origin.is_outside |= is_joined && is_part;
            is_joined = is_part;
            rest = match c {
                // Digits, and what belongs to them: `0x1f`, `16#ff`.
                '0'..='9' => rest
                    .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "#@_".contains(c)),
                'a'..='z' | 'A'..='Z' | '_' => {
                    let before = text[..text.len() - rest.len()].trim_end();
                    self.name(rest, before.ends_with("++") || before.ends_with("--"))
                }
                '$' => self.dollar(&rest[1..]),
                '`' => {
                    self.origin.is_outside = true;
                    &rest[1..]
                }
                _ => &rest[c.len_utf8()..],
            };
        }
    }

    /// A name, its subscript, and whether it is set here; counted up or down when `is_stepped`.
    fn name<'t>(&mut self, text: &'t str, is_stepped: bool) -> &'t str {
        let (name, mut rest) = split_name(text);
        // Without a subscript, it is the first element.
        let mut subscript = "0";
        if let Some(inside) = rest.strip_prefix('[') {
            (subscript, rest) = split_closed(inside, '[', ']');
            self.subscript(name, subscript);
        }
        let after = rest.trim_start();
        let is_assigned = after.starts_with('=') && !after.starts_with("==");
        match is_assigned {
            // What came from outside stays in the array, as its first element.
            true if subscript != "0" => {
                let element = (name.to_owned(), NumberOrigin::default());
                self.assigned_inside.push(element);
            }
            true => self.assigned.push(name.to_owned()),
            false => self.looks_at(name, subscript),
        }
        if is_stepped || CHANGES.iter().any(|operator| after.starts_with(operator)) {
            self.changed.push(name.to_owned());
        }
        rest
    }

    /// A variable, or the element of an array.
    fn looks_at(&mut self, name: &str, subscript: &str) {
        let is_first = subscript.bytes().all(|b| b.is_ascii_digit());
        let names = match is_first {
            true => &mut self.origin.names,
            false => &mut self.origin.elements,
        };
        names.insert(name.to_owned());
    }

    /// What stands between `[` and `]`.
    pub(in super::super) fn subscript(&mut self, array: &str, text: &str) {
        if matches!(text, "@" | "*") {
            return;
        }
        let mut inner = Self::default();
        inner.text(text);
        self.subscripts
            .push((array.to_owned(), std::mem::take(&mut inner.origin)));
        self.take_inside(inner);
    }

    fn dollar<'t>(&mut self, rest: &'t str) -> &'t str {
        if let Some(inside) = rest.strip_prefix("((") {
            let (text, after) = split_closed(inside, '(', ')');
            self.arithmetic(text);
            return after.strip_prefix(')').unwrap_or(after);
        }
        if let Some(inside) = rest.strip_prefix('(') {
            let (text, after) = split_closed(inside, '(', ')');
            self.origin.add(of_substitution(text));
            return after;
        }
        if let Some(inside) = rest.strip_prefix('{') {
            let (text, after) = split_closed(inside, '{', '}');
            self.parameter(text);
            return after;
        }
        if is_first(rest) {
            let (name, after) = split_name(rest);
            self.origin.names.insert(name.to_owned());
            return after;
        }
        // `$1`, `$@` and their like; numbers are `$#`, `$?`, `$$` and `$!`.
        self.origin.is_outside |= !rest.starts_with(['#', '?', '$', '!', '[']);
        rest.get(1..).unwrap_or_default()
    }

    /// Arithmetic inside another text.
    fn arithmetic(&mut self, text: &str) {
        let mut inner = Self::default();
        inner.text(text);
        self.subscripts
            .push((String::new(), std::mem::take(&mut inner.origin)));
        self.take_inside(inner);
    }

    /// All that it may set, with what. Leaves nothing of it behind.
    pub(super) fn take_assigned(&mut self) -> Vec<(String, NumberOrigin)> {
        let assigned = std::mem::take(&mut self.assigned).into_iter();
        let assigned = assigned.map(|name| (name, NumberOrigin::default()));
        assigned
            .chain(std::mem::take(&mut self.assigned_inside))
            .collect()
    }

    /// Takes over what stands in a part that is not read in any case.
    fn take_inside(&mut self, mut inner: Self) {
        self.assigned_inside.extend(inner.take_assigned());
        self.subscripts.extend(inner.subscripts);
        self.changed.extend(inner.changed);
    }

    /// The inside of `${…}`.
    pub(in super::super) fn parameter(&mut self, inside: &str) {
        if let Some(length) = inside.strip_prefix('#') {
            let (name, rest) = split_name(length);
            if let Some(inside) = rest.strip_prefix('[') {
                self.subscript(name, split_closed(inside, '[', ']').0);
            }
            // `${#:offset}` and its like take a part of `$#`; `${#-}` and its like are lengths.
            if name.is_empty() && rest.chars().nth(1).is_some() {
                self.operator("", rest.trim_start_matches(|c: char| c.is_ascii_digit()));
            }
            return;
        }
        if let Some(indirect) = inside.strip_prefix('!') {
            let (_, ending) = split_name(indirect);
            let lists_names = ["*", "@", "[*]", "[@]"].contains(&ending);
            self.origin.is_outside |= !lists_names;
            if !lists_names {
                self.subscripts
                    .push((String::new(), NumberOrigin::outside()));
            }
            return;
        }
        let (name, mut rest) = split_name(inside);
        if name.is_empty() {
            self.origin.is_outside = true;
            // `${1:x}` and `${@:x}` take a part.
            rest = inside
                .get(1..)
                .unwrap_or_default()
                .trim_start_matches(|c: char| c.is_ascii_digit());
        }
        let mut subscript = "0";
        if let Some(inside) = rest.strip_prefix('[') {
            (subscript, rest) = split_closed(inside, '[', ']');
            self.subscript(name, subscript);
        }
        if !name.is_empty() {
            self.looks_at(name, subscript);
        }
        self.operator(name, rest);
    }

    /// What stands behind the name in `${…}`.
    fn operator(&mut self, name: &str, rest: &str) {
        let bare = rest.strip_prefix(':').unwrap_or(rest);
        let Some(first) = bare.chars().next() else {
            return;
        };
        let mut inner = Self::default();
        inner.text(&bare[first.len_utf8()..]);
        match first {
            '-' | '+' | '?' | '=' => {
                if first == '=' {
                    let value = inner.origin.clone();
                    self.assigned_inside.push((name.to_owned(), value));
                }
                self.origin.add(std::mem::take(&mut inner.origin));
            }
            // `${x:offset:length}`, which are arithmetic themselves.
            _ if rest.starts_with(':') => {
                self.origin.is_outside = true;
                return self.arithmetic(bare);
            }
            // What is cut off or replaced leaves a text of its own.
            _ => self.origin.is_outside = true,
        }
        self.take_inside(inner);
    }
}

/// The parts of arithmetic that are read one after the other, which `,` and, in a loop, `;` end.
pub(in super::super) fn scans(text: &str) -> Vec<Scan> {
    let mut depth = 0_usize;
    let mut is_first = true;
    let mut start = 0;
    let mut scans = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' | ';' if depth == 0 => {
                scans.push(part(&text[start..at], is_first));
                is_first &= c == ',';
                start = at + 1;
            }
            _ => {}
        }
    }
    scans.push(part(&text[start..], is_first));
    scans
}

/// A part of arithmetic; what stands behind a `;` may not be read at all.
fn part(text: &str, is_first: bool) -> Scan {
    let mut scan = Scan::default();
    scan.text(text);
    let has_branch = ["&&", "||", "?"].iter().any(|mark| text.contains(mark));
    scan.is_conditional = has_branch || !is_first;
    scan.is_refused = !is_formula(text);
    scan
}

/// Where the value of `${inside}` comes from.
pub(super) fn parameter(inside: &str) -> NumberOrigin {
    let mut scan = Scan::default();
    scan.parameter(inside);
    scan.origin
}

/// Whether a text is the name of a variable.
pub(in super::super) fn is_name(text: &str) -> bool {
    is_first(text) && split_name(text).1.is_empty()
}

fn is_first(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn split_name(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match is_first(text) {
        true => text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len())),
        false => ("", text),
    }
}

/// What stands before the character that closes, and what follows it.
fn split_closed(text: &str, open: char, close: char) -> (&str, &str) {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close && depth == 0 {
            return (&text[..at], &text[at + c.len_utf8()..]);
        } else if c == close {
            depth -= 1;
        }
    }
    (text, "")
}
