//! Recognising lines that say what went wrong, in whatever tool's words.
//!
//! It looks at single lines. It is meant to be generous with real errors and silent about names that merely contain the word:
//! `test parse_error ... ok` is none. What it finds is never dropped, so a false alarm costs a line and a miss costs a fact.

use std::ops::Range;
use std::sync::LazyLock;

use crate::automaton::Automaton;
use crate::words::{Case, Words};

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

/// What an error looks like, with words of which every such line holds one, in upper or lower case: only lines with a word are
/// looked at closely.
///
/// `tool: error: …`, codes in brackets, compilers, test runners, languages, logs, shells, in this order. The words have at least
/// four bytes, which makes the search for them twice as fast as three would.
const ERRORS: [(&[&str], &str); 19] = [
    (
        &["error", "fatal", "panic", "critical", "exception", "fail"],
        r"(?i)^(?u:[\s│|>])*(?:[^\s:]+: ){0,3}(?:fatal error|internal error|error|fatal|panic|critical|exception|failure)(?:\[[^\]]+\]|\([^)]+\))?(?-i: [A-Z0-9_-]{2,20})?(?:\s?:|\s*$)",
    ),
    (&["err!"], r"(?:^|\s)npm (?:ERR!|error )"),
    (
        &[],
        r"(?i):[0-9]+(?::[0-9]+)?:? (?:fatal |internal compiler )?error\b|\([0-9]+(?:,[0-9]+)?\): (?:fatal )?error\b|^\s*[0-9]+:[0-9]+\s+error\s",
    ),
    (
        &[
            "interrupt",
            "exit:",
            "exit [",
            "caused by",
            "uncaught",
            "unhandled",
            "traceback",
        ],
        r"^\s*(?:[A-Za-z0-9_$.]+\.)?[A-Za-z0-9_$]*(?:Error|Exception|Interrupt|Exit)(?: \[[A-Z0-9_]+\])?:|^\s*(?:Caused by|Uncaught|Unhandled)\b|^Exception in thread|^Traceback \(most recent|^\s*Error\b",
    ),
    (
        &[
            "\nE   ",
            "signal: ",
            "sigabrt",
            "sigsegv",
            "sigkill",
            "sigbus",
            "sigill",
            "sigfpe",
            "sigterm",
            "sigtrap",
            "\"action\":\"fail\"",
        ],
        r#"\bpanicked at\b|^panic: |^fatal error: |^\s*--- FAIL|^FAIL\b|^\s*FAIL \[|\.\.\. FAILED$|(?:^|\s)FAILED(?:\s|$)|^(?:ERROR|FAILED) |^E   |SIG(?:ABRT|SEGV|KILL|BUS|ILL|FPE|TERM|TRAP)\b|\(signal: [0-9]+|"Action":"fail""#,
    ),
    (
        &["severe", "emerg", "alert"],
        r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|EMERG|ALERT)\b(?:[\]\s:|)]|$)",
    ),
    (
        &[],
        r#"(?i)"?(?:level|severity|lvl)"?\s?[=:]\s?"?(?:error|fatal|panic|critical|alert|emerg)"#,
    ),
    (
        &[
            ": ***",
            "*** [",
            "segmentation",
            "core dumped",
            "killed",
            "abort",
            "terminated",
            "stack overflow",
            "out of memory",
        ],
        r"^\S*make(?:\[[0-9]+\])?: \*\*\*|\*\*\* \[|Segmentation fault|core dumped|^Killed$|^Aborted|^Terminated$|stack overflow|[Oo]ut of memory",
    ),
    (
        &[
            "undefined reference",
            "ld returned ",
            "multiple definition",
            "could not compile",
            "cannot ",
        ],
        r"undefined reference to|ld returned [0-9]+ exit|multiple definition of|could not compile|cannot find (?:-l|crate|module|symbol)",
    ),
    (
        &["not found", "no such ", "denied", "refused", "timed out"],
        r": (?:command )?not found$|No such file or directory|Permission denied|Connection refused|[Tt]imed out|Cannot find module",
    ),
    (
        &[],
        r"(?i)^\s*(?:the )?(?:build|tests?|task|compilation|job|step|command|process|deploy(?:ment)?)\b[^;,]*\bfailed\b|^FAILURE: |BUILD FAILED|^BUILD FAILURE",
    ),
    (
        &[],
        r"(?i)\b[1-9][0-9]*\s(?:tests? )?(?:failed|failures?|failing|errors?)\b",
    ),
    (
        // The second sign is a letter of two bytes: it needs what stands before it.
        &["✕ ", "✗ ", "✖ ", "● ", "\n× ", " × ", "\t× "],
        r"^\s*(?u:[✕✗✖×●]) ",
    ),
    (
        &[
            "fehler",
            "erreur",
            "ошибка",
            "Ошибка",
            "ОШИБКА",
            "错误",
            "錯誤",
            "エラー",
            "오류",
        ],
        r"(?iu)(?:^|[\s:])(?:fehler|erreur|errore|ошибка|错误|錯誤|エラー|오류)\s?[:：]",
    ),
    (
        &["rejected", "conflict ", "\nE: ", "assertion"],
        r"^\s*! \[(?:remote )?rejected\]|^CONFLICT |^E: |\bAssertion .*failed|(?:^|\s)assertion failed",
    ),
    (
        // Linters that number what they find, and one that counts it.
        &[".py:"],
        r"^\S+\.py:[0-9]+:[0-9]+: [A-Z]{1,3}[0-9]{3,4}\b",
    ),
    (&["cmake error"], r"^CMake Error\b"),
    (&["offense"], r"\b[1-9][0-9]* offenses? detected\b"),
    (
        &["backoff", "imagepull", "evicted"],
        r"CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|\bEvicted\b|ConfigError\b",
    ),
];

