//! Asks at the terminal of the process while its standard streams belong to a program: `zeph-host run --ask`.
//!
//! One question at a time; a call that is cancelled or a person who does not answer withdraws it. Nothing that was typed before a
//! question was shown answers it.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, PipeReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::approval::{self, ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};
use crate::run::approval_text;
use crate::run::render::{BOLD, YELLOW};
use crate::run::typed_ahead;
use zeph_core::lifetime::Lifetime;

/// The terminal of the process, whatever its standard streams are.
const TERMINAL: &str = "/dev/tty";

/// How long a person has: a coffee. Then the call is refused as if nobody were there, and can be approved later.
const ANSWER_TIME: Duration = Duration::from_secs(600);

/// Bytes of the longest answer. A longer line is no answer.
const LINE_BYTES_MAX: usize = 256;

/// Answers that make no sense before it is a no.
const TRIES: usize = 5;

/// A way to the person at the terminal of this process.
///
/// Errors: when the process has no terminal.
pub(crate) fn at_terminal() -> io::Result<ApprovalPrompt> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(TERMINAL)?;
    of_device(device)
}

/// The same at another terminal, which does not block.
fn of_device(device: File) -> io::Result<ApprovalPrompt> {
    if !device.is_terminal() {
        return Err(io::Error::other("it is not a terminal"));
    }
    // Held by one question at a time.
    let terminal = Arc::new(Mutex::new(device));
    Ok(ApprovalPrompt::new(
        approval::at_prompt(),
        move |question| {
            let terminal = Arc::clone(&terminal);
            async move {
                let device = terminal.lock_owned().await;
                put(device, question).await
            }
        },
    ))
}

/// Shows the question and waits; `None` when nobody answers in time or nobody can be asked.
async fn put(device: OwnedMutexGuard<File>, question: ApprovalQuestion) -> Option<ApprovalAnswer> {
    // Closed when this future is dropped: the thread below hears of it at once, withdraws the question, and only then gives the
    // terminal to the next one.
    let (withdrawn, patience) = match io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => {
            tracing::warn!(%error, "a question cannot be asked: there is no pipe");
            return None;
        }
    };
    let dialogue = tokio::task::spawn_blocking(move || dialogue(&device, &withdrawn, &question));
    let answered = tokio::time::timeout(ANSWER_TIME, dialogue).await;
    drop(patience);
    match answered {
        Ok(Ok(Ok(answer))) => answer,
        Ok(Ok(Err(error))) => {
            tracing::warn!(%error, "a question cannot be asked at the terminal");
            None
        }
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Asks until there is an answer; `None` when the question is withdrawn. Blocks.
fn dialogue(
    device: &File,
    withdrawn: &PipeReader,
    question: &ApprovalQuestion,
) -> io::Result<Option<ApprovalAnswer>> {
    if tcgetpgrp(device).is_ok_and(|foreground| foreground != getpgrp()) {
        return Err(io::Error::other(
            "the process is in the background of its terminal",
        ));
    }
    let terminal = Terminal { device, withdrawn };
    let size = tcgetwinsize(device).ok();
    let width = size.map(|size| usize::from(size.ws_col));
    let width = width.filter(|width| *width > 0);
    if !terminal.write(&shown(question, width))? {
        return Ok(None);
    }
    typed_ahead::discard(device)?;
    for _ in 0..TRIES {
        terminal.write(&prompt())?;
        let Some(line) = terminal.line()? else {
            let mut device = device;
            // A terminal that takes nothing at the moment is not waited for.
            drop(device.write(b"\nthe question is withdrawn\n"));
            return Ok(None);
        };
        if let Some(answer) = understood(&line) {
            return Ok(Some(answer));
        }
    }
    Ok(Some(ApprovalAnswer::Denied))
}

/// The question as it stands on the terminal, above the prompt.
fn shown(question: &ApprovalQuestion, width: Option<usize>) -> String {
    let mut page = approval_text::call(&question.call, width);
    for step in &question.trace {
        page.dim(1, step);
    }
    approval_text::why(&mut page, &question.reason, &question.rules);
    format!(
        "\n{YELLOW}A program asks to run:{YELLOW:#}\n{}",
        page.as_str()
    )
}

fn prompt() -> String {
    format!(
        "{BOLD}Run it [o]nce, every such call of this [s]ession, exactly this call [a]lways, or [N]o?{BOLD:#} "
    )
}

/// What a line means; `None` when it has to be asked again.
pub(super) fn understood(line: &str) -> Option<ApprovalAnswer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Some(ApprovalAnswer::Approved(Lifetime::Once)),
        "s" | "session" => Some(ApprovalAnswer::Approved(Lifetime::Session)),
        "a" | "always" => Some(ApprovalAnswer::Approved(Lifetime::Always)),
        "" | "n" | "no" => Some(ApprovalAnswer::Denied),
        _ => None,
    }
}

/// The terminal while a question stands on it.
struct Terminal<'a> {
    device: &'a File,
    withdrawn: &'a PipeReader,
}

impl Terminal<'_> {
    /// Says whether it was written, and not withdrawn before.
    fn write(&self, text: &str) -> io::Result<bool> {
        // It may be one without colours.
        let text = match anstream::AutoStream::choice(self.device) {
            anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
            _ => text.to_owned(),
        };
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            if !self.is_ready(PollFlags::OUT)? {
                return Ok(false);
            }
            let mut device = self.device;
            match device.write(rest) {
                Ok(n_bytes) => rest = rest.get(n_bytes..).unwrap_or_default(),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The next line, empty at the end of input; `None` when the question is withdrawn. One that is too long comes as far as it
    /// was read.
    fn line(&self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        while self.is_ready(PollFlags::IN)? {
            let mut bytes = [0; LINE_BYTES_MAX];
            let mut device = self.device;
            let n_bytes = match device.read(&mut bytes) {
                Ok(n_bytes) => n_bytes,
                Err(error) if is_later(&error) => continue,
                Err(error) => return Err(error),
            };
            line.extend_from_slice(&bytes[..n_bytes]);
            if n_bytes == 0 || line.ends_with(b"\n") || line.len() > LINE_BYTES_MAX {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
        }
        Ok(None)
    }

    /// Waits until the terminal is ready; false when the question is withdrawn first.
    fn is_ready(&self, wanted: PollFlags) -> io::Result<bool> {
        loop {
            let mut watched = [
                PollFd::new(self.withdrawn, PollFlags::IN),
                PollFd::new(self.device, wanted),
            ];
            match poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if !watched[0].revents().is_empty() => return Ok(false),
                // What is wrong with the terminal is said by the read or write that follows.
                Ok(_) => return Ok(true),
            }
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
