//! Sequences of calls and labels as a program, a person and a second process meet them.

use serde_json::{Value, json};

use crate::product::{Product, answer};

fn configured(config: &str) -> Product {
    let product = Product::new();
    product.user_config(config);
    product
}

fn line(id: u32, tool: &str, params: Value) -> String {
    json!({ "id": id, "tool": tool, "params": params }).to_string() + "\n"
}

fn statuses(product: &Product, args: &[&str], lines: &[String]) -> Vec<String> {
    let answers = product.answers(args, lines.concat());
    let ids = 1..=u32::try_from(lines.len()).unwrap();
    let status = |id: u32| answer(&answers, id)["status"].as_str().unwrap().to_owned();
    ids.map(status).collect()
}

fn read(id: u32, path: &str) -> String {
    line(id, "read", json!({ "path": path }))
}

const READ_BOTH: &str =
    "[tools.governance]\nblocked_sequences = [[\"read\", \"one.txt\", \"read\", \"two.txt\"]]\n";

#[test]
fn a_sequence_is_refused_in_the_order_in_which_calls_are_asked_for() {
    let product = configured(READ_BOTH);
    product.file("one.txt", "1\n");
    product.file("two.txt", "2\n");
    // All at once.
    let lines = [read(1, "one.txt"), read(2, "two.txt"), read(3, "one.txt")];
    assert_eq!(
        statuses(&product, &["-j", "4"], &lines),
        ["ok", "refused", "ok"]
    );
    let lines = [read(1, "two.txt"), read(2, "one.txt")];
    assert_eq!(statuses(&product, &[], &lines), ["ok", "ok"]);
    let answers = product.answers(&[], [read(1, "one.txt"), read(2, "./two.txt")].concat());
    let message = answer(&answers, 2)["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("tools.governance.blocked_sequences[0]"),
        "{message}"
    );
}

#[test]
fn a_sequence_binds_a_person_and_explain_shows_it() {
    let config = "[tools.governance]\nblocked_sequences = [[\"read\", \"secret.txt\"]]\n";
    let product = configured(config);
    product.file("secret.txt", "x\n");
    let typed = product.run(&["call", "read", "path=secret.txt"]);
    assert_eq!(typed.code, Some(4), "{}", typed.stderr);
    let explained = product.run(&[
        "explain",
        "read",
        "path=secret.txt",
        "--as-person",
        "--json",
    ]);
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!(explained["decision"], "deny", "{explained}");
    let steps = explained["trace"].as_array().unwrap();
    let step = steps
        .iter()
        .find(|step| step["check"] == "sequences")
        .unwrap();
    assert_eq!(step["verdict"], "deny");
    assert_eq!(
        product.run(&["call", "read", "path=other.txt"]).code,
        Some(1)
    );
}

#[test]
fn a_window_outlives_its_process() {
    let product = configured(READ_BOTH);
    product.file("one.txt", "1\n");
    product.file("two.txt", "2\n");
    let conversation = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e10";
    let resumed = ["--conversation", conversation];
    assert_eq!(statuses(&product, &resumed, &[read(1, "one.txt")]), ["ok"]);
    assert_eq!(
        statuses(&product, &resumed, &[read(1, "two.txt")]),
        ["refused"]
    );
    assert_eq!(statuses(&product, &[], &[read(1, "two.txt")]), ["ok"]);
}

