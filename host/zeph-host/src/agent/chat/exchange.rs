//! One turn at the terminal: the model's text, its calls, the questions they raise, and Ctrl-C, which ends the turn and not the program.

use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_agent::event::{TurnEnd, TurnStatus};

use super::question;
use super::screen::Screen;
use super::{Chat, Next, wrong};
use crate::agent::begin::user_entry;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::render::{DIM, YELLOW, escape};
use crate::run::repl::say;

impl Chat {
    /// Sends a prompt and shows all that follows from it.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) async fn exchange(
        &mut self,
        prompt: &str,
        interrupts: &mut Interrupts,
    ) -> io::Result<Option<Next>> {
        let (user, problems) = user_entry(self.agent.host(), prompt);
        problems.iter().for_each(|problem| wrong(problem));
        let cancel = CancellationToken::new();
        let (screen, width) = (Arc::clone(&self.screen), self.options.width);
        let (mut ends, mut error) = (None, None);
        let end = {
            let Self {
                agent,
                questions,
                live,
                ..
            } = &mut *self;
            let turn = agent.turn(user, &*screen, &cancel);
            let mut turn = std::pin::pin!(turn);
            // What a cancelled command printed last belongs to no later turn.
            while live.try_recv().is_ok() {}
            loop {
                tokio::select! {
                    biased;
                    signal = interrupts.next() => {
                        screen.settle();
                        say(&format!("{DIM}the turn is being ended{DIM:#}\n"));
                        stop(Some(signal), &mut ends, &cancel);
                    }
                    // Before the turn, so that the end of a call comes after its output; a flood must not keep the turn from ending.
                    Some(chunk) = live.recv(), if !cancel.is_cancelled() => screen.live(&chunk),
                    end = &mut turn => break end,
                    Some(asked) = questions.recv() => {
                        screen.settle();
                        let put = question::put(asked, width, interrupts).await;
                        // The turn is awaited even when the terminal is gone: no running call is dropped.
                        let signal = put.unwrap_or_else(|problem| {
                            error.get_or_insert(problem);
                            Some(Interruption::HangUp)
                        });
                        stop(signal, &mut ends, &cancel);
                    }
                }
                if screen.take_error().is_some() {
                    stop(Some(Interruption::HangUp), &mut ends, &cancel);
                }
            }
        };
        self.ended(&end, &screen);
        if let Some(error) = error {
            return Err(error);
        }
        Ok(ends.map(Next::Ended))
    }

    fn ended(&self, end: &TurnEnd, screen: &Screen) {
        screen.settle();
        match &end.status {
            TurnStatus::Done => {}
            TurnStatus::Interrupted => say(&format!("{DIM}interrupted{DIM:#}\n")),
            other => say(&format!(
                "{YELLOW}note:{YELLOW:#} {}\n",
                escape(&other.to_string())
            )),
        }
        say(&format!("{DIM}{}{DIM:#}\n", escape(&self.status_line())));
    }

    /// Model, tokens, cost, cache hits, calls and context, on one line.
    pub(super) fn status_line(&self) -> String {
        let spending = self.agent.spending();
        let cached = match self.screen.last_input() {
            Some((cached, all)) if all > 0 => format!(" · cache {} %", cached * 100 / all),
            _ => String::new(),
        };
        let budget = self.agent.limits().context_budget_tokens.max(1);
        let context = self.agent.context_tokens().saturating_mul(100) / budget;
        format!(
            "{} · {} tokens · {}{cached} · {} calls · context {context} %",
            self.agent.provider().origin().model,
            spending.usage.total(),
            spending.cost,
            spending.calls
        )
    }
}

/// Ends the turn; a signal other than Ctrl-C ends the program too.
fn stop(signal: Option<Interruption>, ends: &mut Option<Interruption>, cancel: &CancellationToken) {
    let Some(signal) = signal else { return };
    cancel.cancel();
    if signal != Interruption::Interrupt {
        *ends = Some(signal);
    }
}
