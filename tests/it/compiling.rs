//! Components are compiled by a process of their own: what happens to it, and to the host meanwhile.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::mcp_client::{McpClient, result};
use crate::product::Product;
use crate::running::{Running, until, wait_for};
use crate::terminal::Prompt;

/// A host whose cache is empty.
struct Cold {
    product: Product,
    cache: TempDir,
}

impl Cold {
    fn new() -> Self {
        let product = Product::new();
        let cache = tempfile::tempdir().unwrap();
        Self { product, cache }
    }

    fn start(&self) -> Running {
        let cache = format!("engine.cache_dir={}", self.cache.path().display());
        Running::start(&self.product, &["--allow", "bash", "--set", &cache])
    }
}

/// The process that compiles the smallest plugin for `host`, once it has begun. Components are compiled one after the other.
fn compiler_of(host: &mut Running) -> Pid {
    host.note(&["compiling plugin `diagnostics`"]);
    wait_for(|| compiler_now(host))
}

/// The process that compiles for `host`, if there is one.
fn compiler_now(host: &Running) -> Option<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", host.id()));
    let tasks = tasks.unwrap().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let mut children = children.iter().flat_map(|list| list.split_whitespace());
    let compiles = |child: &&str| {
        let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"__compile")
    };
    Pid::from_raw(children.find(compiles)?.parse().unwrap())
}

#[test]
fn a_compiler_that_is_killed_is_replaced() {
    let cold = Cold::new();
    let mut host = cold.start();
    kill_process(compiler_of(&mut host), Signal::KILL).unwrap();
    host.note(&["plugin `diagnostics` is compiled"]);
}

#[test]
fn a_compiler_that_always_dies_costs_its_plugin_alone() {
    let cold = Cold::new();
    let mut host = cold.start();
    let first = compiler_of(&mut host);
    kill_process(first, Signal::KILL).unwrap();
    let second = wait_for(|| compiler_now(&host).filter(|compiler| *compiler != first));
    kill_process(second, Signal::KILL).unwrap();
    host.note(&[
        "`diagnostics`",
        "the process that compiled it ended: signal: 9",
    ]);
    let ran = host.call("bash", &json!({"command": "echo on"}));
    assert_eq!(ran["status"], "ok", "{ran}");
}

#[test]
fn ctrl_c_at_the_prompt_does_not_wait_for_the_compilers() {
    let cold = Cold::new();
    let cache = format!("engine.cache_dir={}", cold.cache.path().display());
    let args = ["--set", &cache, "run"];
    let mut prompt = Prompt::start_with(&cold.product, &args, "tools; /help");
    prompt.until("zeph");
    // Typed and sent again: the line may not have been read yet.
    let end = Instant::now() + Duration::from_secs(60);
    while !prompt.shown().contains("cancelled") {
        assert!(Instant::now() < end, "the call is not cancelled");
        prompt.type_line("read path=x");
        prompt.read(Duration::from_millis(200));
        // What was shown before counts no more.
        prompt.interrupt();
        let soon = Instant::now() + Duration::from_secs(2);
        while !prompt.shown().contains("cancelled") && Instant::now() < soon {
            prompt.read(Duration::from_millis(200));
        }
    }
    prompt.type_line("read path=y");
    prompt.until("path=y");
    assert_eq!(prompt.terminate(), Some(143));
}

#[test]
fn a_call_that_waits_for_a_compiler_is_told_that_it_was_cancelled() {
    let cold = Cold::new();
    for stops_host in [false, true] {
        let mut host = cold.start();
        host.begin("read", &json!({"path": "x"}));
        if stops_host {
            // When this is answered, the line before it was read.
            host.begin("list_runs", &json!({}));
            assert_eq!(host.answers(1)[0]["id"], 2);
            stop(host.id());
        } else {
            host.cancel();
        }
        let answer = host.answers(1).remove(0);
        assert_eq!(answer["id"], 1, "{answer}");
        assert_eq!(answer["error"]["category"], "cancelled", "{answer}");
    }
}

#[test]
fn a_request_that_waits_for_a_compiler_is_answered_when_the_server_stops() {
    let cold = Cold::new();
    let cache = format!("engine.cache_dir={}", cold.cache.path().display());
    let mut client = McpClient::legacy(&cold.product, &["--set", &cache], &json!({}));
    let waiting = client.begin_call("read", json!({"path": "x"}));
    client.request("ping", json!({}));
    stop(client.pid());
    let told = result(client.answer(waiting));
    let error = &told["structuredContent"]["error"];
    assert_eq!(error["category"], "cancelled", "{told}");
}

