//! The plugins of the program take the path of all others: manifest, grants, refusals with the command that grants.

use serde_json::{Value, json};

use crate::product::Product;
use crate::running::Running;

fn product() -> Product {
    let product = Product::new();
    product.file("a.txt", "one");
    product
}

fn revoked() -> Product {
    let product = product();
    let ran = product.run(&["plugin", "revoke", "file", "--all"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    product
}

/// The words after `zeph-host` of the command that a refusal names.
fn grant_command(refused: &Value) -> Vec<String> {
    assert_eq!(refused["error"]["category"], "policy_blocked", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    let (_, command) = message.split_once("`zeph-host ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    command.split(' ').map(str::to_owned).collect()
}

#[test]
fn a_revoked_plugin_is_refused_with_the_line_that_gives_it_back() {
    let product = product();
    let mut host = Running::start(&product, &["--allow", "*"]);
    let (read, write) = (
        json!({"path": "a.txt"}),
        json!({"path": "b.txt", "content": "x"}),
    );
    assert_eq!(host.call("read", &read)["status"], "ok");

    let ran = product.run(&["plugin", "revoke", "file", "--all"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let refused = host.call("read", &read);
    let command = grant_command(&refused);
    assert_eq!(
        command[..4],
        ["plugin", "grant", "file", "--dir"],
        "{refused}"
    );
    assert!(command[4].ends_with(":read"), "{refused}");

    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let granted = product.run(&words);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    assert_eq!(host.call("read", &read)["status"], "ok");
    let refused = host.call("write", &write);
    assert!(grant_command(&refused)[4].contains("create"), "{refused}");
    assert!(!product.work.join("b.txt").exists());

    let ran = product.run(&["plugin", "grant", "file", "--all"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(host.call("write", &write)["status"], "ok");
    assert_eq!(product.read("b.txt"), "x");
}

/// Who revokes a part is told that the default grants go on.
#[test]
fn default_grants_are_revoked_as_a_whole() {
    let product = product();
    let revoke = ["plugin", "revoke", "file", "--dir", "."];
    let ran = product.run(&revoke);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("plugin revoke file --all"), "{ran:?}");
    let granted = product.run(&["plugin", "grant", "file", "--dir", ".:read"]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let ran = product.run(&revoke);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("still apply"), "{ran:?}");
}

#[test]
fn default_grants_are_the_configurations() {
    let product = product();
    let set = r#"plugins.default_grants.file=[".:read"]"#;
    let read = product.run(&["--set", set, "call", "read", "path=a.txt"]);
    assert_eq!(read.code, Some(0), "{read:?}");
    let write = product.run(&["--set", set, "call", "write", "path=b.txt", "content=x"]);
    assert_eq!(write.code, Some(4), "{write:?}");
    assert!(
        write.stderr.contains("plugin grant file --dir"),
        "{write:?}"
    );
    assert!(!product.work.join("b.txt").exists());
    for bad in ["[\"src:read\"]", "[\".\"]", "[\".:all\"]"] {
        let set = format!("plugins.default_grants.file={bad}");
        let ran = product.run(&["--set", &set, "call", "read", "path=a.txt"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
    }
}

#[test]
fn what_it_holds_is_shown() {
    let product = product();
    let info = product.run(&["plugin", "info", "file", "--json"]).json();
    assert_eq!(info["default_grants"], true, "{info}");
    assert_eq!(info["wants"][0]["is_granted"], true, "{info}");
    let listed = product.run(&["plugin", "list"]);
    assert!(
        listed.stdout.contains("file  1/1 granted, by default"),
        "{listed:?}"
    );

    let product = revoked();
    let info = product.run(&["plugin", "info", "file", "--json"]).json();
    assert_eq!(info["default_grants"], false, "{info}");
    assert_eq!(info["wants"][0]["is_granted"], false, "{info}");
    let listed = product.run(&["plugin", "list"]);
    assert!(
        listed
            .stdout
            .contains("file  0/1 granted, default grants revoked"),
        "{listed:?}"
    );
}

/// A tool that promises to read only holds no more, whatever its plugin was granted.
#[test]
fn explain_names_what_a_call_holds() {
    let product = Product::new();
    for (call, rights) in [
        (&["read", "path=a.txt"][..], "read"),
        (
            &["write", "path=a.txt", "content=x"][..],
            "read+write+create+delete",
        ),
    ] {
        let explained = product.run(&[&["explain"], call].concat()).stdout;
        let held = format!("it holds `directory {}:{rights}`;", product.work.display());
        assert!(explained.contains(&held), "{held}: {explained}");
    }
}

/// A part of what the default grants give is withheld, and the rest stays.
#[test]
fn what_is_withheld_of_a_directory_leaves_the_rest() {
    let product = Product::new();
    product.file("a.txt", "one").file("secret/s.txt", "two");
    let ran = product.run(&[
        "plugin", "grant", "file", "--dir", "secret", "--mode", "deny",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("from plugin `file` is withheld\n"),
        "{}",
        ran.stdout
    );
    let read = |path: &str| product.call("read", json!({"path": product.work.join(path)}));
    assert_eq!(read("a.txt")["status"], "ok");
    let secret = read("secret/s.txt");
    let text = secret.to_string();
    assert_ne!(secret["status"], "ok", "{text}");
    assert!(
        text.contains("secret:read+write+create+delete` is withheld"),
        "{text}"
    );
    assert!(text.contains("plugin revoke file --id "), "{text}");
    assert!(!text.contains("plugin grant"), "{text}");
    let found = product.call("grep", json!({"path": product.work, "pattern": "one|two"}));
    assert!(!found.to_string().contains("s.txt"), "{found}");
    let page = product.run(&["plugin", "info", "file"]).stdout;
    let withheld = page
        .lines()
        .find(|line| line.trim_start().starts_with("withheld: "));
    assert!(
        withheld.is_some_and(|line| line.contains("secret:")),
        "{page}"
    );
    let in_force = page.lines().find(|line| line.contains("in force: "));
    assert!(
        in_force.is_some_and(|line| !line.contains("secret")),
        "{page}"
    );
}

/// What `explain` says of a call is what the call gets, also where `tools.file.rights` lets no tool do it.
#[test]
fn explain_asks_the_rights_of_files() {
    let product = Product::new();
    for (rights, call, refused) in [
        (
            "read",
            &["write", "path=a.txt", "content=x"][..],
            Some("create"),
        ),
        ("read", &["delete_path", "path=a.txt"], Some("delete")),
        ("read", &["read", "path=a.txt"], None),
        ("write", &["grep", "pattern=x"], Some("read")),
        (
            "read,create",
            &["write", "path=a.txt", "content=x"],
            Some("write"),
        ),
        ("read,create", &["write", "path=b.txt", "content=x"], None),
        (
            "read,create",
            &["move_path", "source=a.txt", "destination=c.txt"],
            Some("delete"),
        ),
        (
            "read,create",
            &["copy_path", "source=a.txt", "destination=d.txt"],
            None,
        ),
        (
            "read,delete",
            &["move_path", "source=a.txt", "destination=c.txt"],
            Some("create"),
        ),
        (
            "read,write,create",
            &["edit", "path=a.txt", "old_string=x", "new_string=y"],
            None,
        ),
    ] {
        product.file("a.txt", "x\n");
        let set = format!("tools.file.rights={rights}");
        let explained = product.run(&[&["--set", &set, "explain", "--as-person"], call].concat());
        let called = product.run(&[&["--set", &set, "call"], call].concat());
        let said = format!("{call:?} {explained:?} {called:?}");
        assert_eq!(called.code == Some(0), refused.is_none(), "{said}");
        assert_eq!(explained.code == Some(0), refused.is_none(), "{said}");
        if let Some(verb) = refused {
            let why = format!("may not {verb} in `{}`", product.work.display());
            assert!(explained.stdout.contains(&why), "{said}");
            assert!(
                explained.stdout.contains("decided by tools.file.rights"),
                "{said}"
            );
            assert!(
                format!("{}{}", called.stdout, called.stderr).contains(&why),
                "{said}"
            );
        }
    }
}
