//! How much work it is to check one value against a schema.
//!
//! What a schema takes for one part of a value says little: a value may have a million parts, each compared with all values of an `enum`
//! and matched with every pattern. So the work is reckoned from both beforehand. What a part costs is known by the step that leads to it:
//! schemas of a key apply to what has that key, those of items to what stands in a list.
//!
//! Units: some ten nanoseconds.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{ValueStep, pattern};

/// The most work of one check: some seconds. A megabyte of ordinary data takes a hundredth.
const WORK_MAX: u64 = 500_000_000;

/// The most work of a check that holds up nobody: about a millisecond, for as long as a short call of a guest may keep its caller's thread
/// (`zeph-engine`). To hand it to another thread costs a tenth of that at worst, so what takes less had better stay. Arguments in use take
/// some hundred, with a text of 100 KB whose length is checked some thousand.
const LITTLE_MAX: u64 = 100_000;

/// The most checks after which it is said what does not agree: for that, the library collects everything that does not, some 250 bytes each.
const EXPLAINED_MAX: u64 = 1_000_000;

/// What a keyword takes.
const KEYWORD: u64 = 4;

/// Bytes of a text that are compared at once.
const BYTES_AT_ONCE: u64 = 32;

/// Parts in which the work for a byte of a text is counted.
const BYTE_PARTS: u64 = 64;

/// What counting the characters of a text takes, for each byte.
const LENGTH_PARTS: u64 = 2;

/// What a state of a pattern takes, for each byte.
const STATE_PARTS: u64 = 32;

/// Steps back of one match (`BACKTRACKS_MAX` of `zeph-schema`), and what each takes, on an empty text.
const STEPS_BACK: u64 = 10_000;
const STEP: u64 = 5;

/// Bytes of a text that a step back may look at again at once.
const BYTES_A_STEP: u64 = 8;

/// How often the library begins anew when a match was given up, to try what follows from either outcome.
const RUNS: u64 = 64;

/// What comparing the items of a list takes, for each part of them: short lists are compared one with the other.
const UNIQUE: u64 = 8;

/// Whole numbers up to here are all different as fractions, by which they are told apart.
const EXACT_MAX: u64 = 1 << 53;

/// Keywords that check nothing, or nothing here.
const UNCHECKED: [&str; 12] = [
    "title",
    "description",
    "$comment",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "$schema",
    "$defs",
    "definitions",
];

/// What schemas take for each part of a value, by the step to it.
#[derive(Debug, Default)]
pub(in crate::argument) struct Weights {
    root: Weight,
    keys: HashMap<String, Weight>,
    /// Added to those of any key.
    any_key: Weight,
    items: Weight,
    /// Of the keys themselves.
    names: Weight,
    /// Whether a match may be given up.
    gives_up: bool,
}

/// What schemas take for one part of a value.
#[derive(Debug, Default, Clone, Copy)]
struct Weight {
    checks: u64,
    /// For each byte of a text.
    byte_parts: u64,
    /// Patterns that take steps back.
    n_steppers: u64,
    /// How often the items of a list have to be different.
    n_unique: u64,
}

/// What a check takes.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::argument) struct Work {
    checks: u64,
    byte_parts: u64,
    steps_back: u64,
    gives_up: bool,
}

impl Weights {
    /// Adds a schema that is applied where `step` leads.
    pub(super) fn add_schema(&mut self, step: Option<&ValueStep<'_>>, schema: &Value) {
        let weight = match schema {
            Value::Object(map) => self.of_keywords(map),
            _ => Weight {
                checks: KEYWORD,
                ..Weight::default()
            },
        };
        self.at(step).add(weight);
    }

