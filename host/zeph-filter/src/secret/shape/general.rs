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
        "npm registry password",
        r"_auth=|_password=",
        r#"(?:^|/:)_(?:auth|password)=["']?([A-Za-z0-9+/]{8,300})"#,
        Check::Word,
    ),
    shape(
        "Docker registry password",
        r#""auth""#,
        r#""auth"\s{0,3}:\s{0,3}"([A-Za-z0-9+/=]{20,400})""#,
        Check::Value,
    ),
    shape(
        "Docker registry password",
        r#""identitytoken""#,
        r#""identitytoken"\s{0,3}:\s{0,3}"([A-Za-z0-9+/=._-]{16,4000})""#,
        Check::Word,
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
    // The same in base64, in a file of kubectl for one. Certificates begin with the same letters.
    shape(
        "private key",
        "LS0tLS1CRUdJTi",
        "LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFU|BFQyBQUklWQVRF|BEU0EgUFJJVkFU|BPUEVOU1NIIFBSSVZB|BFTkNSWVBURUQgUFJJ|BQR1AgUFJJVkFU)",
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
    // In another order, or of no machine: prose has such words, too.
    shape(
        "netrc password",
        "\\bdefault[ \t]",
        r"\bdefault[ \t]{1,5}login\s{1,5}\S{1,100}\s{1,5}password\s{1,5}(\S{3,200})",
        Check::Value,
    ),
    shape(
        "netrc password",
        "\\bmachine|\\bdefault[ \t]",
        r"\b(?:machine\s{1,5}\S{1,100}|default)[ \t]{1,5}password\s{1,5}(\S{3,200})\s{1,5}login\s{1,5}\S",
        Check::Value,
    ),
    // Where each word has a line of its own. It has to look like a password: prose may have such a line, too.
    shape(
        "netrc password",
        "\\bpassword[ \t]",
        r"^[ \t]{0,16}password[ \t]{1,5}([!-~]{6,200})[ \t]{0,5}$",
        Check::Value,
    ),
    shape(
        "password hash",
        "$[65y]$|$gy$|$2[aby]$|$argon2|$scrypt$|$pbkdf2",
        r"\$(?:6|5|g?y|2[aby]|argon2(?:id|i|d)|scrypt|pbkdf2(?:-sha[0-9]{1,3})?)\$[./+A-Za-z0-9$=,]{20,300}",
        Check::Shape,
    ),
    // Of a web server and of a directory. What a replacement writes, such as `$1$2`, is shorter.
    shape(
        "password hash",
        "$1$|$apr1$|{SSHA|{SMD5",
        r"\$(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|\{(?:SSHA(?:256|384|512)?|SMD5)\}[A-Za-z0-9+/]{24,200}",
        Check::Shape,
    ),
    shape(
        "token in a URL",
        r"://…@",
        r"\bhttps?://([A-Za-z0-9_-]{36,255})@[A-Za-z0-9]",
        Check::Random,
    ),
    shape(
        "bearer token",
        "(?i)bearer ",
        r"(?i)\bbearer ([A-Za-z0-9+/=._~-]{20,4000})",
        Check::Random,
    ),
    shape(
        "token in an assignment",
        "(?i)token[\\\"'=: \t\r\x0b\x0c]",
        r#"(?i)(?:^|[^a-z])token(?:\\{0,3}["'])?\s{0,3}[:=]\s{0,3}(?:\\{0,3}["'])?([A-Za-z0-9+/=_.-]{16,400})(?:[\s"',;\\]|$)"#,
        Check::Random,
    ),
    shape(
        "password on a command line",
        "(?i)--passw|--pass |--pass=|sshpass -p",
        r#"(?i)(?:--pass(?:word|wd)?[ =]|\bsshpass -p ?)["']?([^\s"']{8,200})"#,
        Check::Value,
    ),
    shape(
        "password on a command line",
        "curl ",
        r#"\bcurl (?:[^\n]{0,300} )?(?:-u ?|--user[ =])["']?[^\s:"']{1,100}:([^\s"']{6,200})"#,
        Check::Value,
    ),
    // Glued to the option, or it is the name of a database.
    shape(
        "password on a command line",
        r"\bmysql|\bmariadb",
        r#"\b(?:mysql(?:dump|admin|import|show|check|slap|pump)?|mariadb(?:-[a-z]{1,12})?) (?:[^\n|;&<>]*? )?-p["']?([^\s"']{6,200})"#,
        Check::Word,
    ),
    shape(
        "password on a command line",
        r"\bmongo",
        r#"\bmongo(?:sh|dump|restore|import|export|stat|top)? (?:[^\n|;&<>]*? )?-p ?["']?([^\s"']{6,200})"#,
        Check::Value,
    ),
    shape(
        "password on a command line",
        "docker login|podman login|nerdctl login|buildah login|skopeo login|oras login|registry login|\\baz login|\\boc login|\\bcf login",
        r#" login (?:[^\n|;&<>]*? )?-p ?["']?([^\s"']{8,200})"#,
        Check::Value,
    ),
    shape(
        "password on a command line",
        r"\bredis-cli |\bvalkey-cli ",
        r#"\b(?:redis|valkey)-cli (?:[^\n|;&<>]*? )?-a ["']?([^\s"']{8,200})"#,
        Check::Value,
    ),
    shape(
        "password on a command line",
        r"\bldap",
        r#"\bldap(?:search|modify|add|delete|passwd|whoami) (?:[^\n|;&<>]*? )?-w ?["']?([^\s"']{8,200})"#,
        Check::Value,
    ),
    shape(
        "password on a command line",
        r"\bsqlcmd ",
        r#"\bsqlcmd (?:[^\n|;&<>]*? )?-P ?["']?([^\s"']{8,200})"#,
        Check::Value,
    ),
    // What names a session, in a header or handed to curl.
    shape(
        "session cookie",
        "(?i)cookie[:\"'=]",
        r#"(?i)cookie[:"'=](?:[^\n]*?[; \t:="'\[])?[a-z0-9_.-]{0,40}(?:sess|sid|auth|token|jwt|login|remember)[a-z0-9_.-]{0,40}=([^;\s"',]{15,400})"#,
        Check::Value,
    ),
    shape(
        "session cookie",
        "--cookie |--cookie=|curl ",
        r#"(?:--cookie[ =]|\bcurl (?:[^\n|;]*? )?-b ?)["']?[^=;\s"']{1,60}=([^;\s"',]{15,400})"#,
        Check::Value,
    ),
    shape(
        "password in an assignment",
        "(?i)password>|passwd>|passphrase>|secret>|apikey>",
        r"(?i)(?:password|passwd|passphrase|secret|apikey)>([^<\s]{6,200})</",
        Check::Value,
    ),
    shape(
        "password in an assignment",
        r"\bdefine(",
        r#"\bdefine\(\s{0,3}["'][A-Za-z0-9_]{0,60}(?:PASSWORD|PASSWD|SECRET|(?:API|AUTH|ACCESS|SECRET|PRIVATE|LOGGED_IN|NONCE)_(?:KEY|SALT))["']\s{0,3},\s{0,3}["']([^\s"']{8,200})["']"#,
        Check::Value,
    ),
    // A line of `.pgpass`, with a port of PostgreSQL or any.
    shape(
        "password in an assignment",
        ":543[0-9]:|:6432:|:*:",
        r#"(?:^|[ \t"'])[A-Za-z0-9._*/-]{1,200}:(?:543[0-9]|6432|\*):[^\s:"']{1,64}:[^\s:"']{1,64}:([^\s:"']{6,200})(?:[\s"']|$)"#,
        Check::Value,
    ),
    // In quotes a value may hold what ends or explains it elsewhere.
    shape(
        "password in an assignment",
        PASSWORDS,
        r#"(?i)(?:(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|master[_-]?key)s?(?:[_-]?(?:key|token|value|base)){0,2}|[_"'-]pass)(?:\\{0,3}["'])?\s{0,5}(?::=|=>|=|:)\s{0,5}\\{0,3}["']([^\s"']{8,400})["']"#,
        Check::Quoted,
    ),
    shape(
        "password in an assignment",
        PASSWORDS,
        r#"(?i)(?:(?:password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|master[_-]?key|auth[_-]?(?:token|key)|access[_-]?token|private[_-]?key|credential)s?(?:[_-]?(?:key|token|value|base)){0,2}|[_"'-]pass)(?:\\{0,3}["'])?\s{0,5}(?::=|=>|=|:)\s{0,5}(?:\\{0,3}["'])?([^\s"',;)\]}]{8,400})"#,
        Check::Value,
    ),
];

/// What a line must hold in which a value is given to the name of a secret.
const PASSWORDS: &str = "(?i)passw{=}|passphrase{=}|[_\"'-]pass{=}|pwd[sktvb_\"' :=\t\r\x0b\x0c-]|secret{=}|api[_-]key{=}|apikey{=}|access[_-]key{=}|accesskey{=}|master[_-]key{=}|masterkey{=}|auth[_-]token{=}|authtoken{=}|auth[_-]key{=}|authkey{=}|access[_-]token{=}|accesstoken{=}|private[_-]key{=}|privatekey{=}|credential{=}";
