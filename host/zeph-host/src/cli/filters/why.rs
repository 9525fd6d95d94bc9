//! `zeph-host filters why`: which rules would act on the output of a command, why others would not, and which of them name a
//! strategy that is not there.

use serde_json::{Value, json};
use zeph_filter::Explanation;
use zeph_shell::analysis::analyse;

use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::filter::ready::Ready;
use crate::cli::page::print_json;
use crate::plugins::refusal::quoted_words;
use crate::run::page::Page;
use crate::run::render::RED;

/// A rule that acts and finds no strategy.
struct Lacking {
    rule: String,
    strategy: String,
    reason: String,
}

/// Runs the command.
pub(super) fn run(context: &Context, words: &[String], as_json: bool) -> Result<Exit, CliError> {
    let ready = Ready::new(context, context.config()?);
    let text = match words {
        [text] => text.clone(),
        words => quoted_words(words.iter().map(Into::into)),
    };
    let line = analyse(&text);
    let explanation = ready.filtering.filters().why(&line);
    let lacking = lacking(&ready, &explanation)?;
    match as_json {
        true => print_json(&explained(explanation, lacking)),
        false => page(&explanation, &lacking).print(),
    }?;
    Ok(Exit::Success)
}

/// Looks at the plugins only when an acting rule names one of their strategies.
fn lacking(ready: &Ready, explanation: &Explanation) -> Result<Vec<Lacking>, CliError> {
    let rules = ready.filtering.filters().rules().iter();
    let named: Vec<(String, String)> = rules
        .filter(|rule| explanation.acting.contains(&rule.name))
        .filter_map(|rule| Some((rule.name.clone(), rule.foreign()?.to_owned())))
        .collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let strategies = ready.strategies();
    let work = move || {
        let lacking = named.into_iter().filter_map(|(rule, strategy)| {
            let reason = strategies.why_absent(&strategy)?;
            Some(Lacking {
                rule,
                strategy,
                reason,
            })
        });
        lacking.collect()
    };
    context::block_on(async {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| CliError::internal("the plugins cannot be looked at").because(error))
    })
}

fn page(explanation: &Explanation, lacking: &[Lacking]) -> Page {
    let mut page = Page::new();
    page.text(0, &explanation.to_string());
    for Lacking { rule, reason, .. } in lacking {
        page.styled(0, RED, &format!("rule `{rule}` cannot work: {reason}"));
    }
    page
}

fn explained(explanation: Explanation, lacking: Vec<Lacking>) -> Value {
    let Explanation {
        command,
        acting,
        off,
        reason,
    } = explanation;
    let off = off
        .into_iter()
        .map(|(rule, reason)| json!({ "rule": rule, "reason": reason }));
    let lacking = lacking.into_iter().map(
        |Lacking {
             rule,
             strategy,
             reason,
         }| json!({ "rule": rule, "strategy": format!("wasm:{strategy}"), "reason": reason }),
    );
    json!({
        "command": command,
        "acting": acting,
        "off": off.collect::<Vec<_>>(),
        "lacking": lacking.collect::<Vec<_>>(),
        "reason": reason,
    })
}
