//! `zeph-host wrap`: serves one native MCP server as its own, and converts the end to an exit code.

mod learned;
mod name;
mod report;
mod server;

pub(super) use self::name::name_of;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeph_core::principal::Principal;
use zeph_shell::jail::PathWatch;

use self::report::Report;
use super::args::Wrap;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use crate::host::{Host, NativeOptions};
use crate::run::interrupt::Interrupts;
use crate::serve::Server;
use crate::serve::conversation::Conversation;
use crate::serve::native::{NativeServer, Relay};
use crate::serve::stdio::{self, Ended};
use crate::{heap, idle};

/// How long a client takes for its first requests, which take memory that later ones need not.
const FIRST_REQUESTS: Duration = Duration::from_secs(2);

/// Runs the command.
#[inline(never)]
pub(super) fn run(context: &Context, options: &Wrap) -> Result<Exit, CliError> {
    heap::share();
    let wrapped = server::wrapped(context, options)?;
    let watch = options.learn.then(PathWatch::default);
    // On this thread alone: one client and one server mostly wait for each other, and each thread has pages of its own.
    context::block_on(async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let relay = Relay::new(wrapped.config.serve.approval_ttl);
        let native = NativeOptions {
            name: wrapped.name.clone(),
            listener: Arc::clone(&relay) as _,
            asks: options.ask,
            watch: watch.clone(),
        };
        // Apart, so that what a start takes is not kept room for as long as the server runs.
        let starting = context.start_native(wrapped.config.clone(), native);
        let host = Box::pin(starting).await?;
        if io::stdin().is_terminal() {
            let note = "a client speaks the Model Context Protocol on standard input; agents start this command themselves";
            context.notes(&[note.to_owned()]);
        }
        let native = NativeServer::new(&host, wrapped.name.clone(), relay);
        let report = Report::begin(&host, &wrapped, native.complaints(), watch);
        let mut beside = JoinSet::new();
        beside.spawn(tidy(host.clone()));
        let exit = Box::pin(serve(&host, native, &mut interrupts)).await;
        let is_at_end = matches!(exit, Ok(Exit::Success));
        let was_active = report.end(is_at_end).await;
        match exit? {
            Exit::Success if !was_active => Ok(Exit::Start),
            exit => Ok(exit),
        }
    })
}

/// Gives back the memory that the start took, once the server stands: it idles most of the time, beside others.
async fn tidy(host: Host) {
    host.settled().await;
    tokio::time::sleep(FIRST_REQUESTS).await;
    if let Err(error) = host.store().give_back_memory(heap::give_back).await {
        tracing::debug!(%error, "the store keeps its memory");
    }
    idle::give_back();
}

/// Serves the client on the standard streams.
async fn serve(
    host: &Host,
    native: NativeServer,
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let principal = Principal::Model { caller_id: None };
    let session = host.open_session(None, principal).await?;
    let conversation = Conversation::new(host, session);
    let server = Server::of_native(host, native);
    match stdio::serve(
        &server,
        conversation,
        (interrupts, &CancellationToken::new()),
    )
    .await
    {
        Ok(Ended::AtEnd) => Ok(Exit::Success),
        Ok(Ended::Interrupted(interruption)) => Ok(Exit::Interrupted(interruption)),
        Ok(Ended::OutputClosed) => Ok(Exit::BrokenPipe),
        Err(error) => Err(CliError::internal("a thread cannot be started").because(error)),
    }
}
