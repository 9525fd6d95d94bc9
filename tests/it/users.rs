//! Tools that work as another user than the host's (`tools.scope.run_as_user`).
//!
//! These tests need root: without it they print why they did nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use serde_json::{Value, json};

use crate::mcp_client::McpClient;
use crate::product::{Product, answer};

/// The number of `nobody`, which every system has.
fn nobody() -> Option<u32> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
    if !is_root {
        crate::left_out::leave_out("only root can run tools as another user");
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("nobody:"))?;
    line.split(':').nth(2)?.parse().ok()
}

/// A workspace of `nobody`, with a file of root that `nobody` may not read, and the configuration that makes tools work so.
fn product(more: &str) -> Option<(Product, u32)> {
    let uid = nobody()?;
    let product = Product::new();
    let base = product.work.parent().unwrap();
    fs::set_permissions(base, fs::Permissions::from_mode(0o755)).unwrap();
    product
        .file("secret.txt", "only for root\n")
        .file("open.txt", "for all\n")
        .file("closed/inside.txt", "only for root\n");
    for (path, mode) in [("secret.txt", 0o600), ("closed", 0o700)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(product.work.join(path), mode).unwrap();
    }
    chown(&product.work, Some(uid), None).unwrap();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    let config =
        format!("[tools.scope]\nenabled = true\nrun_as_user = \"nobody\"\n[run]\njobs = 1\n{more}");
    fs::write(folder.join("config.toml"), config).unwrap();
    Some((product, uid))
}

fn line(id: u32, tool: &str, params: &Value) -> String {
    json!({"id": id, "tool": tool, "params": params}).to_string() + "\n"
}

fn owner(product: &Product, path: &str) -> u32 {
    fs::metadata(product.work.join(path)).unwrap().uid()
}

#[test]
fn files_and_commands_have_the_rights_of_the_user_and_no_others() {
    let Some((product, uid)) = product("") else {
        return;
    };
    let bash = |id, command: &str| line(id, "bash", &json!({"command": command}));
    let input = [
        line(1, "read", &json!({"path": "open.txt"})),
        line(2, "read", &json!({"path": "secret.txt"})),
        bash(3, "cat open.txt; cat secret.txt"),
        line(
            4,
            "write",
            &json!({"path": "by-guest.txt", "content": "x\n"}),
        ),
        bash(5, "echo x > by-command.txt; mkdir made; id -u; id -ru"),
        line(6, "grep", &json!({"pattern": "only for root", "path": "."})),
        line(
            7,
            "find_path",
            &json!({"pattern": "**/inside.txt", "path": "."}),
        ),
        line(8, "list_directory", &json!({"path": "closed"})),
        bash(9, "ls closed; chown 0 by-command.txt; cat /etc/shadow"),
        line(
            10,
            "write",
            &json!({"path": "closed/inside.txt", "content": "taken"}),
        ),
        bash(11, "printf '%s %s' \"$USER\" \"$HOME\""),
    ]
    .concat();
    let answers = product.answers(&["--allow", "*"], input);
    let text = |id: u32| answer(&answers, id)["text"].as_str().unwrap_or_default();
    assert!(text(1).contains("for all"), "{answers:#?}");
    assert_ne!(answer(&answers, 2)["status"], "ok", "{answers:#?}");
    assert!(text(3).contains("for all"), "{answers:#?}");
    assert!(!text(3).contains("only for root"), "{answers:#?}");
    assert_eq!(owner(&product, "by-guest.txt"), uid);
    assert_eq!(owner(&product, "by-command.txt"), uid);
    assert_eq!(owner(&product, "made"), uid);
    assert_eq!(text(5).trim(), format!("{uid}\n{uid}"));
    assert!(!text(6).contains("secret.txt:"), "{answers:#?}");
    assert!(!text(6).contains("inside.txt:"), "{answers:#?}");
    assert!(!text(7).contains("closed/inside.txt"), "{answers:#?}");
    assert_ne!(answer(&answers, 8)["status"], "ok", "{answers:#?}");
    assert!(!text(9).contains("inside.txt"), "{answers:#?}");
    assert!(!text(9).contains("root:"), "{answers:#?}");
    assert_eq!(owner(&product, "by-command.txt"), uid);
    assert!(text(11).starts_with("nobody "), "{answers:#?}");
    assert_eq!(product.read("closed/inside.txt"), "only for root\n");
    // The state of the host stays the host's.
    let state = product.home.join(".local/share/zeph-host");
    assert_eq!(fs::metadata(state).unwrap().uid(), 0);
}

