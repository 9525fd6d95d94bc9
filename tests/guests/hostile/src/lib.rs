//! A plugin whose tools misbehave, one way each, and a few that behave: the tests run them through the whole line.

mod asks;
mod files;
mod flaky;
mod programs;

use std::hint::black_box;
use std::net::TcpStream;
use std::time::{Duration, Instant, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Deserialize;
use zeph_plugin::{Annotations, Content, Context, Output, Tool, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
struct Amount {
    /// How many.
    n: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Message {
    /// Given back.
    text: String,
}

/// Everything this plugin offers.
pub fn tools() -> Vec<Tool> {
    vec![
        Tool::new("echo", |message: Message, _: &Context| {
            Ok(Output::text(message.text))
        })
        .describe("Gives its text back.")
        .read_only(),
        Tool::new("knows", |_: Nothing, context: &Context| {
            Ok(asks::knows(context))
        })
        .describe("Says what it knows of its call.")
        .read_only(),
        Tool::new("asks", asks::asks)
            .describe("Asks the user and says what came back.")
            .read_only(),
        tool("spin", |_: Nothing| {
            loop {
                black_box(0);
            }
        }),
        tool("hog", |_: Nothing| {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                kept.push(black_box(vec![1; 1 << 20]));
            }
        }),
        tool("recurse", |amount: Amount| {
            Ok(Output::text(recurse(amount.n).to_string()))
        }),
        tool("panics", |message: Message| panic!("{}", message.text)),
        tool("exits", exit),
        tool("sleeps", |_: Nothing| {
            std::thread::sleep(Duration::from_secs(3600));
            Ok(Output::text("woke up"))
        }),
        tool("flood_host", |_: Nothing| {
            loop {
                black_box(Instant::now());
            }
        }),
        tool("flood_log", |amount: Amount| {
            for n in 0..amount.n {
                zeph_plugin::log::info(&format!("line {n} of a flood"));
            }
            Ok(Output::text("done"))
        }),
        tool("flood_stdout", |amount: Amount| {
            for n in 0..amount.n {
                println_of_the_guest(n);
            }
            Ok(Output::text("done"))
        }),
        tool("giant_result", |amount: Amount| {
            let n_bytes = usize::try_from(amount.n).unwrap_or(usize::MAX);
            Ok(Output::text("x".repeat(n_bytes)))
        }),
        tool("many_blocks", |amount: Amount| {
            let content = (0..amount.n)
                .map(|_| Content::Text(String::new()))
                .collect();
            Ok(Output {
                content,
                ..Output::text("")
            })
        }),
        tool("bad_json", |message: Message| {
            Ok(Output {
                structured: Some(message.text),
                ..Output::text("done")
            })
        }),
        tool("deep_json", |amount: Amount| {
            let depth = usize::try_from(amount.n).unwrap_or(0);
            Ok(Output {
                structured: Some("[".repeat(depth) + &"]".repeat(depth)),
                ..Output::text("done")
            })
        }),
        tool("forges", |message: Message| {
            Err(ToolError::permanent(message.text))
        }),
        tool("looks_around", |_: Nothing| Ok(Output::text(look_around()))),
        tool("files", files::run),
        Tool::new("file_changes", |arguments, _: &Context| {
            files::run(arguments)
        })
        .describe("Works on files, and may change something."),
        tool("program", programs::run),
        Tool::new("program_changes", |run: programs::Run, _: &Context| {
            programs::run(run)
        })
        .describe("Runs a program that may change something."),
        tool("reads_and_dates", |message: Message| {
            let read = std::fs::read_to_string(message.text);
            let read = read.map_err(|error| ToolError::io(error.kind(), error.to_string()))?;
            let now = UNIX_EPOCH.elapsed();
            Ok(Output::text(format!("{read} {now:?}")))
        }),
        Tool::new("flaky", |flaky, _: &Context| flaky::run(flaky))
            .describe("Fails at first; making it again does no harm.")
            .annotations(REPEATABLE),
        Tool::new("flaky_once", |flaky, _: &Context| flaky::run(flaky))
            .describe("Fails at first; making it again may do harm."),
    ]
}

const REPEATABLE: Annotations = Annotations {
    read_only: false,
    destructive: false,
    idempotent: true,
    open_world: true,
};

/// A tool that promises to be read-only, true or not: promises are no rights.
fn tool<A>(name: &'static str, run: impl Fn(A) -> Result<Output, ToolError> + 'static) -> Tool
where
    A: serde::de::DeserializeOwned + JsonSchema,
{
    Tool::new(name, move |arguments: A, _: &Context| run(arguments))
        .describe("Misbehaves.")
        .read_only()
}

#[expect(unconditional_recursion, reason = "that is its purpose")]
fn recurse(n: u64) -> u64 {
    recurse(black_box(n) + 1) + 1
}

#[expect(clippy::exit, reason = "that is its purpose")]
fn exit(amount: Amount) -> Result<Output, ToolError> {
    std::process::exit(i32::try_from(amount.n).unwrap_or(1))
}

#[expect(clippy::print_stdout, reason = "standard output is what is tested")]
fn println_of_the_guest(n: u64) {
    println!("line {n} of a flood");
}

/// What a guest without grants finds: variables, arguments, the network.
fn look_around() -> String {
    let variables: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
    let arguments: Vec<_> = std::env::args().collect();
    let connected = TcpStream::connect("127.0.0.1:80").is_ok();
    format!("variables {variables:?}, arguments {arguments:?}, connected {connected}")
}

zeph_plugin::export!(tools);
