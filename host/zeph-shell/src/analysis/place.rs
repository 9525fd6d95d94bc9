//! Paths of a line: what a redirection opens, and which directory the line is in when it does.
//!
//! Nothing is looked up here. The caller joins the results and resolves them in the file system.

use super::value::Value;

/// Wrappers that run their command in the directory they were started in, whatever their options are.
const STAYING: [&str; 20] = [
    "bash", "sh", "dash", "zsh", "ksh", "time", "timeout", "nice", "ionice", "nohup", "setsid",
    "stdbuf", "command", "builtin", "exec", "eval", "trap", "taskset", "chrt", "xargs",
];

/// Whether bash makes something else of the name `target` when it expands it once more.
pub(super) fn may_be_expanded(target: &Value) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_./-+:@%=,".contains(c);
    !target.holes.is_empty() || !target.text.chars().all(is_plain)
}

/// What bash takes for a connection and no file.
const NETWORKS: [&str; 2] = ["/dev/tcp/", "/dev/udp/"];

/// The path that a word of a redirection or of `cd` names, with a leading `~` only where that stands for the home directory; `None`
/// when it is known only while the line runs.
pub(super) fn path(word: &Value) -> Option<String> {
    if !word.is_literal && !word.is_name {
        return None;
    }
    // A quoted tilde is a name like any other.
    Some(match word.is_literal && word.text.starts_with('~') {
        true => format!("./{}", word.text),
        false => word.text.clone(),
    })
}

/// Whether bash opens a network connection for a redirection to `target`.
pub(super) fn is_network(target: &Value) -> bool {
    NETWORKS
        .iter()
        .any(|device| target.text.starts_with(device))
}

/// Whether `target` is a device whose name is not known.
pub(super) fn may_be_network(target: &Value) -> bool {
    let is_device = target.text.starts_with("/dev/") && !target.text.starts_with("/dev/fd/");
    let is_open = |end: usize| target.holes.iter().any(|hole| hole.start < end);
    is_device && !target.is_stream && is_open(NETWORKS[0].len())
}

/// Whether `path` says the same wherever the line is.
pub(super) fn is_anchored(path: &str) -> bool {
    path.starts_with('/') || path == "~" || path.starts_with("~/")
}

/// Whether a wrapper runs its command in its own directory.
pub(super) fn stays(name: &str, arguments: &[Value]) -> bool {
    let has = |wanted: &str| arguments.iter().any(|word| word.text.contains(wanted));
    match name {
        // Only with an option (`-C`, `--chdir`) does it go elsewhere.
        "env" => !arguments.iter().any(|word| word.text.starts_with('-')),
        "find" => !has("-execdir") && !has("-okdir"),
        _ => STAYING.contains(&name),
    }
}

/// Where a command takes the rest of the line: nothing when it does not, else the directory, `None` when it cannot be known. What may
/// run more than once (`is_repeated`) moves by an unknown number of relative steps.
pub(super) fn moves(name: &str, arguments: &[Value], is_repeated: bool) -> Option<Option<String>> {
    if !matches!(name, "cd" | "pushd") {
        return None;
    }
    let mut words = arguments.iter();
    let operand = words
        .by_ref()
        .find(|word| !(word.is_literal && is_option(&word.text)));
    let operand = match operand {
        Some(word) if word.text == "--" => words.next(),
        other => other,
    };
    match operand {
        // Back to where the line was before.
        None if name == "pushd" => None,
        None => Some(Some("~".to_owned())),
        Some(word) if name == "pushd" && word.text.starts_with(['+', '-']) => None,
        Some(word) if word.text == "-" || !word.is_one_word => Some(None),
        Some(word) => {
            let target = path(word);
            Some(target.filter(|target| !is_repeated || is_anchored(target)))
        }
    }
}

fn is_option(text: &str) -> bool {
    text.len() > 1
        && text.starts_with('-')
        && text != "--"
        && !text[1..].starts_with(|c: char| c.is_ascii_digit())
}
