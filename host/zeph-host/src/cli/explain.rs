//! `zeph-host explain`: what would become of a call, and which rule says so. Makes no call and records nothing.

use serde_json::{Value, json};
use zeph_core::call::ToolRequest;
use zeph_core::failure::ToolFailure;
use zeph_core::output::Outcome;
use zeph_core::policy::{Decision, TraceStep, Verdict};
use zeph_core::principal::Principal;

use super::args::Explain;
use super::call;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use super::page::print_json;
use crate::run::approval_text;
use crate::run::page::Page;
use crate::run::render::{BOLD, DIM, RED, YELLOW};

/// Columns of the names of checks.
const CHECK_COLUMNS: usize = 13;

/// Runs the command.
pub(super) fn run(context: &Context, options: &Explain) -> Result<Exit, CliError> {
    let config = context.config()?;
    let allow = context.allow(&options.allow, &config)?;
    let json = match &options.arguments_json {
        Some(given) => Some(call::json_arguments(given, config.run.request_bytes_max)?),
        None => None,
    };
    context::block_on(async {
        let host = context.start_to_explain(config, allow).await?;
        let arguments = match json {
            Some(arguments) => arguments,
            None => call::typed_arguments(&host, &options.tool, &options.arguments).await?,
        };
        let principal = match options.as_person {
            true => context.operator()?,
            false => Principal::PROGRAM,
        };
        let mut session = host.look_on(options.conversation, principal);
        if options.as_task {
            session = session.of_schedule("");
        }
        let request = ToolRequest {
            answers: None,
            tool: options.tool.clone(),
            arguments,
        };
        let decided = host.explain(&session, request).await;
        match options.json.json {
            true => print_json(&as_json(&options.tool, &decided)),
            false => as_page(&options.tool, &decided, out::width()).print(),
        }?;
        Ok(exit(&decided))
    })
}

fn exit(decided: &Result<Decision, ToolFailure>) -> Exit {
    match decided {
        Ok(Decision::Allow(_)) => Exit::Success,
        Ok(Decision::Ask(_)) => Exit::Confirm,
        Ok(Decision::Deny(_)) => Exit::Refused,
        Err(failure) => Exit::of(&Outcome::Failed(failure.clone())),
    }
}

/// The verdict in a word and a style of its own.
fn word(decision: &Decision) -> (&'static str, clap::builder::styling::Style) {
    match decision {
        Decision::Allow(_) => ("allow", BOLD),
        Decision::Ask(_) => ("ask", YELLOW),
        Decision::Deny(_) => ("deny", RED),
    }
}

fn as_page(tool: &str, decided: &Result<Decision, ToolFailure>, width: Option<usize>) -> Page {
    let mut page = Page::of_width(width);
    let decision = match decided {
        Ok(decision) => decision,
        Err(failure) => {
            page.styled(0, RED, failure.category.label());
            page.line(0, &failure.message);
            return page;
        }
    };
    let (word, style) = word(decision);
    page.styled(0, style, &format!("{word}: {}", headline(tool, decision)));
    page.dim(0, &format!("decided by {}", decision.rule()));
    page.head("CHECKS");
    for step in decision.trace() {
        trace_line(&mut page, step);
    }
    let helps = what_helps(decision);
    if !helps.is_empty() {
        page.head("WHAT WOULD ALLOW IT");
    }
    for help in &helps {
        page.line(1, help);
    }
    page
}

fn headline(tool: &str, decision: &Decision) -> String {
    match decision {
        Decision::Allow(_) => format!("this call of `{tool}` would run"),
        Decision::Ask(refusal) => format!(
            "this call of `{tool}` would need approval: {}",
            refusal.reason
        ),
        Decision::Deny(refusal) => {
            format!("this call of `{tool}` would be refused: {}", refusal.reason)
        }
    }
}

fn trace_line(page: &mut Page, step: &TraceStep) {
    let verdict = match step.verdict {
        Verdict::Pass if step.would.is_some() => "trial",
        Verdict::Pass => "-",
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    };
    let rule = match &step.rule {
        Some(rule) if !step.detail.contains(rule.as_str()) => format!(" ({rule})"),
        _ => String::new(),
    };
    let style = match step.verdict {
        Verdict::Pass => DIM,
        Verdict::Deny => RED,
        Verdict::Ask => YELLOW,
        Verdict::Allow => BOLD,
    };
    let text = format!(
        "{:<CHECK_COLUMNS$}{verdict:<7}{}{rule}",
        step.check, step.detail
    );
    page.styled(1, style, &text);
}

/// Each way on a line of its own.
fn what_helps(decision: &Decision) -> Vec<String> {
    let (Decision::Ask(refusal) | Decision::Deny(refusal)) = decision else {
        return Vec::new();
    };
    let mut helps = Vec::new();
    if !refusal.allow.is_empty() {
        helps.push(format!(
            "for one run: zeph-host run {}",
            approval_text::flags(&refusal.allow)
        ));
        for rule in &refusal.allow {
            let (tool, pattern) = rule.split_once(':').unwrap_or((rule, "*"));
            let pattern = toml::Value::String(pattern.to_owned());
            helps.push(format!(
                "for good: [[tools.permissions.{tool}]] with pattern = {pattern} and action = \"allow\""
            ));
        }
    }
    if refusal.can_be_approved {
        helps.push(
            "for this very call: when it was refused, `zeph-host approve` with the id its refusal names"
                .to_owned(),
        );
    }
    if matches!(decision, Decision::Deny(_)) && helps.is_empty() {
        helps.push(format!("nothing but another rule: see {}", refusal.rule));
    }
    helps
}

fn as_json(tool: &str, decided: &Result<Decision, ToolFailure>) -> Value {
    let decision = match decided {
        Ok(decision) => decision,
        Err(failure) => return json!({ "tool": tool, "decision": "invalid", "error": failure }),
    };
    let (word, _) = word(decision);
    let mut value = json!({
        "tool": tool,
        "decision": word,
        "rule": decision.rule(),
        "trace": decision.trace(),
    });
    if let Decision::Ask(refusal) | Decision::Deny(refusal) = decision {
        value["reason"] = json!(refusal.reason);
        value["message"] = json!(refusal.failure.message);
        value["allow"] = json!(refusal.allow);
        value["can_be_approved"] = json!(refusal.can_be_approved);
    }
    value
}
