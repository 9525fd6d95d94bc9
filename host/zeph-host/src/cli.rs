//! The command line: reads the arguments, sets the process up, runs one command, and turns its end into an exit code.
//!
//! In reading order: `args` and `help` (what can be typed), `error` (every message of ours), `exit` (the codes), `out`
//! (the only way to the standard streams), `log`, `context` (configuration and host of a command), then one file per
//! command. Nothing here decides about calls.

mod acp;
mod approve;
mod args;
mod ask;
mod audit;
mod call;
mod complete;
mod config;
mod context;
mod conversations;
mod doctor;
mod error;
mod exit;
mod explain;
mod filter;
mod filters;
mod forgive;
mod generate;
mod grants;
mod help;
mod hidden;
mod hook;
mod index;
mod jail;
mod log;
mod mcp;
mod mcp_config;
mod out;
mod page;
mod plugin;
mod policy;
mod records;
mod replay;
mod revoke;
mod run;
mod scheduler;
mod secret;
mod selftest;
mod serve;
mod stats;
mod store;
mod time;
mod token;
mod tools;
mod trust;
mod wrap;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches};
use zeph_core::principal::Operator;
use zeph_plugins::component::Component;

use self::args::{CliArgs, CliCommand, FrequentArgs};
use self::context::Context;
use self::error::CliError;
use self::exit::Exit;
use crate::{heap, process};

/// The program: runs the command line of this process with the tools that come with the host, and ends the process.
pub fn main() -> ExitCode {
    zeph_unwind::unpack_on_panic();
    heap::purge_soon();
    let exit = run_line(Component::first_party());
    heap::leave(exit.code())
}

/// The program with other components, for programs that bring their own tools.
pub fn main_with(components: Vec<Component>) -> ExitCode {
    run_line(components).into()
}

fn run_line(components: Vec<Component>) -> Exit {
    let typed: Vec<OsString> = std::env::args_os().collect();
    if let Some(compiled) = zeph_engine::compile_if_asked(&typed) {
        return compiled.map_or(Exit::Failure, |()| Exit::Success);
    }
    process::outlive_file_limit();
    // Before anything else in the process can.
    let operator = Operator::claim();
    match complete::answer(&typed) {
        Ok(true) => return Exit::Success,
        Ok(false) => {}
        Err(error) => {
            out::error(&error, true);
            return error.exit();
        }
    }
    let color = color_typed(&typed);
    set_color(color);
    let args = match parse(&typed, color) {
        Ok(args) => args,
        Err(error) => return refuse(&error, &typed),
    };
    if let Some(file) = &args.global.config {
        out::name_config(file);
    }
    let quiet = args.global.quiet > 0;
    let is_json_run = matches!(&args.command, CliCommand::Run(options) if options.json);
    match dispatch(args, components, operator) {
        Ok(exit) => exit,
        Err(error) => {
            if is_json_run {
                // A closed stream leaves nobody to tell.
                drop(run::agent::report(&error));
            }
            out::error(&error, quiet);
            error.exit()
        }
    }
}

