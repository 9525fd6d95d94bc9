//! How commands end, with everything they started, and what they may use up until then.

use std::thread;
use std::time::{Duration, Instant};

use super::bench::{Bench, Setting};
use super::{beside_each_other, each_user};
use serde_json::json;

/// A name and a command that leaves processes behind, whose command lines hold `{token}`.
const ORPHANS: &[(&str, &str)] = &[
    ("in the background", "sleep {token} & echo ma''de"),
    (
        "in a session of its own",
        "setsid sleep {token} & echo ma''de",
    ),
    (
        "twice forked",
        "(setsid bash -c 'sleep {token} & sleep {token} &' &) ; echo ma''de",
    ),
    (
        "deaf to signals",
        "(trap '' TERM HUP INT; exec -a x{token} perl -e '$SIG{TERM}=$SIG{HUP}=\"IGNORE\"; sleep 1000 while 1' {token}) & echo ma''de",
    ),
    ("stopped", "sleep {token} & kill -STOP $!; echo ma''de"),
    (
        "without a hang-up",
        "nohup sleep {token} > /dev/null 2>&1 & disown -a; echo ma''de",
    ),
    (
        "holding the output",
        "(exec sleep {token}) & echo ma''de; exit 0",
    ),
    (
        "making more of itself",
        "perl -e 'for (1..30) { next if fork; setpgrp; sleep {token}; exit } ' {token}; echo ma''de",
    ),
];

#[test]
fn nothing_outlives_a_command() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        bench.is_jailed();
        for (name, command) in ORPHANS {
            let answer = bench.bash(command);
            assert!(answer.text.contains("made"), "{name}: {answer:?}");
            // It ended by itself, before the half minute that it has: a held pipe hangs nothing.
            assert_eq!(answer.status, "ok", "{name}: {answer:?}");
            bench.world.nobody_is_left(name);
            bench.lives(name);
        }
    }
}

/// A name, and a command that never ends.
const ENDLESS: &[(&str, &str)] = &[
    ("a wait", "sleep {token}"),
    ("a loop", "while :; do :; done # {token}"),
    (
        "a wait that ignores its end",
        "trap '' TERM INT HUP; while :; do sleep {token}; done",
    ),
    (
        "a tree that ignores its end",
        "perl -e '$SIG{TERM} = \"IGNORE\"; fork for 1..4; sleep 1000 while 1' {token}",
    ),
    (
        "a stopped tree",
        "sleep {token} & kill -STOP $! $$; sleep {token}",
    ),
    ("a fork bomb", ":(){ :|:& };: ; sleep {token}"),
    ("a flood", "yes {token}"),
    ("a flood of errors", "yes {token} >&2"),
];

#[test]
fn time_ends_everything() {
    beside_each_other(|setting| {
        let mut bench = Bench::new(setting.with("tools.sandbox.max_processes=100"));
        bench.is_jailed();
        for (name, command) in ENDLESS {
            let answer = bench.bash_for(command, 2);
            assert_ne!(answer.status, "ok", "{name}: {:.300}", answer.text);
            bench.world.nobody_is_left(name);
            bench.lives(name);
        }
    });
}

#[test]
fn what_a_command_uses_up_is_limited() {
    let keys = [
        "tools.sandbox.max_processes=64",
        "tools.sandbox.max_file_bytes=16777216",
        "tools.sandbox.max_open_files=128",
        "tools.sandbox.tmp_bytes=33554432",
        "tools.sandbox.shm_bytes=33554432",
        "tools.sandbox.max_memory_bytes=536870912",
    ];
    // What is run, and what must never be printed.
    let cases = [
        (
            "processes",
            // A shell would wait and try again, longer each time.
            "perl -e 'for (1..300) { defined($child = fork) or last; if (!$child) { sleep 20; exit } $n++ } print \"OVER\" if $n > 200'",
        ),
        (
            "one file",
            "head -c 40000000 /dev/zero > big; test $(stat -c %s big) -gt 16777216 && echo OVER; rm -f big",
        ),
        (
            "open files",
            "python3 -c 'f = [open(\"/dev/null\") for _ in range(1000)]; print(\"OVER\")' 2>/dev/null",
        ),
        (
            "temporary files",
            "for i in 1 2 3 4; do head -c 15000000 /dev/zero > /tmp/f$i; done; test $(du -sb /tmp | cut -f1) -gt 40000000 && echo OVER",
        ),
        (
            "shared memory",
            "for i in 1 2 3 4; do head -c 15000000 /dev/zero > /dev/shm/f$i; done; test $(du -sb /dev/shm | cut -f1) -gt 40000000 && echo OVER",
        ),
        (
            "the home",
            "for i in 1 2 3 4 5 6; do head -c 15000000 /dev/zero > ~/f$i; done; test $(du -sb ~ | cut -f1) -gt 80000000 && echo OVER",
        ),
    ];
    for setting in each_user() {
        let setting = keys.iter().fold(setting, |setting, key| setting.with(key));
        let mut bench = Bench::new(setting);
        bench.is_jailed();
        let before = bench.world.look();
        for (name, command) in cases {
            let answer = bench.bash_for(&format!("{command}\necho tr''ied"), 60);
            let told = format!("{name} ({:?}): {:.500}", bench.setting, answer.text);
            assert!(!answer.text.contains("OVER"), "{told}");
            bench.world.is_untouched(&before, &told);
            bench.lives(name);
        }
    }
}

