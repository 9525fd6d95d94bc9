//! Calls and rules made by hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::argument::{Arguments, Parameters};
use crate::call::{CallFrame, FileFacts, ResolvedCall};
use crate::command::{
    CommandLine, Redirection, SimpleCommand, Unknown, WordPlace, WordPlaces, Wraps,
};
use crate::id::ToolName;
use crate::policy::{
    Action, CommandPattern, Decision, Effect, PermissionRule, PermissionSource, Permissions,
    Policy, PolicyRule, PolicyRuleText, PolicyRules, SessionFacts, ShellLists, authorise,
};
use crate::tool::{Annotations, Backend, Tool, ToolKind};

/// A call of a program.
pub(super) fn call(name: &str, arguments: Value, paths: &[&str]) -> ResolvedCall {
    let Value::Object(values) = arguments else {
        panic!("arguments are an object");
    };
    ResolvedCall {
        frame: CallFrame::alone(),
        tool: Tool {
            name: ToolName::new(name).unwrap(),
            title: None,
            description: String::new(),
            parameters: Parameters::new(json!({"type": "object"})).unwrap(),
            output: None,
            kind: ToolKind::Other,
            annotations: Annotations {
                read_only: matches!(name, "read" | "grep"),
                ..Annotations::default()
            },
            backend: Backend::Builtin,
        }
        .into(),
        arguments: Arguments {
            values,
            notes: Vec::new(),
        },
        paths: paths.iter().map(PathBuf::from).collect(),
        command: None,
        can_change: true,
        files: FileFacts::default(),
    }
}

/// A call of the shell: `|` in `parts` separates simple commands, a `^` before one makes it a transparent wrapper, a `>` one
/// that the command before it runs, a `?` stands for something that cannot be known.
pub(super) fn bash(text: &str, parts: &str) -> ResolvedCall {
    let mut line = CommandLine {
        text: text.to_owned(),
        ..CommandLine::default()
    };
    for part in parts.split('|').map(str::trim) {
        if part == "?" {
            line.unknown.push(Unknown {
                reason: "`eval` runs text".to_owned(),
                part: text.to_owned(),
            });
            continue;
        }
        let (wraps, part) = match part.strip_prefix('^') {
            Some(rest) => (Wraps::Transparently, rest),
            None => match part.strip_prefix('>') {
                Some(rest) => (Wraps::Within, rest),
                None => (Wraps::Nothing, part),
            },
        };
        let mut words = part.split_whitespace().map(str::to_owned);
        let Some(name) = words.next() else { continue };
        line.commands.push(SimpleCommand {
            name,
            arguments: words.collect(),
            is_literal: true,
            holes: Vec::new(),
            wraps,
        });
    }
    line.places.directories = Some(vec!["/w".into()]);
    let mut call = call("bash", json!({"command": text}), &[]);
    Arc::make_mut(&mut call.tool).backend = Backend::Shell;
    call.command = Some(line);
    call
}

/// A line in `/w`, whose `/tmp` is its own: `OPERATOR TARGET` for each redirection, all of them of every part; the target `?` is not
/// known.
pub(super) fn redirected(parts: &str, redirections: &[&str]) -> ResolvedCall {
    let text = format!(
        "{} {}",
        parts.replace(" | ", " && "),
        redirections.join(" ")
    );
    let mut call = bash(text.trim(), parts);
    let line = call.command.as_mut().unwrap();
    line.places.has_private_tmp = true;
    for redirection in redirections {
        let (operator, target) = redirection.split_once(' ').unwrap();
        let target = Some(target).filter(|target| *target != "?");
        let place = |target: &str| vec![Path::new("/w").join(target)];
        line.places.redirections.push(target.map(place));
        line.redirections.push(Redirection {
            operator: operator.to_owned(),
            target: target.map(str::to_owned),
            writes: operator.contains('>'),
            commands: 0..line.commands.len(),
        });
    }
    call
}

/// A line with words that lead somewhere: a path, `BEGINNING…END`, or `?`.
pub(super) fn naming(parts: &str, words: &[&str]) -> ResolvedCall {
    let mut call = plain(parts);
    let line = call.command.as_mut().unwrap();
    for word in words {
        let place = match word.split_once('…') {
            Some((beginning, end)) => WordPlace::Like {
                beginnings: vec![beginning.to_owned()],
                end: end.to_owned(),
            },
            None if *word == "?" => WordPlace::Unknown,
            None => WordPlace::Known(vec![Path::new("/w").join(word)]),
        };
        line.places.words.push(WordPlaces {
            word: (*word).to_owned(),
            place,
        });
    }
    call
}

/// A line whose text is its parts.
pub(super) fn plain(parts: &str) -> ResolvedCall {
    bash(&parts.replace(" | ", " && ").replace(['^', '>'], ""), parts)
}

/// `allow PATTERN`, `ask PATTERN` or `deny PATTERN`, for `tool`.
pub(super) fn permissions(tool: &str, rules: &[&str]) -> PermissionSource {
    let rules = rules.iter().map(|rule| {
        let (action, pattern) = rule.split_once(' ').unwrap();
        let action = match action {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            _ => Action::Deny,
        };
        PermissionRule::new(tool, pattern, action, "/w").unwrap()
    });
    PermissionSource::Rules(Permissions::new([(tool.to_owned(), rules.collect())]))
}

/// The lists as they are shipped.
pub(super) fn lists() -> PermissionSource {
    let patterns = |texts: &[&str]| {
        let patterns = texts.iter().map(|text| CommandPattern::new(text).unwrap());
        patterns.collect()
    };
    PermissionSource::Lists(ShellLists {
        blocked: patterns(&[
            "sudo", "su", "doas", "mkfs", "dd if=", "shutdown", "reboot", "halt", "poweroff",
        ]),
        confirm: patterns(&[
            "rm ",
            "git push -f",
            "git push --force",
            "drop table",
            "drop database",
            "truncate ",
        ]),
        ..ShellLists::default()
    })
}

/// A rule over the arguments of every tool `tool` fits.
pub(super) fn rule(effect: Effect, tool: &str, args_match: Option<&str>) -> PolicyRuleText {
    PolicyRuleText {
        effect,
        tool: tool.to_owned(),
        paths: Vec::new(),
        env: Vec::new(),
        trust_level: None,
        args_match: args_match.map(str::to_owned),
        capabilities: Vec::new(),
        mode: None,
    }
}

/// `tools.policy` with these rules.
pub(super) fn rules(rules: &[PolicyRuleText], default_effect: Effect) -> Option<PolicyRules> {
    let rules = rules
        .iter()
        .map(|rule| PolicyRule::new(rule, "/w").unwrap());
    let sections = vec![("tools.policy".to_owned(), rules.collect())];
    Some(PolicyRules::new(sections, default_effect).unwrap())
}

/// `allow`, `ask` or `deny`.
pub(super) fn decide(policy: &Policy, call: ResolvedCall) -> &'static str {
    decide_with(policy, &SessionFacts::default(), call)
}

pub(super) fn decide_with(
    policy: &Policy,
    facts: &SessionFacts<'_>,
    call: ResolvedCall,
) -> &'static str {
    word(&authorise(policy, facts, call))
}

pub(super) fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    }
}