/// As above, of warnings.
const WARNING_WORDS: [&str; 3] = ["warn", "deprecat", "vulnerabilit"];

/// The words of errors, and after them those of warnings.
static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let words = error_words().chain(WARNING_WORDS);
    Words::new(words.map(|word| (word, Case::Any)))
});

static N_ERROR_WORDS: LazyLock<usize> = LazyLock::new(|| error_words().count());

fn error_words() -> impl Iterator<Item = &'static str> {
    ERRORS.iter().flat_map(|(words, _)| words.iter().copied())
}

static ERROR: LazyLock<Automaton> =
    LazyLock::new(|| Automaton::new(&ERRORS.map(|(_, error)| format!("(?:{error})")).join("|")));

static WARNING: LazyLock<Automaton> = LazyLock::new(|| {
    Automaton::new(concat!(
        r"(?i)^(?u:[\s│|>])*(?:[^\s:]+: ){0,3}(?:warning|warn|deprecated|deprecation)(?:\[[^\]]+\])?(?-i: [A-Z0-9_-]{2,20})?\s?:",
        r"|:[0-9]+(?::[0-9]+)?:? warning\b|\([0-9]+(?:,[0-9]+)?\): warning\b|^\s*[0-9]+:[0-9]+\s+warning\s",
        r"|(?:^|\s)npm warn\b|\b(?-i:WARN|WARNING)\b|\b(?-i:[A-Za-z]+Warning):|\bdeprecat|vulnerabilit|^W: ",
    ))
});

static LOCATION: LazyLock<Automaton> = LazyLock::new(|| {
    Automaton::new(
        r"^\s*(?:-->|:::) \S+:[0-9]+|^\s*at .*[:(]\S*:[0-9]+|^\s*File .+, line [0-9]+|^\s*\S+\.[A-Za-z0-9]{1,6}:[0-9]+",
    )
});

/// How bad `line` says things are; `None` for an ordinary line.
///
/// Limits: looks at the first 2048 bytes; an ordinary line costs a search for words.
pub fn severity(line: &str) -> Option<Severity> {
    let line = head(line);
    let n_error_words = *N_ERROR_WORDS;
    let mut may_be_error = begins_as_error(line);
    let mut may_be_warning = line.starts_with("W: ");
    for hit in WORDS.hits(line.as_bytes()) {
        may_be_error |= hit.word_idx < n_error_words;
        may_be_warning |= hit.word_idx >= n_error_words;
        if may_be_error && may_be_warning {
            break;
        }
    }
    if may_be_error && ERROR.is_match(line) {
        return Some(Severity::Error);
    }
    (may_be_warning && WARNING.is_match(line)).then_some(Severity::Warning)
}

/// Whether `line` names a place in a file, the way compilers and traces do below their messages.
pub fn is_location(line: &str) -> bool {
    LOCATION.is_match(head(line))
}

/// The byte ranges of all lines of `text` that are errors, without their line ends.
///
/// Limits: linear; lines without a telling word are passed over quickly.
pub fn error_lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let n_error_words = *N_ERROR_WORDS;
    let mut hits = WORDS.hits(text.as_bytes());
    let mut first = begins_as_error(text).then_some(0);
    std::iter::from_fn(move || {
        loop {
            let hit = match first.take() {
                Some(hit) => hit,
                None => hits.find(|hit| hit.word_idx < n_error_words)?.start,
            };
            // Some words begin with the end of the line before theirs.
            let at = hit + usize::from(text[hit..].starts_with('\n'));
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
            hits.skip_to(end);
            if ERROR.is_match(head(&text[start..end])) {
                return Some(start..end);
            }
        }
    })
}

/// Where a text begins, the words that begin with a line end are not found.
fn begins_as_error(text: &str) -> bool {
    const TIMES: [u8; 2] = [0xc3, 0x97];
    match text.as_bytes() {
        [b'E', b' ', b' ', b' ', ..] | [b'E', b':', b' ', ..] => true,
        [first, second, b' ', ..] => [*first, *second] == TIMES,
        _ => false,
    }
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

#[cfg(test)]
mod tests;
