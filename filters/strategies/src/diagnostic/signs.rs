//! What errors and warnings look like: expressions, each with words of which every line it matches holds one. A table and nothing
//! else.

use super::Severity;
use crate::words::Case;

/// One form of saying that something is wrong.
#[derive(Debug)]
pub(super) struct Sign {
    pub(super) severity: Severity,
    /// Whether upper and lower case of the words differ. The more they tell, the less often an expression is tried in vain.
    pub(super) case: Case,
    /// At least four bytes each, which makes the search for them twice as fast as three would. One that begins with a line end is
    /// found at the beginning of a text, too.
    pub(super) words: &'static [&'static str],
    /// What stands around one of the words in every line that matches.
    pub(super) near: Near,
    pub(super) pattern: &'static str,
}

/// What stands around a word. It rules most lines out without an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Near {
    /// Anything.
    Anything,
    /// Before it white space, a sign of a frame or nothing, behind it white space, a colon, a bracket or nothing.
    Gaps,
    /// Behind it a number, a colon, and a digit or a bracket behind a blank.
    Numbers,
    /// Behind it a colon or a space, or before it white space or nothing. A word that does not end with a letter needs neither.
    Colon,
}

impl Near {
    /// Whether a word that stands from `start` to `end` in `text` may make its line match. A line ends where the text does.
    pub(super) fn fits(self, text: &[u8], start: usize, end: usize) -> bool {
        let before = text[..start].last().copied().unwrap_or(b'\n');
        let after = text.get(end).copied().unwrap_or(b'\n');
        let is_space = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' ');
        match self {
            Self::Anything => true,
            Self::Numbers => {
                let behind = &text[end..];
                let n = behind
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
                let behind = &behind[n..];
                matches!(behind, [b':', b'0'..=b'9', ..] | [b':', b' ', b'[', ..])
            }
            Self::Gaps => {
                let is_before = is_space(before) || matches!(before, b'|' | b'>' | 0x80..);
                is_before && (is_space(after) || matches!(after, b':' | b'[' | b'('))
            }
            Self::Colon => {
                let is_open = text[..end]
                    .last()
                    .is_some_and(|last| !last.is_ascii_alphabetic());
                is_open || is_space(before) || matches!(after, b':' | b' ')
            }
        }
    }
}

const fn error(case: Case, words: &'static [&'static str], pattern: &'static str) -> Sign {
    Sign {
        severity: Severity::Error,
        case,
        words,
        near: Near::Anything,
        pattern,
    }
}

/// A sign whose words have something around them.
const fn beside(near: Near, sign: Sign) -> Sign {
    Sign { near, ..sign }
}

const fn warning(words: &'static [&'static str], pattern: &'static str) -> Sign {
    Sign {
        severity: Severity::Warning,
        case: Case::Any,
        words,
        near: Near::Anything,
        pattern,
    }
}

/// Words that alone make a line match the sign with this number: no expression has to be tried.
pub(super) const PROOFS: [(usize, &str); 3] = [(0, "\nE   "), (5, "\nFAILED "), (16, "\nE: ")];

