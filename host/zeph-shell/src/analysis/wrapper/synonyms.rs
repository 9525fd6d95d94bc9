//! Other names of the same command: `docker container rm` is `docker rm`, `python -m pip` is `pip`.
//!
//! Rules that refuse or ask are written with one of them and mean them all.

use super::super::value::Value;

/// Programs, a first word of theirs, and the word it is short or another name for.
const WORDS: &[(&[&str], &[&str], &str)] = &[
    (&["brew"], &["remove", "rm"], "uninstall"),
    (&["bundle"], &["e", "ex", "exe"], "exec"),
    (&["cabal"], &["new-exec", "v1-exec", "v2-exec"], "exec"),
    (&["cargo"], &["b"], "build"),
    (&["cargo"], &["c"], "check"),
    (&["cargo"], &["d"], "doc"),
    (&["cargo"], &["r"], "run"),
    (&["cargo"], &["rm"], "remove"),
    (&["cargo"], &["t"], "test"),
    (&["composer", "opam"], &["ex", "exe"], "exec"),
    (&["helm"], &["del", "delete", "un"], "uninstall"),
    (&["npm"], &["c"], "config"),
    (
        &["npm"],
        &[
            "cit",
            "clean-install",
            "clean-install-test",
            "ic",
            "install-ci-test",
            "install-clean",
            "isntall-clean",
            "sit",
        ],
        "ci",
    ),
    (&["npm"], &["x"], "exec"),
    (&["npm"], &["create", "innit"], "init"),
    (
        &["npm"],
        &[
            "add",
            "i",
            "in",
            "ins",
            "inst",
            "insta",
            "instal",
            "install-test",
            "isnt",
            "isnta",
            "isntal",
            "isntall",
            "it",
        ],
        "install",
    ),
    (&["npm"], &["it"], "install-test"),
    (&["npm"], &["ln"], "link"),
    (&["npm"], &["add-user", "adduser"], "login"),
    (&["npm"], &["author"], "owner"),
    (&["npm"], &["rum", "run-script", "urn"], "run"),
    (&["npm"], &["t", "tst"], "test"),
    (
        &["npm"],
        &["r", "remove", "rm", "un", "unlink"],
        "uninstall",
    ),
    (&["npm"], &["u", "udpate", "up", "upgrade"], "update"),
    (&["pixi"], &["r"], "run"),
    (&["pixi"], &["x"], "exec"),
    (&["pnpm"], &["t", "tst"], "test"),
    (&["pnpm"], &["up", "upgrade"], "update"),
    (&["pnpm"], &["i"], "install"),
    (&["pnpm"], &["rm", "un", "uninstall"], "remove"),
    (&["tox"], &["e"], "exec"),
];

/// Commands of npm that it takes any beginning for that is no other's.
///
/// Source: `npm help`.
const NPM: &[&str] = &[
    "access",
    "config",
    "deprecate",
    "dist-tag",
    "exec",
    "init",
    "install",
    "link",
    "login",
    "logout",
    "owner",
    "publish",
    "rebuild",
    "run",
    "star",
    "start",
    "test",
    "token",
    "uninstall",
    "unpublish",
    "update",
];

/// First words of tasks of Gradle that reach others, and how many letters of them it takes for a beginning that is not that of a more usual
/// task. It takes any beginnings of the words of a name: `pTML` is `publishToMavenLocal`.
///
/// Source: its manual, "Name abbreviation".
const GRADLE: &[(&str, usize)] = &[
    ("artifactory", 3),
    ("bintray", 3),
    ("deploy", 1),
    ("install", 1),
    ("jib", 2),
    ("publish", 1),
    ("push", 1),
    ("release", 1),
    ("sonatype", 3),
    ("upload", 1),
];

/// Fewest letters of such a beginning that names can be told by.
const BEGINNING_MIN: usize = 3;

