//! One turn at the terminal: the model's text, its calls, the questions they raise, and Ctrl-C, which ends the turn and not the program.

use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_agent::event::{Observer, TurnEnd, TurnStatus};

use super::screen::remark;
use super::status::ChatStatus;
use super::terminal::ChatTerminal;
use super::{Chat, Next};
use crate::agent::begin::user_entry;
use crate::run::interrupt::{Interruption, Interrupts};
use crate::run::render::{YELLOW, escape};

impl Chat {
    /// Sends a prompt and shows all that follows from it.
    ///
    /// Errors: when the terminal cannot be used.
    pub(super) async fn exchange(
        &mut self,
        prompt: &str,
        terminal: &mut ChatTerminal,
        interrupts: &mut Interrupts,
    ) -> io::Result<Option<Next>> {
        let (user, problems) = user_entry(self.agent.host(), prompt);
        problems
            .iter()
            .for_each(|problem| self.screen.wrong(problem));
        let (cancel, screen) = (CancellationToken::new(), Arc::clone(&self.screen));
        screen.begin_turn(&self.status());
        let (mut ends, mut error) = (None, None);
        let end = {
            let Self {
                agent,
                questions,
                live,
                ..
            } = &mut *self;
            let turn = agent.turn(user, &*screen as &dyn Observer, &cancel);
            let mut turn = std::pin::pin!(turn);
            // What a cancelled command printed last belongs to no later turn.
            while live.try_recv().is_ok() {}
            loop {
                tokio::select! {
                    biased;
                    signal = interrupts.next() => {
                        terminal.forget();
                        screen.settle();
                        screen.say(&remark("the turn is being ended"));
                        stop(Some(signal), &mut ends, &cancel);
                    }
                    // Before the turn, so that the end of a call comes after its output; a flood must not keep the turn from ending.
                    Some(chunk) = live.recv(), if !cancel.is_cancelled() => screen.live(&chunk),
                    end = &mut turn => break end,
                    Some(asked) = questions.recv() => {
                        screen.settle();
                        let put = terminal.put(asked, interrupts).await;
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
        self.ended(&end);
        if let Some(error) = error {
            return Err(error);
        }
        Ok(ends.map(Next::Ended))
    }

    fn ended(&self, end: &TurnEnd) {
        let screen = &self.screen;
        screen.settle();
        match &end.status {
            TurnStatus::Done => {}
            TurnStatus::Interrupted => screen.say(&remark("interrupted")),
            other => screen.say(&format!(
                "{YELLOW}note:{YELLOW:#} {}\n",
                escape(&other.to_string())
            )),
        }
        screen.end_turn(&self.status());
    }

    /// What the conversation has used up so far.
    pub(super) fn status(&self) -> ChatStatus {
        let spending = self.agent.spending();
        ChatStatus {
            model: self.agent.provider().origin().model.clone(),
            usage: spending.usage,
            cost: self.agent.cost(),
            last: self.screen.last_usage(),
            calls: spending.calls,
            context_tokens: self.agent.context_tokens(),
            context_max: self.agent.limits().context_budget_tokens,
        }
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
