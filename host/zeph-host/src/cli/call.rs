//! `zeph-host call`: one call, typed at the terminal.

mod loose;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::time::Instant;

use serde_json::{Map, Value};
use zeph_core::call::ToolRequest;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::output::Outcome;

use self::loose::Loose;
use super::args::{CallArgs, CallOutput};
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use super::out;
use crate::calls::CallReport;
use crate::heap;
use crate::host::Host;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::jsonl::answer::{self, RequestOrigin, Status};
use crate::run::one::{self, SingleCallEnd};
use crate::run::render::escape;
use crate::run::{prompt_input, question};
use crate::session::Session;

/// A call that was typed has neither ID nor line.
const NO_ORIGIN: RequestOrigin = RequestOrigin {
    id: None,
    line: None,
};

/// Runs the command.
#[inline(never)]
pub(super) fn run(context: &Context, options: CallArgs) -> Result<Exit, CliError> {
    heap::share();
    heap::keep();
    context.record(options.record.as_deref())?;
    let mut config = context.config()?;
    let loose = match loose::is_file(&options.tool) {
        true => Some(Loose::new(context, &mut config, &options.tool)?),
        false => None,
    };
    let (own, given) = match (&loose, options.arguments.split_first()) {
        (Some(_), Some((own, given))) => (Some(own.as_str()), given),
        (_, _) => (None, options.arguments.as_slice()),
    };
    let json = match &options.json {
        Some(_) if !given.is_empty() => return Err(twice()),
        Some(given) => Some(json_arguments(given, config.run.request_bytes_max)?),
        None => None,
    };
    context::block_on(async {
        let (host, tool) = match &loose {
            Some(loose) => {
                let program = loose.program(context);
                let host = context.start_as(program, config).await?;
                let tool = loose.tool(&host, own).await?;
                (host, tool)
            }
            None => {
                let host = context.start_for(config, &options.tool, false).await?;
                (host, options.tool.clone())
            }
        };
        let arguments = match json {
            Some(arguments) => arguments,
            None => match typed_arguments(&host, &tool, given).await {
                Err(error) if options.output == CallOutput::Json => return unread(&error),
                read => read?,
            },
        };
        let session = host
            .open_session(options.conversation, context.operator()?)
            .await?;
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let request = one::typed(&tool, arguments);
        let called = answered(&host, &session, request, &mut interrupts).await?;
        let called = followed(&host, &session, (&tool, called), &mut interrupts).await;
        let exit = exit(&called);
        if let Some(report) = &called.report {
            let note = read_back(&context.program(), &session, report);
            print(report, options.output, note.as_slice())?;
            if options.output != CallOutput::Json {
                context.notes(note.as_slice());
            }
        }
        host.keep_plugins();
        Ok(exit)
    })
}

/// Makes the call, and makes it again with the answers of the person at the terminal for as long as its tool asks.
async fn answered(
    host: &Host,
    session: &Session,
    mut request: ToolRequest,
    interrupts: &mut Interrupts,
) -> Result<SingleCallEnd, CliError> {
    // The answers are read from standard input; what is asked stands on standard error.
    let has_person = io::stdin().is_terminal() && io::stderr().is_terminal();
    loop {
        let watching = one::Watching::default();
        let called = one::call(host, session, request.clone(), watching, interrupts).await;
        let asked = called
            .report
            .as_ref()
            .and_then(|report| report.asked.as_ref());
        match asked {
            Some(asked) if has_person => {
                let put = question::put(&request.tool, asked, interrupts).await;
                let (answers, interruption) = put.map_err(CliError::terminal)?;
                if let Some(Interruption::Terminate | Interruption::HangUp) = interruption {
                    return Ok(SingleCallEnd {
                        report: None,
                        interruption,
                    });
                }
                request.answers = Some(answers);
            }
            _ => return Ok(called),
        }
    }
}

/// Waits for the command that the call began in the background: there is no later call to tell its end with. The first signal ends it.
async fn followed(
    host: &Host,
    session: &Session,
    (tool, mut called): (&str, SingleCallEnd),
    interrupts: &mut Interrupts,
) -> SingleCallEnd {
    let Some(report) = &mut called.report else {
        return called;
    };
    let Some(run_id) = report.begun_run(tool) else {
        return called;
    };
    let since = Instant::now();
    let mut ended = std::pin::pin!(host.ended_run(session, run_id));
    loop {
        tokio::select! {
            biased;
            output = &mut ended => {
                report.output = output.unwrap_or_else(|| report.output.clone());
                report.duration += since.elapsed();
                return called;
            }
            signal = interrupts.next() => {
                if called.interruption.replace(signal).is_some() {
                    return SingleCallEnd { report: None, ..called };
                }
                session.close().await;
            }
        }
    }
}

