//! `go vet -json`: for each package a line `# PACKAGE` and an object of findings by package and analyser, or lines of the compiler. Since
//! Go 1.24 the objects come on standard output, before on standard error.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Printout;
use super::lines::place_of;
use crate::diagnostic::{Diagnostic, Severity};

#[derive(Deserialize)]
struct Finding {
    posn: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Analysis {
    Findings(Vec<Finding>),
    Failed { error: String },
}

type Packages = BTreeMap<String, BTreeMap<String, Analysis>>;

/// Reads findings of analysers as warnings, and what the compiler says as errors.
pub fn read(printout: &Printout) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for text in [&printout.stdout, &printout.stderr] {
        let mut object = String::new();
        for line in text.lines() {
            // Objects are indented; their braces alone stand at the beginning of a line.
            if line == "{" || !object.is_empty() {
                object.push_str(line);
                if line == "}" {
                    found.extend(findings(&object));
                    object.clear();
                }
            } else if line.starts_with('{') {
                found.extend(findings(line));
            } else {
                found.extend(of_compiler(line));
            }
        }
    }
    found
}

fn findings(object: &str) -> Vec<Diagnostic> {
    let packages: Packages = serde_json::from_str(object).unwrap_or_default();
    let analyses = packages.into_values().flatten();
    let found = analyses.flat_map(|(analyser, analysis)| match analysis {
        Analysis::Failed { error } => vec![diagnostic(Severity::Error, "", error, analyser)],
        Analysis::Findings(findings) => findings
            .into_iter()
            .map(|one| diagnostic(Severity::Warning, &one.posn, one.message, analyser.clone()))
            .collect(),
    });
    found.collect()
}

fn diagnostic(severity: Severity, place: &str, message: String, analyser: String) -> Diagnostic {
    let (file, line, col) = place_of(place);
    Diagnostic {
        severity,
        message,
        file: (!file.is_empty()).then_some(file),
        line,
        col,
        code: Some(analyser),
        rendered: None,
    }
}

/// `vet: ./main.go:6:2: undefined: x`, or without `vet: `.
fn of_compiler(line: &str) -> Option<Diagnostic> {
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let (place, message) = line.split_once(": ")?;
    let (file, line, col) = place_of(place);
    line.filter(|_| !place.contains(' '))?;
    Some(Diagnostic {
        severity: Severity::Error,
        message: message.to_owned(),
        file: Some(file.strip_prefix("./").unwrap_or(&file).to_owned()),
        line,
        col,
        code: None,
        rendered: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Printout;
    use super::read;

    fn lines(stdout: &str, stderr: &str) -> Vec<String> {
        let printout = Printout {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        read(&printout).iter().map(|one| one.line()).collect()
    }

    #[test]
    fn findings_of_vet_on_either_stream() {
        let recorded = include_str!("../../tests/recorded/go-vet.txt");
        let expect = [
            "/project/main.go:8:30: warning[loopclosure]: loop variable i captured by func literal",
            "/project/main.go:6:2: warning[printf]: fmt.Printf format %d has arg \"text\" of wrong type string",
            "/project/main.go:11:2: warning[unreachable]: unreachable code",
        ];
        assert_eq!(lines("", recorded), expect);
        assert_eq!(lines(recorded, ""), expect);
    }

    #[test]
    fn errors_of_the_compiler() {
        let recorded = include_str!("../../tests/recorded/go-vet-broken.txt");
        assert_eq!(
            lines("", recorded),
            ["main.go:4:7: error: undeclared name: missing"]
        );
    }
}
