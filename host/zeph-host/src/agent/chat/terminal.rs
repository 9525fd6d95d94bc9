//! Where a chat is held: a terminal that is appended to, or the full screen.

use std::io;
use std::sync::Arc;

use super::ChatOptions;
use super::full::{FullTerminal, LineDialogue};
use super::input::{ChatInput, Line};
use super::question;
use super::screen::{ChatScreen, LineScreen};
use crate::agent::approver::Asked;
use crate::approval::ApprovalAnswer;
use crate::run::ask;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::repl::say;

/// The terminal of a chat.
pub(super) enum ChatTerminal {
    /// Lines are read and appended.
    Lines(Box<ChatInput>, Arc<LineScreen>),
    /// The whole screen.
    Full(Box<FullTerminal>),
}

impl ChatTerminal {
    /// Errors: when the terminal or signals cannot be used.
    pub(super) fn open(options: &ChatOptions, interrupts: &mut Interrupts) -> io::Result<Self> {
        Ok(match options.is_full {
            true => Self::Full(Box::new(FullTerminal::open(options, interrupts)?)),
            false => {
                let screen = Arc::new(LineScreen::new(options.color));
                Self::Lines(Box::new(ChatInput::open(options, interrupts)?), screen)
            }
        })
    }

    /// Where things are shown.
    pub(super) fn screen(&self) -> Arc<dyn ChatScreen> {
        match self {
            Self::Lines(_, screen) => Arc::clone(screen) as Arc<dyn ChatScreen>,
            Self::Full(full) => full.screen(),
        }
    }

    /// Whether the terminal is gone.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Lines(input, _) => input.is_lost(),
            Self::Full(full) => full.is_lost(),
        }
    }

    /// Forgets the prompts that were typed ahead.
    pub(super) fn forget(&mut self) {
        if let Self::Lines(input, _) = self {
            input.forget();
        }
    }

    /// Waits for a line.
    pub(super) async fn read(&mut self, interrupts: &mut Interrupts) -> io::Result<Line> {
        match self {
            Self::Lines(input, _) => {
                let line = input.read();
                interrupts.forget_interrupt();
                line
            }
            Self::Full(full) => Ok(full.read(interrupts).await),
        }
    }

    /// Puts what is asked, hands the answer over, and gives back the signal that came meanwhile. Where there is no answer, the call ends
    /// without one.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) async fn put(
        &mut self,
        asked: Asked,
        interrupts: &mut Interrupts,
    ) -> io::Result<Option<Interruption>> {
        let width = self.screen().width();
        match asked {
            Asked::Approval { question, answer } => {
                let shown = question::shown(&question, width);
                let (given, signal) = match self {
                    Self::Lines(..) => question::approval(&shown, interrupts).await?,
                    Self::Full(full) => full.approval(&shown, interrupts).await,
                };
                drop(answer.send(given));
                Ok(signal)
            }
            Asked::Inquiry {
                tool,
                asked,
                answer,
            } => {
                let _lines = self.lines()?;
                let put = crate::run::question::put(&tool, &asked, interrupts);
                let (given, signal) = put.await?;
                drop(answer.send(given));
                Ok(signal)
            }
        }
    }

    /// Has the user decide about a call that waits, which `page` shows. Blocks.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) fn decide(&mut self, page: &str) -> io::Result<ApprovalAnswer> {
        let _lines = self.lines()?;
        say(page);
        tokio::task::block_in_place(ask::about_call)
    }

    /// Leaves the full screen for a dialogue in lines, until it is dropped.
    fn lines(&self) -> io::Result<Option<LineDialogue>> {
        match self {
            Self::Lines(..) => Ok(None),
            Self::Full(full) => full.lines().map(Some),
        }
    }
}