#[test]
fn exit_codes_and_signals_are_told() {
    let cases = [
        ("true", "ok", None, json!(0)),
        ("exit 3", "failed", Some("[exit code 3]"), json!(3)),
        ("false", "failed", Some("[exit code 1]"), json!(1)),
        (
            "no-such-program-at-all",
            "failed",
            Some("[exit code 127]"),
            json!(127),
        ),
        ("kill -9 $$", "failed", Some("SIGKILL"), json!(null)),
        (
            "perl -e 'kill 11, $$'",
            "failed",
            Some("SIGSEGV"),
            json!(null),
        ),
        ("exit 139", "failed", Some("[exit code 139]"), json!(139)),
    ];
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        for (command, status, text, code) in &cases {
            let answer = bench.bash(command);
            assert_eq!(answer.status, *status, "{command}: {answer:?}");
            assert_eq!(answer.whole["structured"]["exit_code"], *code, "{answer:?}");
            match text {
                Some(text) => assert!(answer.text.contains(text), "{command}: {answer:?}"),
                None => assert!(!answer.text.contains("[exit code"), "{command}: {answer:?}"),
            }
        }
    }
}

#[test]
fn runs_in_the_background_end_with_their_session() {
    for setting in each_user() {
        for way in [Bench::end, Bench::kill] {
            let mut bench = Bench::new(setting.clone());
            let command = format!("setsid sleep {0} & sleep {0}", bench.world.token);
            let answer = bench.call("bash", json!({"command": command, "background": true}));
            assert!(answer.text.contains("run_id="), "{answer:?}");
            bench.world.somebody_is_there("the run");
            let listed = bench.call("list_runs", json!({}));
            assert!(listed.text.contains("sleep"), "{listed:?}");
            way(&mut bench);
            bench.world.nobody_is_left("the session ended");
        }
    }
}

#[test]
fn a_run_in_the_background_is_ended_by_name() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        let command = format!("sleep {}", bench.world.token);
        let answer = bench.call("bash", json!({"command": command, "background": true}));
        let id = answer.text.split("run_id=").nth(1).unwrap();
        let id: String = id
            .chars()
            .take_while(|it| it.is_ascii_hexdigit() || *it == '-')
            .collect();
        bench.world.somebody_is_there("the run");
        let killed = bench.call("kill_run", json!({"run_id": id}));
        assert_eq!(killed.status, "ok", "{killed:?}");
        bench.world.nobody_is_left("kill_run");
        bench.lives("kill_run");
    }
}

/// A client that goes away in the middle of a command.
#[test]
fn a_command_ends_with_the_program() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        bench.lives("the start");
        bench.send(
            "bash",
            json!({"command": format!("sleep {}", bench.world.token), "timeout": 300}),
        );
        bench.world.somebody_is_there("the command");
        bench.kill();
        bench.world.nobody_is_left("the program was killed");
    }
}

/// Nobody looked at what the command made: the next host tells it, once, and leaves it where it is.
#[test]
fn what_a_killed_host_did_not_hold_back_is_told_by_the_next_one() {
    for setting in each_user() {
        let mut bench = Bench::new(setting);
        bench.is_jailed();
        let work = bench.product.work.clone();
        let command = format!("echo evil > .envrc; : > made; sleep {}", bench.world.token);
        bench.send("bash", json!({"command": command, "timeout": 300}));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !work.join("made").exists() {
            assert!(Instant::now() < deadline, "the command never began");
            thread::sleep(Duration::from_millis(20));
        }
        bench.kill();
        bench.world.nobody_is_left("the program was killed");
        let told = |bench: &mut Bench| {
            let answer = bench.bash("echo al''ive");
            assert!(answer.text.contains("alive"), "{answer:?}");
            answer.whole["notes"].to_string()
        };
        let notes = told(&mut bench);
        let envrc = format!(
            "since that command began, `{}`",
            work.join(".envrc").display()
        );
        assert!(
            notes.contains(&envrc) && !notes.contains("made`"),
            "{notes}"
        );
        assert!(work.join(".envrc").exists());
        assert!(!told(&mut bench).contains("killed"));
        // This time nothing ran.
        bench.kill();
        assert!(!told(&mut bench).contains("killed"));
    }
}

/// A setting that the jail itself depends on cannot be reached by the commands in it.
#[test]
fn a_result_says_when_there_is_no_jail() {
    for setting in each_user() {
        let mut bench = Bench::new(Setting::with(setting, "tools.sandbox.disabled=true"));
        let answer = bench.bash("echo bare");
        assert!(answer.text.contains("bare"), "{answer:?}");
        assert!(answer.whole.to_string().contains("none"), "{answer:?}");
    }
}
