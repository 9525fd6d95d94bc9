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

/// A name and arguments.
type Usual = (Value, Vec<Value>);

/// The names and the arguments that a command has under its usual name; none when it is written so. A word that may be the value of an
/// option is taken for a subcommand too.
pub(in super::super) fn usual(name: &str, arguments: &[Value]) -> Vec<Usual> {
    if let Some(found) = usual_program(name, arguments) {
        return vec![found];
    }
    let is_word = |word: &Value| word.is_literal && !word.text.starts_with('-');
    let Some(first) = arguments.iter().position(is_word) else {
        return Vec::new();
    };
    if let Some(words) = without_subject(name, arguments) {
        return vec![(Value::literal(name), words)];
    }
    let places = (first..arguments.len()).filter_map(|at| {
        let whole = whole_word(name, &arguments[at].text)?;
        Some(replaced(arguments, at, whole))
    });
    let found: Vec<Vec<Value>> = places.collect();
    let other = || match name {
        // A `+` before what is pushed forces it.
        "git" if is_forced(arguments) => Some([arguments, &[Value::literal("--force")]].concat()),
        "terraform" | "tofu" if is_destruction(arguments) => Some(vec![Value::literal("destroy")]),
        // `tar xf FILE`.
        "tar" if first == 0 => Some(replaced(arguments, 0, &format!("-{}", arguments[0].text))),
        _ => None,
    };
    let found = if found.is_empty() {
        other().into_iter().collect()
    } else {
        found
    };
    found
        .into_iter()
        .map(|words| (Value::literal(name), words))
        .collect()
}

/// What a word of a program is short or another name for.
fn whole_word(name: &str, word: &str) -> Option<&'static str> {
    let is_here = |(names, known, _): &&(&[&str], &[&str], &str)| {
        names.contains(&name) && known.contains(&word)
    };
    WORDS.iter().find(is_here).map(|(.., whole)| *whole)
}

fn replaced(arguments: &[Value], at: usize, text: &str) -> Vec<Value> {
    let mut words = arguments.to_vec();
    if let Some(word) = words.get_mut(at) {
        *word = Value::literal(text);
    }
    words
}

/// The arguments without the word that says what they are about: `container rm x` is `rm x`, `image rm x` is `rmi x`.
fn without_subject(name: &str, arguments: &[Value]) -> Option<Vec<Value>> {
    let at = arguments.iter().position(|word| {
        let is_here = |(names, known): &(&[&str], &[&str])| {
            names.contains(&name) && known.contains(&word.text.as_str())
        };
        SUBJECTS.iter().any(is_here)
    })?;
    let mut words = arguments.to_vec();
    let subject = words.remove(at);
    if let Some(verb) = words
        .get_mut(at)
        .filter(|verb| ["rm", "remove"].contains(&verb.text.as_str()))
    {
        *verb = Value::literal(match subject.text.as_str() {
            "image" => "rmi",
            _ => "rm",
        });
    }
    Some(words)
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
        "cmake" => {
            let [option, tool, rest @ ..] = arguments else {
                return None;
            };
            let is_tool = option.text == "-E" && tool.text == "rm";
            is_tool.then(|| (tool.clone(), rest.to_vec()))
        }
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
            let name = module.text.strip_suffix(".__main__").map(Value::literal);
            (is_before && module.is_name).then(|| (name.unwrap_or(module), rest.to_vec()))
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
