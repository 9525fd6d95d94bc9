//! Which command printed what a person sees last: for filters, which look at nothing else.

use zeph_core::command::{Hole, Segment, SimpleCommand, Wraps};

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
    "unset",
    ":",
    "true",
    "false",
    "unalias",
    "local",
    "readarray",
    "mapfile",
    "read",
    "shift",
    "return",
    "exit",
    "break",
    "continue",
    "test",
    "[",
    "sleep",
    "mkdir",
    "touch",
];

/// Commands of the shell that set something and print nothing, unless they are asked to list what is set.
const SETTING: &[&str] = &[
    "export", "set", "shopt", "alias", "umask", "declare", "typeset", "readonly", "ulimit", "hash",
];

/// Scripts that only set variables, by the names they usually have: what others print that `source` runs is not known.
const SILENT_SCRIPTS: &[&str] = &["activate", "env", ".env", "nvm.sh", ".bashrc", ".profile"];

/// How a shell spells the codes with which commands ended.
const STATUSES: &[&str] = &[
    "$?",
    "${?}",
    "$PIPESTATUS",
    "${PIPESTATUS}",
    "${PIPESTATUS[0]}",
    "${PIPESTATUS[@]}",
    "${PIPESTATUS[*]}",
];

/// Commands that say nothing but errors beside what they print, which is seen as such whoever says it.
const PLAIN: &[&str] = &[
    "cat", "cut", "date", "echo", "grep", "head", "jq", "ls", "printf", "pwd", "sed", "seq",
    "sort", "tail", "tr", "uniq", "wc",
];

/// The segment that prints last; `None` if it cannot be determined, or nothing prints.
pub(super) fn last(list: &List) -> Option<Segment> {
    let mut printed = Printed::default();
    collect(list, 0, &mut printed);
    let is_one_of_several = printed.segments.len() > 1 || printed.has_errors;
    while printed.segments.len() > 1 && printed.segments.last().is_some_and(is_remark) {
        printed.segments.pop();
    }
    let last = printed.segments.pop()??;
    Some(Segment {
        is_one_of_several: is_one_of_several || last.is_one_of_several,
        ..last
    })
}

/// `echo "exit: $?"`: a line that only says how what stands before it ended.
fn is_remark(segment: &Option<Segment>) -> bool {
    let Some(Segment { command, pipes, .. }) = segment else {
        return false;
    };
    let is_status = |hole: &Hole| {
        let argument = command.arguments.get(hole.argument);
        let part = argument.and_then(|argument| argument.get(hole.start..hole.end));
        part.is_some_and(|part| STATUSES.contains(&part))
    };
    pipes.is_empty()
        && matches!(command.base_name(), "echo" | "printf")
        && command.holes.iter().all(is_status)
}

/// What is seen of a list.
#[derive(Default)]
struct Printed {
    /// What prints, in order; `None` for what is no plain pipeline.
    segments: Vec<Option<Segment>>,
    /// Whether something is seen of a command besides what it prints: that goes to a file, but its errors do not.
    has_errors: bool,
}

fn collect(list: &List, depth: usize, printed: &mut Printed) {
    for pipeline in &list.pipelines {
        let Some(end) = pipeline.commands.last() else {
            continue;
        };
        if depth > WRAPPERS_MAX {
            printed.segments.push(None);
            continue;
        }
        match seen(end) {
            Seen::Everything => one(pipeline, depth, printed),
            Seen::Errors => printed.has_errors |= !is_plain(end),
            Seen::Nothing => {}
        }
    }
}

fn one(pipeline: &Pipeline, depth: usize, printed: &mut Printed) {
    let segments = &mut printed.segments;
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
            let mut inner = Printed::default();
            collect(&list, depth + 1, &mut inner);
            printed.has_errors |= inner.has_errors;
            match (pipes.is_empty(), inner.segments.as_mut_slice()) {
                (true, _) => segments.append(&mut inner.segments),
                (false, [Some(only)]) => {
                    only.pipes.extend(pipes);
                    segments.append(&mut inner.segments);
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
        if only_redirects || is_silent(base, arguments) {
            return LastCommand::Silent;
        }
        // Of the last two, what runs elsewhere prints: jobs, and a command when the shell ends.
        if matches!(base, "source" | "." | "wait" | "trap") {
            return LastCommand::Unclear;
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

fn is_silent(base: &str, arguments: &[Value]) -> bool {
    let texts = arguments.iter().map(|argument| argument.text.as_str());
    let texts: Vec<&str> = texts.collect();
    let first = texts.first().copied();
    match base {
        "source" | "." => {
            let script = first.and_then(|path| path.rsplit('/').next());
            script.is_some_and(|name| SILENT_SCRIPTS.contains(&name))
        }
        // These run nothing: `trap - EXIT`, `trap '' INT`.
        "trap" => matches!(first, Some("-" | "")),
        _ if SETTING.contains(&base) => !lists(base, &texts),
        _ => SILENT.contains(&base),
    }
}

/// Whether one of [`SETTING`] lists what is set.
fn lists(base: &str, arguments: &[&str]) -> bool {
    let has = |options: &[&str]| arguments.iter().any(|text| options.contains(text));
    let Some(last) = arguments.last() else {
        return true;
    };
    match base {
        "declare" | "typeset" => has(&["-p", "-f", "-F"]),
        "set" => matches!(arguments, ["-o" | "+o"]),
        "shopt" => !has(&["-s", "-u", "-so", "-uo"]),
        "umask" | "ulimit" => last.starts_with('-'),
        _ => has(&["-p", "-t", "-l"]),
    }
}

/// What is seen of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Everything,
    /// Its standard output goes to a file.
    Errors,
    /// Both go to one.
    Nothing,
}

fn seen(command: &SyntaxCommand) -> Seen {
    let (mut is_output_seen, mut are_errors_seen) = (true, true);
    for redirect in &command.redirects {
        let target = redirect.target.plain().unwrap_or_default();
        let (is_output, is_error) = match redirect.descriptor.as_str() {
            // `<>file` is the input.
            "" => (redirect.operator != "<>", false),
            "1" => (true, false),
            "2" => (false, true),
            _ => continue,
        };
        let to = match (redirect.kind, target) {
            (RedirectKind::Duplicate { is_output: true }, "1") => is_output_seen,
            (RedirectKind::Duplicate { is_output: true }, "2") => are_errors_seen,
            (RedirectKind::Duplicate { is_output: true } | RedirectKind::Write, target) => {
                matches!(target, "/dev/stdout" | "/dev/stderr" | "/dev/tty")
            }
            _ => continue,
        };
        // `>&file` is `&>file`, `>&3` and `>&-` are not.
        let is_descriptor = target == "-" || target.parse::<u32>().is_ok();
        let is_both = redirect.operator.starts_with('&')
            || (redirect.operator == ">&" && redirect.descriptor.is_empty() && !is_descriptor);
        if is_output {
            is_output_seen = to;
        }
        if is_error || is_both {
            are_errors_seen = to;
        }
    }
    match (is_output_seen, are_errors_seen) {
        (true, _) => Seen::Everything,
        (false, true) => Seen::Errors,
        (false, false) => Seen::Nothing,
    }
}

/// Whether a command prints nothing but errors beside its output.
fn is_plain(command: &SyntaxCommand) -> bool {
    match resolve(command) {
        LastCommand::Silent => true,
        LastCommand::Plain(command) => PLAIN.contains(&command.base_name()),
        LastCommand::Inside(_) | LastCommand::Unclear => false,
    }
}
