//! Filters standard input as the output of a command: `filter 'cargo test' 101 < log`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a tool for trying rules"
)]
use std::io::Read as _;
use zeph_core::command::{CommandLine, Segment, SimpleCommand, Wraps};
use zeph_filter::{BUILTIN, Filters, NoForeign, Output};
fn main() {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap();
    let code = args.next().and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut raw = Vec::new();
    std::io::stdin().read_to_end(&mut raw).unwrap();
    let mut words = command.split(' ').map(str::to_owned);
    let command = SimpleCommand {
        name: words.next().unwrap(),
        arguments: words.collect(),
        is_literal: true,
        wraps: Wraps::Nothing,
    };
    let line = CommandLine {
        last: Some(Segment {
            command,
            pipes: vec![],
            is_one_of_several: false,
        }),
        ..CommandLine::default()
    };
    let (filters, _) = Filters::load(BUILTIN, None);
    let output = Output {
        command: Some(&line),
        exit_code: Some(code),
        raw: &raw,
    };
    let filtered = filters.apply(&output, &NoForeign);
    let start = std::time::Instant::now();
    let n = 20;
    for _ in 0..n {
        std::hint::black_box(filters.apply(&output, &NoForeign));
    }
    let each = start.elapsed() / n;
    print!("{}", filtered.text);
    let saved =
        100.0 - 100.0 * filtered.size.bytes_after as f64 / filtered.size.bytes_before as f64;
    eprintln!(
        "--- {saved:.1}% {:?} {:?} {:?} {:?} {each:?}",
        filtered.rules, filtered.confidence, filtered.loss, filtered.notes
    );
}
