//! Names that are given once.

use std::sync::Arc;

use serde_json::json;
use zeph_core::argument::Parameters;
use zeph_core::id::{Digest, Pin, PluginId, ToolName};
use zeph_core::manifest::Manifest;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

use super::Owners;
use crate::definitions::Definitions;
use crate::lock::{Lock, LockedPlugin};
use crate::set::{FolderLock, ProgramParts, VettedPlugin, read_manifest};

pub(crate) fn tool(plugin: &str, name: &str) -> Tool {
    Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({"type": "object"})).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend: Backend::Wasm(PluginId(plugin.to_owned())),
    }
}

/// `alpha: greet wave`, pinned in this order.
pub(crate) fn lock(plugins: &[&str]) -> Lock {
    let mut lock = Lock::default();
    for plugin in plugins {
        let (name, tools) = plugin.split_once(':').unwrap();
        let tools = tools
            .split_whitespace()
            .map(|own| tool(name, own))
            .collect();
        let digest = Digest::new([7; 32]);
        lock.put(LockedPlugin {
            name: PluginId(name.to_owned()),
            file: format!("{name}.wasm"),
            pin: Pin {
                wasm: digest,
                tools: digest,
            },
            accepted_at_ms: 0,
            disabled: false,
            operator_wants: false,
            provenance: None,
            next: None,
            definitions: Definitions::new(Vec::new(), tools).unwrap(),
        });
    }
    lock
}

/// Writes down what is given, as the keeper does.
fn settle(locks: &mut [FolderLock]) -> Owners {
    settle_typed(locks, 0)
}

fn settle_typed(locks: &mut [FolderLock], n_typed: usize) -> Owners {
    let (owners, given) = Owners::of(&ProgramParts::default(), locks, n_typed);
    for (lock, given) in locks.iter_mut().zip(given) {
        for given in given {
            lock.as_mut().unwrap().give(given.name, given.plugin);
        }
    }
    owners
}

#[track_caller]
fn check(owners: &Owners, name: &str, owner: &str) {
    let tool = ToolName::new(name).unwrap();
    for plugin in ["alpha", "beta", "gamma"] {
        let owns = owners.owns(&PluginId(plugin.to_owned()), false, &tool);
        assert_eq!(owns, plugin == owner, "{plugin} {name}");
    }
}

#[test]
fn a_name_stays_with_the_plugin_it_was_given_to() {
    let mut locks = [Ok(lock(&["alpha: greet", "beta: greet wave"]))];
    check(&settle(&mut locks), "greet", "alpha");
    check(&settle(&mut locks), "wave", "beta");

    let off = locks[0].as_mut().unwrap();
    off.get_mut(&PluginId("alpha".to_owned())).unwrap().disabled = true;
    check(&settle(&mut locks), "greet", "alpha");

    let mut changed = locks.clone();
    let renamed = lock(&["alpha: hello wave"]).plugins()[0].clone();
    changed[0].as_mut().unwrap().put(renamed);
    let owners = settle(&mut changed);
    check(&owners, "greet", "alpha");
    check(&owners, "wave", "beta");
    check(&owners, "hello", "alpha");

    let removed = locks[0].as_mut().unwrap();
    removed.remove(&PluginId("alpha".to_owned()));
    check(&settle(&mut locks), "greet", "alpha");
}

#[test]
fn a_newcomer_in_another_folder_takes_no_name() {
    let mut locks = [Ok(Lock::default()), Ok(lock(&["beta: greet"]))];
    check(&settle(&mut locks), "greet", "beta");
    locks[0] = Ok(lock(&["alpha: greet"]));
    check(&settle(&mut locks), "greet", "beta");
}

/// The lock of such a folder may come with a repository, and claim whatever its author likes.
#[test]
fn a_folder_that_was_typed_gets_the_names_that_the_others_leave() {
    let names = |name: &str| ToolName::new(name).unwrap();
    let id = |plugin: &str| PluginId(plugin.to_owned());
    let mut typed = lock(&["evil: greet peek", "alpha: hello"]);
    for (name, plugin) in [
        ("greet", "evil"),
        ("hello", "evil"),
        ("wave", "gone"),
        ("look", "alpha"),
    ] {
        typed.give(names(name), id(plugin));
    }
    let mut own = lock(&["alpha: greet"]);
    own.give(names("hello"), id("alpha"));
    own.remove(&id("alpha"));
    let own = [own, lock(&["alpha: greet", "beta: wave"])];
    let [removed, installed] = own.map(Ok);
    let mut locks = [removed, installed, Ok(typed)];
    let owners = settle_typed(&mut locks, 1);
    let table = [
        ("greet", "alpha", false),
        ("wave", "beta", false),
        ("hello", "alpha", false),
        ("peek", "evil", true),
        ("look", "alpha", true),
    ];
    for (name, owner, is_typed) in table {
        for plugin in ["alpha", "beta", "evil", "gone"] {
            for folder in [false, true] {
                let owns = owners.owns(&id(plugin), folder, &names(name));
                assert_eq!(
                    owns,
                    (plugin, folder) == (owner, is_typed),
                    "{plugin} {folder} {name}"
                );
            }
        }
    }
}

#[test]
fn nothing_new_is_given_while_a_lock_cannot_be_read() {
    let mut locks = [Err("broken".to_owned()), Ok(lock(&["beta: greet"]))];
    check(&settle(&mut locks), "greet", "nobody");
}

#[test]
fn names_that_rules_cannot_tell_apart_are_one() {
    let mut locks = [Ok(lock(&[
        "alpha: greet Bash SHELL sh Write file__read beta__wave mcp_git_x MCP_Git_y",
        "beta: Greet wave",
    ]))];
    let owners = settle(&mut locks);
    check(&owners, "greet", "alpha");
    check(&owners, "GREET", "alpha");
    check(&owners, "wave", "beta");
    for reserved in [
        "bash",
        "Bash",
        "sh",
        "SHELL",
        "write",
        "file__read",
        "beta__wave",
        "mcp_git_x",
        "MCP_Git_y",
    ] {
        check(&owners, reserved, "nobody");
    }
}

/// It is never in force: it must not keep a name from a plugin that is.
#[tokio::test]
async fn a_plugin_named_like_one_of_the_host_owns_nothing() {
    let options = zeph_engine::EngineOptions {
        guest_threads: 1,
        pooled: false,
        cache_dir: None,
        on_compile: None,
    };
    let engine = zeph_engine::Engine::new(&options).unwrap();
    let id = PluginId("file".to_owned());
    let digest = Digest::new([7; 32]);
    let file = zeph_engine::Plugin::recall(&engine, id, digest, "".into(), Vec::new());
    let fixed = ProgramParts {
        plugins: vec![Arc::new(VettedPlugin::of_program(
            file,
            read_manifest(Manifest::default()),
        ))],
        builtin: Vec::new(),
    };
    let (owners, _) = Owners::of(&fixed, &[Ok(lock(&["file: greet", "alpha: greet"]))], 0);
    let greet = ToolName::new("greet").unwrap();
    assert!(owners.owns(&PluginId("alpha".to_owned()), false, &greet));
    assert!(!owners.owns(&PluginId("file".to_owned()), false, &greet));
}
