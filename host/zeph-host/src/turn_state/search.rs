//! What looks like an address, a path or JSON in a text. Pure; linear but for JSON, whose tries are counted.

use serde_json::Value;
use url::Url;

/// Bytes of an address, and of a path.
const URL_BYTES_MAX: usize = 2_048;
const PATH_BYTES_MAX: usize = 1_024;

/// Places at which JSON may begin that are tried in one text, and bytes that are looked at from each.
const TRIES_MAX: usize = 64;
const JSON_BYTES_MAX: usize = 256 * 1024;

/// What stands around an address or a path, and never in it.
const AROUND: &str = "\"'<>`|\\{}";

/// What may end an address or a path, and belongs to the sentence around it.
const BEHIND: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', ']', '*'];

/// The addresses of `http` and `https` in a text, in order. None holds a password, or what is left of a secret.
pub(super) fn urls(text: &str) -> Vec<String> {
    let mut urls = Vec::new();
    for (at, _) in text.match_indices("http") {
        let word = text[at..].split(is_around).next().unwrap_or_default();
        let word = word.trim_end_matches(BEHIND);
        if word.len() > URL_BYTES_MAX || word.contains("[redacted") {
            continue;
        }
        let url = Url::parse(word).ok();
        let is_good = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.password().is_none()
                && word.contains("://")
        };
        if url.is_some_and(|url| is_good(&url)) {
            urls.push(word.to_owned());
        }
    }
    urls
}

fn is_around(letter: char) -> bool {
    letter.is_whitespace() || AROUND.contains(letter)
}

/// What looks like a path in a text, in order: with a slash, or a name with an ending that stands alone on its line.
pub(super) fn paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in text.lines() {
        let alone = line.trim();
        // Most lines: no word has a slash, and none is all of the line with an ending.
        if !line.contains('/') && (!alone.contains('.') || alone.contains(' ')) {
            continue;
        }
        let is_between = |letter: char| is_around(letter) || "()[],;=".contains(letter);
        for word in line.split(is_between) {
            let path = without_place(word.trim_end_matches(BEHIND));
            let is_one = match path.contains('/') {
                true => is_path(path),
                false => word == alone && has_ending(path),
            };
            if is_one && is_plain(path) {
                paths.push(path.to_owned());
            }
        }
    }
    paths
}

/// `src/main.rs` of `src/main.rs:10:5` and of `src/main.rs:10:text`.
fn without_place(word: &str) -> &str {
    let starts_with_digit = |rest: &str| rest.starts_with(|digit: char| digit.is_ascii_digit());
    match word.split_once(':') {
        Some((path, rest)) if rest.is_empty() || starts_with_digit(rest) => path,
        _ => word,
    }
}

fn is_plain(path: &str) -> bool {
    let is_of_path = |letter: char| letter.is_alphanumeric() || "/._-+@~%#".contains(letter);
    path.len() <= PATH_BYTES_MAX
        && path.chars().all(is_of_path)
        && path.chars().any(char::is_alphabetic)
        && !path.contains("//")
}

/// Whether a word with a slash is a path and not `and/or`, `text/html` or `1/2`.
fn is_path(word: &str) -> bool {
    let begins = ["/", "./", "../", "~/"];
    let is_long = word.matches('/').count() > 1;
    begins
        .iter()
        .any(|begin| word.starts_with(begin) && word.len() > begin.len())
        || is_long
        || word.ends_with('/')
        || has_ending(word.rsplit('/').next().unwrap_or_default())
}

/// Whether a name has an ending: `main.rs`, and not `1.5` or `done`.
fn has_ending(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    let is_short = (1..=8).contains(&ending.len());
    let is_word = ending.chars().all(|letter| letter.is_ascii_alphanumeric());
    let says = ending.chars().any(|letter| letter.is_ascii_alphabetic());
    !stem.is_empty() && is_short && is_word && says
}

/// The JSON objects and arrays that begin at the beginning of a line, in order.
pub(super) fn json(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let (mut at, mut n_tries) = (0, 0);
    while let Some(start) = next_start(text, at) {
        n_tries += 1;
        if n_tries > TRIES_MAX {
            break;
        }
        let rest = &text[start..];
        let rest = &rest[..rest.floor_char_boundary(JSON_BYTES_MAX.min(rest.len()))];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        at = match stream.next() {
            Some(Ok(value)) if says_something(&value) => {
                values.push(value);
                start + stream.byte_offset()
            }
            _ => start + 1,
        };
    }
    values
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Object(object) => !object.is_empty(),
        // `[1]` and its like are notes at the edge of texts.
        Value::Array(items) => items.len() > 1 || items.iter().any(Value::is_object),
        _ => false,
    }
}

/// Where the next line begins that may be JSON, from `at` on.
fn next_start(text: &str, at: usize) -> Option<usize> {
    let mut line_start = at;
    loop {
        let rest = text.get(line_start..)?;
        let is_start = line_start == 0 || text.as_bytes()[line_start - 1] == b'\n';
        let line = rest.split('\n').next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        if is_start && line[indent..].starts_with(['{', '[']) {
            return Some(line_start + indent);
        }
        line_start += line.len() + 1;
        if line_start > text.len() {
            return None;
        }
    }
}
