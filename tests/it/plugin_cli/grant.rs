//! `plugin grant` and `plugin revoke`, and that they hold from the next call on.

use serde_json::{Value, json};

use super::{WANTS, WANTS_MORE, wanting};
use crate::product::Product;
use crate::running::Running;

fn product() -> Product {
    let product = Product::new();
    product
        .drop_in("x", &wanting(WANTS))
        .file("a.txt", "content of a")
        .file("src/b.txt", "b");
    product
}

fn read(product: &Product, path: &str) -> Value {
    json!({"op": "read", "path": product.work.join(path)})
}

#[test]
fn what_cannot_be_granted_is_refused_with_what_can() {
    let product = product();
    product.file("file.txt", "");
    let conversation = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10";
    for (typed, code, words) in [
        (&[][..], 2, "nothing to grant was named"),
        (&[], 2, "zeph-host plugin grant x --dir"),
        (&["--dir", ".:write"], 2, "it requests directory .:read"),
        (&["--dir", "src:reed"], 2, "`reed` is not a right"),
        (&["--dir", "nowhere"], 2, "`nowhere` cannot be used"),
        (&["--dir", "file.txt"], 2, "is not a directory"),
        (
            &["--host", "example.com"],
            2,
            "it requests host api.example.com",
        ),
        (&["--program", "sh"], 2, "does not request program sh"),
        (&["--variable", "HOME"], 2, "does not request variable HOME"),
        (&["--limit", "wall_clock_secs=61"], 2, "does not request"),
        (&["--limit", "wall_clock_secs=soon"], 2, "whole number"),
        (&["--limit", "clock=1"], 2, "`clock` is not a limit"),
        (&["--dir", ".", "--until", "2020-01-01"], 2, "is past"),
        (
            &["--dir", ".", "--until", "tomorrow"],
            2,
            "write `2026-12-31`",
        ),
        (
            &["--dir", ".", "--once", "--session", conversation],
            2,
            "cannot be used with",
        ),
        (
            &["--dir", ".", "--set", "store.path=:memory:"],
            1,
            "forgotten at once",
        ),
        (&["--all"], 5, "`--yes`"),
    ] {
        let mut all = vec!["grant", "x"];
        all.extend(typed);
        product.refuses(&all, code, &[words]);
    }
    let info = product.plugin_json(&["info", "x"]);
    assert!(
        info["wants"]
            .as_array()
            .unwrap()
            .iter()
            .all(|want| want["grants"] == json!([])),
        "{info}"
    );
    product.drop_in("bad", b"junk");
    product.refuses(
        &["grant", "bad", "--all", "--yes"],
        1,
        &["is not used and can be granted nothing"],
    );
}

/// Nobody has seen what it is now.
#[test]
fn a_plugin_that_is_off_and_was_exchanged_is_granted_nothing() {
    let product = product();
    product.plugin_json(&["disable", "x"]);
    product.drop_in("x", &wanting(WANTS_MORE));
    let words = ["can be granted nothing", "plugin approve x"];
    product.refuses(&["grant", "x", "--dir", ".:read"], 1, &words);
    let list = product.plugin_json(&["list"]);
    assert_eq!(
        (&list[0]["status"], &list[0]["changed"]),
        (&json!("disabled"), &json!(true))
    );
    product.refuses(&["list"], 0, &["off, changed"]);
    product.plugin_json(&["approve", "x", "--yes"]);
    product.plugin_json(&["grant", "x", "--dir", ".:read"]);
}

