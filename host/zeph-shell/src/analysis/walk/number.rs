//! Where a text is read as a number.

use zeph_core::command::Becomes;

use super::super::brace;
use super::super::numbers::{NumberOrigin, Scan};
use super::super::syntax::{Expansion, Word};
use super::super::value::Value;
use super::super::variables::decides_what_runs;
use super::ScriptWalk;

/// Operators of `[[` between two numbers.
const OPERATORS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl ScriptWalk {
    /// `$((…))`, `$[…]`, `((…))`.
    pub(super) fn arithmetic(&mut self, source: &str) {
        let mut scan = Scan::default();
        scan.text(source.trim_start_matches('$'));
        self.numbers.take(scan, source);
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
        let mut names = scan.assigned.iter().map(|(name, _)| name.as_str());
        if names.any(decides_what_runs) {
            self.unknown(
                "a variable that decides what is run is set where it is looked at",
                source,
            );
        }
        self.numbers.take_inside(scan, source);
    }

    /// The variable of a loop over words.
    pub(super) fn round(&mut self, variable: &str, words: &[Word]) {
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
