//! Whether a line is whole: JSON arguments may span lines until their braces close.

use reedline::{ValidationResult, Validator};

/// Asks for more lines while JSON arguments are open.
pub(super) struct WholeJson;

impl Validator for WholeJson {
    fn validate(&self, line: &str) -> ValidationResult {
        match is_open(line) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

/// Whether nothing has to follow `line`.
pub(super) fn is_whole(line: &str) -> bool {
    !is_open(line)
}

/// The lines of a text that was pasted, where each is one of its own to `is_line`; none where that is not so, or there is but one.
pub(super) fn several(text: &str, is_line: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        open.push_str(line);
        if open.trim().is_empty() {
            open.clear();
        } else if is_whole(&open) && is_line(&open) {
            lines.push(std::mem::take(&mut open));
        } else {
            // Quotes and braces may go on.
            open.push('\n');
        }
    }
    (open.is_empty() && lines.len() > 1).then_some(lines)
}

/// Whether `line` is a tool's name and JSON that is not closed. An empty last line gives up: the error can be read then.
fn is_open(line: &str) -> bool {
    let Some(start) = line.find('{') else {
        return false;
    };
    // `key={` is a value, not the beginning of the arguments.
    let is_arguments =
        line[..start].split_whitespace().count() == 1 && !line[..start].contains('=');
    if !is_arguments || line.ends_with("\n\n") {
        return false;
    }
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut characters = line[start..].chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if in_string => {
                characters.next();
            }
            '"' => in_string = !in_string,
            '{' | '[' if !in_string => depth += 1,
            '}' | ']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::{is_open, several};

    #[test]
    fn lines_that_are_pasted_at_once_are_lines_of_their_own() {
        // As it is at the prompt: quotes have to be closed.
        let is_line =
            |text: &str| text.starts_with("read ") && text.matches('"').count().is_multiple_of(2);
        for (text, expected) in [
            ("read a\nread b", Some(vec!["read a", "read b"])),
            ("read a\n\n  \nread b\n", Some(vec!["read a", "read b"])),
            (
                "read \"a\nb\"\nread b",
                Some(vec!["read \"a\nb\"", "read b"]),
            ),
            ("read {\n}\nread b", Some(vec!["read {\n}", "read b"])),
            ("read a", None),
            ("read a\nwhat", None),
            ("what\nread a", None),
        ] {
            let lines = several(text, is_line);
            let lines = lines
                .as_ref()
                .map(|lines| lines.iter().map(String::as_str).collect());
            assert_eq!(lines, expected, "{text:?}");
        }
    }

    #[test]
    fn open_braces_ask_for_more() {
        let table = [
            ("read path=a", false),
            ("read {", true),
            ("read{\"path\": \"a\"", true),
            ("read {\"path\": \"a\"}", false),
            ("read {\"path\": [1, {\"b\": 2}", true),
            ("read {\"path\": [1, {\"b\": 2}]\n}", false),
            ("read {\"path\": \"}\"", true),
            ("read {\"path\": \"{\"}", false),
            ("read {\"path\": \"\\\"{\"}", false),
            ("read {\"path\": \"open", true),
            ("read path={a,b", false),
            ("read any=1 {", false),
            ("{", false),
            ("read {\n\n", false),
            ("", false),
        ];
        for (line, expect) in table {
            assert_eq!(is_open(line), expect, "{line:?}");
        }
    }
}