/// Programs of GNU that have a `g` before their name where others have it without.
const GNU: &[&str] = &[
    "chgrp", "chmod", "chown", "cp", "dd", "find", "ln", "make", "mkdir", "mv", "rm", "rmdir",
    "sed", "shred", "tar", "tee", "touch", "truncate", "unlink",
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
    let places = (first..arguments.len()).flat_map(|at| {
        let word = &arguments[at].text;
        let begun = begun(name, word).filter(|_| may_be_first(arguments, at));
        let whole = whole_words(name, word).chain(begun).map(str::to_owned);
        let whole = whole.chain(gradle_tasks(name, word));
        whole.map(move |whole| replaced(arguments, at, &whole))
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
    // Rules know the script of a project as the program.
    let name = if name == "gradlew" { "gradle" } else { name };
    found
        .into_iter()
        .map(|words| (Value::literal(name), words))
        .collect()
}

/// Whether a word of a program is short or another name for `whole`.
pub(super) fn means(name: &str, word: &str, whole: &str) -> bool {
    whole_words(name, word)
        .chain(begun(name, word))
        .any(|known| known == whole)
}

/// What a word of a program is short or another name for.
fn whole_words(name: &str, word: &str) -> impl Iterator<Item = &'static str> {
    let is_here = move |(names, known, _): &&(&[&str], &[&str], &str)| {
        names.contains(&name) && known.contains(&word)
    };
    WORDS.iter().filter(is_here).map(|(.., whole)| *whole)
}

/// The command of npm that a word is the beginning of.
fn begun(name: &str, word: &str) -> Option<&'static str> {
    let is_begun = |whole: &&&str| whole.len() > word.len() && whole.starts_with(word);
    let is_long = name == "npm" && word.len() >= BEGINNING_MIN && !NPM.contains(&word);
    let mut whole = NPM.iter().filter(is_begun).filter(|_| is_long);
    whole.next().copied()
}

/// The tasks of Gradle that a word may be short for, with their first word written out.
fn gradle_tasks(name: &str, word: &str) -> Vec<String> {
    let start = word.rfind(':').map_or(0, |colon| colon + 1);
    let (project, task) = word.split_at(start);
    let is_task = task.bytes().all(|b| b.is_ascii_alphanumeric());
    if !["gradle", "gradlew"].contains(&name) || !is_task {
        return Vec::new();
    }
    let capital = task.find(|c: char| c.is_ascii_uppercase());
    let (first, rest) = task.split_at(capital.unwrap_or(task.len()));
    let is_short = |(whole, n_min): &&(&str, usize)| {
        first.len() >= *n_min
            && first.len() < whole.len()
            && whole.starts_with(first)
            && (first.len() > 1 || !rest.is_empty())
    };
    let tasks = GRADLE.iter().filter(is_short);
    tasks
        .map(|(whole, _)| format!("{project}{whole}{rest}"))
        .collect()
}

/// Whether only options and their values stand before a word.
fn may_be_first(arguments: &[Value], at: usize) -> bool {
    let is_option = |at: usize| {
        let word = arguments.get(at);
        word.is_some_and(|word| word.text.starts_with('-'))
    };
    (0..at).all(|before| is_option(before) || before > 0 && is_option(before - 1))
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
            let (module, rest) = module(arguments)?;
            let name = module.text.strip_suffix(".__main__").map(Value::literal);
            module
                .is_name
                .then(|| (name.unwrap_or(module), rest.to_vec()))
        }
        _ => {
            let bare = name.strip_prefix('g').filter(|bare| GNU.contains(bare))?;
            Some((Value::literal(bare), arguments.to_vec()))
        }
    }
}

/// The module that Python runs, and its arguments: behind `-m`, which may stand with other letters, and behind options with values.
fn module(arguments: &[Value]) -> Option<(Value, &[Value])> {
    let mut at = 0;
    loop {
        let word = arguments.get(at)?;
        at += 1;
        let letters = word.text.strip_prefix('-').filter(|l| !l.is_empty())?;
        if letters.starts_with('-') {
            at += usize::from(letters == "-check-hash-based-pycs");
            continue;
        }
        // The others take no value.
        let Some(found) = letters.find(['c', 'm', 'Q', 'W', 'X']) else {
            continue;
        };
        let (letter, rest) = letters.get(found..)?.split_at(1);
        match (letter, rest) {
            ("c", _) => return None,
            ("m", "") => return Some((arguments.get(at)?.clone(), arguments.get(at + 1..)?)),
            ("m", rest) => return Some((word.part(rest), arguments.get(at..)?)),
            (_, rest) => at += usize::from(rest.is_empty()),
        }
    }
}

fn is_forced(arguments: &[Value]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    words.any(|word| word == "push") && words.any(|word| word.starts_with('+'))
}

fn is_destruction(arguments: &[Value]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let destroys = |word: &str| {
        let (option, value) = word.split_once('=').unwrap_or((word, "true"));
        // Everything else is true, or an error.
        let is_off = ["0", "f", "false"].contains(&value.to_ascii_lowercase().as_str());
        ["-destroy", "--destroy"].contains(&option) && !is_off
    };
    words.any(|word| word == "apply") && words.any(destroys)
}