/// Errors before warnings; what the first bytes of a line tell before all. Then `tool: error: …`, codes in brackets, compilers,
/// languages, test runners, logs, shells.
pub(super) const SIGNS: [Sign; 28] = [
    error(
        Case::Exact,
        &["panic: ", "fatal error: ", "FAIL", "\nE   "],
        r"^panic: |^fatal error: |^\s*--- FAIL|^FAIL\b|^\s*FAIL \[|^E   ",
    ),
    beside(
        Near::Gaps,
        error(
            Case::Any,
            &[
                "error",
                "fatal",
                "panic",
                "critical",
                "exception",
                "failure",
            ],
            r"(?i)^(?u:[\s│|>])*(?:#[0-9]+ [0-9.]+ )?(?:[^\s:]+: ){0,3}(?:(?:php )?(?:(?:fatal|internal|parse|syntax|runtime|link|linker|compile|compiler|compilation|configuration) )?error|fatal|panic|critical|exception|failure)(?:\[[^\]]+\]|\([^)]+\))?(?-i: [A-Z0-9_-]{2,20})?(?:\s?:|\s*$)",
        ),
    ),
    error(
        Case::Exact,
        &["npm ERR!", "npm error "],
        r"(?:^|\s)npm (?:ERR!|error )",
    ),
    error(
        Case::Any,
        &[" error", "\terror"],
        r"(?i):[0-9]+(?::[0-9]+)?:? (?:fatal |internal compiler )?error\b|\([0-9]+(?:,[0-9]+)?\): (?:fatal )?error\b|^\s*[0-9]+:[0-9]+\s+error\s",
    ),
    beside(
        Near::Colon,
        error(
            Case::Exact,
            &[
                "Error",
                "Exception",
                "Interrupt",
                "Exit:",
                "Exit [",
                "Error)",
                "Exception)",
                "Caused by",
                "Uncaught",
                "Unhandled",
                "Traceback",
            ],
            r"^\s*(?:[A-Za-z0-9_$.]+\.)?[A-Za-z0-9_$]*(?:Error|Exception|Interrupt|Exit)(?: \[[A-Z0-9_]+\])?:|^\s*(?:Caused by|Uncaught|Unhandled)\b|^Exception in thread|^Traceback \(most recent|^\s*Error\b|:[0-9]+:in .*\([A-Za-z0-9_:]*(?:Error|Exception)\)$",
        ),
    ),
    error(
        Case::Exact,
        &[
            "panicked at",
            "\nFAILED ",
            "FAILED",
            "(signal: ",
            "SIGABRT",
            "SIGSEGV",
            "SIGKILL",
            "SIGBUS",
            "SIGILL",
            "SIGFPE",
            "SIGTERM",
            "SIGTRAP",
            "\"Action\":\"fail\"",
        ],
        r#"\bpanicked at\b|\.\.\. FAILED$|(?:^|\s)FAILED(?:\s|$)|^FAILED: |SIG(?:ABRT|SEGV|KILL|BUS|ILL|FPE|TERM|TRAP)\b|\(signal: [0-9]+|"Action":"fail""#,
    ),
    error(
        Case::Exact,
        &["ERROR", "FATAL", "CRITICAL", "SEVERE", "EMERG", "ALERT"],
        r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|EMERG|ALERT)\b(?:[\]\s:|)]|$)",
    ),
    error(
        Case::Any,
        &[
            "level", "severity", "lvl=", "lvl:", "lvl\"", "lvl ", "lvl\t",
        ],
        r#"(?i)(?:level|severity|lvl)"?\s?[=:]\s?"?(?:error|fatal|panic|critical|alert|emerg)"#,
    ),
    error(
        Case::Exact,
        &[
            ": ***",
            "*** [",
            "Segmentation fault",
            "core dumped",
            "Killed",
            "Aborted",
            "Terminated",
            "stack overflow",
            "ut of memory",
        ],
        r"^\S*make(?:\[[0-9]+\])?: \*\*\*|^\S+: \*{3,4} |\*\*\* \[|Segmentation fault|core dumped|^Killed$|^Aborted|^Terminated$|stack overflow|[Oo]ut of memory",
    ),
    error(
        Case::Exact,
        &[
            "undefined reference to",
            "ld returned ",
            "multiple definition of",
            "could not compile",
            "cannot find ",
            "Undefined symbols for ",
            "symbol(s) not found ",
        ],
        r"^Undefined symbols for |symbol\(s\) not found |undefined reference to|ld returned [0-9]+ exit|multiple definition of|could not compile|cannot find (?:-l|crate|module|symbol)",
    ),
    error(
        Case::Any,
        &[
            "not found",
            "no such file or directory",
            "permission denied",
            "connection refused",
            "timed out",
            "cannot find module",
            "could not resolve host",
        ],
        r"(?i): (?:command |[0-9]{3} )?not found$|could not resolve host|no such file or directory|permission denied|connection refused|timed out|cannot find module",
    ),
    error(
        Case::Any,
        &["failed", "failure"],
        r"(?i)^\s*(?:the )?(?:build|tests?|task|compilation|job|step|command|process|deploy(?:ment)?)\b[^;,]*\bfailed\b|^FAILURE: |^BUILD FAILURE",
    ),
    error(Case::Any, &["build failed"], r"(?i)BUILD FAILED"),
    error(
        Case::Any,
        &[" fail", "\tfail", " error", "\terror"],
        r"(?i)\b[1-9][0-9]*\s(?:tests? )?(?:failed|failures?|failing|errors?)\b",
    ),
    error(
        Case::Any,
        // The second sign is a letter of two bytes: it needs what stands before it.
        &["✕ ", "✗ ", "✖ ", "● ", "\n× ", " × ", "\t× "],
        r"^\s*(?u:[✕✗✖×●]) ",
    ),
    error(
        Case::Any,
        &[
            "fehler",
            "erreur",
            "errore",
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
    error(
        Case::Exact,
        &[
            "rejected]",
            "CONFLICT ",
            "\nE: ",
            "Assertion ",
            "assertion failed",
            " E: ",
            "\ne: ",
        ],
        r"^\s*! \[(?:remote )?rejected\]|^CONFLICT |^E: |^#[0-9]+ [0-9.]+ E: |^e: (?:file:|/|\S+\.kts?:)|\bAssertion .*failed|(?:^|\s)assertion failed",
    ),
    beside(
        Near::Numbers,
        error(
            Case::Any,
            // Linters that number what they find, in a column or in brackets.
            &[".py:"],
            r"^\S+\.py:[0-9]+:(?:[0-9]+: | \[)[A-Z]{1,3}[0-9]{3,4}\b",
        ),
    ),
    error(
        Case::Exact,
        // One that counts it, and one that has a form of its own.
        &["CMake Error", "offense"],
        r"^CMake Error\b|\b[1-9][0-9]* offenses? detected\b",
    ),
    error(
        Case::Exact,
        &[
            "CrashLoopBackOff",
            "ImagePullBackOff",
            "ErrImagePull",
            "OOMKilled",
            "Evicted",
            "ConfigError",
        ],
        r"CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|\bEvicted\b|ConfigError\b",
    ),
    error(
        Case::Any,
        // What a system says, behind what could not be done.
        &[
            "not a directory",
            "is a directory",
            "directory not empty",
            "file exists",
            "no space left",
            "read-only file system",
            "operation not permitted",
            "resource busy",
            "text file busy",
            "address already in use",
            "argument list too long",
            "broken pipe",
            "connection reset",
            "is unreachable",
            "no route to host",
            "input/output error",
            "stale file handle",
            "exec format error",
            "quota exceeded",
            "too many open files",
            "cannot allocate memory",
            "bad file descriptor",
            "invalid argument",
            "name or service not known",
            "name resolution",
            "i/o timeout",
            "deadline exceeded",
            "syntax error",
        ],
        concat!(
            r"(?i): (?:not a directory|is a directory|directory not empty|file exists|no space left|read-only file system|operation not permitted",
            r"|(?:device or )?resource busy|text file busy|address already in use|argument list too long|broken pipe|connection reset",
            r"|(?:network|host) is unreachable|no route to host|input/output error|stale file handle|exec format error|(?:disk )?quota exceeded",
            r"|too many open files|cannot allocate memory|bad file descriptor|invalid argument|name or service not known",
            r"|temporary failure in name resolution|i/o timeout|(?:context )?deadline exceeded|syntax error)\b",
        ),
    ),
    error(
        Case::Any,
        // What a program could not do. No warning says so in its name: `ing:`, `warn:`.
        &[
            "cannot ",
            "can't ",
            "failed to ",
            "unable to ",
            "could not ",
            "failed asserting ",
        ],
        r"(?i)^(?:#[0-9]+ [0-9.]+ )?(?:(?:[^\s:]*(?:[^\s:gn]|[^\s:n]g|[^\s:r]n)|[gn]): ){0,3}(?:cannot|can't|failed to|unable to|could not|failed asserting) ",
    ),
    error(
        Case::Any,
        // Levels of logs in brackets, alone or behind the name of a module.
        &[
            "error]",
            "emerg]",
            "crit]",
            "critical]",
            "alert]",
            "fatal]",
            "[err]",
            "[fail]",
            "[failed]",
        ],
        r"(?i)\[(?:[a-z0-9_]+:)?(?:error|emerg|crit|critical|alert|fatal)\]|\[(?:err|fail|failed)\]",
    ),
    error(
        Case::Exact,
        // Kubernetes and others of its kind: `E0501 10:00:00.000000       1 controller.go:114] …`.
        &[".go:"],
        r"^[EF][0-9]{4} [0-9:.]+ +[0-9]+ \S+\.go:[0-9]+\]",
    ),
    error(
        Case::Exact,
        // But what is still to do, or was skipped.
        &["not ok "],
        r"^\s*not ok [^#]*(?:$|# ?(?:time=|[^TtSs\s]))",
    ),
    warning(
        &["warn", "deprecat", "\nW: ", "\nw: "],
        r"(?i)^(?u:[\s│|>])*(?:[^\s:]+: ){0,3}(?:php )?(?:warning|warn|deprecated|deprecation)(?:\[[^\]]+\])?(?-i: [A-Z0-9_-]{2,20})?\s?:|^(?-i:W: )|^(?-i:w: )(?:file:|/)",
    ),
    warning(
        &["warn", "deprecat", "vulnerabilit"],
        concat!(
            r"(?i):[0-9]+(?::[0-9]+)?:? warning\b|\([0-9]+(?:,[0-9]+)?\): warning\b|^\s*[0-9]+:[0-9]+\s+warning\s",
            r"|(?:^|\s)npm warn\b|\b(?-i:WARN|WARNING)\b|\b(?-i:[A-Za-z]+Warning):|\bdeprecat|vulnerabilit",
            r#"|(?:level|severity|lvl)"?\s?[=:]\s?"?warn|\[(?:[a-z0-9_]+:)?warn(?:ing)?\]"#,
        ),
    ),
    Sign {
        severity: Severity::Warning,
        ..error(
            Case::Exact,
            &[".go:"],
            r"^W[0-9]{4} [0-9:.]+ +[0-9]+ \S+\.go:[0-9]+\]",
        )
    },
];