#[test]
fn grants_are_told_with_all_that_is_special_about_them() {
    let product = product();
    let outside = product.home.join("notes");
    std::fs::create_dir_all(&outside).unwrap();
    let outside = outside.to_str().unwrap();
    let granted = product.plugin_json(&["grant", "x", "--all", "--yes", "--until", "2999-12-31"]);
    let kinds: Vec<_> = granted["granted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grant| &grant["kind"])
        .collect();
    assert_eq!(kinds, ["directory", "host", "limit"], "{granted}");
    let directory = &granted["granted"][0];
    assert_eq!(
        directory["path"],
        product.work.to_str().unwrap(),
        "{granted}"
    );
    assert_eq!(directory["lifetime"], "until", "{granted}");
    assert_eq!(
        directory["until"], "3000-01-01T00:00:00Z",
        "the end of that day: {granted}"
    );
    assert_eq!(granted["notes"], json!([]), "{granted}");
    let list = product.plugin_json(&["list"]);
    assert_eq!(
        (&list[0]["granted"], &list[0]["wanted"]),
        (&json!(3), &json!(3)),
        "{list}"
    );

    let ran = product.plugin(&[
        "grant",
        "x",
        "--dir",
        outside,
        "--limit",
        "wall_clock_secs=1",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("`tools.file.allowed_paths`"), "{ran:?}");
    assert!(ran.stderr.contains("changes nothing"), "{ran:?}");
    assert!(
        ran.stdout
            .contains(&format!("directory {outside}:read (always)")),
        "{ran:?}"
    );
}

#[test]
fn a_grant_holds_from_the_next_call_of_a_running_host_on() {
    let product = product();
    let mut running = Running::start(&product, &[]);
    let path = read(&product, "src/b.txt");
    let refused = running.call("files", &path);
    assert_eq!(refused["error"]["category"], "policy_blocked", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    let command = message
        .split('`')
        .find(|part| part.starts_with("zeph-host "))
        .unwrap();
    let work = product.work.display();
    assert_eq!(
        command,
        format!("zeph-host plugin grant x --dir {work}:read")
    );

    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let ran = product.run(&words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(running.call("files", &path)["text"], "b");
    // Less stays.
    let revoked = product.plugin_json(&["revoke", "x", "--dir", "."]);
    assert_eq!(revoked["revoked"].as_array().unwrap().len(), 1, "{revoked}");
    assert_eq!(running.call("files", &path)["status"], "refused");
    product.plugin_json(&["grant", "x", "--dir", "src"]);
    assert_eq!(running.call("files", &path)["text"], "b");
    assert_eq!(
        running.call("files", &read(&product, "a.txt"))["status"],
        "refused"
    );
}

#[test]
fn a_grant_for_once_is_used_up_by_one_call() {
    let product = product();
    let mut running = Running::start(&product, &[]);
    let path = read(&product, "a.txt");
    assert_eq!(running.call("files", &path)["status"], "refused");
    product.plugin_json(&["grant", "x", "--dir", ".", "--once"]);
    // One that does not use it leaves it.
    assert_eq!(
        running.call("echo", &json!({"text": "hello"}))["text"],
        "hello"
    );
    assert_eq!(running.call("files", &path)["text"], "content of a");
    assert_eq!(running.call("files", &path)["status"], "refused");
}

#[test]
fn calls_at_once_share_no_grant_for_once() {
    let product = product();
    product.plugin_json(&["grant", "x", "--dir", ".", "--once"]);
    let path = read(&product, "a.txt");
    let line = |id| format!("{}\n", json!({"id": id, "tool": "files", "params": path}));
    let input: String = (0..12).map(line).collect();
    let answers = product.answers(&["--jobs", "12"], input);
    let n_read = answers
        .iter()
        .filter(|answer| answer["text"] == "content of a");
    assert_eq!(n_read.count(), 1, "{answers:#?}");
    let n_refused = answers
        .iter()
        .filter(|answer| answer["status"] == "refused");
    assert_eq!(n_refused.count(), 11, "{answers:#?}");
}

#[test]
fn a_grant_for_a_session_is_for_its_conversation() {
    let product = product();
    let conversation = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10";
    let granted = product.plugin_json(&["grant", "x", "--dir", ".", "--session", conversation]);
    assert_eq!(
        granted["granted"][0]["conversation"], conversation,
        "{granted}"
    );
    let path = read(&product, "a.txt");
    let mut other = Running::start(&product, &[]);
    assert_eq!(other.call("files", &path)["status"], "refused");
    let mut running = Running::start(&product, &["--conversation", conversation]);
    assert_eq!(running.call("files", &path)["text"], "content of a");
}

#[test]
fn what_was_not_granted_cannot_be_revoked() {
    let product = product();
    product.refuses(
        &["revoke", "x"],
        2,
        &["nothing to revoke was named", "--all"],
    );
    product.refuses(&["revoke", "x", "--all"], 1, &["it was granted nothing"]);
    let granted = product.plugin_json(&["grant", "x", "--all", "--yes"]);
    let id = granted["granted"][1]["id"].to_string();
    for typed in [
        &["--dir", ".:write"][..],
        &["--dir", "src"],
        &["--program", "cargo"],
        &["--id", "4711"],
    ] {
        let mut all = vec!["revoke", "x"];
        all.extend(typed);
        product.refuses(&all, 1, &["nothing was revoked", "host api.example.com"]);
    }
    let ran = product.plugin(&["revoke", "x", "--id", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("host api.example.com"), "{ran:?}");
    // The file may be gone, or none any more: what was granted can be taken back nevertheless.
    product.drop_in("x", b"junk");
    let revoked = product.plugin_json(&["revoke", "x", "--limit", "wall_clock_secs"]);
    assert_eq!(revoked["revoked"][0]["value"], 60, "{revoked}");
    std::fs::remove_file(product.plugins().join("x.wasm")).unwrap();
    let revoked = product.plugin_json(&["revoke", "x", "--all"]);
    assert_eq!(revoked["revoked"].as_array().unwrap().len(), 1, "{revoked}");
}
