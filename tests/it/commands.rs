//! Commands in the line: rules, approvals, turns, runs in the background, transactions, hooks. What jails them is `shell`'s subject.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::product::{Product, answer};
use crate::running::{Running, until};

/// One request line.
fn line(id: u32, tool: &str, params: Value) -> String {
    format!("{}\n", json!({"id": id, "tool": tool, "params": params}))
}

fn bash(id: u32, command: &str) -> String {
    line(id, "bash", json!({ "command": command }))
}

/// `command` with the configuration `config`, as a program asks for it: what became of it.
fn asked(product: &Product, config: &str, args: &[&str], command: &str) -> Value {
    let mut all = args.to_vec();
    if !config.is_empty() {
        std::fs::create_dir_all(product.home.join(".config/zeph-host")).unwrap();
        std::fs::write(product.home.join(".config/zeph-host/config.toml"), config).unwrap();
    }
    all.extend(["--jobs", "1"]);
    product.answers(&all, bash(1, command)).remove(0)
}

#[test]
fn rules_decide_about_commands() {
    let permissions = r#"
        [[tools.permissions.bash]]
        pattern = "*sudo*"
        action = "deny"
        [[tools.permissions.bash]]
        pattern = "echo *"
        action = "allow"
    "#;
    let scoped = "[tools.scoped]\nenabled = true\n[[tools.scoped.constraints]]\ntool = \"bash\"\ndeny_patterns = [\"rm -rf\"]\n";
    let authorization = "[tools.authorization]\nenabled = true\n[[tools.authorization.rules]]\neffect = \"deny\"\ntool = \"bash\"\nargs_match = \".*secret.*\"\n";
    let table: [(&str, &[&str], &str, &str); 16] = [
        ("", &[], "echo hi", "confirmation_required"),
        ("", &["--allow", "bash"], "echo hi", "ok"),
        ("", &["--allow", "bash:echo *"], "echo hi", "ok"),
        (
            "",
            &["--allow", "bash:echo *"],
            "echo hi && ls",
            "confirmation_required",
        ),
        ("", &["--allow", "bash:echo *"], "echo hi; echo ho", "ok"),
        (
            "",
            &["--allow", "bash"],
            "true && sudo ls",
            "policy_blocked",
        ),
        ("", &["--allow", "bash"], "env s\\udo ls", "policy_blocked"),
        ("", &["--allow", "bash"], "rm -rf /", "policy_blocked"),
        (
            "",
            &["--allow", "bash"],
            "curl https://example.com",
            "policy_blocked",
        ),
        (
            "",
            &["--allow", "bash:echo*"],
            "eval \"echo hi\"",
            "confirmation_required",
        ),
        (permissions, &[], "echo hi", "ok"),
        (permissions, &[], "echo hi | xargs sudo", "policy_blocked"),
        (
            permissions,
            &["--allow", "bash"],
            "bash -c 'sudo ls'",
            "policy_blocked",
        ),
        (permissions, &[], "ls", "confirmation_required"),
        (
            scoped,
            &["--allow", "bash"],
            "rm -r -f target",
            "policy_blocked",
        ),
        (
            authorization,
            &["--allow", "bash"],
            "echo secret",
            "policy_blocked",
        ),
    ];
    for (config, args, command, expect) in table {
        let product = Product::new();
        let answer = asked(&product, config, args, command);
        let outcome = match answer["status"].as_str() {
            Some("ok") => "ok",
            _ => answer["error"]["category"].as_str().unwrap(),
        };
        assert_eq!(outcome, expect, "{command} {args:?}: {answer}");
    }
}