/// Asks a process to end.
fn stop(process: u32) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
}

#[test]
fn what_a_compiler_made_for_a_host_that_ended_is_taken_by_the_next() {
    let cold = Cold::new();
    let mut host = cold.start();
    let compiler = compiler_of(&mut host).as_raw_pid();
    // It has read the component, which takes a fraction of that.
    until(|| has_worked(compiler, 20));
    // Kills it.
    drop(host);
    let about = format!("/proc/{compiler}/cmdline");
    until(|| fs::read(&about).unwrap_or_default().is_empty());
    let mut next = cold.start();
    // Components are compiled one after the other, and this is the first of the plugins.
    loop {
        let note = next.note(&["compiling plugin `"]);
        assert!(!note.contains("`diagnostics`"), "{note}");
        if note.contains("`file`") {
            break;
        }
    }
}

/// Whether a process has had so many hundredths of a second of a processor for itself.
fn has_worked(process: i32, hundredths: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, stat) = stat.rsplit_once(')').unwrap();
    stat.split_whitespace()
        .nth(11)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        >= hundredths
}

#[test]
fn the_tools_of_the_program_are_listed_before_they_are_compiled() {
    let cold = Cold::new();
    let cache = format!("engine.cache_dir={}", cold.cache.path().display());
    let mut client = McpClient::legacy(&cold.product, &["--set", &cache], &json!({}));
    let listed = result(client.request("tools/list", json!({})));
    let tools = listed["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["diagnostics", "read", "search_code", "web_scrape"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let files = fs::read_dir(cold.cache.path()).unwrap().flatten();
    let artifacts = files.filter(|file| file.path().extension().is_some_and(|ext| ext == "cwasm"));
    assert!(artifacts.count() < 4);
}

/// What it compiles may be anybody's, so it is given nothing of the host's.
#[test]
fn a_compiler_holds_nothing_of_the_host() {
    let cold = Cold::new();
    let mut host = cold.start();
    let about = format!("/proc/{}", compiler_of(&mut host).as_raw_pid());
    let about = Path::new(&about);
    assert_eq!(fs::read(about.join("environ")).unwrap(), b"");
    assert_eq!(fs::read_link(about.join("cwd")).unwrap(), Path::new("/"));
    // Neither the database, nor the audit file, nor a key. What the host was given itself, such as the streams of who started it, is not its own.
    let files = fs::read_dir(about.join("fd")).unwrap().flatten();
    let files = files.filter_map(|file| fs::read_link(file.path()).ok());
    let is_of_host = |file: &PathBuf| {
        let own = [cold.product.home.as_path(), cold.cache.path()];
        // Where it answers, and what keeps others from compiling the same.
        let is_given = file
            .extension()
            .is_some_and(|ext| ext == "answer" || ext == "lock");
        own.iter().any(|own| file.starts_with(own)) && !is_given
    };
    let files: Vec<_> = files.filter(is_of_host).collect();
    assert_eq!(files, Vec::<PathBuf>::new());
}

#[test]
fn a_compiler_that_takes_too_long_is_not_tried_again() {
    let cold = Cold::new();
    let mut host = cold.start();
    // As the kernel does at the limit.
    kill_process(compiler_of(&mut host), Signal::XCPU).unwrap();
    host.note(&["`diagnostics`", "s of processor time"]);
}

/// What it compiles may double with every level.
#[test]
fn a_compiler_has_limits() {
    let cold = Cold::new();
    let mut host = cold.start();
    let limits = format!("/proc/{}/limits", compiler_of(&mut host).as_raw_pid());
    // It sets them itself.
    until(|| {
        let limits = fs::read_to_string(&limits).unwrap();
        let is_set = |name: &str| {
            let mut lines = limits.lines();
            lines.any(|line| line.starts_with(name) && !line.contains("unlimited"))
        };
        ["Max cpu time", "Max data size", "Max core file size"]
            .into_iter()
            .all(is_set)
    });
}

/// What a defect of the compiler could do is tried beside the filter.
#[test]
fn a_compiler_is_confined() {
    let cold = Cold::new();
    let mut host = cold.start();
    let status = format!("/proc/{}/status", compiler_of(&mut host).as_raw_pid());
    // It puts the filter on itself.
    until(|| {
        fs::read_to_string(&status)
            .unwrap()
            .contains("\nSeccomp:\t2\n")
    });
}
