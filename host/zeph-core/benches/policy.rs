//! How long deciding takes: two hundred rules that all have to be asked, about a line of ten commands.
//!
//! `cargo bench -p zeph-core`. The bound to keep is 200 µs; the numbers of other profiles say nothing.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zeph_core::argument::{Arguments, Parameters};
use zeph_core::call::{CallFrame, FileFacts, ResolvedCall};
use zeph_core::command::{CommandLine, SimpleCommand, Wraps};
use zeph_core::id::ToolName;
use zeph_core::policy::{
    Action, BadRule, Decision, Effect, PermissionRule, PermissionSource, Permissions, Policy,
    PolicyRule, PolicyRuleText, PolicyRules, SessionFacts, authorise,
};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};

const N_CALLS: usize = 2_000;
const N_RULES: usize = 100;

/// What a decision may take, half of the time.
const REACH: Duration = Duration::from_micros(200);

/// Ten ordinary commands.
const COMMANDS: [&str; 10] = [
    "cd crates/server",
    "cargo build --release --features tls,http2",
    "cargo nextest run --workspace --no-fail-fast",
    "git add src/main.rs src/lib.rs Cargo.toml",
    "git commit -m server: answers are compressed when the client asks for it",
    "npm run build -- --mode production",
    "python3 scripts/report.py --input target/report.json --output report.html",
    "grep -rn TODO src",
    "tar -czf report.tar.gz report.html",
    "ls -la target/release",
];

fn main() -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let policy = policy()?;
    writeln!(
        io::stdout(),
        "| compiling 200 rules | {:.1?} | – | |",
        started.elapsed()
    )?;
    let call = call()?;
    let facts = SessionFacts::default();
    let mut times = Vec::with_capacity(N_CALLS);
    for _ in 0..N_CALLS {
        let call = call.clone();
        let started = Instant::now();
        let decision = black_box(authorise(&policy, &facts, call));
        times.push(started.elapsed());
        if !matches!(decision, Decision::Allow(_)) {
            return Err("every part has a rule".into());
        }
    }
    report("a decision by 200 rules about a compound command", times)
}

/// A hundred rules of each kind; what allows stands last.
fn policy() -> Result<Policy, BadRule> {
    let mut rules = Vec::new();
    let mut permissions = Vec::new();
    for idx in 0..N_RULES {
        let rule = PolicyRuleText {
            effect: Effect::Deny,
            tool: "bash".to_owned(),
            paths: Vec::new(),
            env: Vec::new(),
            trust_level: None,
            args_match: Some(format!(r"(^|\s)forbidden-{idx}\s+--(force|all)")),
            capabilities: Vec::new(),
            mode: None,
        };
        rules.push(PolicyRule::new(&rule, "/w")?);
        let pattern = match idx {
            0..90 if idx % 2 == 0 => format!("*secret-{idx}*"),
            0..90 => format!("tool-{idx} *"),
            _ => COMMANDS[idx - 90]
                .split_once(' ')
                .map_or(String::new(), |(name, _)| format!("{name} *")),
        };
        let action = if idx < 90 {
            Action::Deny
        } else {
            Action::Allow
        };
        permissions.push(PermissionRule::new(&pattern, action, "/w")?);
    }
    let sections = vec![("tools.policy".to_owned(), rules)];
    Ok(Policy {
        rules: Some(PolicyRules::new(sections, Effect::Allow)?),
        permissions: PermissionSource::Rules(Permissions::new([("bash".to_owned(), permissions)])),
        denies_network: true,
        ..Policy::default()
    })
}

fn call() -> Result<ResolvedCall, Box<dyn Error>> {
    let command = COMMANDS.join(" && ");
    let simple = COMMANDS.iter().map(|text| {
        let mut words = text.split(' ').map(str::to_owned);
        SimpleCommand {
            name: words.next().unwrap_or_default(),
            arguments: words.collect(),
            is_literal: true,
            holes: Vec::new(),
            wraps: Wraps::Nothing,
        }
    });
    let Value::Object(values) = json!({"command": command}) else {
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
        },
        arguments: Arguments {
            values,
            notes: Vec::new(),
        },
        paths: Vec::new(),
        command: Some(CommandLine {
            commands: simple.collect(),
            text: command,
            ..CommandLine::default()
        }),
        can_change: true,
        files: FileFacts::default(),
    })
}

fn report(what: &str, mut times: Vec<Duration>) -> Result<(), Box<dyn Error>> {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (p50, p99, max) = (at(50), at(99), at(100));
    let met = if p50 <= REACH { "met" } else { "missed" };
    writeln!(
        io::stdout(),
        "| {what} | p50 {p50:.1?}, p99 {p99:.1?}, at most {max:.1?} | p50 ≤ {REACH:?} | {met} |"
    )?;
    Ok(())
}
