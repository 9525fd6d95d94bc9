//! The life of a plugin in the folder of a running host: dropped, refused, granted, replaced, stopped by its pin, approved,
//! removed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::plugin_cli::{wanting, with_section};
use crate::product::Product;
use crate::running::Running;
use crate::toolchain;

const READS: &str = r#"
[[directory]]
path = "."
rights = ["read"]
reason = "It counts words."
"#;

const READS_AND_WRITES: &str = r#"
[[directory]]
path = "."
rights = ["read", "write", "create"]
reason = "It counts words and writes them down."
"#;

/// A plugin and how to call it: one tool that needs nothing, one that has to read a file.
pub(crate) struct Life<'a> {
    pub(crate) name: &'a str,
    pub(crate) component: &'a [u8],
    /// Another version of it.
    pub(crate) changed: &'a [u8],
    /// Tool, arguments, and what the answer holds.
    pub(crate) pure: (&'a str, Value, &'a str),
    /// The same; `FILE` in the arguments stands for the path of a file that holds `one two three`.
    pub(crate) reads: (&'a str, Value, &'a str),
}

/// Lives through all of it.
pub(crate) fn live(life: &Life<'_>) {
    let Life { name, .. } = life;
    let product = Product::new();
    product.file("words.txt", "one two three");
    let file = product.work.join("words.txt");
    let (reads, arguments, expect) = &life.reads;
    let arguments: Value = serde_json::from_str(
        &arguments
            .to_string()
            .replace("FILE", file.to_str().unwrap()),
    )
    .unwrap();
    let mut host = Running::start(&product, &["--allow", "*"]);
    host.ready();

    // Dropped, it appears, and what needs nothing works at once.
    product.drop_in(name, life.component);
    host.note(&[&format!("plugin `{name}`:"), "tool"]);
    let (pure, pure_arguments, pure_expect) = &life.pure;
    has(&host.call(pure, pure_arguments), pure_expect);

    // What needs more is refused, and says which command grants it.
    let refused = host.call(reads, &arguments);
    let command = grant_command(&refused);
    assert_eq!(command[..3], ["plugin", "grant", *name], "{refused}");
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let granted = product.run(&words);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    has(&host.call(reads, &arguments), expect);

    // Another file under its name is off, and the old one is gone.
    product.drop_in(name, life.changed);
    host.note(&[&format!("plugin `{name}`"), "approve"]);
    let stopped = host.call(reads, &arguments);
    assert_eq!(stopped["error"]["category"], "policy_blocked", "{stopped}");
    let why = stopped["error"]["message"].as_str().unwrap();
    let approve = format!("`zeph-host plugin approve {name}`");
    assert!(why.contains(&approve), "{why}");

    // Approved, it works again with what was granted.
    let approved = product.run(&["plugin", "approve", name, "--yes"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    host.note(&[&format!("plugin `{name}`:"), "tool"]);
    has(&host.call(reads, &arguments), expect);

    // Removed, it is gone with its grants.
    let removed = product.run(&["plugin", "remove", name, "--yes"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    host.note(&[&format!("plugin `{name}` is gone")]);
    let gone = host.call(pure, pure_arguments);
    assert_eq!(gone["error"]["category"], "tool_not_found", "{gone}");
    product.drop_in(name, life.changed);
    host.note(&[&format!("plugin `{name}`:")]);
    let refused = host.call(reads, &arguments);
    assert_eq!(refused["error"]["category"], "policy_blocked", "{refused}");
}

fn has(answer: &Value, expect: &str) {
    assert_eq!(answer["status"], "ok", "{answer}");
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains(expect), "{answer}");
}

/// The words after `zeph-host` of the command that a refusal names.
fn grant_command(refused: &Value) -> Vec<String> {
    assert_eq!(refused["status"], "refused", "{refused}");
    assert_eq!(refused["error"]["category"], "policy_blocked", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    let (_, command) = message
        .split_once("`zeph-host ")
        .unwrap_or_else(|| panic!("{message}"));
    let (command, _) = command.split_once('`').unwrap();
    command.split(' ').map(str::to_owned).collect()
}

#[test]
fn the_life_of_a_plugin() {
    live(&Life {
        name: "hostile",
        component: &wanting(READS),
        changed: &wanting(READS_AND_WRITES),
        pure: ("echo", json!({"text": "hello"}), "hello"),
        reads: (
            "files",
            json!({"op": "read", "path": "FILE"}),
            "one two three",
        ),
    });
}

/// The same life with a component of the language's template, built by the language's own tools.
fn live_in(language: &str, file: &str) {
    let description = (
        file,
        "Counts the words of a text file.",
        "Counts the words of a file.",
    );
    let (Some(component), Some(changed)) = (
        toolchain::built(language),
        toolchain::built_with(language, &[description]),
    ) else {
        return;
    };
    let name = &toolchain::name(language);
    live(&Life {
        name,
        component: &fs::read(component).unwrap(),
        changed: &fs::read(changed).unwrap(),
        pure: (&format!("{name}_words"), json!({"text": "one two"}), "2"),
        reads: (&format!("{name}_file"), json!({"path": "FILE"}), "3"),
    });
}

#[test]
fn the_life_of_a_plugin_in_rust() {
    live_in("rust", "src/lib.rs");
}

#[test]
fn the_life_of_a_plugin_in_javascript() {
    live_in("js", "src/tools.js");
}

#[test]
fn the_life_of_a_plugin_in_python() {
    live_in("python", "src/tools.py");
}

#[test]
fn the_life_of_a_plugin_in_c() {
    live_in("c", "src/tools.c");
}

#[test]
fn a_bad_file_is_set_aside_with_its_reason_and_the_others_work() {
    let product = Product::new();
    let truncated = &HOSTILE[..HOSTILE.len() / 2];
    let core_module = b"\0asm\x01\0\0\0";
    product
        .drop_in("good", HOSTILE)
        .drop_in("truncated", truncated)
        .drop_in("core", core_module)
        .drop_in("text", b"#!/bin/sh\n")
        .drop_in("empty", b"")
        .drop_in("Loud", HOSTILE)
        .drop_in("file", HOSTILE)
        .drop_in("bad_manifest", &wanting("[[host]]\nname = \"x\""));
    fs::write(product.plugins().join("native.cwasm"), "not even looked at").unwrap();
    let listed = product.run(&["plugin", "list", "--json"]);
    let listed = listed.json();
    let status = |name: &str| {
        let plugins = listed.as_array().unwrap().iter();
        let mut found = plugins.filter(|plugin| plugin["name"] == name);
        let plugin = found
            .next()
            .unwrap_or_else(|| panic!("no {name} in {listed:#}"));
        (plugin["status"].clone(), plugin["reason"].to_string())
    };
    assert_eq!(status("good").0, "active");
    for (name, reason) in [
        ("truncated", "incomplete"),
        ("core", "core WebAssembly module"),
        ("text", ""),
        ("empty", "empty"),
        ("Loud", "rename the file"),
        ("file", "rename the file"),
        ("bad_manifest", "reason"),
    ] {
        let (status, said) = status(name);
        assert_eq!(status, "quarantined", "{name}: {said}");
        assert!(
            said.contains(reason) && !said.contains("\\n"),
            "{name}: {said}"
        );
    }
    assert!(!listed.to_string().contains("native"), "{listed:#}");
    let answer = product.call("echo", json!({"text": "still"}));
    has(&answer, "still");
}

#[test]
fn a_copy_that_stops_half_way_is_taken_when_it_goes_on() {
    let product = Product::new();
    let mut host = Running::start(&product, &[]);
    host.ready();
    fs::create_dir_all(product.plugins()).unwrap();
    let path = product.plugins().join("slow.wasm");
    let (half, rest) = HOSTILE.split_at(HOSTILE.len() / 2);
    fs::write(&path, half).unwrap();
    host.note(&["plugin `slow` is not used"]);
    append(&path, rest);
    host.note(&["plugin `slow`:", "tools"]);
    has(&host.call("echo", &json!({"text": "whole"})), "whole");
}

fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn names_that_are_taken_get_the_plugins_name_before_them() {
    let product = Product::new();
    product.drop_in("first", HOSTILE);
    assert_eq!(product.run(&["plugin", "list"]).code, Some(0));
    // Sorts before the other, and comes too late all the same.
    product.drop_in("another", &with_section(HOSTILE, "note", b"another file"));
    let tools = product.run(&["tools", "--json"]).json();
    let of = |name: &str| {
        let mut tools = tools.as_array().unwrap().iter();
        tools
            .find(|tool| tool["name"] == name)
            .map(|tool| tool["backend"].to_string())
    };
    assert!(of("echo").unwrap().contains("first"), "{tools:#}");
    assert!(
        of("another__echo").unwrap().contains("another"),
        "{tools:#}"
    );
    has(
        &product.call("another__echo", json!({"text": "second"})),
        "second",
    );
}

#[test]
fn a_call_in_flight_finishes_on_the_version_it_began_with() {
    let product = Product::new();
    product.drop_in("hostile", &wanting(READS));
    let mut host = Running::start(&product, &["--allow", "*"]);
    host.ready();
    has(&host.call("echo", &json!({"text": "here"})), "here");
    let directory = format!("{}:read", product.work.display());
    let granted = product.run(&["plugin", "grant", "hostile", "--dir", &directory]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let sign = product.work.join("sign");
    host.begin("files", &json!({"op": "await", "path": sign}));
    product.drop_in("hostile", &wanting(READS_AND_WRITES));
    host.note(&["plugin `hostile`", "approve"]);
    fs::write(sign, "now").unwrap();
    has(&host.answer(), "now");
}

#[test]
fn a_broken_lock_turns_its_plugins_off_and_nothing_else() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE).file("a.txt", "text");
    has(&product.call("echo", json!({"text": "x"})), "x");
    let lock = product.plugins().parent().unwrap().join("zeph.lock");
    fs::write(&lock, "version = 1\n[[plugin]\n").unwrap();
    let ran = product.run(&["plugin", "list", "--json"]);
    assert!(
        ran.stdout.contains("quarantined") && ran.stdout.contains("zeph.lock"),
        "{}",
        ran.stdout
    );
    let answer = product.call("echo", json!({"text": "x"}));
    assert_eq!(answer["error"]["category"], "policy_blocked", "{answer}");
    has(&product.call("read", json!({"path": "a.txt"})), "text");
}

#[test]
fn a_tool_that_promises_to_read_cannot_write_whatever_was_granted() {
    let product = Product::new();
    product
        .drop_in("hostile", &wanting(READS_AND_WRITES))
        .file("a.txt", "text");
    let directory = format!("{}:read+write+create", product.work.display());
    assert_eq!(product.run(&["plugin", "list"]).code, Some(0));
    let granted = product.run(&["plugin", "grant", "hostile", "--dir", &directory]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let path = product.work.join("a.txt");
    // Every tool of this guest calls itself read-only.
    let answer = product.call("files", json!({"op": "write", "path": path}));
    assert_eq!(answer["error"]["category"], "policy_blocked", "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("promises"),
        "{answer}"
    );
    assert_eq!(product.read("a.txt"), "text");
}

#[test]
fn without_plugins_nothing_in_the_folder_is_looked_at() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    let tools = product.run(&["--set", "plugins.enabled=false", "tools", "--json"]);
    assert!(!tools.stdout.contains("hostile"), "{}", tools.stdout);
}