#[test]
fn a_revoked_call_is_refused_until_it_is_forgiven() {
    let product = Product::new();
    product.file("one.txt", "1\n");
    product.file("two.txt", "2\n");
    let answers = product.answers(&[], read(1, "one.txt"));
    let call = answer(&answers, 1)["call_id"].as_str().unwrap().to_owned();
    // By what the listing shows of its ID.
    let listed = product.run(&["audit", "-n", "1"]).stdout;
    let mut words = listed.split_whitespace();
    let shown = words.find(|word| call.starts_with(word)).unwrap();
    assert!(shown.len() < call.len(), "{listed}");
    let revoked = product.run(&["revoke", shown, "--json"]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let revoked: Value = serde_json::from_str(&revoked.stdout).unwrap();
    assert_eq!(revoked["call"], call.as_str(), "{revoked}");
    let id = revoked["sequence"].to_string();
    let lines = [read(1, "one.txt"), read(2, "two.txt")];
    assert_eq!(statuses(&product, &[], &lines), ["refused", "ok"]);
    let answers = product.answers(&[], read(1, "one.txt"));
    let message = answer(&answers, 1)["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains(&format!("zeph-host forgive {id}")),
        "{message}"
    );
    // A person who types it is not held to what was learned.
    assert_eq!(product.run(&["call", "read", "path=one.txt"]).code, Some(0));
    assert!(product.run(&["forgive"]).stdout.contains("one.txt"));
    assert_eq!(product.run(&["forgive", &id]).code, Some(0));
    assert_eq!(product.run(&["forgive", &id]).code, Some(2));
    assert_eq!(statuses(&product, &[], &lines), ["ok", "ok"]);
}

#[test]
fn a_pattern_that_would_block_a_whole_tool_is_not_learned() {
    let product = Product::new();
    let answers = product.answers(&[], line(1, "turn_state", json!({})));
    let call = answer(&answers, 1)["call_id"].as_str().unwrap().to_owned();
    let revoked = product.run(&["revoke", &call]);
    assert_eq!(revoked.code, Some(2), "{}", revoked.stderr);
    assert!(
        revoked.stderr.contains("would block every call of it"),
        "{}",
        revoked.stderr
    );
    assert_eq!(product.run(&["revoke", "nothing"]).code, Some(2));
}

#[test]
fn what_was_private_asks_before_it_leaves_and_ordinary_work_does_not() {
    let config = "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n";
    let product = configured(config);
    product.file(".env", "KEY=1\n");
    let bash = |id: u32, command: &str| line(id, "bash", json!({ "command": command }));
    let push = "git push nowhere";
    let allow = ["-j", "1", "--allow", "bash"];
    let lines = [bash(1, push), read(2, ".env"), bash(3, "ls"), bash(4, push)];
    let answers = product.answers(&allow, lines.concat());
    assert_eq!(answer(&answers, 2)["status"], "ok");
    assert_eq!(answer(&answers, 3)["status"], "ok");
    assert_eq!(answer(&answers, 1)["status"], "failed", "{answers:?}");
    assert_eq!(answer(&answers, 4)["status"], "refused", "{answers:?}");
    let message = answer(&answers, 4)["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    for part in [
        "private",
        "`git push nowhere`",
        "tools.governance.flow",
        "approve ",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

/// A tool may repeat in its error what it read. Of a file that is not there it read nothing.
#[test]
fn the_error_of_a_tool_may_hold_what_it_read() {
    let config = "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n";
    let product = configured(config);
    product.file(".env", "KEY=1\n");
    let args = ["-j", "1", "--allow", "bash"];
    let push = line(2, "bash", json!({ "command": "git push nowhere" }));
    let behind = line(1, "read", json!({"path": ".env", "offset": 99}));
    for (failing, expect) in [
        (behind, ["failed", "refused"]),
        (read(1, "sub/.env"), ["failed", "failed"]),
    ] {
        assert_eq!(statuses(&product, &args, &[failing, push.clone()]), expect);
    }
}

/// What a person let go to a destination goes there after a restart, too; what is read later is asked about again.
#[test]
fn a_release_outlives_its_process() {
    let config = "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n";
    let product = configured(config);
    product.file(".env", "KEY=1\n");
    product.file("sub/.env", "KEY=2\n");
    let conversation = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e11";
    let args = ["-j", "1", "--allow", "bash", "--conversation", conversation];
    let push = |id: u32| line(id, "bash", json!({ "command": "git push nowhere" }));
    let answers = product.answers(&args, [read(1, ".env"), push(2)].concat());
    let refused = answer(&answers, 2);
    assert_eq!(refused["status"], "refused", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    let id = message.rsplit("approve ").next().unwrap();
    let approved = product.run(&["approve", id.trim_end_matches('`'), "--yes"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    // Approved once, and released from then on.
    for _ in 0..2 {
        assert_eq!(statuses(&product, &args, &[push(1)]), ["failed"]);
    }
    let elsewhere = line(1, "bash", json!({ "command": "git push elsewhere" }));
    assert_eq!(statuses(&product, &args, &[elsewhere]), ["refused"]);
    let explained = |to: &str| {
        let command = format!("command=git push {to}");
        let args = [
            "explain",
            "bash",
            &command,
            "--allow",
            "bash",
            "--conversation",
            conversation,
        ];
        product.run(&args).stdout
    };
    let (nowhere, elsewhere) = (explained("nowhere"), explained("elsewhere"));
    assert!(nowhere.starts_with("allow:"), "{nowhere}");
    assert!(elsewhere.starts_with("ask:"), "{elsewhere}");
    assert!(elsewhere.contains("tools.governance.flow"), "{elsewhere}");
    let lines = [read(1, "sub/.env"), push(2)];
    assert_eq!(statuses(&product, &args, &lines), ["ok", "refused"]);
}

/// Another content under the name of what was released is asked about, and so is a file that is read together with it.
#[test]
fn a_release_is_not_one_of_other_content() {
    let config = "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n";
    let bash = |command: &str| line(1, "bash", json!({ "command": command }));
    let push = |id: u32| line(id, "bash", json!({ "command": "git push nowhere" }));
    let grep = |hidden: bool| {
        let args = json!({ "pattern": "KEY", "path": ".", "include_ignored": hidden });
        line(1, "grep", args)
    };
    for (then, expect) in [
        (bash("cat .env"), "failed"),
        (bash("grep -h KEY .e*"), "failed"),
        (read(1, ".env"), "failed"),
        (bash("cat .env sub/.env"), "refused"),
        (bash("grep -r KEY ."), "refused"),
        (grep(false), "failed"),
        (grep(true), "refused"),
        (bash("echo KEY=3 >> .env; cat .env"), "refused"),
        (bash("mv sub/.env .env; cat .env"), "refused"),
        (bash("cp -p .env x; mv x .env; cat .env"), "refused"),
        (bash("git log -p -- .env"), "refused"),
    ] {
        let product = configured(config);
        product.file(".env", "KEY=1\n");
        product.file("sub/.env", "KEY=2\n");
        let commit =
            "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm 1";
        let committed = [bash(commit)];
        assert_eq!(statuses(&product, &["--allow", "bash"], &committed), ["ok"]);
        let conversation = "01938c2e-5a51-7cc3-98f2-8c1f9a3b7e12";
        let args = ["-j", "1", "--allow", "bash", "--conversation", conversation];
        let answers = product.answers(&args, [bash("cat .env"), push(2)].concat());
        let message = answer(&answers, 2)["error"]["message"].as_str().unwrap();
        let id = message.rsplit("approve ").next().unwrap();
        let approved = product.run(&["approve", id.trim_end_matches('`'), "--yes"]);
        assert_eq!(approved.code, Some(0), "{}", approved.stderr);
        assert_eq!(statuses(&product, &args, &[push(1)]), ["failed"]);
        let statuses = statuses(&product, &args, &[then.clone(), push(2)]);
        assert_eq!(statuses[1], expect, "{then}");
    }
}

/// A call that shows nothing may still have put what is private where it has another name: the conversation holds it from then on.
#[test]
fn what_was_private_stays_private_under_another_name() {
    let config = "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n";
    let bash = |id: u32, command: &str| line(id, "bash", json!({ "command": command }));
    let moved = json!({ "source": ".env", "destination": "moved.txt" });
    let above = json!({ "source": "conf", "destination": "other" });
    for (first, expect) in [
        (bash(1, "cp .env notes.txt"), "refused"),
        (bash(1, "cp -r . ../copy 2>/dev/null; true"), "refused"),
        (bash(1, "cat .env > notes.txt"), "refused"),
        (bash(1, "cat < .env | tee notes.txt > /dev/null"), "refused"),
        (bash(1, "mv .env notes.txt"), "refused"),
        (
            bash(1, "find . -name .env -exec mv {} notes.txt ';'"),
            "refused",
        ),
        (bash(1, "ln -f .env notes.txt && rm .env"), "refused"),
        (bash(1, "for f in .e*; do ln $f n; rm $f; done"), "refused"),
        (bash(1, "tar cf notes.txt .env"), "refused"),
        (line(1, "move_path", moved.clone()), "refused"),
        (line(1, "copy_path", moved), "refused"),
        (line(1, "move_path", above.clone()), "refused"),
        (line(1, "copy_path", above), "refused"),
        (bash(1, "mv conf other"), "refused"),
        (bash(1, "d=co*; mv $d other"), "refused"),
        (bash(1, "mv sub other"), "failed"),
        (bash(1, "cp .env.example .env.local"), "failed"),
        (bash(1, "rm .env; chmod 600 sub/.env"), "failed"),
        (bash(1, "mv notes.txt other.txt"), "failed"),
    ] {
        let private = "[tools.governance]\nprivate_paths = [\"**/.env\", \"./conf/one.txt\"]\n";
        let product = configured(&format!("{config}{private}"));
        product.file(".env", "KEY=1\n");
        product.file("conf/one.txt", "KEY=3\n");
        product.file(".env.example", "KEY=\n");
        product.file("sub/.env", "KEY=2\n");
        product.file("notes.txt", "");
        let push = bash(2, "git push nowhere");
        let tools = ["bash", "move_path", "copy_path"].map(|tool| ["--allow", tool]);
        let args = [&["-j", "1"], tools.as_flattened()].concat();
        let statuses = statuses(&product, &args, &[first.clone(), push]);
        assert_eq!(statuses, ["ok", expect], "{first}");
    }
}

/// A private file is recognised by what was opened, however a tool or a command came upon it.
#[test]
fn private_files_that_nobody_named_are_recognised() {
    let config = "[tools.sandbox]\nallow_network = true\n[tools.shell]\nconfirm_patterns = []\n";
    let product = configured(config);
    product.file("sub/.env", "KEY=1\n");
    product.file("sub/secrets.json", "KEY\n");
    product.file("notes.txt", "KEY of nothing\n");
    product.file("link/here.txt", "");
    std::os::unix::fs::symlink("../sub/.env", product.work.join("link/there")).unwrap();
    let push = line(9, "bash", json!({ "command": "git push nowhere" }));
    let status = |tool: &str, params: Value| {
        let lines = [line(1, tool, params), push.clone()];
        let answers = product.answers(&["-j", "1", "--allow", "bash"], lines.concat());
        assert_eq!(answer(&answers, 1)["status"], "ok", "{answers:?}");
        answer(&answers, 9)["status"].as_str().unwrap().to_owned()
    };
    let bash = |command: &str| status("bash", json!({ "command": command }));
    for (command, expect) in [
        ("grep -r KEY .", "refused"),
        ("cat sub/.e*", "refused"),
        ("find . -type f -exec cat {} +", "refused"),
        ("find . -type f | xargs cat", "refused"),
        ("cat link/there", "refused"),
        ("ln sub/.env linked; cat linked; rm linked", "refused"),
        ("tar cf - . | tar tf -", "refused"),
        ("(cat sub/.env) | wc -c", "refused"),
        ("grep -r KEY notes.txt", "failed"),
        ("find . -name .env", "failed"),
        (
            "ls -la sub; du -s .; stat sub/.env; test -f sub/.env",
            "failed",
        ),
        ("cat notes.txt; echo \"$(<notes.txt)\"", "failed"),
        ("wc -l notes.txt", "failed"),
    ] {
        assert_eq!(bash(command), expect, "{command}");
    }
    assert_eq!(status("grep", json!({"pattern": "KEY"})), "refused");
    assert_eq!(
        status("grep", json!({"pattern": "KEY", "path": "notes.txt"})),
        "failed"
    );
    assert_eq!(status("list_directory", json!({"path": "sub"})), "failed");
}
