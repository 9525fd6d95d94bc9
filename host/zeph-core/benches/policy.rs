//! How long deciding takes: two hundred rules that all have to be asked, about a line of ten commands.
//!
//! `cargo bench -p zeph-core`. The bound to keep is 200 µs; the numbers of other profiles say nothing.

mod timing;

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use zeph_core::call::ResolvedCall;
use zeph_core::policy::{
    Action, BadRule, Decision, Effect, PermissionRule, PermissionSource, Permissions, Policy,
    PolicyRule, PolicyRuleText, PolicyRules, SessionFacts, authorise,
};

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
    let facts = SessionFacts::default();
    let label = "a decision by 200 rules about a compound command";
    let decide = |call| authorise(&policy, &facts, call);
    let is_allowed = |decision: &Decision| matches!(decision, Decision::Allow(_));
    timing::measure(label, REACH, &call()?, (decide, is_allowed))
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
        permissions.push(PermissionRule::new("bash", &pattern, action, "/w")?);
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
    let commands = COMMANDS.map(|text| timing::command(&text.split(' ').collect::<Vec<_>>()));
    timing::call(COMMANDS.join(" && "), commands.to_vec())
}
