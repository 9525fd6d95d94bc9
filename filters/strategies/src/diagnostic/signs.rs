//! What errors and warnings look like: expressions, each with words of which every line it matches holds one. A table and nothing
//! else.

use super::Severity;

/// One form of saying that something is wrong.
#[derive(Debug)]
pub(super) struct Sign {
    pub(super) severity: Severity,
    /// In upper or lower case; at least four bytes each, which makes the search for them twice as fast as three would. One that
    /// begins with a line end is found at the beginning of a text, too.
    pub(super) words: &'static [&'static str],
    pub(super) pattern: &'static str,
}

const fn error(words: &'static [&'static str], pattern: &'static str) -> Sign {
    Sign {
        severity: Severity::Error,
        words,
        pattern,
    }
}

const fn warning(words: &'static [&'static str], pattern: &'static str) -> Sign {
    Sign {
        severity: Severity::Warning,
        words,
        pattern,
    }
}

/// Errors before warnings; what is told by the first bytes of a line before all. Then: `tool: error: …`, codes in brackets, compilers, test runners, languages, logs, shells.
pub(super) const SIGNS: [Sign; 22] = [
    error(
        &["panic: ", "fatal error", "fail", "\nE   "],
        r"^panic: |^fatal error: |^\s*--- FAIL|^FAIL\b|^\s*FAIL \[|^E   ",
    ),
    error(
        &[
            "error",
            "fatal",
            "panic",
            "critical",
            "exception",
            "failure",
        ],
        r"(?i)^(?u:[\s│|>])*(?:[^\s:]+: ){0,3}(?:fatal error|internal error|error|fatal|panic|critical|exception|failure)(?:\[[^\]]+\]|\([^)]+\))?(?-i: [A-Z0-9_-]{2,20})?(?:\s?:|\s*$)",
    ),
    error(&["npm err"], r"(?:^|\s)npm (?:ERR!|error )"),
    error(
        &["error"],
        r"(?i):[0-9]+(?::[0-9]+)?:? (?:fatal |internal compiler )?error\b|\([0-9]+(?:,[0-9]+)?\): (?:fatal )?error\b|^\s*[0-9]+:[0-9]+\s+error\s",
    ),
    error(
        &[
            "error",
            "exception",
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
    error(
        &[
            "panicked at",
            "failed",
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
        r#"\bpanicked at\b|\.\.\. FAILED$|(?:^|\s)FAILED(?:\s|$)|SIG(?:ABRT|SEGV|KILL|BUS|ILL|FPE|TERM|TRAP)\b|\(signal: [0-9]+|"Action":"fail""#,
    ),
    error(
        &["error", "fatal", "critical", "severe", "emerg", "alert"],
        r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|EMERG|ALERT)\b(?:[\]\s:|)]|$)",
    ),
    error(
        &["error", "fatal", "panic", "critical", "alert", "emerg"],
        r#"(?i)(?:level|severity|lvl)"?\s?[=:]\s?"?(?:error|fatal|panic|critical|alert|emerg)"#,
    ),
    error(
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
    error(
        &[
            "undefined reference",
            "ld returned ",
            "multiple definition",
            "could not compile",
            "cannot find ",
        ],
        r"undefined reference to|ld returned [0-9]+ exit|multiple definition of|could not compile|cannot find (?:-l|crate|module|symbol)",
    ),
    error(
        &[
            "not found",
            "no such ",
            "denied",
            "refused",
            "timed out",
            "cannot find ",
        ],
        r": (?:command )?not found$|No such file or directory|Permission denied|Connection refused|[Tt]imed out|Cannot find module",
    ),
    error(
        &["fail"],
        r"(?i)^\s*(?:the )?(?:build|tests?|task|compilation|job|step|command|process|deploy(?:ment)?)\b[^;,]*\bfailed\b|^FAILURE: |^BUILD FAILURE",
    ),
    error(&["build failed"], r"(?i)BUILD FAILED"),
    error(
        &["fail", "error"],
        r"(?i)\b[1-9][0-9]*\s(?:tests? )?(?:failed|failures?|failing|errors?)\b",
    ),
    error(
        // The second sign is a letter of two bytes: it needs what stands before it.
        &["✕ ", "✗ ", "✖ ", "● ", "\n× ", " × ", "\t× "],
        r"^\s*(?u:[✕✗✖×●]) ",
    ),
    error(
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
        &["rejected", "conflict ", "\nE: ", "assertion"],
        r"^\s*! \[(?:remote )?rejected\]|^CONFLICT |^E: |\bAssertion .*failed|(?:^|\s)assertion failed",
    ),
    error(
        // Linters that number what they find.
        &[".py:"],
        r"^\S+\.py:[0-9]+:[0-9]+: [A-Z]{1,3}[0-9]{3,4}\b",
    ),
    error(
        // One that counts it, and one that has a form of its own.
        &["cmake error", "offense"],
        r"^CMake Error\b|\b[1-9][0-9]* offenses? detected\b",
    ),
    error(
        &[
            "backoff",
            "imagepull",
            "oomkilled",
            "evicted",
            "configerror",
        ],
        r"CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|\bEvicted\b|ConfigError\b",
    ),
    warning(
        &["warn", "deprecat", "\nW: "],
        r"(?i)^(?u:[\s│|>])*(?:[^\s:]+: ){0,3}(?:warning|warn|deprecated|deprecation)(?:\[[^\]]+\])?(?-i: [A-Z0-9_-]{2,20})?\s?:|^(?-i:W: )",
    ),
    warning(
        &["warn", "deprecat", "vulnerabilit"],
        concat!(
            r"(?i):[0-9]+(?::[0-9]+)?:? warning\b|\([0-9]+(?:,[0-9]+)?\): warning\b|^\s*[0-9]+:[0-9]+\s+warning\s",
            r"|(?:^|\s)npm warn\b|\b(?-i:WARN|WARNING)\b|\b(?-i:[A-Za-z]+Warning):|\bdeprecat|vulnerabilit",
        ),
    ),
];