    /// Adds what tells keys apart.
    pub(super) fn add_key_patterns<'a>(&mut self, patterns: impl Iterator<Item = &'a String>) {
        for pattern in patterns {
            // Once for its own schema, and once for the keys that no pattern names.
            let weight = self.of_pattern(pattern);
            self.names.add(weight);
            self.names.add(weight);
        }
    }

    /// Adds what schemas take that begin anew: `steps` lead to where each began, and to where it does so again. The parts of a schema are
    /// weighed by their own steps already.
    pub(super) fn add_again(&mut self, steps: &[[Option<ValueStep<'_>>; 2]]) {
        let began = steps.iter().map(|[began, _]| *self.at(began.as_ref()));
        let began: Vec<Weight> = began.collect();
        for ([_, again], weight) in steps.iter().zip(began) {
            self.at(again.as_ref()).add(weight);
        }
    }

    fn at(&mut self, step: Option<&ValueStep<'_>>) -> &mut Weight {
        match step {
            None => &mut self.root,
            Some(ValueStep::Key(key)) => self.keys.entry((*key).to_owned()).or_default(),
            Some(ValueStep::OtherKey(_)) => &mut self.any_key,
            Some(ValueStep::Item(_) | ValueStep::Items(_)) => &mut self.items,
            Some(ValueStep::Name) => &mut self.names,
        }
    }

    fn of_keywords(&mut self, keywords: &Map<String, Value>) -> Weight {
        let mut weight = Weight {
            checks: KEYWORD,
            ..Weight::default()
        };
        for (keyword, value) in keywords {
            match keyword.as_str() {
                keyword if UNCHECKED.contains(&keyword) => {}
                "enum" | "const" | "required" | "type" | "dependentRequired" => {
                    weight.checks += KEYWORD + size(value);
                }
                "properties" | "patternProperties" | "dependencies" => {
                    let inner = value.as_object().into_iter().flat_map(Map::values);
                    let sizes = inner.map(|inner| match inner {
                        Value::Array(_) => size(inner),
                        _ => 1,
                    });
                    weight.checks += KEYWORD + sizes.sum::<u64>();
                }
                "pattern" => {
                    let pattern = value.as_str().unwrap_or_default();
                    weight.add(self.of_pattern(pattern));
                }
                "minLength" | "maxLength" => weight.byte_parts += LENGTH_PARTS,
                "uniqueItems" => weight.n_unique += u64::from(*value == Value::Bool(true)),
                _ => weight.checks += KEYWORD,
            }
        }
        weight
    }

    fn of_pattern(&mut self, pattern: &str) -> Weight {
        let cost = pattern::cost(pattern);
        self.gives_up |= cost.steps_back;
        Weight {
            checks: KEYWORD,
            byte_parts: cost.n_states * STATE_PARTS,
            n_steppers: u64::from(cost.steps_back),
            ..Weight::default()
        }
    }

    /// What checking `value` takes at most.
    ///
    /// Limits: recurses as deep as the value, whose depth the reader of JSON bounds.
    pub(in crate::argument) fn work(&self, value: &Value) -> Work {
        let mut work = Work {
            gives_up: self.gives_up,
            ..Work::default()
        };
        self.part(value, self.root, &mut work);
        work
    }

    /// Adds the work for a part of a value. Returns its size.
    fn part(&self, value: &Value, weight: Weight, work: &mut Work) -> u64 {
        work.add_checks(weight.checks);
        match value {
            Value::String(text) => {
                work.add_text(weight, text);
                text_size(text)
            }
            Value::Array(items) => {
                let sizes = items.iter().map(|item| self.part(item, self.items, work));
                let size = 1 + sizes.sum::<u64>();
                if weight.n_unique > 0 {
                    let each = unlike(items, size);
                    work.add_checks(weight.n_unique.saturating_mul(each));
                }
                size
            }
            Value::Object(map) => {
                let sizes = map.iter().map(|(key, value)| {
                    work.add_checks(self.names.checks);
                    work.add_text(self.names, key);
                    let mut weight = self.any_key;
                    if let Some(more) = self.keys.get(key) {
                        weight.add(*more);
                    }
                    text_size(key) + self.part(value, weight, work)
                });
                1 + sizes.sum::<u64>()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        }
    }
}

impl Weight {
    fn add(&mut self, more: Self) {
        self.checks += more.checks;
        self.byte_parts += more.byte_parts;
        self.n_steppers += more.n_steppers;
        self.n_unique += more.n_unique;
    }
}

impl Work {
    fn add_checks(&mut self, n: u64) {
        self.checks = self.checks.saturating_add(n);
    }

    fn add_text(&mut self, weight: Weight, text: &str) {
        let n_bytes = text.len() as u64;
        let byte_parts = weight.byte_parts.saturating_mul(n_bytes + 1);
        self.byte_parts = self.byte_parts.saturating_add(byte_parts);
        let a_match = STEPS_BACK * (STEP + n_bytes / BYTES_A_STEP);
        let steps_back = weight.n_steppers.saturating_mul(a_match);
        self.steps_back = self.steps_back.saturating_add(steps_back);
    }

    /// Whether it exceeds the budget of one check.
    pub(in crate::argument) fn is_too_much(self) -> bool {
        self.total() > WORK_MAX
    }

    /// Whether nobody notices it.
    pub(in crate::argument) fn is_little(self) -> bool {
        self.total() <= LITTLE_MAX
    }

    fn total(self) -> u64 {
        // A match that was given up is not begun again.
        let n_runs = if self.gives_up { RUNS } else { 1 };
        let run = self.checks.saturating_add(self.byte_parts / BYTE_PARTS);
        run.saturating_mul(n_runs).saturating_add(self.steps_back)
    }

    /// Whether it may be asked what does not agree.
    pub(in crate::argument) fn is_explained(self) -> bool {
        self.checks <= EXPLAINED_MAX
    }
}

/// Values and bytes in `value`, as far as comparing it takes.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text_size(text),
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(map) => {
            let sizes = map.iter().map(|(key, value)| text_size(key) + size(value));
            1 + sizes.sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn text_size(text: &str) -> u64 {
    1 + text.len() as u64 / BYTES_AT_ONCE
}

/// The work of checking that the items of a list of this size are unique. They are compared by hash, and the author of a value can make
/// the hashes of nested items and of large numbers collide.
fn unlike(items: &[Value], size: u64) -> u64 {
    let is_hashed_alike = |item: &Value| match item {
        Value::Array(_) | Value::Object(_) => true,
        Value::Number(number) => {
            let magnitude = number
                .as_i64()
                .map_or_else(|| number.as_u64(), |n| Some(n.unsigned_abs()));
            magnitude.is_some_and(|magnitude| magnitude > EXACT_MAX)
        }
        _ => false,
    };
    let once = size.saturating_mul(UNIQUE);
    match items.iter().any(is_hashed_alike) {
        true => once.saturating_add((items.len() as u64).saturating_mul(size) / 4),
        false => once,
    }
}
