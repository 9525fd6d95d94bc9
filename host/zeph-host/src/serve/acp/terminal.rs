//! Commands in the terminal of an editor.
//!
//! The terminal starts `zeph-host jail`, which reaches this host over a socket in a private directory and shows what the command prints;
//! the command runs here, in its jail, as every command does. That the program reached us proves that the terminal can start it. Where it
//! does not, the jail would be missing: then the command runs in the terminal as it is, but only if its user agrees to exactly that.

mod bare;

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use zeph_acp::client::{
    Acknowledged, CreateTerminalRequest, CreateTerminalResponse, OfTerminal, TERMINAL_CREATE,
    TERMINAL_KILL, TERMINAL_RELEASE, TERMINAL_WAIT, TerminalExit,
};
use zeph_acp::connection::RequestError;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::Execution;
use zeph_core::exit::CommandExit;
use zeph_core::failure::{ToolFailure, one_line};
use zeph_engine::Cancel;
use zeph_shell::run::{OutputChunk, StreamKind};

use super::screen::{self, END, STDERR, STDOUT};
use super::session::AcpSession;
use crate::approval::{ApprovalPrompt, ApprovalQuestion};

/// How long the editor may take to start a program.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take for everything else.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of output the editor keeps.
const OUTPUT_BYTES: u64 = 1 << 20;

/// Pieces of output that wait to be shown; what finds no room is counted.
pub(super) const CHUNKS_MAX: usize = 64;

/// A terminal of a client that shows one command.
#[derive(Debug)]
pub(crate) struct EditorTerminal {
    session: Arc<AcpSession>,
    call_id: String,
    /// What the command prints; taken by the one command.
    printed: Mutex<Option<mpsc::Receiver<OutputChunk>>>,
}

/// A command, and what it is asked about with.
#[derive(Debug, Clone)]
pub(crate) struct ShownCommand<'a> {
    /// The command line.
    pub(crate) text: &'a str,
    /// Where it starts.
    pub(crate) directory: &'a Path,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// The call, for a question about it.
    pub(crate) question: ApprovalQuestion,
}

/// A command that runs in the jail: what it comes to, once it is over.
pub(crate) type JailedRun<'a> = Pin<Box<dyn Future<Output = Execution> + Send + 'a>>;

/// Why a command is not shown by our program.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NotShown {
    /// The editor cannot start it, for this reason.
    CannotStart(String),
    /// The call was cancelled, or the client is gone.
    Cancelled,
}

impl EditorTerminal {
    pub(super) fn new(
        session: &Arc<AcpSession>,
        call_id: &str,
        printed: mpsc::Receiver<OutputChunk>,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            call_id: call_id.to_owned(),
            printed: Mutex::new(Some(printed)),
        }
    }

    /// Runs a command, shown in the terminal. `jailed` runs it here, in its jail, and ends soon after `cancel`.
    pub(crate) async fn run(
        &self,
        command: ShownCommand<'_>,
        jailed: JailedRun<'_>,
        (cancel, ask): (&Cancel, Option<&ApprovalPrompt>),
    ) -> Execution {
        let shown = match self.session.jail_missing() {
            Some(why) => Err(NotShown::CannotStart(why)),
            None => self.show(&command, cancel).await,
        };
        match shown {
            Ok(shown) => self.follow(shown, jailed, cancel).await,
            Err(NotShown::Cancelled) => Execution::failed(cancelled()),
            Err(NotShown::CannotStart(why)) => {
                drop(jailed);
                self.session.misses_jail(&why);
                self.without_jail(&command, &why, (cancel, ask)).await
            }
        }
    }

    /// Has the editor start our program, and waits for it.
    async fn show(
        &self,
        command: &ShownCommand<'_>,
        cancel: &Cancel,
    ) -> Result<ShownRun, NotShown> {
        let cannot = |error: io::Error| NotShown::CannotStart(error.to_string());
        let folder = tempfile::Builder::new().prefix("zeph-terminal-").tempdir();
        let folder = folder.map_err(cannot)?;
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(cannot)?;
        let program = std::env::current_exe().map_err(cannot)?;
        let terminal = self
            .create(
                program.to_string_lossy().into_owned(),
                vec![
                    "jail".to_owned(),
                    "--socket".to_owned(),
                    socket.to_string_lossy().into_owned(),
                    "--".to_owned(),
                    command.text.to_owned(),
                ],
                (command.directory, cancel),
            )
            .await?;
        let came = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(NotShown::Cancelled),
            came = listener.accept() => came.map(|(stream, _)| stream).map_err(cannot),
            ended = self.ask::<TerminalExit>(TERMINAL_WAIT, &terminal) => Err(ended_early(&ended)),
            () = tokio::time::sleep(START_PATIENCE) => {
                Err(NotShown::CannotStart("the program did not report".to_owned()))
            }
        };
        match came {
            Ok(stream) => Ok(ShownRun {
                terminal,
                stream,
                _folder: folder,
            }),
            Err(why) => {
                self.give_up(&terminal, true).await;
                Err(why)
            }
        }
    }

    /// Makes a terminal, which the call shows from now on.
    async fn create(
        &self,
        program: String,
        args: Vec<String>,
        (directory, cancel): (&Path, &Cancel),
    ) -> Result<String, NotShown> {
        let request = CreateTerminalRequest {
            session_id: self.session.id().to_owned(),
            command: program,
            args,
            env: Vec::new(),
            cwd: directory.to_string_lossy().into_owned(),
            output_byte_limit: OUTPUT_BYTES,
        };
        let connection = self.session.connection();
        // It is awaited even when the call is cancelled: a terminal that nobody knows of could not be released.
        let created = connection.request::<CreateTerminalResponse>(TERMINAL_CREATE, &request);
        let created = tokio::time::timeout(START_PATIENCE, created).await;
        match created {
            Ok(Ok(CreateTerminalResponse { terminal_id })) => {
                if cancel.is_cancelled() {
                    self.give_up(&terminal_id, true).await;
                    return Err(NotShown::Cancelled);
                }
                self.session.call_in_terminal(&self.call_id, &terminal_id);
                Ok(terminal_id)
            }
            Ok(Err(RequestError::Gone)) => Err(NotShown::Cancelled),
            Ok(Err(error)) => Err(NotShown::CannotStart(one_line(&error.to_string(), 300))),
            Err(_elapsed) => Err(NotShown::CannotStart(
                "the editor made no terminal".to_owned(),
            )),
        }
    }

    /// Shows a command that runs in its jail, to its end. Closing the terminal cancels it.
    async fn follow(
        &self,
        shown: ShownRun,
        mut jailed: JailedRun<'_>,
        cancel: &Cancel,
    ) -> Execution {
        let ShownRun {
            terminal,
            stream,
            _folder,
        } = shown;
        let printed = self
            .printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (reader, writer) = stream.into_split();
        let (code, ended) = oneshot::channel();
        let mut showing = JoinSet::new();
        showing.spawn(show_all(writer, printed, ended));
        let mut was_closed = false;
        let end = {
            let mut closed = std::pin::pin!(closed(reader));
            loop {
                tokio::select! {
                    biased;
                    end = &mut jailed => break end,
                    () = &mut closed, if !was_closed => {
                        was_closed = true;
                        cancel.cancel();
                    }
                }
            }
        };
        drop(jailed);
        // The task may have ended with the terminal.
        code.send(exit_code(&end)).unwrap_or_default();
        let is_cut = was_closed || cancel.is_cancelled() || is_timeout(&end);
        if !is_cut {
            drop(tokio::time::timeout(PATIENCE, showing.join_next()).await);
            let waited = self.ask::<TerminalExit>(TERMINAL_WAIT, &terminal);
            drop(tokio::time::timeout(PATIENCE, waited).await);
        }
        self.give_up(&terminal, is_cut).await;
        match was_closed {
            true => end.with_notes(vec![
                "the terminal of the command was closed in the editor".to_owned(),
            ]),
            false => end,
        }
    }

    /// Ends what runs in a terminal, if anything does, and gives it up.
    async fn give_up(&self, terminal: &str, kills: bool) {
        if kills {
            let killed = self.ask::<Acknowledged>(TERMINAL_KILL, terminal);
            drop(tokio::time::timeout(PATIENCE, killed).await);
        }
        let released = self.ask::<Acknowledged>(TERMINAL_RELEASE, terminal);
        if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, released).await {
            tracing::debug!(%error, "a terminal was not released");
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        terminal: &str,
    ) -> Result<T, RequestError> {
        let of = OfTerminal {
            session_id: self.session.id().to_owned(),
            terminal_id: terminal.to_owned(),
        };
        self.session.connection().request(method, &of).await
    }
}

