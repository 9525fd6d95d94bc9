//! Recognising lines that say what went wrong, in whatever tool's words.
//!
//! It looks at single lines. It is meant to be generous with real errors and silent about names that merely contain the word:
//! `test parse_error ... ok` is none. What it finds is never dropped, so a false alarm costs a line and a miss costs a fact.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// How bad a line says things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Error,
}

/// A line longer than this is looked at no further, in bytes: what is wrong stands at its beginning.
const LOOKED_AT_BYTES: usize = 2048;

/// Every line that can be an error holds one of these words. Searching for them first is what makes the scan fast.
static CANDIDATE: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)error|err!|fatal|panic|fail|exception|traceback|critical|severe|segmentation|abort|core dumped|signal: |SIG[A-Z]|undefined reference|cannot |killed|denied|not found|no such|\*\*\*|caused by|unhandled|uncaught|assert|\nE(?:  |: )|timed out|rejected|backoff|imagepull|evicted|fehler|erreur|errore|ошибка|错误|エラー|오류|[✕✗✖×●]",
    )
});

static ERROR: LazyLock<Regex> =
    LazyLock::new(|| compile(&ERRORS.map(|error| format!("(?:{error})")).join("|")));

/// `tool: error: …`, codes in brackets, compilers, test runners, languages, logs, shells, in this order.
const ERRORS: [&str; 16] = [
    r"(?i)^[\s│|>]*(?:[^\s:]+: ){0,3}(?:fatal error|internal error|error|fatal|panic|critical|exception|failure)(?:\[[^\]]{1,60}\]|\([^)]{1,60}\))?(?-i: [A-Z0-9_-]{2,20})?(?:\s?:|\s*$)",
    r"(?:^|\s)npm (?:ERR!|error )",
    r"(?i):[0-9]+(?::[0-9]+)?:? (?:fatal |internal compiler )?error\b|\([0-9]+(?:,[0-9]+)?\): (?:fatal )?error\b|^\s*[0-9]+:[0-9]+\s+error\s",
    r"^\s*(?:[A-Za-z0-9_$.]+\.)?[A-Za-z0-9_$]*(?:Error|Exception|Interrupt|Exit)(?: \[[A-Z0-9_]+\])?:|^\s*(?:Caused by|Uncaught|Unhandled)\b|^Exception in thread|^Traceback \(most recent|^\s*Error\b",
    r"\bpanicked at\b|^panic: |^fatal error: |^\s*--- FAIL|^FAIL\b|^\s*FAIL \[|\.\.\. FAILED$|(?:^|\s)FAILED(?:\s|$)|^(?:ERROR|FAILED) |^E   |SIG(?:ABRT|SEGV|KILL|BUS|ILL|FPE|TERM|TRAP)\b|\(signal: [0-9]+",
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|EMERG|ALERT)\b(?:[\]\s:|)]|$)",
    r#"(?i)"?(?:level|severity|lvl)"?\s?[=:]\s?"?(?:error|fatal|panic|critical|alert|emerg)"#,
    r"^\S*make(?:\[[0-9]+\])?: \*\*\*|\*\*\* \[|Segmentation fault|core dumped|^Killed$|^Aborted|^Terminated$|stack overflow|[Oo]ut of memory",
    r"undefined reference to|ld returned [0-9]+ exit|multiple definition of|could not compile|cannot find (?:-l|crate|module|symbol)",
    r": (?:command )?not found$|No such file or directory|Permission denied|Connection refused|[Tt]imed out|Cannot find module",
    r"(?i)^\s*(?:the )?(?:build|tests?|task|compilation|job|step|command|process|deploy(?:ment)?)\b[^;,]{0,60}\bfailed\b|^FAILURE: |BUILD FAILED|^BUILD FAILURE",
    r"(?i)\b[1-9][0-9]*\s(?:tests? )?(?:failed|failures?|failing|errors?)\b",
    r"^\s*(?:[✕✗✖×] |● )",
    r"(?i)(?:^|[\s:])(?:fehler|erreur|errore|ошибка|错误|錯誤|エラー|오류)\s?[:：]",
    r"^\s*! \[(?:remote )?rejected\]|^CONFLICT |^E: |\bAssertion .{0,200}failed|(?:^|\s)assertion failed",
    r"CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|\bEvicted\b|ConfigError\b",
];

/// Every line that can be a warning holds one of these.
static WARNING_HINT: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(?i)warn|deprecat|vulnerabilit|^W: "));

static WARNING: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)^[\s│|>]*(?:[^\s:]+: ){0,3}(?:warning|warn|deprecated|deprecation)(?:\[[^\]]{1,60}\])?(?-i: [A-Z0-9_-]{2,20})?\s?:",
        r"|:[0-9]+(?::[0-9]+)?:? warning\b|\([0-9]+(?:,[0-9]+)?\): warning\b|^\s*[0-9]+:[0-9]+\s+warning\s",
        r"|(?:^|\s)npm warn\b|\b(?-i:WARN|WARNING)\b|\b(?-i:[A-Za-z]+Warning):|\bdeprecat|vulnerabilit|^W: ",
    ))
});

static LOCATION: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^\s*(?:-->|:::) \S+:[0-9]+|^\s*at .*[:(]\S*:[0-9]+|^\s*File .+, line [0-9]+|^\s*\S+\.[A-Za-z0-9]{1,6}:[0-9]+",
    )
});

/// How bad `line` says things are; `None` for an ordinary line.
///
/// Limits: looks at the first 2048 bytes.
pub fn severity(line: &str) -> Option<Severity> {
    let line = head(line);
    if is_error(line) {
        return Some(Severity::Error);
    }
    let is_warning = WARNING_HINT.is_match(line) && WARNING.is_match(line);
    is_warning.then_some(Severity::Warning)
}

/// Whether `line` names a place in a file, the way compilers and traces do below their messages.
pub fn is_location(line: &str) -> bool {
    LOCATION.is_match(head(line))
}

/// The byte ranges of all lines of `text` that are errors, without their line ends.
///
/// Limits: linear; lines without a telling word are passed over quickly.
pub fn error_lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let hit = if is_marked_e(&text[at..]) {
                at
            } else {
                // A hit may begin at the line end before its line.
                let hit = CANDIDATE.find_at(text, at)?;
                if text.as_bytes()[hit.start()] == b'\n' {
                    hit.start() + 1
                } else {
                    hit.start()
                }
            };
            let start = text[..hit].rfind('\n').map_or(0, |end| end + 1);
            let end = text[hit..].find('\n').map_or(text.len(), |n| hit + n);
            at = end + 1;
            if ERROR.is_match(head(&text[start..end])) {
                return Some(start..end);
            }
        }
        None
    })
}

fn is_error(line: &str) -> bool {
    (is_marked_e(line) || CANDIDATE.is_match(line)) && ERROR.is_match(line)
}

/// The marks of pytest and apt, which hold no telling word.
fn is_marked_e(line: &str) -> bool {
    line.starts_with("E   ") || line.starts_with("E: ")
}

fn head(line: &str) -> &str {
    if line.len() <= LOOKED_AT_BYTES {
        return line;
    }
    let mut end = LOOKED_AT_BYTES;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

fn compile(pattern: &str) -> Regex {
    // Only the ASCII form of a word's border is fast on text in other scripts.
    let pattern = pattern.replace(r"\b", r"(?-u:\b)");
    Regex::new(&pattern).expect("bug: a built-in expression does not compile")
}

#[cfg(test)]
mod tests;
