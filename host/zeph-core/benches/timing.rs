//! What the benches share: a call of `bash`, the loop that times, and a row of the table.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::command::{CommandLine, SimpleCommand, Wraps};
use zeph_core::id::ToolName;
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

const N_CALLS: usize = 2_000;

/// A command whose words are all known.
pub(crate) fn command(words: &[&str]) -> SimpleCommand {
    let mut words = words.iter().map(|word| (*word).to_owned());
    SimpleCommand {
        name: words.next().unwrap_or_default(),
        arguments: words.collect(),
        is_literal: true,
        holes: Vec::new(),
        wraps: Wraps::Nothing,
    }
}

/// A call of `bash` with this text, which consists of these commands.
pub(crate) fn call(
    text: String,
    commands: Vec<SimpleCommand>,
) -> Result<ResolvedCall, Box<dyn Error>> {
    let Value::Object(values) = json!({ "command": text }) else {
        return Err("arguments are an object".into());
    };
    Ok(ResolvedCall {
        frame: CallFrame::alone(),
        tool: Tool {
            name: ToolName::new("bash")?,
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({"type": "object"}))?,
            output: None,
            kind: ToolKind::Execute,
            annotations: Annotations::default(),
            backend: Backend::Shell,
        }
        .into(),
        arguments: Arguments {
            values,
            notes: Vec::new(),
        },
        paths: Vec::new(),
        command: Some(CommandLine {
            commands,
            text,
            ..CommandLine::default()
        }),
        can_change: true,
        files: FileFacts::default(),
    })
}

/// Times `work` on a copy of `call`, 2,000 times, and prints a row: half of the decisions may take `bound` at most.
///
/// Errors: what `work` returns is not as `is_expected` wants it; those of standard output.
pub(crate) fn measure<T>(
    label: &str,
    bound: Duration,
    call: &ResolvedCall,
    (work, is_expected): (impl Fn(ResolvedCall) -> T, fn(&T) -> bool),
) -> Result<(), Box<dyn Error>> {
    let mut times = Vec::with_capacity(N_CALLS);
    for _ in 0..N_CALLS {
        let call = call.clone();
        let started = Instant::now();
        let done = black_box(work(call));
        times.push(started.elapsed());
        if !is_expected(&done) {
            return Err(format!("{label}: another decision than expected").into());
        }
    }
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (p50, p99, max) = (at(50), at(99), at(100));
    let met = if p50 <= bound { "met" } else { "missed" };
    writeln!(
        io::stdout(),
        "| {label} | p50 {p50:.1?}, p99 {p99:.1?}, at most {max:.1?} | p50 ≤ {bound:?} | {met} |"
    )?;
    Ok(())
}
