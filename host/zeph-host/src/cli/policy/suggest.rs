//! `zeph-host policy suggest`: the smallest rules that recorded calls need, beside those that are active.

use std::path::PathBuf;

use serde_json::json;
use zeph_config::Config;
use zeph_core::policy::{Action, Effect, PermissionSource};

use crate::cli::args::PolicySuggest;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::page::print_json;
use crate::cli::records;
use crate::recording::CallRecord;
use crate::run::page::Page;
use crate::suggestion::rules::{RuleSuggestion, ToolRules};
use crate::suggestion::{self, ReadRecords};

/// Runs the command.
pub(super) fn run(context: &Context, options: &PolicySuggest) -> Result<Exit, CliError> {
    let config = context.config()?;
    let roots = config.file.roots.iter().map(|root| root.path.clone());
    let roots: Vec<PathBuf> = roots.collect();
    let mut rules = ToolRules::new(&roots);
    let from = &options.records.from;
    let file = context.surroundings.working_directory.join(from);
    let take = |call: CallRecord, read: &mut ReadRecords| {
        read.calls += 1;
        read.incomplete += u64::from(call.omitted > 0);
        rules.add(&call);
    };
    let read = suggestion::read(&file, options.records.include_untrusted, take);
    let read = read.map_err(records::unusable)?;
    if read.calls == 0 {
        let problem = format!("`{}` holds no call that counts", from.display());
        return Err(CliError::user(problem).hint(match read.notes().join("; ") {
            notes if notes.is_empty() => {
                "record some with `zeph-host run --record FILE`".to_owned()
            }
            notes => notes,
        }));
    }
    let suggestion = rules.suggestion();
    let mut notes = read.notes();
    notes.extend(suggestion.notes.iter().cloned());
    notes.extend(suggestion.outside.iter().map(|path| {
        format!("recorded, and not suggested because tools may not access it now: {path}")
    }));
    let active = active(&config);
    if options.records.json.json {
        print_json(&json!({
            "records": read,
            "active": active,
            "rules": suggestion.lines,
            "toml": suggestion.toml,
            "unseen": suggestion.unseen,
            "denied": records::denied_json(&suggestion.denied),
            "outside": suggestion.outside,
            "notes": notes,
        }))?;
        return Ok(Exit::Success);
    }
    context.notes(&notes);
    page(&read, &active, &suggestion).print()?;
    Ok(Exit::Success)
}

/// The rules that are active, in the order in which they are asked.
fn active(config: &Config) -> Vec<String> {
    let policy = &config.rules.policy;
    let effect = |effect| match effect {
        Effect::Allow => "allow",
        Effect::Deny => "deny",
    };
    let rules = policy.rules.iter().flat_map(|rules| rules.shown());
    let rules = rules.map(|rule| format!("{} {}", effect(rule.effect), rule.conditions.join(" ")));
    let mut active: Vec<String> = rules.collect();
    if let PermissionSource::Rules(permissions) = &policy.permissions {
        for (tool, rules) in permissions.rules() {
            let rules = rules.iter();
            active.extend(
                rules.map(|rule| format!("{} {tool} {}", action(rule.action()), rule.pattern())),
            );
        }
    }
    active
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

fn page(read: &ReadRecords, active: &[String], suggestion: &RuleSuggestion) -> Page {
    let mut page = Page::new();
    let mut comment = |text: &str| records::pasted(&mut page, 0, format!("# {text}").trim_end());
    comment(&format!(
        "{} recorded; `+` marks rules behind those that are active:",
        records::calls(read.calls)
    ));
    for line in active {
        comment(&format!("  {line}"));
    }
    for line in &suggestion.lines {
        comment(&format!("+ {line}"));
    }
    let mut remarks = Page::of_width(None);
    records::siblings(&mut remarks, &suggestion.unseen);
    records::denied(&mut remarks, &suggestion.denied);
    for line in anstream::adapter::strip_str(remarks.as_str())
        .to_string()
        .lines()
    {
        comment(line);
    }
    page.push("\n").push(&suggestion.toml);
    page
}
