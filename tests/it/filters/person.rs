//! What a person sees of a command of theirs or of a log, and what is counted of it.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use super::{bash, check_facts, fed, log, product};
use crate::product::{Product, Ran};

#[test]
fn a_persons_command_ends_as_it_would_alone() {
    let product = product();
    let ran = product.run(&["filter", "--", "./cargo", "test"]);
    assert_eq!(ran.code, Some(101), "{}", ran.stderr);
    check_facts(&ran.stdout);
    assert!(ran.stdout.len() < log().len() / 5, "{}", ran.stdout);
    let id = ran.stdout.split("filter --read ").nth(1).unwrap();
    let id = id.split('`').next().unwrap();
    assert_eq!(product.run(&["filter", "--read", id]).stdout, log());

    let missing = product.run(&["filter", "--", "./no-such-program"]);
    assert_eq!(missing.code, Some(127), "{}", missing.stderr);
    let killed = product.run(&["filter", "--", "sh", "-c", "echo out; kill -9 $$"]);
    assert_eq!((killed.code, killed.stdout.as_str()), (Some(137), "out\n"));
    let broken = product.file(".zeph/config.toml", "nonsense = 1\n");
    let ran = broken.run(&["filter", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "out\n"));
    // A log is not lost for it either.
    let ran = fed(broken, &["filter", "--as", "ls"], "a\nb\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\nb\n"));
    assert!(ran.stderr.contains("nonsense"), "{ran:?}");
}

#[test]
fn what_is_no_text_and_what_is_too_long_pass_byte_for_byte() {
    let product = Product::new();
    let blob: Vec<u8> = (0..200_000_u32)
        .map(|n| u8::try_from(n * 7 % 251).unwrap())
        .collect();
    product.file("blob", &blob);
    let output = product.command(&["filter", "--", "cat", "blob"]).output();
    let output = output.unwrap();
    assert!(output.stdout == blob, "{} bytes", output.stdout.len());

    let line = "warning: something\n";
    let script = format!("yes '{}' | head -n 3000; exit 5", line.trim_end());
    let small = ["--set", "tools.overflow.max_overflow_bytes=20000"];
    let mut args = small.to_vec();
    args.extend(["filter", "--", "sh", "-c", &script]);
    let ran = product.run(&args);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(
        ran.stdout == line.repeat(3000),
        "{} bytes",
        ran.stdout.len()
    );
    assert!(
        ran.stderr.contains("it has more than 20000 bytes"),
        "{}",
        ran.stderr
    );
}

/// A command whose output is held learns that nobody wants it as early as one whose output is not.
#[test]
fn a_command_ends_when_nobody_reads_any_more() {
    let product = Product::new();
    let script = "cat; while :; do echo more; sleep 0.05; done";
    let mut child = product
        .command(&["filter", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    drop(child.stdin.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""));
}

fn stats(product: &Product) -> Value {
    let ran = product.run(&["stats", "--json"]);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_rule_whose_outputs_are_read_back_often_is_told() {
    let product = product();
    let filter = ["filter", "--", "./cargo", "test"];
    let ran = product.run(&filter);
    let id = ran.stdout.split("filter --read ").nth(1).unwrap();
    let id = id.split('`').next().unwrap();
    // However often one output is read, it is one.
    product.run(&["filter", "--read", id]);
    product.run(&["filter", "--read", id]);
    let words = "what `cargo-test` leaves out is read back often: 1 of 1 time";
    let ran = product.run(&["stats"]);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    for _ in 0..9 {
        product.run(&filter);
    }
    assert_eq!(stats(&product)["all"]["read_back_often"], false);
    let ran = product.run(&["stats"]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn nothing_counts_as_saved_that_was_shown() {
    let product = product();
    let small = ["--set", "tools.overflow.max_overflow_bytes=1000"];
    bash(&product, &small, "./cargo test");
    let mut args = small.to_vec();
    // What is too long to be kept is not even looked at.
    args.extend(["filter", "--keep", "--as", "cargo test"]);
    let ran = fed(&product, &args, &log());
    assert!(ran.stdout == log(), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("more than 1000 bytes"),
        "{}",
        ran.stderr
    );
    let all = &stats(&product)["all"];
    assert_eq!(
        (&all["n_outputs"], &all["n_shortened"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(all["bytes_before"], all["bytes_after"]);
    assert_eq!(all["tokens_saved"], 0);
}

/// Runs `zeph-host filter` with a terminal as standard output; its exit code, and what the terminal shows.
fn watched(product: &Product, words: &[&str]) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = fs::File::options().write(true).open(name).unwrap();
    let mut all = vec!["filter", "--"];
    all.extend(words);
    let mut command = product.command(&all);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(terminal)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It holds our end of the terminal, which would keep it open.
    drop(command);
    let mut shown = Vec::new();
    // The end is an error, once nobody has the other side any more.
    drop(fs::File::from(master).read_to_end(&mut shown));
    let code = child.wait().unwrap().code();
    (code, String::from_utf8(shown).unwrap())
}

#[test]
fn at_a_terminal_a_command_without_a_rule_prints_there_itself() {
    let product = product();
    let script = "test -t 1 && echo a terminal; exit 3";
    let (code, shown) = watched(&product, &["sh", "-c", script]);
    assert_eq!((code, shown.trim_end()), (Some(3), "a terminal"));
    let (code, shown) = watched(&product, &["./cargo", "test"]);
    assert_eq!(code, Some(101));
    check_facts(&shown);
    assert!(shown.len() < log().len() / 5, "{shown}");
}

#[test]
fn a_log_is_shortened_and_input_reaches_the_command() {
    let product = Product::new();
    let args = ["filter", "--as", "cargo test", "--exit-code", "101"];
    let ran = fed(&product, &args, &log());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    check_facts(&ran.stdout);
    assert!(ran.stdout.len() < log().len() / 5, "{}", ran.stdout);
    let ran = fed(&product, &["filter", "--", "cat"], "from the input\n");
    assert_eq!(ran.stdout, "from the input\n");
}