/// Answers a reader of JSON whose arguments could not be read: no call was made.
fn unread(error: &CliError) -> Result<Exit, CliError> {
    let message = error.problems.join("; ");
    let category = ErrorCategory::InvalidParameters;
    let failure = ToolFailure::new(category, ErrorPhase::ParamHandling, message);
    let line = answer::of_failure(&NO_ORIGIN, Status::Failed, &failure);
    out::data(&format!("{line}\n"))?;
    Ok(Exit::Usage)
}

fn twice() -> CliError {
    CliError::user("the arguments are given twice, as KEY=VALUE and with `--json`")
}

fn exit(called: &SingleCallEnd) -> Exit {
    let interrupted = Exit::Interrupted(called.interruption.unwrap_or(Interruption::Interrupt));
    match &called.report {
        None => interrupted,
        Some(report) => match Exit::of(&report.output.outcome) {
            Exit::Interrupted(_) => interrupted,
            other => other,
        },
    }
}

/// The arguments as `key=value`. For an unknown tool there are none: the call itself says what is wrong.
pub(super) async fn typed_arguments(
    host: &Host,
    name: &str,
    given: &[String],
) -> Result<Value, CliError> {
    if host.whole_catalog().resolve(name).is_err() {
        // It may belong to a plugin that is loaded for the first time.
        host.settled().await;
    }
    // A tool that is denied too: that the rules deny it is for the call itself to say.
    let tools = host.whole_catalog();
    let Ok(tool) = tools.resolve(name) else {
        return Ok(Value::Null);
    };
    let mut arguments = Map::new();
    for given in given {
        let (key, value) = prompt_input::argument(given, &tool.parameters).map_err(|problem| {
            let takes = tool.parameters.compact();
            CliError::user(problem).hint(format!("`{name}` takes {takes}"))
        })?;
        if arguments.contains_key(&key) {
            return Err(CliError::user(format!("`{key}` is given twice")));
        }
        arguments.insert(key, value);
    }
    Ok(Value::Object(arguments))
}

/// The arguments as JSON: the text itself, `@FILE`, or `-` for standard input.
pub(super) fn json_arguments(given: &str, bytes_max: usize) -> Result<Value, CliError> {
    let (place, text) = match given.strip_prefix('@') {
        Some(path) => {
            let problem = || format!("the arguments in `{path}` cannot be read");
            let file =
                File::open(path).map_err(|error| CliError::user(problem()).because(error))?;
            let text = bounded(file, bytes_max)
                .map_err(|error| CliError::user(problem()).because(error))?;
            (format!("`{path}`"), text)
        }
        None if given == "-" => {
            let text = bounded(io::stdin().lock(), bytes_max).map_err(|error| {
                CliError::user("the arguments on standard input cannot be read").because(error)
            })?;
            ("standard input".to_owned(), text)
        }
        None => ("`--json`".to_owned(), given.as_bytes().to_vec()),
    };
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| CliError::user(format!("{place} is not JSON")).because(error))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(CliError::user(format!("{place} is not a JSON object"))
            .hint("write one such as `--json '{\"path\": \"README.md\"}'`")),
    }
}

fn bounded(reader: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let message = format!("more than {bytes_max} bytes (`run.request_bytes`)");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The command that shows all of an output that was cut: the call had a conversation of its own, which the next one has not.
fn read_back(program: &str, session: &Session, report: &CallReport) -> Option<String> {
    let id = report.output.overflow?;
    let conversation = session.conversation();
    Some(format!(
        "`{program} call --conversation {conversation} read_overflow id=overflow:{id}` reads the stored output"
    ))
}

/// Prints the answer; `notes` belong to its JSON.
fn print(report: &CallReport, form: CallOutput, notes: &[String]) -> Result<(), CliError> {
    if form == CallOutput::Json {
        let mut line = answer::of_report(&NO_ORIGIN, report, notes);
        line.push('\n');
        return out::data(&line);
    }
    let output = &report.output;
    match &output.outcome {
        Outcome::Done => text(&output.text),
        // The lines below the output say how the command ended.
        Outcome::Failed(failure) if failure.exit.is_some() => text(output.produced()),
        Outcome::Failed(_) => {
            out::stderr(&format!("{}\n", escape(&output.text)));
            Ok(())
        }
    }
}

/// To a program the text as it is, to a terminal without what could drive it.
fn text(text: &str) -> Result<(), CliError> {
    let mut shown = match out::stdout_is_terminal() {
        true => escape(text),
        false => text.to_owned(),
    };
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('\n');
    }
    out::data(&shown)
}
