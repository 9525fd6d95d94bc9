//! What the border of a component costs a filter: each strategy in wasm, in a warm instance as a session keeps it, against the same
//! code native, over a megabyte of build log.
//!
//! Both alternate in one process. Prints one row of the figures table for each strategy.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use zeph_core::id::PluginId;
use zeph_engine::{Engine, EngineOptions, FilterInput, FilterSession, Plugin};
use zeph_filter::{BUILTIN, Filters, Input, Lines, STRATEGIES};

const N_ROUNDS: usize = 40;
const N_WARM: usize = 5;
const TEXT_BYTES: usize = 1 << 20;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let options = EngineOptions {
        guest_threads: 1,
        pooled: true,
        cache_dir: None,
        on_compile: None,
    };
    let engine = Engine::new(&options).expect("an engine");
    let standard = zeph_bundle::FILTERS[0];
    let id = PluginId(standard.name.to_owned());
    let digest = standard.digest.parse().expect("it is a digest");
    let plugin = Plugin::embedded_filter(&engine, id, digest, standard.bytes, Vec::new());
    let session = FilterSession::new(&engine);
    let measuring = engine.on_guest_thread(move || measure(&plugin, session));
    runtime.block_on(measuring).expect("it does not panic");
}

fn measure(plugin: &Plugin, mut session: FilterSession) {
    let text = text();
    let (filters, _) = Filters::load(BUILTIN, None);
    for definition in &STRATEGIES {
        let is_of = |rule: &&zeph_filter::Rule| rule.strategy() == definition.name;
        let Some(rule) = filters.rules().into_iter().find(is_of) else {
            continue;
        };
        let native = (definition.create)(rule.options()).expect("a built-in rule");
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for round in 0..N_ROUNDS + N_WARM {
            // Taking the text apart is part of the work on either side.
            let of_native = time(|| {
                let lines = Lines::of(&text);
                let input = Input {
                    command: "make",
                    exit_code: Some(0),
                    lines: &lines,
                };
                drop(native.apply(&input));
            });
            let of_wasm = time(|| {
                let input = FilterInput {
                    command: "make",
                    exit_code: Some(0),
                    text: &text,
                };
                let answer = session.apply(plugin, definition.name, rule.options(), &input);
                drop(answer.expect("an answer"));
            });
            if round >= N_WARM {
                here.push(of_native);
                there.push(of_wasm);
            }
        }
        let (here, there) = (median(&mut here), median(&mut there));
        println!("{}", row(definition.name, here, there));
    }
}

/// A row of the table: times of one megabyte, and what the border costs.
fn row(name: &str, here: Duration, there: Duration) -> String {
    let reach_ms = match name {
        "dedup" => 10.0,
        _ => 5.0,
    };
    let ms_per_mb = |time: Duration| time.as_secs_f64() * 1e3 * 1e6 / TEXT_BYTES as f64;
    let verdict = if ms_per_mb(there) <= reach_ms {
        "met"
    } else {
        "missed"
    };
    format!(
        "| strategy `{name}` in wasm | {:.2} ms/MB against {:.2} native | ≤ {reach_ms} ms/MB | {:.2} {verdict} |",
        ms_per_mb(there),
        ms_per_mb(here),
        there.as_secs_f64() / here.as_secs_f64()
    )
}

/// A build log: most lines tell of progress, some of warnings, none twice.
fn text() -> String {
    let mut text = String::new();
    let mut n = 0;
    while text.len() < TEXT_BYTES {
        n += 1;
        let line = match n % 50 {
            0 => format!(
                "src/part{n}.c:{n}:5: warning: unused variable 'x{n}' [-Wunused-variable]\n"
            ),
            1..=20 => format!(
                "[{:3}%] Building C object src/CMakeFiles/app.dir/part{n}.c.o\n",
                n % 100
            ),
            21..=30 => format!("2026-11-21T12:00:{:02} INFO worker {n} is ready\n", n % 60),
            _ => format!("cc -O2 -Wall -Iinclude -c -o build/part{n}.o src/part{n}.c\n"),
        };
        text.push_str(&line);
    }
    text
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
