//! Reading the corpora.

/// Tokens that mean something to a shell.
pub(super) const TOKENS: &[&str] = &[
    "rm", " ", " ", " ", "\n", ";", ";;", "&", "&&", "|", "||", "(", ")", "((", "))", "{", "}",
    "[[", "]]", "$", "$(", "${", "${x:-", "$((", "$[", "]", "`", "'", "\"", "$'", "$\"", "\\",
    "\\\n", "#", "<", ">", ">&", "<&", "&>", "<<E", "<<-E", "<<'E'", "<<<", "\nE\n", "E", "<(",
    ">(", "!", "if", "then", "elif", "else", "fi", "for", "in", "do", "done", "while", "case",
    "esac", "select", "function", "coproc", "time", "x=", "x[", "]=", "x=(", "*", "?", "~",
    "{a,b}", "1", "2", "x", "f()", "eval", "bash", "-c", "env", "xargs", "find", "-exec", "{}",
    "\\;", "+", "sudo", "trap", "@P}", "é", "\t",
];

/// Each text with the commands it is to be taken apart into.
pub(super) fn everyday(corpus: &str) -> Vec<(String, Vec<String>)> {
    let mut cases: Vec<(String, Vec<String>)> = Vec::new();
    for line in corpus.lines() {
        if let Some(text) = line.strip_prefix("$ ") {
            cases.push((text.to_owned(), Vec::new()));
        }
        let Some((text, expected)) = cases.last_mut() else {
            continue;
        };
        if let Some(command) = line.strip_prefix("> ") {
            expected.push(command.to_owned());
        }
        push_line(text, line);
    }
    cases
}

/// Each text with what must be seen of it.
pub(super) fn bypasses(corpus: &str) -> Vec<(String, String)> {
    let mut cases: Vec<(String, String)> = Vec::new();
    let mut expected = "";
    for line in corpus.lines() {
        if let Some(heading) = line.strip_prefix("= ") {
            expected = heading;
        } else if let Some(text) = line.strip_prefix("$ ") {
            cases.push((text.to_owned(), expected.to_owned()));
        } else if let Some((text, _)) = cases.last_mut() {
            push_line(text, line);
        }
    }
    cases
}

fn push_line(text: &mut String, line: &str) {
    if let Some(more) = line
        .strip_prefix('.')
        .filter(|more| more.is_empty() || more.starts_with(' '))
    {
        text.push('\n');
        text.push_str(more.get(1..).unwrap_or_default());
    }
}
