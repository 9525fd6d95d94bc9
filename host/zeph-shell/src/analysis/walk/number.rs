//! Where a text is read as a number.

use zeph_core::command::Becomes;

use super::super::brace;
use super::super::numbers::{NumberOrigin, Scan, is_name, scans};
use super::super::syntax::{Expansion, Word, WordPart};
use super::super::value::Value;
use super::super::variables::decides_what_runs;
use super::ScriptWalk;

/// Operators of `[[` between two numbers.
const OPERATORS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl ScriptWalk {
    /// `$((…))`, `$[…]`, `((…))`.
    pub(super) fn arithmetic(&mut self, source: &str) {
        let text = source.trim_start_matches('$');
        let pairs = [("((", "))"), ("[", "]")].into_iter();
        let inside = pairs
            .filter_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
            .next();
        for scan in scans(inside.unwrap_or(text)) {
            self.numbers.take(scan, source);
        }
    }

    /// `${…}`, whose subscripts and offsets are numbers, and which may set its variable.
    pub(super) fn parameter(&mut self, expansion: &Expansion) {
        let source = expansion.source.as_str();
        let inside = source
            .strip_prefix("${")
            .and_then(|inside| inside.strip_suffix('}'));
        let Some(inside) = inside else { return };
        let mut scan = Scan::default();
        scan.parameter(inside);
        self.numbers.take_inside(scan, source);
    }

    /// A variable that the shell sets to a number of its own: the descriptor of `{name}>file`, those of a coprocess.
    pub(super) fn sets_number(&mut self, name: &str) {
        if decides_what_runs(name) || !is_name(name) {
            self.unknown("a variable that decides what is run may be set", name);
        }
        self.numbers.may_assign(name, NumberOrigin::default());
    }

    /// `[ … ]`: an expansion that becomes several words may become `-v` and a subscript.
    pub(super) fn condition(&mut self, words: &[Word]) {
        let Some(("[" | "test", operands)) = words
            .split_first()
            .and_then(|(name, operands)| Some((name.plain()?, operands)))
        else {
            return;
        };
        self.unary(operands);
        for part in operands.iter().flat_map(|word| &word.parts) {
            if let WordPart::Expansion(expansion) = part
                && !expansion.is_one_word
            {
                let origin = NumberOrigin::of_expansion(expansion);
                self.numbers.reads_word(origin, &expansion.source);
            }
        }
    }

    /// `[ "$op" "$x" ]`, where the first may become `-v` and the second a subscript.
    fn unary(&mut self, operands: &[Word]) {
        let is_mark = |word: &&Word| !matches!(word.plain(), Some("!" | "]"));
        let operands: Vec<Value> = operands.iter().filter(is_mark).map(Value::of).collect();
        if let [operator, name] = operands.as_slice()
            && operator.holes.first().is_some_and(|hole| hole.start == 0)
            && !name.is_literal
        {
            self.numbers.reads(NumberOrigin::outside(), &name.text);
        }
    }

    /// The variable of a loop over words.
    pub(super) fn round(&mut self, variable: &str, words: &[Word]) {
        self.rounds.push(variable.to_owned());
        if words.is_empty() {
            self.numbers.assign(variable, NumberOrigin::outside());
        }
        for word in words.iter().flat_map(brace::expand) {
            let holes = Value::of(&word).holes;
            let has_names = holes.iter().any(|hole| hole.becomes == Becomes::Names);
            let origin = match has_names {
                true => NumberOrigin::outside(),
                false => NumberOrigin::of(&word),
            };
            self.numbers.assign(variable, origin);
        }
    }

    /// `[[ … ]]`: what stands beside the operators of numbers, and behind `-v`.
    pub(super) fn test(&mut self, words: &[Word]) {
        for (at, word) in words.iter().enumerate() {
            let Some(operator) = word.plain() else {
                continue;
            };
            let beside = |at: Option<usize>| at.and_then(|at| words.get(at));
            if OPERATORS.contains(&operator) {
                for number in [beside(at.checked_sub(1)), beside(at.checked_add(1))]
                    .into_iter()
                    .flatten()
                {
                    let part = Value::of(number).text;
                    self.numbers.reads(NumberOrigin::of(number), &part);
                }
            }
            if operator == "-v"
                && let Some(name) = beside(at.checked_add(1))
            {
                self.name(&Value::of(name));
            }
        }
    }
}
