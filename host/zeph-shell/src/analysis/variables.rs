//! Variables that make a command another one than its words say.

use super::value::Value;

pub(super) use crate::environment::changes_what_runs as loads_code;

/// Variables whose value a program gives to a shell.
const COMMANDS: &[&str] = &[
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "LESSOPEN",
    "LESSCLOSE",
];

/// Whether the value of a variable is a command.
pub(super) fn is_command(name: &str) -> bool {
    COMMANDS.contains(&name)
}

/// Whether a variable decides which program a name means, or what else a program runs.
pub(super) fn decides_what_runs(name: &str) -> bool {
    name == "PATH" || loads_code(name) || is_command(name)
}

/// Whether a builtin sets such a variable that stands among its words: `read PATH`, `printf -v PATH`, `declare -n x=PATH`.
pub(super) fn sets_by_name(command: &str, arguments: &[Value]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    match command {
        "read" | "mapfile" | "readarray" | "getopts" => {
            texts.iter().any(|text| decides_what_runs(text))
        }
        "printf" => match texts.as_slice() {
            ["-v", name, ..] => decides_what_runs(name),
            [first, ..] => first.strip_prefix("-v").is_some_and(decides_what_runs),
            [] => false,
        },
        "declare" | "typeset" | "local" => {
            let is_reference = |text: &&str| text.starts_with('-') && text.contains('n');
            let values = texts.iter().filter_map(|text| text.split_once('='));
            let mut names = values.map(|(_, name)| name);
            texts.iter().any(is_reference) && names.any(decides_what_runs)
        }
        _ => false,
    }
}

/// Whether a value of a variable that could load code loads none: numbers and switches.
pub(super) fn is_tame(name: &str, value: &Value) -> bool {
    let text = value.text.as_str();
    let is_word = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_=. ".contains(&b))
    };
    match name {
        "NODE_OPTIONS" => {
            let loads = [
                "require", "import", "loader", "-r", "inspect", "config", "env-file",
            ];
            is_word(text) && !loads.iter().any(|option| text.contains(option))
        }
        "MAKEFLAGS" => is_word(text) && !text.contains("eval") && !text.contains("SHELL"),
        "JAVA_TOOL_OPTIONS" | "JDK_JAVA_OPTIONS" => is_word(text) && text.starts_with("-Xm"),
        // Nothing is set.
        _ => text.is_empty(),
    }
}

/// Whether a search path leads to what is installed, in the system or by the user, and to what it held before.
pub(super) fn leads_to_installed(path: &str) -> bool {
    const BELOW: [&str; 11] = [
        "/usr/",
        "/opt/",
        "/snap/",
        "/nix/",
        "$HOME/",
        "${HOME}/",
        "~/",
        "$CARGO_HOME/",
        "$JAVA_HOME/",
        "$GOPATH/",
        "$NVM_DIR/",
    ];
    path.trim_matches('"').split(':').all(|entry| {
        let is_below = BELOW.iter().any(|below| entry.starts_with(below));
        let is_whole = ["$PATH", "${PATH}", "/bin", "/sbin"].contains(&entry);
        is_whole || (is_below && !entry.contains("..") && !entry.contains("$("))
    })
}