/// A command that our program shows.
struct ShownRun {
    terminal: String,
    stream: UnixStream,
    /// Where the socket is.
    _folder: TempDir,
}

/// Writes what is printed, then how it ended.
async fn show_all(
    mut writer: OwnedWriteHalf,
    printed: Option<mpsc::Receiver<OutputChunk>>,
    ended: oneshot::Receiver<u8>,
) -> io::Result<()> {
    if let Some(mut printed) = printed {
        while let Some(chunk) = printed.recv().await {
            if chunk.n_skipped > 0 {
                let line = format!("\n[{} bytes are not shown]\n", chunk.n_skipped);
                frame(&mut writer, STDERR, line.as_bytes()).await?;
            }
            let letter = match chunk.stream {
                StreamKind::Stdout => STDOUT,
                StreamKind::Stderr => STDERR,
            };
            frame(&mut writer, letter, chunk.text.as_bytes()).await?;
        }
    }
    let code = ended.await.unwrap_or(1);
    frame(&mut writer, END, &[code]).await?;
    writer.shutdown().await
}

async fn frame(writer: &mut OwnedWriteHalf, letter: u8, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(screen::FRAME_BYTES_MAX) {
        writer.write_all(&screen::head(letter, piece.len())).await?;
        writer.write_all(piece).await?;
    }
    Ok(())
}

/// Returns when the program in the terminal is gone. It never says anything.
async fn closed(mut reader: OwnedReadHalf) {
    let mut byte = [0; 1];
    while reader
        .read(&mut byte)
        .await
        .is_ok_and(|n_bytes| n_bytes > 0)
    {}
}

fn ended_early(ended: &Result<TerminalExit, RequestError>) -> NotShown {
    match ended {
        Err(RequestError::Gone) => NotShown::Cancelled,
        Err(error) => NotShown::CannotStart(one_line(&error.to_string(), 300)),
        Ok(exit) => NotShown::CannotStart(match exit.exit_code {
            Some(code) => format!("the program ended at once, with exit code {code}"),
            None => "the program ended at once".to_owned(),
        }),
    }
}

fn exit_code(end: &Execution) -> u8 {
    let code = end.exit_code().unwrap_or(match &end.result {
        Ok(_) => 0,
        Err(failure) => failure.exit.map_or(1, CommandExit::shell_code),
    });
    u8::try_from(code).unwrap_or(1)
}

fn is_timeout(end: &Execution) -> bool {
    matches!(&end.result, Err(failure) if failure.category == ErrorCategory::Timeout)
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(
        ErrorCategory::Cancelled,
        ErrorPhase::Execution,
        "the command was cancelled",
    )
}
