//! `zeph-host serve`: serves the tools over the Model Context Protocol, and converts the end to an exit code.

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;

use tokio_util::sync::CancellationToken;
use zeph_core::principal::Principal;

use super::args::Serve;
use super::context::{self, Context};
use super::error::CliError;
use super::exit::Exit;
use crate::host::Host;
use crate::run::interrupt::Interrupts;
use crate::scheduler::clockwork::Clockwork;
use crate::serve::Server;
use crate::serve::conversation::Conversation;
use crate::serve::http;
use crate::serve::stdio::{self, Ended};

/// Runs the command.
#[inline(never)]
pub(super) fn run(context: &Context, options: &Serve) -> Result<Exit, CliError> {
    context.record(options.record.as_deref())?;
    let config = context.config()?;
    let allow = context.allow(&options.allow, &config)?;
    let served = async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let host = context.start(config, true, allow, None).await?;
        let clockwork = Clockwork::start(&host);
        if let Some(address) = options.http {
            let ends = (&mut interrupts, clockwork.draining());
            let ended = http(context, &host, address, options, ends).await;
            clockwork.end().await;
            return ended;
        }
        if io::stdin().is_terminal() {
            let note = "a client speaks the Model Context Protocol on standard input; agents start this command themselves";
            context.notes(&[note.to_owned()]);
        }
        let ends = (&mut interrupts, clockwork.draining());
        let ended = stdio(&host, options, ends).await;
        clockwork.end().await;
        ended
    };
    match options.http {
        Some(_) => context::block_on_threads(served),
        // One client: handing a call from thread to thread takes longer than what they would do at the same time.
        None => context::block_on(served),
    }
}

/// Serves clients over HTTP.
async fn http(
    context: &Context,
    host: &Host,
    address: SocketAddr,
    options: &Serve,
    ends: (&mut Interrupts, &CancellationToken),
) -> Result<Exit, CliError> {
    let server = Server::new(host);
    let (names, program) = (options.allow_host.clone(), context.program());
    let endpoint = http::listen(&server, address, names, program).await?;
    context.notes(&[format!("listening on {}", endpoint.url())]);
    if endpoint.is_open() {
        let note = "every local program may call tools; `zeph-host token add NAME` makes a token, which is required from then on";
        context.notes(&[note.to_owned()]);
    }
    Ok(Exit::Interrupted(
        http::serve(&server, endpoint, ends).await,
    ))
}

/// Serves the client on the standard streams.
async fn stdio(
    host: &Host,
    options: &Serve,
    ends: (&mut Interrupts, &CancellationToken),
) -> Result<Exit, CliError> {
    let principal = Principal::Model { caller_id: None };
    let session = host.open_session(options.conversation, principal).await?;
    let conversation = Conversation::new(host, session);
    let server = Server::new(host);
    match stdio::serve(&server, conversation, ends).await {
        Ok(Ended::AtEnd) => Ok(Exit::Success),
        Ok(Ended::Interrupted(interruption)) => Ok(Exit::Interrupted(interruption)),
        Ok(Ended::OutputClosed) => Ok(Exit::BrokenPipe),
        Err(error) => Err(CliError::internal("a thread cannot be started").because(error)),
    }
}
