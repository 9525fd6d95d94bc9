//! Rules as a program meets them: redirections, denied paths, and the names of tools.

use std::fs;

use serde_json::{Value, json};

use crate::guest::HOSTILE;
use crate::plugin_cli::with_section;
use crate::product::{Product, answer};
use crate::running::Running;

fn line(id: u32, tool: &str, params: Value) -> String {
    json!({ "id": id, "tool": tool, "params": params }).to_string() + "\n"
}

/// A command in the turn all of them share.
fn bash(id: u32, command: &str) -> String {
    let params = json!({ "command": command });
    json!({ "id": id, "turn": "one", "tool": "bash", "params": params }).to_string() + "\n"
}

fn configured(config: &str) -> Product {
    let product = Product::new();
    product.user_config(config);
    product
}

fn statuses(product: &Product, args: &[&str], lines: &[String]) -> Vec<String> {
    let answers = product.answers(args, lines.concat());
    let ids = 1..=u32::try_from(lines.len()).unwrap();
    let status = |id: u32| answer(&answers, id)["status"].as_str().unwrap().to_owned();
    ids.map(status).collect()
}

/// The second path of a renaming is no argument that rules know as one: the guard alone sees it.
#[test]
fn what_the_guard_alone_refuses_is_approved_for_exactly_that_object() {
    let product = Product::new();
    product.drop_in("hostile", HOSTILE);
    for directory in ["one", "two"] {
        fs::create_dir_all(product.work.join(directory)).unwrap();
    }
    let link = product.work.join("place");
    std::os::unix::fs::symlink("one", &link).unwrap();
    let work = product.work.display().to_string();
    let granted = format!("{work}:read+write+create+delete");
    let granted = product.run(&["plugin", "grant", "hostile", "--dir", &granted]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    let mut host = Running::start(&product, &["--allow", "file_changes"]);
    host.ready();
    let rename = |to: &str| json!({"op": "rename", "path": format!("{work}/draft"), "to": format!("{work}/{to}")});
    let mut call = |to: &str| {
        product.file("draft", "export A=1\n");
        host.call("file_changes", &rename(to))
    };
    let approve = |refused: &Value| {
        assert_eq!(
            refused["error"]["category"], "confirmation_required",
            "{refused}"
        );
        let message = refused["error"]["message"].as_str().unwrap();
        let id = message
            .rsplit("approve ")
            .next()
            .unwrap()
            .trim_end_matches('`');
        let shown = product.run(&["approve", id]);
        let approved = product.run(&["approve", id, "--yes"]);
        assert_eq!(approved.code, Some(0), "{message}: {approved:?}");
        shown.stdout + &shown.stderr
    };
    let there = |path: &str| product.work.join(path).exists();

    let shown = approve(&call("place/.envrc"));
    let real = format!("{work}/one/.envrc");
    assert!(shown.contains(&real), "{shown}");
    assert!(!there("one/.envrc"));
    // The same call for another object: the link leads elsewhere now.
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("two", &link).unwrap();
    let elsewhere = call("place/.envrc");
    assert!(elsewhere.to_string().contains("two/.envrc"), "{elsewhere}");
    assert!(!there("two/.envrc"));
    // That try used it up; the next approval is for both.
    let shown = approve(&elsewhere);
    assert!(
        shown.contains(&real) && shown.contains("two/.envrc"),
        "{shown}"
    );
    // Another call.
    assert_ne!(call("place/.npmrc")["status"], "ok");
    assert!(!there("two/.npmrc"));
    let done = call("place/.envrc");
    assert_eq!(done["status"], "ok", "{done}");
    assert!(there("two/.envrc"));
    // It was for once.
    assert_ne!(call("place/.envrc")["status"], "ok");
}

#[test]
fn a_redirection_is_a_write_to_that_path() {
    let product = Product::new();
    product
        .file("src/main.rs", "fn main() {}\n")
        .file("out/keep", "");
    let args = [
        "--jobs",
        "1",
        "--allow",
        "bash:ls*",
        "--allow",
        "bash:cd *",
        "--allow",
        // Not as the line has it, which would be this line wherever it runs.
        "bash:pwd > fre*",
        "--allow",
        "write:out/**",
    ];
    let lines = [
        bash(1, "ls > src/main.rs"),
        bash(2, "ls > /dev/null 2>&1"),
        bash(3, "ls > /tmp/list && ls /tmp/list"),
        bash(4, "ls > out/list"),
        bash(5, "cd src && ls > ../out/list"),
        bash(6, "cd src"),
        bash(7, "ls > main.rs"),
        bash(8, "pwd > free"),
        bash(9, "{ ls; ls; } >> src/main.rs"),
        bash(10, "ls > \"$HOME\""),
    ];
    let expected = [
        "refused", "ok", "ok", "ok", "refused", "ok", "refused", "refused", "refused", "refused",
    ];
    assert_eq!(statuses(&product, &args, &lines), expected);
    assert_eq!(product.read("src/main.rs"), "fn main() {}\n");
}

#[test]
fn denied_paths_are_denied_to_commands_and_hidden_from_above() {
    let config = "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n\
                  [[tools.policy.rules]]\neffect = \"deny\"\ntool = \"*\"\npaths = [\"secret/**\"]\n";
    let product = configured(config);
    product
        .file("secret/key", "HUNTER2")
        .file("src/a", "plain")
        .file("empty/x", "");
    let lines = [
        line(1, "read", json!({ "path": "secret/key" })),
        line(2, "grep", json!({ "pattern": "HUNTER|plain", "path": "." })),
        line(
            3,
            "find_path",
            json!({ "pattern": format!("{}/**/*", product.work.display()) }),
        ),
        bash(4, "cat secret/key"),
        bash(5, "grep -r HUNTER . ; echo end"),
        bash(6, "f=secret/key; cat \"$f\""),
        bash(7, "cat < secret/key"),
        bash(8, "cd secret && cat key"),
    ];
    let answers = product.answers(&["--jobs", "1", "--allow", "*"], lines.concat());
    for id in 1..=8 {
        let answer = answer(&answers, id);
        assert!(!answer.to_string().contains("HUNTER2"), "{id}: {answer}");
    }
    for id in [1, 4, 6, 7, 8] {
        assert_eq!(answer(&answers, id)["status"], "refused", "{id}");
    }
    let found = answer(&answers, 2).to_string();
    assert!(found.contains("plain"), "{found}");
    let names = answer(&answers, 3).to_string();
    assert!(
        names.contains("src/a") && !names.contains("secret/key"),
        "{names}"
    );
    assert_eq!(answer(&answers, 5)["status"], "ok");
}

#[test]
fn a_bare_name_never_moves_to_another_plugin() {
    let product = Product::new();
    product.drop_in("first", HOSTILE);
    assert_eq!(product.run(&["plugin", "list"]).code, Some(0));
    product.drop_in("second", &with_section(HOSTILE, "note", b"another file"));
    let echo = |name: &str| product.call(name, json!({ "text": "hello" }));
    assert_eq!(echo("echo")["status"], "ok");
    assert_eq!(echo("first__echo")["status"], "ok");
    assert_eq!(echo("second__echo")["status"], "ok");
    assert_eq!(product.run(&["plugin", "disable", "first"]).code, Some(0));
    assert_eq!(echo("echo")["error"]["category"], "policy_blocked");
    assert_eq!(
        product.run(&["plugin", "remove", "first", "--yes"]).code,
        Some(0)
    );
    assert_eq!(echo("echo")["error"]["category"], "tool_not_found");
    assert_eq!(echo("second__echo")["status"], "ok");

    let records = product.run(&["audit", "--json"]);
    assert!(
        records.stdout.contains("\"first__echo\""),
        "{}",
        records.stdout
    );
    assert!(
        records.stdout.contains("\"plugin\"") && records.stdout.contains("sha256:"),
        "{}",
        records.stdout
    );
}

#[test]
fn a_rule_that_names_no_tool_is_warned_of() {
    let product = configured("[[tools.permissions.raed]]\npattern = \"*\"\naction = \"deny\"\n");
    let ran = product.feed(&["--allow", "wirte:src/**"], "");
    assert!(
        ran.stderr
            .contains("`--allow wirte:src/**`: no tool is named `wirte`; did you mean `write`?"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("`tools.permissions.raed`: no tool is named `raed`"),
        "{}",
        ran.stderr
    );
    let checked = product.run(&["policy", "check", "--json"]);
    assert!(
        checked.stdout.contains("no tool is named `raed`"),
        "{}",
        checked.stdout
    );
}

#[test]
fn policy_show_prints_the_preset() {
    let product = configured("tools.permissions_preset = \"developer\"\n");
    let shown = product.run(&["policy", "show"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    for rule in [
        "allow cargo test *  (preset \"developer\")",
        "deny  sudo *",
        "ask   everything else",
    ] {
        assert!(shown.stdout.contains(rule), "{rule}: {}", shown.stdout);
    }
    let shown = product.run(&["policy", "show", "--json"]).json();
    assert!(shown["permissions"]["bash"].as_array().unwrap().len() > 100);
}

#[test]
fn a_deny_rule_holds_in_every_form_of_a_command() {
    let product = configured(
        "[[tools.permissions.bash]]\npattern = \"rm -rf *\"\naction = \"deny\"\n\
         [[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n",
    );
    product.file("kept/x", "").file("gone", "");
    let denied = [
        "o=-rf; rm $o kept",
        "r=r; f=f; rm -$r$f kept",
        "export o=-rf; bash -c 'rm $o kept'",
        "c='rm -rf kept'; eval \"$c\"",
        "rm -r -f kept",
        "rm -fvr kept",
        "rm kept --recursive --force",
    ];
    let mut lines: Vec<String> = (1..).zip(denied).map(|(id, text)| bash(id, text)).collect();
    lines.push(bash(8, "o=-f; rm -v gone; ls $o"));
    let answers = product.answers(&["--jobs", "1"], lines.concat());
    for (id, text) in (1..).zip(denied) {
        let category = &answer(&answers, id)["error"]["category"];
        assert_eq!(category, "policy_blocked", "{text}: {answers:?}");
    }
    assert_eq!(answer(&answers, 8)["status"], "ok", "{answers:?}");
    assert!(product.work.join("kept/x").exists());
}

#[test]
fn a_denied_tool_is_refused_whatever_its_arguments_are() {
    for rules in [
        "[tools.scoped]\nenabled = true\ndenied_tools = [\"bash\"]\n",
        "[[tools.permissions.bash]]\npattern = \"*\"\naction = \"deny\"\n",
    ] {
        let product = configured(rules);
        for command in ["call", "explain"] {
            let ran = product.run(&[command, "bash", "command=echo hi"]);
            assert_eq!(ran.code, Some(4), "{command}, {rules}: {ran:?}");
            assert!(!ran.stderr.contains("missing required"), "{ran:?}");
        }
    }
}

/// The user's own configuration of git, and that of a repository that the workspace lies in, tell where hooks are.
#[test]
fn hooks_named_outside_the_workspace_are_kept() {
    let product = Product::new();
    let paths = ["mine/pre-commit", "around/pre-commit", "free"];
    for path in paths {
        product.file(path, "#!\n");
    }
    let own = "[core]\n\thooksPath = ~/../work/mine\n";
    fs::write(product.home.join(".gitconfig"), own).unwrap();
    let around = product.work.with_file_name(".git");
    fs::create_dir(&around).unwrap();
    fs::write(around.join("config"), "[core] hooksPath = work/around\n").unwrap();
    let writes = (1..).zip(paths).map(|(id, path)| {
        let params = json!({"path": path, "content": "#!\nx\n"});
        line(id, "write", params)
    });
    let commands = (4..)
        .zip(paths)
        .map(|(id, path)| bash(id, &format!("echo x >> {path}")));
    let lines: Vec<String> = writes.chain(commands).collect();
    let args = ["--jobs", "1", "--allow", "write", "--allow", "bash"];
    assert_eq!(
        statuses(&product, &args, &lines),
        ["refused", "refused", "ok", "failed", "failed", "ok"]
    );
    assert_eq!(product.read("mine/pre-commit"), "#!\n");
    assert_eq!(product.read("around/pre-commit"), "#!\n");
    assert_eq!(product.read("free"), "#!\nx\nx\n");
}
