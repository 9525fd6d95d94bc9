//! Credentials in raw outputs, found and never shown.
//!
//! A warning names the kind and the line. It looks for shapes that providers document and for values given to names such as
//! `password`; hashes, UUIDs and the checksums of lock files are none of them.

mod hint;
mod shape;
mod suspect;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{LazyLock, OnceLock};

use regex::bytes;
use regex::{Regex, RegexBuilder};
use zeph_strategies::{PATTERN_CHARS_MAX, n_line_ends};

use crate::apply::Filtered;
use crate::mark::MARK;
use crate::sanitize::{pieces, stripped};
use shape::{Check, SHAPES};
use suspect::suspects;
pub(crate) use suspect::{Suspect, suspects_of};

/// Most findings reported of one output: after so many it is a list of credentials, whatever the number.
const FINDINGS_MAX: usize = 20;

/// What one expression may come to once compiled, in bytes.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// How far the end of a password in a URL is looked for, in bytes.
const URL_BYTES_MAX: usize = 600;

/// Something that looks like a credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret {
    /// The line of the raw output, counted from 1.
    pub line: usize,
    /// What it looks like.
    pub kind: String,
}

/// What is looked for. Costs nothing to make: the expressions are compiled when they are first needed, for all of them together.
#[derive(Debug)]
pub struct Secrets {
    extra: Vec<Regex>,
}

/// The expressions of the shapes, in their order.
static PATTERNS: LazyLock<Vec<OnceLock<Option<bytes::Regex>>>> =
    LazyLock::new(|| SHAPES.iter().map(|_| OnceLock::new()).collect());

impl Secrets {
    /// Looks for the known shapes and for `extra` expressions.
    ///
    /// Errors: one sentence for each expression that is not used: longer than 512 characters, not compiling, matching everything.
    pub fn new(extra: &[String]) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let mut compiled = Vec::new();
        for pattern in extra {
            match compile_extra(pattern) {
                Ok(regex) => compiled.push(regex),
                Err(reason) => warnings.push(format!("extra_patterns: {reason}")),
            }
        }
        (Self { extra: compiled }, warnings)
    }

    /// What looks like a credential in an output, by line.
    ///
    /// Limits: linear in the output; at most 20 findings. Takes a copy of the output only for expressions of the operator, which
    /// may match beyond a line.
    pub fn scan(&self, raw: &[u8]) -> Vec<Secret> {
        self.scan_plain(raw, None)
    }

    /// What looks like a credential in an output that was filtered: what filtering found of it is not looked for again.
    ///
    /// Limits: as of [`scan`](Self::scan).
    pub fn scan_filtered(&self, raw: &[u8], filtered: &Filtered<'_>) -> Vec<Secret> {
        let Some((text, suspects)) = filtered.plain.zip(filtered.suspects.as_ref()) else {
            return self.scan_plain(raw, filtered.plain);
        };
        let mut found = BTreeSet::new();
        scan_shapes(text, suspects, 0, &mut found);
        self.scan_extra(text, &mut found);
        found.into_iter().take(FINDINGS_MAX).collect()
    }

    /// `plain` is the output as text, where it is known to hold no control sequence.
    fn scan_plain(&self, raw: &[u8], plain: Option<&str>) -> Vec<Secret> {
        let mut found = BTreeSet::new();
        // Lines are counted where something was found: mostly nowhere.
        let (mut n_lines, mut at, mut counted) = (0, 0, 0);
        for piece in pieces(raw) {
            if found.len() >= FINDINGS_MAX {
                break;
            }
            let known = plain.and_then(|text| text.get(at..at + piece.len()));
            let text = known.map_or_else(|| stripped(piece), Cow::Borrowed);
            let suspects = suspects(&text);
            if !suspects.is_empty() {
                n_lines += n_line_ends(&raw[counted..at]);
                counted = at;
                scan_shapes(&text, &suspects, n_lines, &mut found);
            }
            at += piece.len();
            if known.is_none() {
                // What stands in the place of a control may be a line end.
                n_lines += n_line_ends(text.as_bytes());
                counted = at;
            }
        }
        if !self.extra.is_empty() {
            let text = plain.map_or_else(|| stripped(raw), Cow::Borrowed);
            self.scan_extra(&text, &mut found);
        }
        found.into_iter().take(FINDINGS_MAX).collect()
    }

    fn scan_extra(&self, text: &str, found: &mut BTreeSet<Secret>) {
        for regex in &self.extra {
            let mut lines = Lines::of(text);
            let hits = regex
                .find_iter(text)
                .filter(|hit| !hit.is_empty())
                .take(FINDINGS_MAX);
            found.extend(hits.map(|hit| Secret {
                line: lines.number(hit.start()),
                kind: "a pattern of your own".to_owned(),
            }));
        }
    }
}

