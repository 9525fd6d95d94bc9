//! `run --json` on the ways out that are not the end of a turn.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::script::{Script, calls, fails, says};
use super::{events, of_type, product, until};
use crate::product::{Product, Ran};
use crate::terminal::Prompt;

/// The last two lines: what is wrong, and the result.
fn ends_with_its_error(ran: &Ran, status: &str, exit_code: i32, words: &str) {
    let (events, result) = events(ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(exit_code), Some(status)),
        "{result}"
    );
    let errors = of_type(&events, "error");
    assert_eq!(errors.len(), 1, "{events:?}");
    let message = errors[0]["message"].as_str().unwrap();
    assert!(message.contains(words), "{message}");
    assert_eq!(errors[0]["retry_ms"], Value::Null);
}

#[test]
fn a_run_that_cannot_begin_ends_with_its_error_and_a_result() {
    let script = Script::new([]);
    let product = product(&script);
    let cases: [(&[&str], i32, &str); 10] = [
        (&["run", "--json"], 2, "a prompt is missing"),
        (&["run", "--json", "--nonsense", "x"], 2, "--nonsense"),
        (&["run", "x", "--json", "--jobs", "2"], 2, "--jobs"),
        (&["run", "--json", " "], 2, "the prompt is empty"),
        (&["run", "--json", "-"], 2, "the prompt is empty"),
        (&["run", "--json", "--resume", "x"], 2, "no session"),
        (&["run", "--json", "--provider", "none", "x"], 3, "`none`"),
        (&["--config", "/none", "run", "--json", "x"], 3, "/none"),
        (&["--set", "agent.x=1", "run", "--json", "x"], 3, "agent.x"),
        (&["run", "--json", "--allow", ":", "x"], 2, ":"),
    ];
    for (args, exit_code, words) in cases {
        let ran = product.run(args);
        assert!(!ran.stderr.is_empty(), "{args:?}");
        ends_with_its_error(&ran, "error", exit_code, words);
    }
    let demo = ["run", "--demo", "--json"];
    let mut demo = product.command(&demo);
    demo.env("TMPDIR", "/none").stdin(Stdio::null());
    let ran = Ran::from(demo.output().unwrap());
    ends_with_its_error(&ran, "error", 1, "the demonstration cannot begin");
    // Help is no run.
    let help = product.run(&["run", "--json", "--help"]);
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("Usage:"), "{}", help.stdout);
    assert!(script.requests().is_empty());
}

#[test]
fn a_turn_that_ends_early_says_why_before_its_result() {
    let look = || calls(&[("read", json!({"path": "missing"}))]);
    let small = ["agent.context_budget_tokens=1000", "agent.compaction=false"];
    let long = "word ".repeat(2_000);
    // The second and third answer come from the result cache.
    let look_again = || calls(&[("read", json!({"path": "there"}))]);
    let cases: [(Value, &[&str], &str, &str); 9] = [
        (fails(400), &[], "provider_failed", "400"),
        (look(), &[], "doom_loop", "repeated identical tool outputs"),
        (
            look_again(),
            &[],
            "doom_loop",
            "repeated identical tool outputs",
        ),
        (json!({}), &[], "empty", "the answer was empty"),
        (json!({"text": "I", "stop": "length"}), &[], "cut", "cut"),
        (json!({"stop": "refusal"}), &[], "refused", "refused"),
        (
            look(),
            &["agent.max_tool_iterations=1"],
            "iteration_limit",
            "agent.max_tool_iterations",
        ),
        (
            look(),
            &["agent.max_total_tokens=1"],
            "budget",
            "agent.max_total_tokens",
        ),
        (says("never said"), &small, "context_full", "nearly full"),
    ];
    for (answer, settings, status, words) in cases {
        let script = Script::endless([answer]);
        let product = product(&script);
        product.file("there", "text\n");
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let run = ["run", "--json", &long];
        let args: Vec<&str> = settings.chain(run).collect();
        ends_with_its_error(&product.run(&args), status, 1, words);
    }
}

#[test]
fn a_file_that_is_longer_than_the_context_is_sent_in_part() {
    let script = Script::endless([says("done")]);
    let product = product(&script);
    let lines = "a line of the log\n".repeat(12_000);
    product.file("huge.log", format!("BEGIN\n{lines}END\n"));
    let setting = "agent.context_budget_tokens=20000";
    let ran = product.run(&[
        "--set",
        setting,
        "run",
        "--json",
        "look into @huge.log please",
    ]);
    let (_, result) = events(&ran);
    assert_eq!(result["status"], "done", "{result}");
    let requests = script.requests();
    assert_eq!(requests.len(), 1);
    let sent = requests[0]["messages"].to_string();
    assert!((20_000..80_000).contains(&sent.len()), "{}", sent.len());
    for words in [
        "BEGIN",
        "END",
        "`read_overflow` reads all of it as overflow:",
    ] {
        assert!(sent.contains(words), "{words}");
    }
}