#[test]
fn no_door_lends_the_rights_of_the_host() {
    let Some((product, uid)) = product("") else {
        return;
    };
    let read = product.run(&["call", "read", "path=secret.txt"]);
    assert_ne!(read.code, Some(0), "{}", read.stdout);
    let cat = product.run(&["call", "bash", "command=cat secret.txt; id -u"]);
    assert!(!cat.stdout.contains("only for root"), "{}", cat.stdout);
    assert!(cat.stdout.contains(&uid.to_string()), "{}", cat.stdout);
    let explained = product.run(&["explain", "bash", "command=id -u"]).stdout;
    let told = "runs as `nobody` (tools.scope.run_as_user)";
    assert!(explained.contains(told), "{explained}");
    let mut client = McpClient::modern(&product, &["--allow", "*"], &json!({}));
    let read = client.call("read", json!({"path": "secret.txt"}));
    assert!(
        !read.to_string().contains("only for root"),
        "over MCP: {read}"
    );
    let cat = client.call("bash", json!({"command": "cat secret.txt; id -u"}));
    assert!(!cat.to_string().contains("only for root"), "{cat}");
    assert!(cat.to_string().contains(&uid.to_string()), "{cat}");
}

#[test]
fn a_rollback_and_a_hook_work_as_the_user() {
    let Some((product, uid)) = product(
        "[tools.shell]\ntransactional = true\nauto_rollback = true\n\
         [[hooks.file_changed]]\ncommand = \"id -u > hooked.txt\"\n",
    ) else {
        return;
    };
    product.file("kept.txt", "before\n");
    chown(product.work.join("kept.txt"), Some(uid), None).unwrap();
    let failing = "echo after > kept.txt; touch new.txt; exit 3";
    let input = [
        line(1, "bash", &json!({"command": failing})),
        line(
            2,
            "write",
            &json!({"path": "changed.txt", "content": "x\n"}),
        ),
        line(
            3,
            "bash",
            &json!({"command": "sleep 0.01; id -u > background.txt", "background": true}),
        ),
        line(4, "bash", &json!({"command": "true"})),
    ]
    .concat();
    let answers = product.answers(&["--allow", "*"], input);
    assert_eq!(product.read("kept.txt"), "before\n", "{answers:#?}");
    assert_eq!(owner(&product, "kept.txt"), uid);
    assert!(!product.work.join("new.txt").exists());
    assert_eq!(product.read("hooked.txt").trim(), uid.to_string());
    assert_eq!(owner(&product, "hooked.txt"), uid);
}

#[test]
fn a_host_that_cannot_become_the_user_does_not_start() {
    let Some((product, _)) = product("") else {
        return;
    };
    let unknown = [
        "--set",
        "tools.scope.run_as_user=\"no-such-user\"",
        "call",
        "read",
        "path=open.txt",
    ];
    let ran = product.run(&unknown);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("no such user"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("tools.scope.run_as_user"),
        "{}",
        ran.stderr
    );
    // A directory that only root may enter.
    let base = product.work.parent().unwrap();
    fs::set_permissions(base, fs::Permissions::from_mode(0o700)).unwrap();
    let ran = product.run(&["call", "read", "path=open.txt"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("cannot enter"), "{}", ran.stderr);
}

/// A user with a group besides its own, removed with the test.
struct Account;

impl Account {
    const NAME: &str = "zeph-test-user";
    const GROUP: &str = "zeph-test-group";

    fn new() -> Option<Self> {
        nobody()?;
        let account = Self;
        account.remove();
        let is_made = run("groupadd", &[Self::GROUP])
            && run("useradd", &["-M", "-G", Self::GROUP, Self::NAME]);
        if !is_made {
            crate::left_out::leave_out("this machine has no `useradd`, so groups are not tried");
        }
        is_made.then_some(account)
    }

    fn remove(&self) {
        run("userdel", &[Self::NAME]);
        run("groupdel", &[Self::GROUP]);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.remove();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the system's own programs make the user of the test"
)]
fn run(program: &str, arguments: &[&str]) -> bool {
    let output = std::process::Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn the_groups_of_the_user_count_and_those_of_the_host_do_not() {
    let Some(_account) = Account::new() else {
        return;
    };
    let Some((product, _)) = product("") else {
        return;
    };
    let group = |path: &str, group: &str| {
        let path = product.work.join(path);
        assert!(run("chgrp", &[group, path.to_str().unwrap()]));
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    };
    product
        .file("theirs.txt", "for the group\n")
        .file("hosts.txt", "for root\n");
    group("theirs.txt", Account::GROUP);
    group("hosts.txt", "root");
    let user = format!("tools.scope.run_as_user=\"{}\"", Account::NAME);
    let input = [
        line(1, "read", &json!({"path": "theirs.txt"})),
        line(2, "read", &json!({"path": "hosts.txt"})),
        line(3, "bash", &json!({"command": "cat theirs.txt hosts.txt"})),
    ]
    .concat();
    let answers = product.answers(&["--set", &user, "--allow", "*"], input);
    let text = |id: u32| answer(&answers, id).to_string();
    assert!(text(1).contains("for the group"), "{answers:#?}");
    assert!(!text(2).contains("for root"), "{answers:#?}");
    assert!(text(3).contains("for the group"), "{answers:#?}");
    assert!(!text(3).contains("for root\\n"), "{answers:#?}");
}