#[test]
fn a_rule_that_does_not_compile_stops_the_start() {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    std::fs::create_dir_all(&folder).unwrap();
    let rule = "[tools.authorization]\nenabled = true\n[[tools.authorization.rules]]\neffect = \"deny\"\ntool = \"bash\"\nargs_match = \"(\"\n";
    std::fs::write(folder.join("config.toml"), rule).unwrap();
    let ran = product.feed(&[], bash(1, "true"));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("config.toml:6"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    let checked = product.run(&["policy", "check"]);
    assert_eq!(checked.code, Some(3), "{}", checked.stderr);
}

/// Makes a call that asks, approves it once, and says in which conversation.
fn approved_once(product: &Product, command: &str) -> String {
    let first = asked(product, "", &[], command);
    let message = first["error"]["message"].as_str().unwrap();
    let advised = message
        .split('`')
        .find(|part| part.starts_with("zeph-host") && part.contains(" approve "))
        .unwrap();
    let id = advised.rsplit(' ').next().unwrap();
    let conversation = product.run(&["conversations", "--json"]);
    let conversations: Value = serde_json::from_str(&conversation.stdout).unwrap();
    let list = conversations
        .as_array()
        .cloned()
        .unwrap_or_else(|| conversations["conversations"].as_array().unwrap().clone());
    let approved = product.run(&["approve", id, "--yes"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    list[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_approval_is_not_used_up_by_a_call_that_does_not_start() {
    let product = Product::new();
    let line = json!({"id": 1, "tool": "bash", "params": {"command": "echo a > made.txt", "background": true}});
    let ask = |args: &[&str]| product.answers(args, line.to_string() + "\n").remove(0);
    let none = ["--set", "tools.shell.max_background_runs=0"];
    let conversation = ["--conversation", "0192f3c0-0000-7000-8000-00000000000b"];
    let first = ask(&conversation);
    assert_eq!(
        first["error"]["category"], "confirmation_required",
        "{first}"
    );
    let message = first["error"]["message"].as_str().unwrap();
    let mut parts = message.split('`');
    let advised = parts.find(|part| part.starts_with("zeph-host") && part.contains(" approve "));
    let id = advised.unwrap().rsplit(' ').next().unwrap();
    let approved = product.run(&["approve", id, "--yes"]);
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    for _ in 0..2 {
        let refused = ask(&[conversation, none].concat());
        let refused = refused["error"].to_string();
        assert!(refused.contains("max_background_runs"), "{refused}");
    }
    assert_eq!(ask(&conversation)["status"], "ok");
    let last = ask(&conversation);
    assert_eq!(last["error"]["category"], "confirmation_required", "{last}");
}

#[test]
fn an_approval_is_for_one_call_and_used_once() {
    let product = Product::new();
    let conversation = approved_once(&product, "echo approved > made.txt");
    let args = ["--conversation", conversation.as_str()];
    let other = asked(&product, "", &args, "echo other > made.txt");
    assert_eq!(
        other["error"]["category"], "confirmation_required",
        "{other}"
    );
    let second = asked(&product, "", &args, "echo approved > made.txt");
    assert_eq!(second["status"], "ok", "{second}");
    assert_eq!(product.read("made.txt"), "approved\n");
    let third = asked(&product, "", &args, "echo approved > made.txt");
    assert_eq!(
        third["error"]["category"], "confirmation_required",
        "{third}"
    );
}

#[test]
fn calls_at_once_share_no_approval() {
    let product = Product::new();
    let command = "echo approved >> made.txt";
    let conversation = approved_once(&product, command);
    let line = |id| {
        format!(
            "{}\n",
            json!({"id": id, "tool": "bash", "params": {"command": command}})
        )
    };
    let input: String = (0..12).map(line).collect();
    let args = ["--conversation", &conversation, "--jobs", "12"];
    let answers = product.answers(&args, input);
    let n_ran = answers.iter().filter(|answer| answer["status"] == "ok");
    assert_eq!(n_ran.count(), 1, "{answers:#?}");
    let asks = |answer: &&Value| answer["error"]["category"] == "confirmation_required";
    assert_eq!(answers.iter().filter(asks).count(), 11, "{answers:#?}");
    assert_eq!(product.read("made.txt"), "approved\n");
}

#[test]
fn explain_writes_nothing_and_knows_what_was_approved() {
    let product = Product::new();
    let conversation = approved_once(&product, "touch x");
    let state = || {
        let folder = product.home.join(".local");
        [
            "share/zeph-host/zeph.db",
            "share/zeph-host/zeph.db-wal",
            "state/zeph-host/audit.jsonl",
        ]
        .map(|name| std::fs::read(folder.join(name)).unwrap())
    };
    let before = state();
    let own = [
        "explain",
        "--conversation",
        &conversation,
        "bash",
        "command=touch x",
    ];
    let table = [
        (&own[..], 0, "approved once"),
        (&own, 0, "approved once"),
        (
            &["explain", "bash", "command=touch x"],
            5,
            "WHAT WOULD ALLOW IT",
        ),
        (&["explain", "read", "path=a.txt"], 0, "CHECKS"),
        (&["explain", "no_such_tool"], 2, "no_such_tool"),
    ];
    for (args, code, shown) in table {
        let ran = product.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.stdout.contains(shown), "{args:?}: {ran:?}");
        assert!(
            state() == before,
            "{args:?} has changed the store or the audit log"
        );
    }
    let args = ["--conversation", conversation.as_str()];
    let made = asked(&product, "", &args, "touch x");
    assert_eq!(made["status"], "ok", "{made}");
}

#[test]
fn explain_makes_no_call() {
    let product = Product::new();
    let table = [
        (
            &["explain", "bash", "command=touch x"][..],
            5,
            "WHAT WOULD ALLOW IT",
        ),
        (
            &["explain", "--allow", "bash", "bash", "command=touch x"],
            0,
            "CHECKS",
        ),
        (&["explain", "bash", "command=sudo touch x"], 4, "sudo"),
    ];
    for (args, code, shown) in table {
        let ran = product.run(args);
        assert_eq!(
            ran.code,
            Some(code),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
        assert!(ran.stdout.contains(shown), "{args:?}: {}", ran.stdout);
    }
    assert!(!product.work.join("x").exists());
}

#[test]
fn a_turn_carries_directory_and_variables_on() {
    let product = Product::new();
    product.file("sub/file", "");
    let turn = |id: u32, turn: &str, command: &str| {
        format!(
            "{}\n",
            json!({"id": id, "turn": turn, "tool": "bash", "params": {"command": command}})
        )
    };
    let input = [
        turn(1, "a", "cd sub; export X=1"),
        turn(2, "a", "pwd; echo $X ${ZEPH_TURN_ID:+known}"),
        turn(3, "b", "pwd; echo ${X-unset}"),
    ]
    .concat();
    let answers = product.answers(&["--allow", "bash", "--jobs", "1"], input);
    let work = product.work.display();
    assert_eq!(
        answer(&answers, 2)["text"],
        format!("{work}/sub\n1 known\n")
    );
    assert_eq!(answer(&answers, 3)["text"], format!("{work}\nunset\n"));
}

#[test]
fn a_call_at_the_terminal_waits_for_what_it_began_in_the_background() {
    let product = Product::new();
    let call = |command: &str, more: &[&str]| {
        let command = format!("command={command}");
        let args = ["call", "bash", &command, "background=true"];
        product.run(&[&args[..], more].concat())
    };
    let failed = call("echo finished; touch gone; exit 3", &[]);
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(failed.stdout.contains("finished"), "{failed:?}");
    assert!(product.work.join("gone").exists());
    let done = call("echo finished", &["--output", "json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let answers = done.json_lines();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["text"], "finished\n", "{answers:?}");
    let none = call(
        "echo finished",
        &["--set", "tools.shell.max_background_runs=0"],
    );
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.stderr.contains("max_background_runs"), "{none:?}");
}

#[test]
fn the_end_of_a_background_run_is_told_with_the_next_turn() {
    let product = Product::new();
    let mut host = product.start(&["--allow", "bash", "--jobs", "1"]);
    let mut input = host.stdin.take().unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let command = "until [ -e go ]; do sleep 0.01; done; echo finished; touch gone; exit 3";
    let started = json!({"id": 1, "turn": "a", "tool": "bash", "params": {"command": command, "background": true}});
    writeln!(input, "{started}").unwrap();
    let started = next();
    let text = started["text"].as_str().unwrap();
    let run_id = text
        .strip_prefix("[background] started run_id=")
        .unwrap()
        .to_owned();
    let wait = "touch go; until [ -e gone ]; do sleep 0.01; done";
    writeln!(
        input,
        "{}",
        json!({"id": 2, "turn": "a", "tool": "bash", "params": {"command": wait}})
    )
    .unwrap();
    assert_eq!(next()["id"], 2, "nothing is told within the turn");
    // It has printed its last, but may not have been waited for yet: the list says when.
    loop {
        writeln!(
            input,
            "{}",
            json!({"id": 3, "turn": "a", "tool": "list_runs", "params": {}})
        )
        .unwrap();
        if !next()["text"].as_str().unwrap().contains(&run_id) {
            break;
        }
    }
    writeln!(input, "{}", json!({"turn": "b"})).unwrap();
    let told = next();
    assert_eq!(told["role"], "user");
    let expect = format!("[background complete] run_id={run_id} exit_code=3\nfinished\n");
    assert!(
        told["text"].as_str().unwrap().starts_with(&expect),
        "{told}"
    );
    drop(input);
    assert!(host.wait().unwrap().success());
    let audit = product.run(&["audit", "query", "--json"]).stdout;
    let rows = serde_json::Deserializer::from_str(&audit).into_iter::<Value>();
    let rows: Vec<Value> = rows
        .flat_map(|row| match row.unwrap() {
            Value::Array(rows) => rows,
            row => vec![row],
        })
        .collect();
    let row = |is_it: &dyn Fn(&&Value) -> bool| rows.iter().find(is_it).expect("it is recorded");
    let end = row(&|row| row["correlation_id"] == run_id.as_str());
    let start = row(&|row| row["command"].as_str().unwrap().contains("background"));
    assert_eq!(end["exit_code"], 3, "{end}");
    // The turn that started it, and not the one that is told.
    assert!(start["turn_id"].is_string(), "{start}");
    assert_eq!(end["turn_id"], start["turn_id"]);
}

#[test]
fn a_failed_transaction_leaves_the_directory_as_it_was() {
    let config = "[tools.shell]\ntransactional = true\nauto_rollback = true\n";
    let product = Product::new();
    product.file("kept.txt", "old").file("gone.txt", "here");
    let failing = "echo new > kept.txt; rm gone.txt; mkdir d; touch d/x; exit 2";
    let answer = asked(&product, config, &["--allow", "bash:*"], failing);
    assert!(
        answer["text"].as_str().unwrap().contains("rolled back"),
        "{answer}"
    );
    assert_eq!(product.read("kept.txt"), "old");
    assert_eq!(product.read("gone.txt"), "here");
    assert!(!product.work.join("d").exists());
    let kept = asked(
        &product,
        config,
        &["--allow", "bash:*"],
        "echo new > kept.txt; exit 1",
    );
    assert_eq!(kept["structured"]["exit_code"], 1, "{kept}");
    assert_eq!(product.read("kept.txt"), "new\n");
}

const TRANSACTIONS: [&str; 8] = [
    "--jobs",
    "4",
    "--allow",
    "*",
    "--set",
    "tools.shell.transactional=true",
    "--set",
    "tools.shell.auto_rollback=true",
];

/// Waits for a file, after it has made one that says so.
const WAITS: &str = "touch begun; until [ -e go ]; do sleep 0.01; done";

#[test]
fn a_rollback_undoes_nothing_that_others_did() {
    let product = Product::new();
    let path = |name: &str| product.work.join(name);
    let mut host = Running::start(&product, &TRANSACTIONS);
    host.begin("bash", &json!({"command": format!("{WAITS}; exit 3")}));
    until(|| path("begun").exists());
    host.begin("write", &json!({"path": "go", "content": "precious"}));
    let answers = host.answers(2);
    let text = answers[0]["text"].as_str().unwrap();
    assert!(text.contains("was not rolled back"), "{text}");
    assert_eq!(product.read("go"), "precious");
    // Nobody else is there: what it made goes again, and is named.
    let answer = host.call("bash", &json!({"command": "touch made; rm begun; exit 3"}));
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("was rolled back: "), "{text}");
    assert!(
        text.contains("`made`") && text.contains("`begun`"),
        "{text}"
    );
    // One that goes on in the background.
    std::fs::remove_file(path("go")).unwrap();
    std::fs::remove_file(path("begun")).unwrap();
    let params = json!({"command": WAITS, "background": true});
    assert_eq!(host.call("bash", &params)["status"], "ok");
    until(|| path("begun").exists());
    let answer = host.call("bash", &json!({"command": "touch made; exit 3"}));
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("was not rolled back"), "{text}");
    assert!(path("made").exists() && path("begun").exists());
    product.file("go", "");
}

#[test]
fn a_rollback_undoes_nothing_that_the_hook_of_another_command_did() {
    let product = Product::new();
    let path = |name: &str| product.work.join(name);
    product.user_config(format!(
        "[[hooks.file_changed]]\ncommand = \"{WAITS}; echo made > by-hook\"\npaths = [\"**/a.rs\"]\n"
    ));
    let mut host = Running::start(&product, &TRANSACTIONS);
    host.begin("bash", &json!({"command": "echo x > a.rs"}));
    until(|| path("begun").exists());
    let fails = "touch second; until [ -e by-hook ]; do sleep 0.01; done; exit 3";
    host.begin("bash", &json!({"command": fails}));
    until(|| path("second").exists());
    product.file("go", "");
    let answers = host.answers(2);
    let text = answers[1]["text"].as_str().unwrap();
    assert!(text.contains("was not rolled back"), "{text}");
    assert_eq!(product.read("by-hook"), "made\n");
}

#[test]
fn a_command_that_waits_for_another_ends_when_it_should() {
    let product = Product::new();
    let mut host = Running::start(&product, &TRANSACTIONS);
    host.begin("bash", &json!({"command": WAITS}));
    until(|| product.work.join("begun").exists());
    host.begin("bash", &json!({"command": "touch second"}));
    host.cancel();
    let answer = host.answer();
    assert_eq!(answer["error"]["category"], "cancelled", "{answer}");
    let answer = host.call("bash", &json!({"command": "touch third", "timeout": 1}));
    assert_eq!(answer["error"]["category"], "timeout", "{answer}");
    product.file("go", "");
    // The first one's answer comes now.
    host.begin("bash", &json!({"command": "ls"}));
    let answers = host.answers(2);
    assert_eq!(answers[0]["status"], "ok", "{answers:?}");
    let text = answers[1]["text"].as_str().unwrap();
    assert!(
        !text.contains("second") && !text.contains("third"),
        "{text}"
    );
}

#[test]
fn what_a_call_writes_with_leave_beside_a_command_stays() {
    let product = Product::new();
    let args = ["--allow", "*", "--allow", "write:.envrc"];
    let mut host = Running::start(&product, &args);
    let params = json!({"command": WAITS, "background": true});
    assert_eq!(host.call("bash", &params)["status"], "ok");
    until(|| product.work.join("begun").exists());
    let written = host.call(
        "write",
        &json!({"path": ".envrc", "content": "export A=1\n"}),
    );
    assert_eq!(written["status"], "ok", "{written}");
    product.file("go", "");
    until(|| {
        let runs = host.call("list_runs", &json!({}));
        !runs["text"].as_str().unwrap().contains("begun")
    });
    assert_eq!(product.read(".envrc"), "export A=1\n");
}

#[test]
fn the_quota_ends_a_session() {
    let product = Product::new();
    let input: String = (1..=4).map(|id| bash(id, "true")).collect();
    let args = [
        "--allow",
        "bash",
        "--jobs",
        "1",
        "--set",
        "tools.max_tool_calls_per_session=2",
    ];
    let answers = product.answers(&args, input);
    let statuses: Vec<&str> = (1..=4)
        .map(|id| answer(&answers, id)["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["ok", "ok", "refused", "refused"]);
    let message = answer(&answers, 3)["error"]["message"].as_str().unwrap();
    assert!(message.contains("max_tool_calls_per_session"), "{message}");
}

#[test]
fn the_quota_counts_what_was_refused_and_what_could_not_be_called() {
    let product = Product::new();
    let input = format!(
        "{}{}{}",
        bash(1, "true"),
        line(2, "no_such_tool", json!({})),
        line(3, "read", json!({ "path": "a" })),
    );
    let args = ["--jobs", "1", "--set", "tools.max_tool_calls_per_session=2"];
    let answers = product.answers(&args, input);
    let message = answer(&answers, 3)["error"]["message"].as_str().unwrap();
    assert!(message.contains("max_tool_calls_per_session"), "{message}");
}

#[test]
fn the_quota_holds_for_the_hosts_of_a_conversation_together() {
    let product = Product::new();
    let args = [
        "--conversation",
        "0192f3c0-0000-7000-8000-000000000001",
        "--set",
        "tools.max_tool_calls_per_session=5",
    ];
    let input: String = (1..=4)
        .map(|id| line(id, "list_directory", json!({ "path": "." })))
        .collect();
    let (args, input) = (&args[..], input.as_str());
    let hosts = std::thread::scope(|scope| {
        let hosts = [(); 3].map(|()| scope.spawn(|| product.answers(args, input)));
        hosts.map(|host| host.join().unwrap())
    });
    let n_done = hosts.iter().flatten().filter(|one| one["status"] == "ok");
    assert_eq!(n_done.count(), 5, "{hosts:#?}");
    // A host that begins later goes on counting.
    let answers = product.answers(args, input);
    assert!(
        answers.iter().all(|one| one["status"] == "refused"),
        "{answers:#?}"
    );
    let message = answer(&answers, 1)["error"]["message"].as_str().unwrap();
    assert!(message.contains("max_tool_calls_per_session"), "{message}");
}

#[test]
fn hooks_hear_of_changed_files() {
    let config = "[[hooks.file_changed]]\ncommand = \"printf '%s' \\\"$ZEPH_CHANGED_PATHS\\\" > heard\"\npaths = [\"**/*.rs\"]\n";
    let product = Product::new();
    let answer = asked(
        &product,
        config,
        &["--allow", "bash"],
        "echo 'fn main() {}' > new.rs; touch other.txt",
    );
    assert_eq!(answer["status"], "ok", "{answer}");
    let heard = product.read("heard");
    assert_eq!(heard, format!("{}/new.rs\n", product.work.display()));
}

#[test]
fn hooks_hear_of_files_that_a_background_command_changed() {
    let product = Product::new();
    product.user_config(
        "[[hooks.file_changed]]\ncommand = \"echo heard >> heard; exit 4\"\nfail_closed = true\npaths = [\"**/*.rs\"]\n",
    );
    let mut host = Running::start(&product, &["--allow", "bash"]);
    let command = json!({"command": "echo x > new.rs; echo y > other.txt", "background": true});
    assert_eq!(host.call("bash", &command)["status"], "ok");
    let mut turn = 0;
    until(|| {
        turn += 1;
        host.begin_line(json!({"turn": turn.to_string(), "tool": "list_runs", "params": {}}));
        host.answer();
        !host.told.is_empty()
    });
    let told = &host.told[0];
    assert!(told.contains("exit_code=0"), "{told}");
    let failed = "[note] the hook `file_changed` failed: exit code 4";
    assert_eq!(told.matches(failed).count(), 1, "{told}");
    assert_eq!(product.read("heard"), "heard\n");
}

#[test]
fn a_hook_hears_of_its_files_however_many_others_changed_and_in_the_background() {
    let product = Product::new();
    product.user_config(
        "[[hooks.file_changed]]\ncommand = \"! grep -l BAD $ZEPH_CHANGED_PATHS\"\npaths = [\"**/*.rs\"]\nfail_closed = true\n",
    );
    let many = "mkdir many; cd many; echo BAD > one.rs; for n in {1..1200}; do : > $n.txt; done";
    let table = [
        ("command", many, "many/one.rs"),
        (
            "command",
            "mkdir -p src/target; echo BAD > src/target/a.rs",
            "src/target/a.rs",
        ),
        ("background", "echo BAD > late.rs", "late.rs"),
    ];
    for (how, command, named) in table {
        let command = format!("command={command}");
        let mut args = vec!["call", "bash", &command];
        args.extend((how == "background").then_some("background=true"));
        let ran = product.run(&args);
        assert_eq!(ran.code, Some(1), "{command}: {ran:?}");
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("the hook `file_changed` failed"), "{said}");
        assert!(said.contains(named), "{said}");
    }
    // What a program is told of the end of its command.
    let late = json!({"command": "echo BAD > later.rs", "background": true});
    let wait = json!({"command": "until [ -e later.rs ]; do sleep 0.01; done"});
    let calls = [late, wait].map(|params| json!({"tool": "bash", "params": params}));
    let calls = calls.map(|call| format!("{call}\n")).concat();
    let answers = product.answers(&["--allow", "bash", "--jobs", "1"], calls);
    let told = answers.iter().find(|answer| answer["role"] == "user");
    let told = told.unwrap_or_else(|| panic!("{answers:?}"));
    let text = told["text"].as_str().unwrap();
    assert!(text.contains("the hook `file_changed` failed"), "{text}");
}

#[test]
fn a_failing_command_is_a_failed_call_everywhere() {
    let product = Product::new();
    let table = [
        ("echo out; echo err >&2; exit 3", json!(3), 3, "exit code 3"),
        ("false", json!(1), 1, "exit code 1"),
        ("./nothing", json!(127), 127, "was not found"),
        ("/etc", json!(126), 126, "cannot be executed"),
        ("sh -c 'kill -9 $$'", json!(null), 137, "SIGKILL"),
        ("exit 2", json!(2), 2, "exit code 2"),
    ];
    for (command, code, own, words) in &table {
        let answer = product.call("bash", json!({ "command": command }));
        assert_eq!(answer["status"], "failed", "{answer}");
        let error = &answer["error"];
        assert_eq!(error["category"], "permanent_failure", "{answer}");
        assert_eq!(error["retryable"], false, "{answer}");
        assert!(
            error.as_object().unwrap().contains_key("exit_code"),
            "{answer}"
        );
        assert_eq!(error["exit_code"], *code, "{answer}");
        assert_eq!(answer["structured"]["exit_code"], *code, "{answer}");
        assert!(
            error["message"].as_str().unwrap().contains(words),
            "{answer}"
        );
        let audit = product.run(&["audit", "query", "--json", "--limit", "1"]);
        assert!(
            audit.stdout.contains("permanent_failure"),
            "{}",
            audit.stdout
        );
        let shows_code = audit.stdout.contains("\"exit_code\":");
        assert_eq!(shows_code, !code.is_null(), "{}", audit.stdout);

        let ran = product.run(&["call", "bash", &format!("command={command}")]);
        assert_eq!(ran.code, Some(*own), "{command}: {ran:?}");
        assert!(
            ran.stdout.contains("[exit code") || code.is_null(),
            "{ran:?}"
        );
        assert!(!ran.stdout.contains("[tool_error]"), "{ran:?}");
    }
    let whole = product.run(&["call", "bash", "command=echo out; echo err >&2; exit 3"]);
    assert_eq!(whole.stdout, "out\nerr\n[exit code 3]\n");
    let model = product.call("bash", json!({ "command": "echo out; exit 3" }));
    let text = model["text"].as_str().unwrap();
    assert!(
        text.starts_with("[tool_error]\ncategory: permanent_failure\n"),
        "{text}"
    );
    assert!(
        text.ends_with("retryable: false\nout\n[exit code 3]"),
        "{text}"
    );
    let json = product.run(&["call", "bash", "command=exit 7", "--output", "json"]);
    assert_eq!(json.code, Some(7));
    assert_eq!(json.json_lines()[0]["error"]["exit_code"], 7);
    let slow = product.call(
        "bash",
        json!({ "command": "echo out; sleep 60", "timeout": 1 }),
    );
    assert_eq!(slow["error"]["category"], "timeout", "{slow}");
    assert!(!slow.to_string().contains("will retry"), "{slow}");
    assert!(slow["text"].as_str().unwrap().contains("\nout\n"), "{slow}");
}

/// The home directory and `/tmp` of a command end with it, and so would what it moves there.
#[test]
#[cfg(target_os = "linux")]
fn no_file_is_lost_by_moving_it_where_nothing_stays() {
    let product = Product::new();
    product.file("kept.txt", "precious");
    for target in ["..", "../moved.txt", "~/", "$HOME/moved.txt", "/tmp/"] {
        let command = format!("mv kept.txt {target}");
        let asked = asked(&product, "", &["--allow", "bash"], &command);
        assert_eq!(
            asked["error"]["category"], "policy_blocked",
            "{command}: {asked}"
        );
        let typed = product.run(&["call", "bash", &format!("command={command}")]);
        assert_eq!(typed.code, Some(4), "{command}: {typed:?}");
        assert!(typed.stderr.contains("would lose"), "{typed:?}");
        assert_eq!(product.read("kept.txt"), "precious", "{command}");
    }
    let there_and_back = "mv kept.txt /tmp/x && echo new > kept.txt && mv /tmp/x old.txt";
    let typed = product.run(&["call", "bash", &format!("command={there_and_back}")]);
    assert_eq!(typed.code, Some(0), "{typed:?}");
    assert_eq!(product.read("old.txt"), "precious");
}

#[test]
fn what_the_configuration_turns_off_is_said_to_be_off() {
    let product = Product::new();
    for (setting, tool, told) in [
        ("tools.enabled=false", "read", "`tools.enabled` is false"),
        (
            "tools.scheduler.enabled=false",
            "list_tasks",
            "`list_tasks` is offered when `tools.scheduler.enabled` is true",
        ),
    ] {
        let ran = product.run(&["--set", setting, "call", tool]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(told), "{ran:?}");
    }
}

#[test]
fn waiting_calls_of_several_directories_say_where_they_would_run() {
    let product = Product::new();
    product.file("sub/text", "");
    product.file("calls", bash(1, "make backup"));
    let calls = product.work.join("calls").display().to_string();
    let listed = || product.run(&["approve"]).stdout;
    for (place, n_named) in [("", 0), ("sub", 2)] {
        let place = product.work.join(place);
        let mut asking = product.command(&["run", "--calls", &calls]);
        assert!(
            asking
                .current_dir(&place)
                .output()
                .unwrap()
                .status
                .success()
        );
        let told = format!("(in {}", product.work.display());
        assert_eq!(listed().matches(&told).count(), n_named, "{}", listed());
    }
}

/// What was only begun in the background has not succeeded, for a later process either.
#[test]
fn a_start_in_the_background_meets_no_requirement_after_a_restart() {
    let product = Product::new();
    product.user_config(
        "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.list_directory]\nrequires = [\"bash\"]\n",
    );
    let conversation = "0192f3c0-0000-7000-8000-00000000000c";
    let call = |tool: &str, params: Value| {
        let line = json!({"id": 1, "tool": tool, "params": params}).to_string() + "\n";
        let args = ["--conversation", conversation, "--allow", "bash"];
        product.answers(&args, line).remove(0)
    };
    // It ends with its host.
    let begun = call("bash", json!({"command": "sleep 600", "background": true}));
    assert_eq!(begun["status"], "ok", "{begun}");
    let listed = call("list_directory", json!({"path": "."}));
    let refused = listed["error"]["message"].as_str().unwrap_or_default();
    assert!(
        refused.contains("needs a successful call of `bash`"),
        "{listed}"
    );
    assert_eq!(call("bash", json!({"command": "true"}))["status"], "ok");
    assert_eq!(call("list_directory", json!({"path": "."}))["status"], "ok");
}
