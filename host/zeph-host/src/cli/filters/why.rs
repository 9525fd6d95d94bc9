//! `zeph-host filters why`: which rules would act on the output of a command, why others would not, and which of them name a
//! strategy that is not there.

use serde_json::{Value, json};
use zeph_core::command::CommandLine;
use zeph_filter::Explanation;
use zeph_plugins::refusal::quoted_words;
use zeph_shell::analysis::analyse;

use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::filter::ready::Ready;
use crate::cli::page::print_json;
use crate::run::page::Page;
use crate::run::render::RED;

/// Runs the command.
pub(super) fn run(context: &Context, words: &[String], as_json: bool) -> Result<Exit, CliError> {
    let ready = Ready::new(context, context.config()?);
    let text = match words {
        [text] => text.clone(),
        words => quoted_words(words.iter().map(Into::into)),
    };
    let explanation = explanation(&ready, analyse(&text))?;
    match as_json {
        true => print_json(&explained(explanation)),
        false => page(&explanation).print(),
    }?;
    Ok(Exit::Success)
}

/// Looks at the plugins only when a rule for this command names one of their strategies.
fn explanation(ready: &Ready, line: CommandLine) -> Result<Explanation, CliError> {
    let (filtering, strategies) = (ready.filtering.clone(), ready.strategies());
    let work = move || filtering.filters().why_with(&line, &*strategies);
    context::block_on(async {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| CliError::internal("the plugins cannot be looked at").because(error))
    })
}

fn page(explanation: &Explanation) -> Page {
    let mut page = Page::new();
    for line in explanation.to_string().lines() {
        match line.contains(" cannot act: ") {
            true => page.styled(0, RED, line),
            false => page.line(0, line),
        };
    }
    page
}

fn explained(explanation: Explanation) -> Value {
    let Explanation {
        command,
        acting,
        unable,
        off,
        reason,
    } = explanation;
    let named = |rules: Vec<(String, String)>| -> Vec<Value> {
        let rules = rules.into_iter();
        rules
            .map(|(rule, reason)| json!({ "rule": rule, "reason": reason }))
            .collect()
    };
    json!({
        "command": command,
        "acting": acting,
        "cannot_act": named(unable),
        "off": named(off),
        "reason": reason,
    })
}
