//! What is made of the findings: a text for models and the same facts for programs, both bounded, with the true total.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use zeph_plugin::Output;

use crate::diagnostic::{Diagnostic, Severity};

/// The structured result of `diagnostics`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The findings, errors first, at most `max_diagnostics`.
    pub diagnostics: Vec<Diagnostic>,
    /// How many there are.
    pub total: u64,
    /// How many of them are errors.
    pub errors: u64,
    /// What was run.
    pub checkers: Vec<String>,
    /// Whether every checker ran to its end, so that nothing is missing.
    pub complete: bool,
    /// Why something may be missing.
    pub warnings: Vec<String>,
}

/// What was found, as far as it goes.
#[derive(Debug, Default)]
pub struct Findings {
    /// Everything that was found, files absolute or relative to the project.
    pub diagnostics: Vec<Diagnostic>,
    /// What ran.
    pub checkers: Vec<String>,
    /// Why something may be missing, one sentence each.
    pub warnings: Vec<String>,
}

/// Where files are shown from.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The project: names of files start there.
    pub project: &'a Path,
    /// Where relative paths of the model start.
    pub working: &'a Path,
    /// The one file it is about, if it is about one.
    pub only: Option<&'a Path>,
}

impl Findings {
    /// The result, with at most `max` findings.
    pub fn report(mut self, view: View<'_>, max: usize) -> Output {
        for diagnostic in &mut self.diagnostics {
            let file = diagnostic.file.take();
            diagnostic.file = file.map(|file| view.shown(&file));
        }
        if let Some(only) = view.only {
            let only = view.shown(&only.to_string_lossy());
            self.diagnostics
                .retain(|one| one.file.as_ref().is_none_or(|file| *file == only));
        }
        let mut diagnostics = each_once(self.diagnostics);
        diagnostics.sort_by_key(|one| one.severity);
        let total = diagnostics.len();
        let n_errors = diagnostics
            .iter()
            .filter(|one| one.severity == Severity::Error)
            .count();
        diagnostics.truncate(max);
        let report = Report {
            total: total as u64,
            errors: n_errors as u64,
            complete: self.warnings.is_empty(),
            checkers: self.checkers,
            warnings: self.warnings,
            diagnostics,
        };
        let mut output = Output::text(report.text()).structured(&report);
        for diagnostic in &report.diagnostics {
            if let Some(file) = &diagnostic.file {
                output = output.location(file.clone(), diagnostic.line);
            }
        }
        output
    }
}

impl Report {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.diagnostics.iter().map(Diagnostic::line).collect();
        let rest = self.total - self.diagnostics.len() as u64;
        if rest > 0 {
            lines.push(format!(
                "... and {rest} more (showing first {} of {})",
                self.diagnostics.len(),
                self.total
            ));
        }
        if lines.is_empty() {
            lines.push("No diagnostics".to_owned());
        }
        lines.extend(self.warnings.iter().map(|warning| format!("[{warning}]")));
        lines.join("\n")
    }
}

/// A library and its tests are compiled apart, and say the same.
fn each_once(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = std::collections::HashSet::new();
    let is_new = |one: &Diagnostic| {
        seen.insert((
            one.file.clone(),
            one.line,
            one.col,
            one.code.clone(),
            one.message.clone(),
        ))
    };
    let mut diagnostics = diagnostics;
    let mut is_new = is_new;
    diagnostics.retain(|one| is_new(one));
    diagnostics
}

impl View<'_> {
    /// A file as the model writes it: relative to its working directory when it lies below.
    fn shown(&self, file: &str) -> String {
        let file = file.strip_prefix("./").unwrap_or(file);
        let absolute = self.project.join(file);
        let shown = absolute.strip_prefix(self.working).unwrap_or(&absolute);
        shown.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;
    use zeph_plugin::Content;

    use super::{Findings, View};
    use crate::diagnostic::{Diagnostic, Severity};

    fn one(severity: Severity, file: &str, line: u32) -> Diagnostic {
        Diagnostic {
            severity,
            message: "it is\n  wrong".to_owned(),
            file: Some(file.to_owned()),
            line: Some(line),
            col: Some(1),
            code: None,
            rendered: None,
        }
    }

    fn shown(findings: Vec<Diagnostic>, only: Option<&str>, max: usize) -> (String, Value) {
        let findings = Findings {
            diagnostics: findings,
            ..Findings::default()
        };
        let view = View {
            project: Path::new("/work/sub"),
            working: Path::new("/work"),
            only: only.map(Path::new),
        };
        let output = findings.report(view, max);
        let [Content::Text(text)] = &output.content[..] else {
            panic!("one text: {output:?}")
        };
        let structured = output.structured.unwrap();
        (text.clone(), serde_json::from_str(&structured).unwrap())
    }

    #[test]
    fn errors_come_first_and_the_total_is_the_true_one() {
        let findings = vec![
            one(Severity::Warning, "a.rs", 1),
            one(Severity::Error, "/work/sub/b.rs", 2),
            one(Severity::Warning, "./a.rs", 1),
            one(Severity::Warning, "/elsewhere/c.rs", 3),
        ];
        let (text, structured) = shown(findings, None, 2);
        let expect = "sub/b.rs:2:1: error: it is wrong\nsub/a.rs:1:1: warning: it is wrong\n... and 1 more (showing first 2 of 3)";
        assert_eq!(text, expect);
        assert_eq!(structured["total"], 3);
        assert_eq!(structured["errors"], 1);
        assert_eq!(structured["diagnostics"].as_array().unwrap().len(), 2);
        assert_eq!(structured["diagnostics"][0]["file"], "sub/b.rs");
    }

    #[test]
    fn nothing_found_is_said() {
        let (text, structured) = shown(Vec::new(), None, 2);
        assert_eq!(text, "No diagnostics");
        assert_eq!(structured["complete"], true);
    }

    #[test]
    fn of_one_file_only_its_own_are_shown() {
        let findings = vec![
            one(Severity::Error, "a.rs", 1),
            one(Severity::Error, "b.rs", 2),
        ];
        let (text, structured) = shown(findings, Some("/work/sub/b.rs"), 9);
        assert_eq!(text, "sub/b.rs:2:1: error: it is wrong");
        assert_eq!(structured["total"], 1);
    }
}