/// Looks closer at the lines that hold a hint.
fn scan_shapes(
    text: &str,
    suspects: &[Suspect],
    n_lines_before: usize,
    found: &mut BTreeSet<Secret>,
) {
    let mut lines = Lines::of(text);
    for of_line in suspects.chunk_by(|one, other| one.line_start == other.line_start) {
        if found.len() >= FINDINGS_MAX {
            return;
        }
        let start = of_line[0].line_start;
        let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let shapes = of_line.iter().map(|suspect| suspect.shape_idx);
        for kind in kinds(&text[start..end], shapes) {
            found.insert(Secret {
                line: n_lines_before + lines.number(start),
                kind: kind.to_owned(),
            });
        }
    }
}

/// Kinds that others have a name of their own for, whatever has to be checked of them.
const GENERAL: [&str; 4] = [
    "OpenAI key",
    "bearer token",
    "token in an assignment",
    "token in a URL",
];

/// The kinds of credentials in one line, of the shapes it may hold; the general ones only when nothing special is there.
fn kinds(line: &str, shapes: impl Iterator<Item = usize>) -> Vec<&'static str> {
    let line = line.as_bytes();
    let mut kinds = Vec::new();
    for shape_idx in shapes {
        let shape = &SHAPES[shape_idx];
        let is_general = matches!(
            shape.check,
            Check::Value | Check::Quoted | Check::Word | Check::Url
        ) || GENERAL.contains(&shape.kind);
        if is_general && !kinds.is_empty() {
            continue;
        }
        let Some(regex) = PATTERNS[shape_idx].get_or_init(|| compile(shape.pattern)) else {
            continue;
        };
        let is_found = |captures: bytes::Captures<'_>| {
            let value = value(&captures, line, shape.check);
            is_secret(&String::from_utf8_lossy(value), shape.check)
        };
        if regex.is_match(line) && regex.captures_iter(line).any(is_found) {
            kinds.push(shape.kind);
        }
    }
    kinds
}

/// What of a match has to be looked at: its first group or all of it. A password in a URL may hold what ends it elsewhere, so
/// what follows the match is looked at, up to a space or a quote.
fn value<'l>(captures: &bytes::Captures<'l>, line: &'l [u8], check: Check) -> &'l [u8] {
    let matched = captures.get(1).or_else(|| captures.get(0));
    let (end, value) = matched.map_or((0, &b""[..]), |group| (group.end(), group.as_bytes()));
    if check != Check::Url {
        return value;
    }
    let rest = &line[end..line.len().min(end + URL_BYTES_MAX)];
    let is_end =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`');
    &rest[..rest.iter().position(is_end).unwrap_or(rest.len())]
}

/// The line appended to an output that holds credentials; `None` when there are none. It names kinds and lines, never values.
pub fn warning(secrets: &[Secret]) -> Option<String> {
    if secrets.is_empty() {
        return None;
    }
    let places: Vec<_> = secrets
        .iter()
        .map(|secret| format!("{} (line {})", secret.kind, secret.line))
        .collect();
    Some(format!(
        "{MARK}what looks like credentials is in the raw output: {}. Do not repeat them.",
        places.join(", ")
    ))
}

fn compile_extra(pattern: &str) -> Result<Regex, String> {
    let n_chars = pattern.chars().count();
    if n_chars == 0 || n_chars > PATTERN_CHARS_MAX {
        return Err(format!(
            "a pattern has {n_chars} characters, 1 to {PATTERN_CHARS_MAX} are allowed"
        ));
    }
    let regex = RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES_MAX)
        .build();
    let regex = regex.map_err(|error| {
        let message = error.to_string();
        let last = message.lines().next_back().unwrap_or_default();
        format!(
            "`{pattern}` does not compile: {}",
            last.trim_start_matches("error: ")
        )
    })?;
    if regex.is_match("") {
        return Err(format!("`{pattern}` matches nothing at all, everywhere"));
    }
    Ok(regex)
}

/// `None` cannot be: a test compiles them all. It is no reason to end a call.
///
/// Over bytes: credentials are ASCII, and classes of Unicode take milliseconds to compile.
fn compile(pattern: &str) -> Option<bytes::Regex> {
    bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build()
        .ok()
}

/// Line numbers of ascending places.
struct Lines<'a> {
    text: &'a str,
    counted: usize,
    number: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            counted: 0,
            number: 1,
        }
    }

    fn number(&mut self, at: usize) -> usize {
        let between = self.text.get(self.counted..at).unwrap_or_default();
        self.number += n_line_ends(between.as_bytes());
        self.counted = at.max(self.counted);
        self.number
    }
}

fn is_secret(value: &str, check: Check) -> bool {
    match check {
        Check::Shape => true,
        Check::Random => is_random(value),
        Check::NoName => is_random(value) && !is_of_words(value),
        Check::Value => !is_placeholder(value) && !is_code(value) && is_chosen(value),
        Check::Quoted => !is_placeholder(value) && is_chosen(value) && is_odd(value),
        Check::Word => !is_placeholder(value),
        Check::Url => is_of_url(value),
    }
}

/// Whether a value in quotes holds signs that others do not, and is no call, no path and no text with places for values.
fn is_odd(value: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_.:$".contains(c);
    let is_call = value
        .split_once('(')
        .is_some_and(|(name, _)| name.chars().all(is_part));
    let is_path = value.starts_with(['/', '.', '~', '\\']) || value.contains("://");
    let is_list = value
        .split([',', ';'])
        .all(|part| is_name(part) || part.chars().all(is_part));
    let has_sign = value.contains(['(', ')', ',', ';', '<', '>', '`', ']', '}']);
    has_sign && !is_call && !is_path && !is_list && !value.contains(['{', '<'])
}

