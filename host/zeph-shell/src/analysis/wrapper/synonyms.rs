//! Other names of the same command: `docker container rm` is `docker rm`, `python -m pip` is `pip`.
//!
//! Rules that refuse or ask are written with one of them and mean them all.

use super::super::value::Value;

/// Programs, a first word of theirs, and the word it is short or another name for.
const WORDS: &[(&[&str], &[&str], &str)] = &[
    (&["brew"], &["remove", "rm"], "uninstall"),
    (&["cargo"], &["b"], "build"),
    (&["cargo"], &["c"], "check"),
    (&["cargo"], &["d"], "doc"),
    (&["cargo"], &["r"], "run"),
    (&["cargo"], &["rm"], "remove"),
    (&["cargo"], &["t"], "test"),
    (&["helm"], &["del", "delete", "un"], "uninstall"),
    (
        &["npm"],
        &["add", "i", "in", "ins", "inst", "insta", "instal"],
        "install",
    ),
    (&["npm"], &["clean-install", "ic", "install-clean"], "ci"),
    (&["npm"], &["pub", "publ", "publi", "publis"], "publish"),
    (
        &["npm"],
        &["r", "remove", "rm", "un", "unlink"],
        "uninstall",
    ),
    (&["npm"], &["rum", "run-script", "urn"], "run"),
    (&["npm"], &["t", "tst"], "test"),
    (&["npm"], &["up", "upgrade", "udpate"], "update"),
    (&["npm"], &["x"], "exec"),
    (&["pnpm"], &["i"], "install"),
    (&["pnpm"], &["rm", "un", "uninstall"], "remove"),
];

/// Programs, and first words of theirs that only say what the word behind them is about.
const SUBJECTS: &[(&[&str], &[&str])] = &[
    (&["docker", "nerdctl", "podman"], &["container", "image"]),
    (&["yarn"], &["npm"]),
];

/// The name and the arguments that a command has under its usual name; `None` when it is written so.
pub(in super::super) fn usual(name: &str, arguments: &[Value]) -> Option<(Value, Vec<Value>)> {
    if let Some(found) = usual_program(name, arguments) {
        return Some(found);
    }
    let at = arguments
        .iter()
        .position(|word| word.is_literal && !word.text.starts_with('-'))?;
    let mut words = arguments.to_vec();
    let literal = Value::literal;
    let first = arguments
        .iter()
        .enumerate()
        .skip(at)
        .find_map(|(at, word)| {
            let is_here = |(names, known, _): &&(&[&str], &[&str], &str)| {
                names.contains(&name) && known.contains(&word.text.as_str())
            };
            WORDS.iter().find(is_here).map(|(.., whole)| (at, *whole))
        });
    let subject = arguments.iter().position(|word| {
        let is_here = |(names, known): &(&[&str], &[&str])| {
            names.contains(&name) && known.contains(&word.text.as_str())
        };
        SUBJECTS.iter().any(is_here)
    });
    match (name, first, subject) {
        (_, _, Some(at)) => drop(words.remove(at)),
        (_, Some((at, whole)), _) => *words.get_mut(at)? = literal(whole),
        // A `+` before what is pushed forces it.
        ("git", ..) if is_forced(arguments) => words.push(literal("--force")),
        ("terraform" | "tofu", ..) if is_destruction(arguments) => words = vec![literal("destroy")],
        // `tar xf FILE`.
        ("tar", ..) if at == 0 => *words.get_mut(0)? = literal(&format!("-{}", words[0].text)),
        _ => return None,
    }
    Some((literal(name), words))
}

/// A program under another name, or run by the interpreter of its language.
fn usual_program(name: &str, arguments: &[Value]) -> Option<(Value, Vec<Value>)> {
    let version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match version {
        "docker-compose" => {
            let words = [&[Value::literal("compose")], arguments].concat();
            Some((Value::literal("docker"), words))
        }
        "pip" if name != version => Some((Value::literal("pip"), arguments.to_vec())),
        "python" | "pypy" => {
            let at = arguments
                .iter()
                .position(|word| word.text.starts_with("-m"))?;
            let is_before = arguments
                .iter()
                .take(at)
                .all(|word| word.text.starts_with('-'));
            let (module, rest) = match arguments.get(at)?.text.strip_prefix("-m")? {
                "" => (arguments.get(at + 1)?.clone(), arguments.get(at + 2..)?),
                glued => (Value::literal(glued), arguments.get(at + 1..)?),
            };
            (is_before && module.is_name).then(|| (module, rest.to_vec()))
        }
        _ => None,
    }
}

fn is_forced(arguments: &[Value]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    words.any(|word| word == "push") && words.any(|word| word.starts_with('+'))
}

fn is_destruction(arguments: &[Value]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    words.any(|word| word == "apply") && words.any(|word| ["-destroy", "--destroy"].contains(&word))
}
