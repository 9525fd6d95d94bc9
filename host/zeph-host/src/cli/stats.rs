//! `zeph-host stats`: what shortening outputs and using results again saved, and how often calls needed a person.

use serde_json::{Value, json};
use zeph_core::text::counted;
use zeph_store::{AskedCalls, CacheSavings, Savings};

use super::args::Stats;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::run::table;

/// Bytes per token, roughly, over the outputs of tools. An estimate for people; no decision depends on it.
const TOKEN_BYTES: u64 = 4;

/// A rule whose outputs are read back more often than one in so many leaves out what is needed.
const OUTPUTS_PER_READ_BACK: u64 = 10;

/// Runs the command.
pub(super) fn run(context: &Context, options: &Stats) -> Result<Exit, CliError> {
    let store = context.store_to_look(&context.config()?)?;
    context::block_on(async {
        let mut rules = store.savings(options.conversation).await?;
        let cache = store.cache_savings(options.conversation).await?;
        let asked = store.asked_calls(options.conversation).await?;
        // The sums over all outputs come first, when there are any.
        let all = match rules.first() {
            Some(first) if first.rule.is_empty() => rules.remove(0),
            _ => Savings::default(),
        };
        match options.json.json {
            true => out::json(&json!({
                "all": as_json(&all),
                "rules": rules.iter().map(as_json).collect::<Vec<Value>>(),
                "cache": cache,
                "approvals": approvals_as_json(asked),
            })),
            false => {
                match all.n_outputs {
                    0 => out::remark("no output was filtered yet"),
                    _ => print(&all, &rules)?,
                }
                print_cache(cache)?;
                print_asked(asked)
            }
        }?;
        Ok(Exit::Success)
    })
}

fn tokens_saved(savings: &Savings) -> u64 {
    savings.bytes_before.saturating_sub(savings.bytes_after) / TOKEN_BYTES
}

fn is_read_back_often(savings: &Savings) -> bool {
    savings.n_read_back * OUTPUTS_PER_READ_BACK > savings.n_shortened
}

fn as_json(savings: &Savings) -> Value {
    let mut value = json!(savings);
    value["tokens_saved"] = json!(tokens_saved(savings));
    value["read_back_often"] = json!(is_read_back_often(savings));
    if savings.rule.is_empty() {
        value.as_object_mut().map(|fields| fields.remove("rule"));
    }
    value
}

fn print(all: &Savings, rules: &[Savings]) -> Result<(), CliError> {
    let rows: Vec<[String; 7]> = rules.iter().chain([all]).map(row).collect();
    let head = [
        "RULE",
        "OUTPUTS",
        "LINES",
        "BYTES",
        "TOKENS SAVED",
        "F/P/B",
        "READ BACK",
    ];
    out::styled(&table::render(head, &rows, None))?;
    for rule in rules.iter().filter(|rule| is_read_back_often(rule)) {
        out::note(&format!(
            "what `{}` leaves out is read back often: {} of {}",
            rule.rule,
            rule.n_read_back,
            counted(rule.n_shortened, "time", "times")
        ));
    }
    Ok(())
}

/// What the cache of results saved, of the calls that are still recorded.
fn print_cache(cache: CacheSavings) -> Result<(), CliError> {
    let CacheSavings { n_hits, bytes } = cache;
    if n_hits == 0 {
        return Ok(());
    }
    out::styled(&format!(
        "{} answered from the result of an earlier one: {}\n",
        counted(n_hits, "call was", "calls were"),
        counted(bytes, "byte", "bytes")
    ))
}

fn per_100_calls(asked: AskedCalls) -> u64 {
    asked.n_asked.saturating_mul(100) / asked.n_calls.max(1)
}

fn approvals_as_json(asked: AskedCalls) -> Value {
    json!({
        "calls": asked.n_calls,
        "asked": asked.n_asked,
        "unanswered": asked.n_unanswered,
        "per_100_calls": per_100_calls(asked),
    })
}

/// How often calls of models and programs needed a person, of those that are still recorded.
fn print_asked(asked: AskedCalls) -> Result<(), CliError> {
    let AskedCalls {
        n_calls,
        n_asked,
        n_unanswered,
    } = asked;
    let per_100 = per_100_calls(asked);
    match n_calls {
        0 => Ok(()),
        _ => out::styled(&format!(
            "{n_asked} of {} needed approval ({per_100} per 100 calls), {n_unanswered} of them unanswered\n",
            counted(n_calls, "call", "calls")
        )),
    }
}

fn row(savings: &Savings) -> [String; 7] {
    let Savings {
        rule,
        n_outputs,
        n_shortened,
        lines_before,
        lines_after,
        bytes_before,
        bytes_after,
        n_full,
        n_partial,
        n_fallback,
        n_read_back,
    } = savings;
    let name = match rule.as_str() {
        "" => "all",
        name => name,
    };
    [
        name.to_owned(),
        format!("{n_shortened} of {n_outputs}"),
        format!("{lines_before} -> {lines_after}"),
        format!(
            "{bytes_before} -> {bytes_after}, {}",
            percent(*bytes_before, *bytes_after)
        ),
        tokens_saved(savings).to_string(),
        format!("{n_full}/{n_partial}/{n_fallback}"),
        n_read_back.to_string(),
    ]
}

/// What was saved, in whole numbers.
fn percent(before: u64, after: u64) -> String {
    let per_mille = before.saturating_sub(after).saturating_mul(1000) / before.max(1);
    format!("{}.{}%", per_mille / 10, per_mille % 10)
}
