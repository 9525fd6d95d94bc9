//! Whether bash can read a text as arithmetic at all.
//!
//! What it cannot read it refuses, and with `$((…))` all that follows up to the end of the line: then the variables are not set that the text says.
//! A value that turns out to be no number, or a divisor that turns out to be zero, is not seen here.

/// Operators between two values, longest first.
const BETWEEN: [&str; 30] = [
    "<<=", ">>=", "**", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "*=", "/=",
    "%=", "&=", "^=", "|=", "=", "+", "-", "*", "/", "%", "&", "|", "^", "<", ">",
];

/// What stands before the rest of a formula.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing, or what an assignment may follow: a parenthesis, another assignment.
    Start,
    /// An operator.
    Operator,
    /// An operator of a division.
    Division,
    /// A value; whether it is a variable that may be assigned to.
    Value { is_variable: bool },
    /// An expansion, which may be any part of a formula.
    Anything,
}

struct Formula<'t> {
    rest: &'t str,
    before: Before,
    n_open: usize,
    n_choices: usize,
}

/// Whether bash can compute a text, as far as the text tells.
pub(super) fn is_formula(text: &str) -> bool {
    let mut formula = Formula {
        rest: text.trim(),
        before: Before::Start,
        n_open: 0,
        n_choices: 0,
    };
    if formula.rest.is_empty() {
        return true;
    }
    while !formula.rest.is_empty() {
        if formula.step().is_none() {
            return false;
        }
        formula.rest = formula.rest.trim_start();
    }
    let is_complete = matches!(formula.before, Before::Value { .. } | Before::Anything);
    is_complete && formula.n_open == 0 && formula.n_choices == 0
}

impl Formula<'_> {
    /// Passes over the next part; `None` when bash does not understand it there.
    fn step(&mut self) -> Option<()> {
        let first = self.rest.chars().next()?;
        match first {
            '$' | '`' => self.expansion(),
            '0'..='9' => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => self.variable(),
            '(' if !self.is_after_value() => {
                self.n_open += 1;
                self.pass(1, Before::Start)
            }
            ')' if !self.is_after_operator() => {
                self.n_open = self.n_open.checked_sub(1)?;
                self.pass(1, Before::Value { is_variable: false })
            }
            '+' | '-' | '!' | '~' if self.is_after_operator() => self.pass(1, Before::Operator),
            _ if self.is_after_operator() => None,
            ',' => self.pass(1, Before::Start),
            '?' => {
                self.n_choices += 1;
                self.pass(1, Before::Start)
            }
            ':' => {
                self.n_choices = self.n_choices.checked_sub(1)?;
                self.pass(1, Before::Operator)
            }
            _ => self.operator(),
        }
    }

    fn pass(&mut self, n_bytes: usize, before: Before) -> Option<()> {
        self.rest = self.rest.get(n_bytes..)?;
        self.before = before;
        Some(())
    }

    fn is_after_value(&self) -> bool {
        matches!(self.before, Before::Value { .. })
    }

    fn is_after_operator(&self) -> bool {
        !self.is_after_value() && self.before != Before::Anything
    }

    /// What is made while the line runs. What follows at once belongs to it.
    fn expansion(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        let mut is_quoted = false;
        let end = self.rest.char_indices().find(|(at, c)| {
            match c {
                '`' => is_quoted = !is_quoted,
                '(' | '{' | '[' => depth += 1,
                ')' | '}' | ']' if depth > 0 => depth -= 1,
                _ if depth > 0 || is_quoted || *at == 0 => {}
                _ => return !(c.is_ascii_alphanumeric() || "_$#?@*!-".contains(*c)),
            }
            false
        });
        let end = end.map_or(self.rest.len(), |(at, _)| at);
        self.pass(end, Before::Anything)
    }

    fn number(&mut self) -> Option<()> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "#@_".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let digits = &self.rest[..end];
        let is_zero = digits.bytes().all(|b| b == b'0');
        let is_refused = self.is_after_value() || is_zero && self.before == Before::Division;
        let is_open = digits.ends_with('#') && self.rest[end..].starts_with(['$', '`']);
        match (is_number(digits) || is_open) && !is_refused {
            true => self.pass(end, Before::Value { is_variable: false }),
            false => None,
        }
    }

    fn variable(&mut self) -> Option<()> {
        if self.is_after_value() {
            return None;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let is_variable = matches!(self.before, Before::Start | Before::Anything);
        self.pass(end, Before::Value { is_variable })?;
        let Some(inside) = self.rest.strip_prefix('[') else {
            return Some(());
        };
        let mut depth = 1_usize;
        let end = inside.find(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        self.rest = &inside[end + 1..];
        (end > 0).then_some(())
    }

    /// What stands behind a value.
    fn operator(&mut self) -> Option<()> {
        // `i++`, or two signs before the next value.
        if self.rest.starts_with("++") || self.rest.starts_with("--") {
            return self.pass(2, Before::Anything);
        }
        let operator = BETWEEN.iter().find(|o| self.rest.starts_with(**o))?;
        let compares = ["==", "!=", "<=", ">="].contains(operator);
        let is_assignment = operator.ends_with('=') && !compares;
        if is_assignment && self.before == (Before::Value { is_variable: false }) {
            return None;
        }
        let before = match *operator {
            _ if is_assignment => Before::Start,
            "/" | "%" => Before::Division,
            _ => Before::Operator,
        };
        self.pass(operator.len(), before)
    }
}

/// Whether digits and letters are a number: `10`, `0x1f`, `017`, `2#101`.
fn is_number(text: &str) -> bool {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match (text.split_once('#'), hexadecimal) {
        (Some((base, digits)), _) => {
            let base = base
                .parse::<u32>()
                .is_ok_and(|base| (2..=64).contains(&base));
            base && !digits.is_empty()
        }
        (None, Some(digits)) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        (None, None) if text.starts_with('0') => text.bytes().all(|b| matches!(b, b'0'..=b'7')),
        (None, None) => text.bytes().all(|b| b.is_ascii_digit()),
    }
}
