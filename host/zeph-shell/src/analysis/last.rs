//! Which command printed what a person sees last: for filters, which look at nothing else.

use zeph_core::command::{Segment, SimpleCommand, Wraps};

use super::brace;
use super::reader;
use super::syntax::{CommandShape, Dialect, List, Pipeline, RedirectKind, SyntaxCommand, Word};
use super::value::Value;
use super::walk::command_of;
use super::wrapper::{self, WrappedCommand};

/// Most wrappers looked through.
const WRAPPERS_MAX: usize = 16;

/// Commands that print nothing when they succeed.
const SILENT: &[&str] = &[
    "cd",
    "export",
    "set",
    "unset",
    "shopt",
    "source",
    ".",
    ":",
    "true",
    "false",
    "trap",
    "alias",
    "unalias",
    "umask",
    "wait",
    "local",
    "declare",
    "typeset",
    "readonly",
    "readarray",
    "mapfile",
    "read",
    "shift",
    "return",
    "exit",
    "break",
    "continue",
    "ulimit",
    "hash",
    "test",
    "[",
    "sleep",
    "mkdir",
    "touch",
];

/// The segment that prints last; `None` if it cannot be determined, or nothing prints.
pub(super) fn last(list: &List) -> Option<Segment> {
    let mut segments = Vec::new();
    collect(list, 0, &mut segments);
    let is_one_of_several = segments.len() > 1;
    let last = segments.pop()??;
    Some(Segment {
        is_one_of_several: is_one_of_several || last.is_one_of_several,
        ..last
    })
}

/// What prints, in order; `None` for what is no plain pipeline.
fn collect(list: &List, depth: usize, segments: &mut Vec<Option<Segment>>) {
    for pipeline in &list.pipelines {
        let Some(end) = pipeline.commands.last() else {
            continue;
        };
        if depth > WRAPPERS_MAX {
            segments.push(None);
        } else if !is_redirected(end) {
            one(pipeline, depth, segments);
        }
    }
}

fn one(pipeline: &Pipeline, depth: usize, segments: &mut Vec<Option<Segment>>) {
    let Some((first, rest)) = pipeline.commands.split_first() else {
        return;
    };
    let pipes: Option<Vec<String>> = rest
        .iter()
        .map(|command| match resolve(command) {
            LastCommand::Plain(command) => Some(command.base_name().to_owned()),
            LastCommand::Silent | LastCommand::Inside(_) | LastCommand::Unclear => None,
        })
        .collect();
    let Some(pipes) = pipes else {
        return segments.push(None);
    };
    match resolve(first) {
        LastCommand::Silent if pipes.is_empty() => {}
        LastCommand::Silent | LastCommand::Unclear => segments.push(None),
        LastCommand::Plain(command) => segments.push(Some(Segment {
            command,
            pipes,
            is_one_of_several: false,
        })),
        LastCommand::Inside(list) => {
            let mut inner = Vec::new();
            collect(&list, depth + 1, &mut inner);
            match (pipes.is_empty(), inner.as_mut_slice()) {
                (true, _) => segments.append(&mut inner),
                (false, [Some(only)]) => {
                    only.pipes.extend(pipes);
                    segments.append(&mut inner);
                }
                (false, _) => segments.push(None),
            }
        }
    }
}

enum LastCommand {
    Silent,
    Plain(SimpleCommand),
    /// A group, or the text of `bash -c`.
    Inside(List),
    Unclear,
}

fn resolve(command: &SyntaxCommand) -> LastCommand {
    match &command.shape {
        CommandShape::Simple { words, .. } => resolve_words(words),
        CommandShape::Group(list) | CommandShape::Subshell(list) => {
            LastCommand::Inside(list.clone())
        }
        // `(( … ))`.
        CommandShape::Control { lists, .. } if lists.is_empty() => LastCommand::Silent,
        CommandShape::Test(_) | CommandShape::Function(..) => LastCommand::Silent,
        CommandShape::Control { .. }
        | CommandShape::For { .. }
        | CommandShape::Select { .. }
        | CommandShape::Coprocess { .. } => LastCommand::Unclear,
    }
}

fn resolve_words(words: &[Word]) -> LastCommand {
    let mut values: Vec<Value> = words
        .iter()
        .flat_map(brace::expand)
        .map(|word| Value::of(&word))
        .collect();
    for _ in 0..WRAPPERS_MAX {
        let Some((name, arguments)) = values.split_first() else {
            return LastCommand::Silent;
        };
        if !name.is_name {
            return LastCommand::Unclear;
        }
        let base = name.text.rsplit('/').next().unwrap_or(&name.text);
        let only_redirects = base == "exec" && arguments.is_empty();
        if SILENT.contains(&base) || only_redirects {
            return LastCommand::Silent;
        }
        let look = wrapper::look(base, arguments);
        if look.unknown.is_some() {
            return LastCommand::Unclear;
        }
        values = match (look.wraps, look.inner.as_slice()) {
            (Wraps::Transparently, [WrappedCommand::Words(words)]) => words.clone(),
            (Wraps::Transparently, [WrappedCommand::Text(text) | WrappedCommand::Bash(text)])
                if text.is_literal =>
            {
                return match reader::read(&text.text, Dialect::Bash, reader::DEPTH_MAX / 2) {
                    Ok(script) => LastCommand::Inside(script.list),
                    Err(_) => LastCommand::Unclear,
                };
            }
            (Wraps::Transparently, _) => return LastCommand::Unclear,
            (Wraps::Nothing | Wraps::Within | Wraps::WithEffect, _) => {
                return LastCommand::Plain(command_of(name, arguments, look.wraps));
            }
        };
    }
    LastCommand::Unclear
}

/// Whether its standard output goes to a file.
fn is_redirected(command: &SyntaxCommand) -> bool {
    command.redirects.iter().any(|redirect| {
        let is_output = matches!(redirect.descriptor.as_str(), "" | "1");
        is_output && redirect.kind == RedirectKind::Write
    })
}
