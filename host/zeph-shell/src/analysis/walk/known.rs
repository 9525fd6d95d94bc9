//! Commands with the values put in that the line itself gives its variables.

use super::super::literals::variable;
use super::super::reader::list::split_assignment;
use super::super::syntax::{Redirect, VariableAssignment, Word, WordPart};
use super::super::value::Value;
use super::setting::DECLARE;
use super::{ScriptWalk, WalkPosition, braced};

/// What was known before a command got variables of its own.
pub(super) type SavedVariables = Vec<(String, Option<(String, bool)>)>;

impl ScriptWalk {
    /// The words of a command with what is known put in; `None` when they hold nothing of it.
    pub(super) fn known(&self, at: WalkPosition<'_>, words: &[Word]) -> Option<Vec<Value>> {
        let words = self.numbers.literals.put_into(&braced(at, words))?;
        Some(words.iter().map(Value::of).collect())
    }

    /// Whether the variables in a word have the values that are known of them: the line sets them for certain, and no loop comes back.
    pub(super) fn are_certain(&self, word: &Word) -> bool {
        word.parts.iter().all(|part| match part {
            WordPart::Expansion(expansion) => {
                variable(expansion).is_none_or(|name| self.numbers.is_certain(name))
            }
            WordPart::Text(_) | WordPart::Quoted(_) => true,
        })
    }

    /// Takes in a command once more, with what is known put in. Only rules that refuse or ask look at it.
    pub(super) fn run_known(
        &mut self,
        at: WalkPosition<'_>,
        known: Option<Vec<Value>>,
        redirects: &[Redirect],
    ) {
        let Some(values) = known else { return };
        let n_moves = self.line.moves.len();
        let at = WalkPosition {
            is_within: true,
            is_own: false,
            ..at
        };
        self.run(at, &values, redirects);
        // The command as it is written has made them.
        self.line.moves.truncate(n_moves);
    }

    /// Lends a command the variables that stand before it, which the shells in it see.
    pub(super) fn lend(
        &mut self,
        assignments: &[VariableAssignment],
        is_command: bool,
    ) -> SavedVariables {
        if !is_command {
            return Vec::new();
        }
        let mut around = Vec::new();
        let others = |assignment: &&VariableAssignment| assignment.name != "IFS";
        for assignment in assignments.iter().filter(others) {
            let literals = &mut self.numbers.literals;
            around.push((assignment.name.clone(), literals.get(&assignment.name)));
            self.set_known(assignment, true);
        }
        around
    }

    /// Takes back what was lent.
    pub(super) fn give_back(&mut self, around: SavedVariables) {
        for (name, value) in around.into_iter().rev() {
            let literals = &mut self.numbers.literals;
            literals.forget(&name);
            if let Some((text, is_exported)) = value {
                literals.set(&name, &text, is_exported);
            }
        }
    }

    /// Notes the value of a plain variable, if it is known.
    pub(super) fn set_known(&mut self, assignment: &VariableAssignment, is_exported: bool) {
        let [value] = assignment.values.as_slice() else {
            return self.numbers.literals.forget(&assignment.name);
        };
        self.set_value(&assignment.name, value, assignment.is_added, is_exported);
    }

    fn set_value(&mut self, name: &str, value: &Word, is_added: bool, is_exported: bool) {
        let value = self.numbers.literals.put_whole(value);
        let is_element =
            matches!(value.parts.first(), Some(WordPart::Text(text)) if text.starts_with('['));
        let value = Value::of(&value);
        match value.as_literal() {
            Some(text) if !is_added && !is_element => {
                self.numbers.literals.set(name, text, is_exported);
            }
            _ => self.numbers.literals.forget(name),
        }
    }

    /// Notes the values that a builtin such as `export` gives.
    pub(super) fn declared_values(&mut self, words: &[Word]) {
        let mut words = words.iter();
        let name = words.next().map(Value::of);
        let Some(builtin) = name.filter(|name| DECLARE.contains(&name.text.as_str())) else {
            return;
        };
        let (options, words): (Vec<&Word>, Vec<&Word>) =
            words.partition(|word| Value::of(word).text.starts_with('-'));
        let texts: Vec<String> = options.iter().map(|word| Value::of(word).text).collect();
        let is_plain = texts
            .iter()
            .all(|text| text.chars().skip(1).all(|c| "xrg".contains(c)));
        let is_exported = builtin.text == "export" || texts.iter().any(|text| text.contains('x'));
        for word in words {
            let text = Value::of(word).text;
            match split_assignment(word) {
                Some((name, value)) if is_plain => {
                    let is_added = text[name.len()..].starts_with('+');
                    self.set_value(&name, &value, is_added, is_exported);
                }
                None if is_plain && is_exported => self.numbers.literals.export(&text),
                _ if is_plain => {}
                // They make numbers, references and lower case of values, perhaps of other variables.
                _ => self.numbers.literals.forget_all(),
            }
        }
    }
}
