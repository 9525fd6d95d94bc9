//! Whether a value agrees with the lists of a rule.
//!
//! A value is a text, and a server may read more into it: `..` in a path, `%2e` in a URL. So it is compared in every form that a reader
//! may make of it: all have to be allowed, and none may be denied. In `allow`, `*` does not match `/`, in `deny` it does.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

/// How often a text is decoded. A reader decodes once; a second one may stand behind it.
const DECODINGS: usize = 3;

/// The lists of one argument.
pub(super) struct ValueRule {
    /// None allows any value.
    allow: Option<GlobSet>,
    deny: GlobSet,
}

impl ValueRule {
    /// A list that does not compile allows nothing, or denies everything; the configuration takes none.
    pub(super) fn new(allow: &[String], deny: &[String]) -> Self {
        let everything = || globs(&["**".to_owned()], false).unwrap_or_default();
        Self {
            allow: (!allow.is_empty()).then(|| globs(allow, true).unwrap_or_default()),
            deny: globs(deny, false).unwrap_or_else(everything),
        }
    }

    /// Errors: the list that forbids the value: `allow` or `deny`. What is neither a text, a number, a truth value nor a list of them
    ///         cannot be compared, and is allowed by no rule.
    pub(super) fn check(&self, value: &Value) -> Result<(), &'static str> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.check_one(item)),
            value => self.check_one(value),
        }
    }

    fn check_one(&self, value: &Value) -> Result<(), &'static str> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err(self.strictest()),
        };
        let forms = forms(&text);
        if forms.iter().any(|form| self.deny.is_match(form)) {
            return Err("deny");
        }
        match &self.allow {
            Some(allow) if !forms.iter().all(|form| allow.is_match(form)) => Err("allow"),
            _ => Ok(()),
        }
    }

    fn strictest(&self) -> &'static str {
        match self.allow {
            Some(_) => "allow",
            None => "deny",
        }
    }
}

fn globs(patterns: &[String], slash_counts: bool) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(slash_counts)
            .build();
        set.add(glob.ok()?);
    }
    set.build().ok()
}

/// The text, and what readers may make of it.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    let mut add = |form: String| {
        if !forms.contains(&form) {
            forms.push(form);
        }
    };
    let decoded = decoded(text);
    for read in [text, &decoded] {
        let trimmed = read.trim();
        add(trimmed.to_owned());
        add(without_dots(trimmed));
        add(without_dots(&trimmed.replace('\\', "/")));
    }
    forms
}

/// The text with `%41` read as `A`, and the outcome again, as readers behind one another do.
fn decoded(text: &str) -> String {
    (0..DECODINGS).fold(text.to_owned(), |text, _| decoded_once(&text))
}

fn decoded_once(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut read = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                read.push(code);
                at += 3;
            }
            None => {
                read.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// The text with `.`, `..` and empty parts taken away, as a reader of paths and URLs does it. A `..` that leads above the beginning stays.
fn without_dots(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return plain_path(text);
    };
    match rest.split_once('/') {
        Some((host, path)) => format!("{scheme}://{host}{}", plain_path(&format!("/{path}"))),
        None => text.to_owned(),
    }
}

fn plain_path(text: &str) -> String {
    let is_rooted = text.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_rooted => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match is_rooted {
        true => format!("/{joined}"),
        false => joined,
    }
}
