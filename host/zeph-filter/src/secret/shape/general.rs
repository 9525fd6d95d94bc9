//! What no provider gave out: keys, passwords and headers, whatever they open.

use super::{Check, Shape, shape};

/// The more special before the more general; these come after all others.
pub(super) static SHAPES: &[Shape] = &[
    shape(
        "OpenAI key",
        r"\bsk-{20}",
        r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,250}",
        Check::Random,
    ),
    shape(
        "npm registry token",
        r"_authToken",
        r#"_authToken\s{0,3}=\s{0,3}([^\s"']{8,300})"#,
        Check::Value,
    ),
    shape(
        "Docker registry password",
        r#""auth""#,
        r#""auth"\s{0,3}:\s{0,3}"([A-Za-z0-9+/=]{20,400})""#,
        Check::Value,
    ),
    shape(
        "age secret key",
        r"AGE-SECRET-KEY",
        r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}",
        Check::Shape,
    ),
    shape(
        "private key",
        r"PRIVATE KEY",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        Check::Shape,
    ),
    shape(
        "PuTTY key",
        r"PuTTY-User",
        r"\bPuTTY-User-Key-File-[0-9]",
        Check::Shape,
    ),
    shape(
        "JSON Web Token",
        r"\beyJ{10}",
        r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}",
        Check::Shape,
    ),
    shape(
        "URL with a password",
        r"://…@",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@?#]{0,100}:",
        Check::Url,
    ),
    shape(
        "authorization header",
        "(?i)authorization",
        r#"(?i)\b(?:proxy-)?authorization["']?\s{0,5}[:=]\s{0,5}["']?(?:basic|bearer|token|apikey)\s{1,5}([A-Za-z0-9+/=._~-]{12,4000})"#,
        Check::Value,
    ),
    shape(
        "netrc password",
        r"\bmachine",
        r"\bmachine\s{1,5}\S{1,100}\s{1,5}login\s{1,5}\S{1,100}\s{1,5}password\s{1,5}(\S{3,200})",
        Check::Word,
    ),
    shape(
        "password hash",
        "$[65y]$|$2[aby]$",
        r"\$(?:6|5|y|2[aby])\$[./A-Za-z0-9$=,]{20,200}",
        Check::Shape,
    ),
    shape(
        "password in an assignment",
        "(?i)passw|pwd|secret|api[_-]key|apikey|access[_-]key|accesskey|auth[_-]token|authtoken|auth[_-]key|authkey|access[_-]token|accesstoken|private[_-]key|privatekey|credential",
        r#"(?i)(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?(?:token|key)|access[_-]?token|private[_-]?key|credential)s?(?:[_-](?:key|token|value|base))?["']?\s{0,5}(?::=|=>|=|:)\s{0,5}["']?([^\s"',;)\]}]{8,400})"#,
        Check::Value,
    ),
];
