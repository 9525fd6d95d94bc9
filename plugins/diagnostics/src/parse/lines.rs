//! Checkers that print a line for each finding.

use super::Printout;
use crate::diagnostic::{Diagnostic, Severity};

/// `tsc --pretty false`: `src/a.ts(3,7): error TS2322: Type …`, with further lines indented, and `error TS18003: …` about no file.
pub fn tsc(printout: &Printout) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for line in printout.stdout.lines() {
        match (tsc_line(line), found.last_mut()) {
            (Some(diagnostic), _) => found.push(diagnostic),
            (None, Some(last)) if line.starts_with(' ') => {
                last.message.push_str(&format!("\n{line}"));
            }
            (None, _) => {}
        }
    }
    // It cannot keep its own notes in a project that it may not change; nothing is wrong with the project.
    found.retain(|one| one.code.as_deref() != Some("TS5033"));
    found
}

fn tsc_line(line: &str) -> Option<Diagnostic> {
    let (place, rest) = match line.split_once("): ") {
        Some((place, rest)) if !place.starts_with(' ') && place.contains('(') => {
            (Some(place), rest)
        }
        _ => (None, line),
    };
    let (head, message) = rest.split_once(": ")?;
    let (severity, code) = head.split_once(" TS")?;
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit());
    if !is_code || !matches!(severity, "error" | "warning" | "message") {
        return None;
    }
    let place = place.and_then(|place| place.rsplit_once('('));
    let numbers = place.and_then(|(_, numbers)| numbers.split_once(','));
    Some(Diagnostic {
        severity: Severity::of(severity),
        message: message.to_owned(),
        file: place.map(|(file, _)| file.to_owned()),
        line: numbers.and_then(|(line, _)| line.parse().ok()),
        col: numbers.and_then(|(_, col)| col.parse().ok()),
        code: Some(format!("TS{code}")),
        rendered: None,
    })
}

/// `mypy`: `a.py:3:12: error: Incompatible return value type  [return-value]`. Notes belong to the finding before them.
pub fn mypy(printout: &Printout) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for diagnostic in printout.stdout.lines().filter_map(mypy_line) {
        match found.last_mut() {
            Some(last) if diagnostic.severity == Severity::Note && last.file == diagnostic.file => {
                last.message.push_str(&format!("\n{}", diagnostic.message));
            }
            _ => found.push(diagnostic),
        }
    }
    found
}

fn mypy_line(line: &str) -> Option<Diagnostic> {
    let mut fields = line.splitn(2, ": ");
    let (place, rest) = (fields.next()?, fields.next()?);
    let (severity, message) = rest.split_once(": ")?;
    if !matches!(severity, "error" | "warning" | "note") {
        return None;
    }
    let (file, line, col) = place_of(place);
    let coded = message
        .strip_suffix(']')
        .and_then(|message| message.rsplit_once("  ["));
    let (message, code) = match coded {
        Some((message, code)) => (message, Some(code.to_owned())),
        None => (message, None),
    };
    Some(Diagnostic {
        severity: Severity::of(severity),
        message: message.to_owned(),
        file: Some(file),
        line,
        col,
        code,
        rendered: None,
    })
}

/// `FILE`, `FILE:LINE` or `FILE:LINE:COL`.
pub(super) fn place_of(place: &str) -> (String, Option<u32>, Option<u32>) {
    let number = |text: &str| -> Option<(String, u32)> {
        let (rest, number) = text.rsplit_once(':')?;
        Some((rest.to_owned(), number.parse().ok()?))
    };
    match number(place) {
        None => (place.to_owned(), None, None),
        Some((rest, last)) => match number(&rest) {
            None => (rest, Some(last), None),
            Some((file, line)) => (file, Some(line), Some(last)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::Printout;
    use super::{mypy, tsc};
    use crate::diagnostic::Diagnostic;

    fn lines(parse: fn(&Printout) -> Vec<Diagnostic>, recorded: &str) -> Vec<String> {
        let printout = Printout {
            stdout: recorded.to_owned(),
            stderr: String::new(),
        };
        parse(&printout).iter().map(Diagnostic::line).collect()
    }

    #[test]
    fn findings_of_tsc() {
        let found = lines(tsc, include_str!("../../tests/recorded/tsc.txt"));
        let expect = [
            "src/a.ts:2:24: error[TS2322]: Type 'string' is not assignable to type 'number'.",
            "src/a.ts:2:39: error[TS2322]: Type 'number' is not assignable to type 'string'.",
            "src/a.ts:3:50: error[TS2339]: Property 'w' does not exist on type 'Point'.",
            "src/a.ts:4:5: error[TS2345]: Argument of type '{ x: number; y: { w: number; }; }' is not assignable to parameter of type 'Point'. \
             Types of property 'y' are incompatible. Property 'z' is missing in type '{ w: number; }' but required in type '{ z: string; }'.",
            "src/b.ts:1:35: error[TS2345]: Argument of type 'string' is not assignable to parameter of type 'Point'.",
            "src/c.ts:1:7: error[TS1134]: Variable declaration expected.",
            "src/c.ts:1:9: error[TS1134]: Variable declaration expected.",
            "error[TS18003]: No inputs were found in config file '/project/tse/tsconfig.json'. Specified 'include' paths were '[\"none\"]' \
             and 'exclude' paths were '[]'.",
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn findings_of_mypy() {
        let found = lines(mypy, include_str!("../../tests/recorded/mypy.txt"));
        let expect = [
            "a.py:6:12: error[return-value]: Incompatible return value type (got \"str\", expected \"int\")",
            "a.py:9:1: error[no-untyped-def]: Function is missing a type annotation",
            "a.py:10:5: error[name-defined]: Name \"undefined_name\" is not defined",
            "a.py:11:17: error[arg-type]: Argument 1 to \"half\" has incompatible type \"str\"; expected \"int\"",
            "a.py:19:17: error[override]: Argument 1 of \"m\" is incompatible with supertype \"A\"; supertype defines the argument type as \
             \"int\" This violates the Liskov substitution principle See \
             https://mypy.readthedocs.io/en/stable/common_issues.html#incompatible-overrides",
            "b.py:1:13: error[syntax]: Expected a parameter or the end of the parameter list",
            "b.py:2:2: error[syntax]: Unexpected EOF while parsing",
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn other_lines_are_passed_over() {
        for text in [
            "",
            "Found 2 errors\n",
            "warning: x\n",
            "a: b: c\n",
            "x(1,2): y\n",
            "): : TS\n",
        ] {
            assert!(lines(tsc, text).is_empty(), "{text}");
            assert!(lines(mypy, text).is_empty(), "{text}");
        }
    }
}