#[inline(never)]
fn parse(typed: &[OsString], color: ColorChoice) -> Result<CliArgs, clap::Error> {
    if let Some(args) = FrequentArgs::read(typed) {
        return Ok(args);
    }
    let mut command = CliArgs::command().color(color);
    let matches = command.try_get_matches_from_mut(typed)?;
    CliArgs::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints help or what is wrong with the command line; help that was asked for is a success.
#[inline(never)]
fn refuse(error: &clap::Error, typed: &[OsString]) -> Exit {
    // A closed stream leaves nobody to tell.
    drop(error.print());
    if !error.use_stderr() {
        return Exit::Success;
    }
    match meant_command(typed).as_deref() {
        // An agent takes the exit code of a usage error for a veto.
        Some("hook") => Exit::Success,
        Some("run") if asks_for_events(typed) => {
            let said = error.to_string();
            let problem = said.lines().next().unwrap_or_default();
            let problem = problem.strip_prefix("error: ").unwrap_or(problem);
            drop(run::agent::report(&CliError::user(problem)));
            Exit::Usage
        }
        _ => Exit::Usage,
    }
}

/// The command of a command line that is wrong: what clap read, else the first word that is the name of one.
fn meant_command(typed: &[OsString]) -> Option<String> {
    let mut command = CliArgs::command().ignore_errors(true);
    let read = command.try_get_matches_from_mut(typed);
    let found = read
        .ok()
        .and_then(|read| read.subcommand_name().map(str::to_owned));
    found.or_else(|| {
        let words = typed.iter().skip(1).take_while(|word| *word != "--");
        let mut words = words.filter_map(|word| word.to_str());
        while let Some(word) = words.next() {
            if takes_next(&command, word) {
                words.next();
            } else if let Some(named) = command.find_subcommand(word) {
                return Some(named.get_name().to_owned());
            }
        }
        None
    })
}

/// Whether `word` is an option before the command whose value is the next word.
fn takes_next(command: &clap::Command, word: &str) -> bool {
    let long = word.strip_prefix("--");
    let mut options = command.get_arguments();
    options.any(|option| {
        let is_it = long.is_some() && option.get_long() == long;
        is_it && option.get_action().takes_values()
    })
}

/// Whether `--json` is on a command line that is wrong.
fn asks_for_events(typed: &[OsString]) -> bool {
    let mut words = typed.iter().take_while(|typed| *typed != "--");
    words.any(|typed| typed == "--json")
}

fn dispatch(
    args: CliArgs,
    components: Vec<Component>,
    operator: Option<Operator>,
) -> Result<Exit, CliError> {
    // These two describe the program itself: a broken environment must not stop them.
    match &args.command {
        CliCommand::Completions(options) => return generate::completions(options),
        CliCommand::Man => return generate::man(),
        // It shows what another host does: nothing of its own is read.
        CliCommand::Jail(options) => return jail::run(options),
        _ => {}
    }
    // An agent must not be stopped by what is wrong with its hook.
    if let CliCommand::Hook(options) = &args.command {
        return Ok(hook::run(args.global, components, options));
    }
    let context = Context::new(args.global, components)?.used_by(operator);
    match args.command {
        CliCommand::Run(options) => run::run(&context, options),
        CliCommand::Serve(options) => serve::run(&context, &options),
        CliCommand::Acp(options) => acp::run(context, options),
        CliCommand::Wrap(options) => wrap::run(&context, &options),
        CliCommand::Call(options) => call::run(&context, options),
        command => dispatch_short(&context, command),
    }
}

/// The commands that soon end, but for a call. Never inlined, as the others are not: one function would hold the room that all of them need on
/// the stack for as long as one server runs, some 200 kB of it, and a call would touch every page of it.
#[inline(never)]
fn dispatch_short(context: &Context, command: CliCommand) -> Result<Exit, CliError> {
    match command {
        CliCommand::Tools(options) => tools::run(context, options),
        CliCommand::Plugin(options) => plugin::run(context, options),
        CliCommand::Config(options) => config::run(context, options),
        CliCommand::Audit(options) => audit::run(context, options),
        CliCommand::Conversations(options) => conversations::run(context, options),
        CliCommand::Grants(options) => grants::run(context, &options),
        CliCommand::Replay(options) => replay::run(context, &options),
        CliCommand::Scheduler(options) => scheduler::run(context, options),
        CliCommand::Approve(options) => approve::run(context, &options),
        CliCommand::Revoke(options) => revoke::run(context, &options),
        CliCommand::Forgive(options) => forgive::run(context, &options),
        CliCommand::Explain(options) => explain::run(context, &options),
        CliCommand::Policy(options) => policy::run(context, options),
        CliCommand::Mcp(options) => mcp::run(context, options),
        CliCommand::McpConfig(options) => mcp_config::run(context, &options),
        CliCommand::Secret(options) => secret::run(context, options),
        CliCommand::Token(options) => token::run(context, options),
        CliCommand::Store(options) => store::run(context, options),
        CliCommand::Trust(options) => trust::run(context, options),
        CliCommand::Doctor(options) => doctor::run(context, &options),
        CliCommand::Filter(options) => filter::run(context, options),
        CliCommand::Filters(options) => filters::run(context, options),
        CliCommand::Stats(options) => stats::run(context, &options),
        CliCommand::Index(options) => index::run(context, &options),
        CliCommand::Selftest(options) => selftest::run(context, options),
        CliCommand::Run(_)
        | CliCommand::Call(_)
        | CliCommand::Serve(_)
        | CliCommand::Acp(_)
        | CliCommand::Wrap(_)
        | CliCommand::Completions(_)
        | CliCommand::Man
        | CliCommand::Hook(_)
        | CliCommand::Jail(_) => Ok(Exit::Success),
    }
}

/// What `--color` says, found before anything is parsed: a message about a wrong command line has to obey it too.
fn color_typed(typed: &[OsString]) -> ColorChoice {
    let mut color = ColorChoice::Auto;
    let mut words = typed.iter().filter_map(|word| word.to_str()).peekable();
    while let Some(word) = words.next() {
        let value = match word {
            "--" => break,
            "--color" => words.peek().copied(),
            _ => word.strip_prefix("--color="),
        };
        color = match value {
            Some("always") => ColorChoice::Always,
            Some("never") => ColorChoice::Never,
            Some("auto") => ColorChoice::Auto,
            _ => color,
        };
    }
    color
}

fn set_color(color: ColorChoice) {
    match color {
        // `NO_COLOR`, `CLICOLOR_FORCE` and whether it is a terminal are looked at by anstream.
        ColorChoice::Auto => {}
        ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}

#[cfg(test)]
mod tests;