/// Whether what follows `scheme://user:` begins with a password and the name of a host. A password may hold any `@`, `/`, `?` and
/// `#`, though it should not: where it ends is tried at every `@`.
fn is_of_url(rest: &str) -> bool {
    const ENDS_MAX: usize = 8;
    let ends = rest.match_indices('@').map(|(end, _)| end).take(ENDS_MAX);
    ends.into_iter().any(|end| {
        let (password, host) = (&rest[..end], &rest[end + 1..]);
        let is_host =
            host.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '[' | '$' | '{' | '_'));
        let is_image = host.starts_with("sha256:") || host.starts_with("sha512:");
        is_host
            && !is_image
            && password.len() >= 3
            && !is_port(password)
            && !is_placeholder(password)
    })
}

/// `8080/path`, `/path`, `@scope/name`: what follows the colon is a port or nothing, and the `@` stands in a path.
fn is_port(password: &str) -> bool {
    let first = password.split(['/', '?', '#', ',', ';', ')']).next();
    let first = first.unwrap_or_default();
    let is_number = first.bytes().all(|byte| byte.is_ascii_digit());
    first.len() < password.len() && (is_number || first.starts_with('@'))
}

/// Enough of information per character, and a digit among letters. Names made of words have no digits; the prefix counts little.
fn is_random(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    // Three bits per character: random hexadecimal has nearly four, words and repetitions have less or no digit.
    has_digit && has_letter && milli_bits(value) >= 3000
}

/// `s.ReadUint16LengthPrefixed`: most of it is words with a capital letter, of three letters at least.
fn is_of_words(value: &str) -> bool {
    const WORD_LETTERS_MIN: usize = 3;
    let is_capital = |c: char| c.is_ascii_uppercase();
    let words = value.match_indices(is_capital).map(|(at, _)| {
        let letters = value[at + 1..].bytes();
        1 + letters.take_while(u8::is_ascii_lowercase).count()
    });
    let n_of_words: usize = words.filter(|n| *n >= WORD_LETTERS_MIN).sum();
    2 * n_of_words > value.len()
}

/// A value worth hiding that follows a name such as `password`. A digit and a letter, and not the same few signs.
fn is_chosen(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    has_digit && has_letter && milli_bits(value) >= 2500
}

/// What documents and masked logs write in the place of a secret.
fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 14] = [
        "example",
        "changeme",
        "redacted",
        "placeholder",
        "your",
        "xxxx",
        "****",
        "...",
        "•••",
        "<",
        "${",
        "$(",
        "{{",
        "%s",
    ];
    let lower = value.to_ascii_lowercase();
    let first = value.chars().next();
    WORDS.iter().any(|word| lower.contains(word))
        || matches!(first, Some('$' | '%' | '{' | '[' | '*' | '&'))
        || value.chars().all(|c| Some(c) == first)
}

/// Expressions, paths and type names that follow `secret =` in source code.
fn is_code(value: &str) -> bool {
    let is_path = value.starts_with(['/', '.', '~', '@', '\\']) || value.contains("://");
    let is_expression =
        value.contains(['(', '<', '`']) || value.contains("::") || value.contains("->");
    let is_field = value.split('.').count() > 1
        && value.split('.').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && part.len() < 20
        })
        && !value.starts_with("eyJ");
    is_path || is_expression || is_field || is_name(value)
}

/// `access_key_2`, `sha256-algorithm`, `Secret1`: words joined, with numbers as words or at their end.
fn is_name(value: &str) -> bool {
    value.split(['_', '-']).all(|word| {
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_short_number = word.len() - stem.len() <= 3;
        let is_word = stem.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
        let is_constant = stem.bytes().all(|byte| byte.is_ascii_uppercase());
        is_short_number && (is_word || is_constant)
    }) && value.contains(['_', '-'])
}

/// Shannon's entropy of the bytes, in thousandths of a bit per byte: whole numbers, the same on every machine.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are short; the result is between 0 and 8000"
)]
fn milli_bits(value: &str) -> u32 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let n = value.len() as f64;
    let bits: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| -f64::from(*count) / n * (f64::from(*count) / n).log2())
        .sum();
    (bits * 1000.0).round() as u32
}

#[cfg(test)]
mod tests;
