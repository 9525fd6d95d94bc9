//! The tests inside rule files: an output, and what must remain of it.

use zeph_core::command::CommandLine;

use crate::apply::{Foreign, Output, size_problem};
use crate::load::{Filters, Warning};
use crate::rule::{Origin, RawCase, read};
use crate::sanitize::clean;

/// How one test went.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseOutcome {
    /// Its name.
    pub name: String,
    /// What is not as the test says; empty when it holds.
    pub problems: Vec<String>,
    /// The part of the bytes that was saved, 0 to 1, of the text without control sequences.
    pub saved: f64,
    /// The rules that acted.
    pub rules: Vec<String>,
    /// What a model would see.
    pub text: String,
}

/// What tests need from outside.
#[derive(Clone, Copy)]
pub struct CaseInputs<'a> {
    /// Takes a command line apart.
    pub analyse: &'a dyn Fn(&str) -> CommandLine,
    /// Reads an `input_file`, whose path is relative to the rule file; `None` when there is none.
    pub read: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Strategies of components.
    pub foreign: &'a dyn Foreign,
}

impl std::fmt::Debug for CaseInputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaseInputs").finish_non_exhaustive()
    }
}

impl Filters {
    /// Runs the tests of a rule file against the rules in force.
    ///
    /// Errors: as warnings, what in the file is not usable: a rule whose strategy cannot be made is, whether a test needs it or not.
    pub fn verify(
        &self,
        file: (&str, &str),
        inputs: CaseInputs<'_>,
    ) -> (Vec<CaseOutcome>, Vec<Warning>) {
        let (name, text) = file;
        let mut file = read(name, text, &Origin::User(name.to_owned()));
        for rule in &file.rules {
            let problem = rule.problem(inputs.foreign);
            file.warnings.extend(problem.map(|reason| Warning {
                file: name.to_owned(),
                rule: Some(rule.name.clone()),
                reason,
            }));
        }
        let outcomes = file
            .cases
            .iter()
            .map(|case| self.run(case, inputs))
            .collect();
        (outcomes, file.warnings)
    }

    fn run(&self, case: &RawCase, inputs: CaseInputs<'_>) -> CaseOutcome {
        let raw = match input(case, inputs) {
            Ok(raw) => raw,
            Err(problem) => {
                return CaseOutcome {
                    name: case.name.clone(),
                    problems: vec![problem],
                    saved: 0.0,
                    rules: Vec::new(),
                    text: String::new(),
                };
            }
        };
        let line = (inputs.analyse)(&case.command);
        let output = Output {
            command: Some(&line),
            exit_code: Some(case.exit_code),
            raw: &raw,
        };
        let filtered = self.apply(&output, inputs.foreign);
        let before = clean(&raw).text;
        let saved = share_saved(before.len(), filtered.text.len());
        let mut problems = problems(case, &filtered.text, saved);
        if !problems.is_empty() {
            problems.extend(size_problem(&before));
        }
        // A strategy that did not work is one more, whatever the test says of the text.
        problems.extend(filtered.notes);
        CaseOutcome {
            name: case.name.clone(),
            problems,
            saved,
            rules: filtered.rules,
            text: filtered.text.into_owned(),
        }
    }
}

/// The output of a test.
///
/// Errors: what is wrong with where it stands.
fn input(case: &RawCase, inputs: CaseInputs<'_>) -> Result<Vec<u8>, String> {
    match (&case.input, &case.input_file) {
        (Some(input), None) => Ok(input.clone().into_bytes()),
        (None, Some(path)) => {
            let read = (inputs.read)(path);
            read.ok_or_else(|| format!("its `input_file` `{path}` cannot be read"))
        }
        (Some(_), Some(_)) => {
            Err("it has both `input` and `input_file`: leave one of them out".to_owned())
        }
        (None, None) => Err("it needs an `input`, or an `input_file`".to_owned()),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is for people; outputs are far below 2^52 bytes"
)]
fn share_saved(before: usize, after: usize) -> f64 {
    if before == 0 {
        0.0
    } else {
        1.0 - after as f64 / before as f64
    }
}

fn problems(case: &RawCase, text: &str, saved: f64) -> Vec<String> {
    let mut problems = Vec::new();
    if case
        .expect
        .as_ref()
        .is_some_and(|expect| expect.trim_end() != text.trim_end())
    {
        problems.push("the text is not as expected".to_owned());
    }
    let missing = case
        .contains
        .iter()
        .filter(|part| !text.contains(part.as_str()));
    problems.extend(missing.map(|part| format!("`{part}` is missing")));
    let left = case
        .lacks
        .iter()
        .filter(|part| text.contains(part.as_str()));
    problems.extend(left.map(|part| format!("`{part}` is still there")));
    if let Some(min) = case.saved_min.filter(|min| saved < *min) {
        problems.push(format!(
            "{:.1}% is saved, {:.1}% is wanted",
            saved * 100.0,
            min * 100.0
        ));
    }
    problems
}

#[cfg(test)]
mod tests;