#[test]
fn text_of_an_attempt_that_failed_is_marked_void_and_not_part_of_the_result() {
    let cut = || {
        json!({
            "answer": {"text": "I was about to say something else."},
            "fault": {"cut": {"within": "text"}},
        })
    };
    let script = Script::new([cut(), says("hello"), cut(), says("hello")]);
    let product = product(&script);
    let file = product.home.join(".config/zeph-host/config.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, config.replace("retries = 0", "retries = 1")).unwrap();
    let (events, result) = events(&product.run(&["run", "--json", "greet"]));
    let errors = of_type(&events, "error");
    assert_eq!(errors.len(), 1, "{events:?}");
    assert_eq!(errors[0]["discards_text"], true);
    assert!(errors[0]["retry_ms"].is_u64(), "{}", errors[0]);
    let place = |of: &Value| events.iter().position(|event| event == of);
    let texts = of_type(&events, "text");
    let (before, after): (Vec<&Value>, Vec<&Value>) = texts
        .into_iter()
        .partition(|text| place(text) < place(errors[0]));
    assert!(!before.is_empty());
    let said = after.iter().map(|text| text["text"].as_str().unwrap());
    assert_eq!(said.collect::<String>(), "hello");
    assert_eq!(result["text"], "hello");
    let plain = product.run(&["run", "greet"]);
    assert_eq!(plain.stdout, "hello\n", "{}", plain.stderr);
}

#[test]
fn a_signal_before_the_first_request_ends_with_a_result_and_leaves_nothing() {
    let script = Script::new([]);
    let product = product(&script);
    for (signal, exit_code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        // It waits for the end of its prompt.
        let mut child = product.start(&["--json", "-"]);
        child.stdin.as_mut().unwrap().write_all(b"do").unwrap();
        until(|| catches(&child, signal));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let stdin = child.stdin.take();
        let ran = Ran::from(child.wait_with_output().unwrap());
        drop(stdin);
        let (events, result) = events(&ran);
        assert_eq!(
            (ran.code, result["status"].as_str()),
            (Some(exit_code), Some("interrupted"))
        );
        assert!(of_type(&events, "error").is_empty(), "{events:?}");
    }
    assert!(script.requests().is_empty());
}

/// Whether a process handles a signal itself.
fn catches(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & (1 << (signal.as_raw() - 1)) != 0
}

#[test]
fn what_is_answered_at_the_terminal_is_an_event() {
    let write = |path: &str| calls(&[("write", json!({"path": path, "content": "x"}))]);
    let script = Script::new([write("one"), write("two"), says("done")]);
    let product = product(&script);
    let ran = answered(&product, &["y", "n"]);
    let (events, result) = events(&ran);
    assert_eq!(
        (ran.code, result["status"].as_str()),
        (Some(0), Some("done")),
        "{events:?}"
    );
    let approvals = of_type(&events, "approval");
    let answers: Vec<_> = approvals.iter().map(|event| &event["answer"]).collect();
    assert_eq!(answers, [&json!("once"), &json!("deny")]);
    let ended = of_type(&events, "tool_result");
    let statuses: Vec<_> = ended.iter().map(|event| &event["status"]).collect();
    assert_eq!(statuses, [&json!("ok"), &json!("denied")]);
    assert_eq!(
        result["approvals"],
        json!({"asked": 2, "per_100_calls": 100})
    );
    assert!(product.work.join("one").exists() && !product.work.join("two").exists());
}

/// A run with `--ask` on a terminal of its own, whose events go to a file; each question gets the next answer.
fn answered(product: &Product, answers: &[&str]) -> Ran {
    let run = product.command(&["run", "--json", "--ask", "write"]);
    #[expect(
        clippy::disallowed_methods,
        reason = "a shell gives the program under test a terminal"
    )]
    let mut shell = std::process::Command::new("setsid");
    shell
        .args(["--ctty", "--wait", "bash", "-c"])
        .arg("\"$@\" > events 2> errors < /dev/null; echo \"ended $?.\"")
        .arg("bash")
        .arg(run.get_program())
        .args(run.get_args())
        .current_dir(&product.work);
    shell.env_clear().env("PATH", "/usr/bin:/bin");
    shell.envs(
        run.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let mut prompt = Prompt::run(shell, Some((80, 24)), "[N]o?");
    for (idx, answer) in answers.iter().enumerate() {
        prompt.type_line(answer);
        match idx + 1 == answers.len() {
            true => prompt.until("ended 0."),
            false => prompt.until("[N]o?"),
        }
    }
    let read = |name: &str| product.read(name);
    Ran {
        code: Some(0),
        stdout: read("events"),
        stderr: read("errors"),
    }
}
