//! Asking a person whether a call may run: what is asked, what can be answered, and who asks.
//!
//! A door that has a person at hand gives its calls an [`ApprovalPrompt`]; the line asks through it and knows nothing of terminals. No tool can
//! reach one: an answer comes from a person or not at all.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use zeph_core::lifetime::Lifetime;
use zeph_engine::Cancel;
use zeph_store::{AgreedBy, Agreement, ShownCall};

use crate::host;

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalQuestion {
    /// What would run.
    pub call: ShownCall,
    /// Why it asks, in a sentence.
    pub reason: String,
    /// The rules for `--allow` that would let such calls run, all of them needed; empty when there are none.
    ///
    /// For a prompt [`with_rules`](ApprovalPrompt::with_rules) they are what an approval for longer than one call keeps; when there are
    /// none, it keeps exactly this call.
    pub rules: Vec<String>,
    /// The checks that were made, in order, one line each.
    pub trace: Vec<String>,
    /// Whether an approval is for this call alone, whatever is answered: nothing is kept of it.
    pub is_once: bool,
}

/// The user at the terminal of this process.
pub(crate) fn at_prompt() -> Agreement {
    Agreement {
        how: AgreedBy::Prompt,
        who: host::user_name(),
        client: None,
    }
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// The call may run, and for this long such calls may.
    Approved(Lifetime),
    /// It may not run.
    Denied,
}

impl ApprovalAnswer {
    /// What has to be kept so that the same call is not asked about again; `None` for this call alone and for a denial.
    pub(crate) fn kept(self) -> Option<Lifetime> {
        match self {
            Self::Approved(Lifetime::Once) | Self::Denied => None,
            Self::Approved(lifetime) => Some(lifetime),
        }
    }
}

type PendingAnswer = Pin<Box<dyn Future<Output = Option<ApprovalAnswer>> + Send>>;

/// A way to a person. Clones lead to the same one.
#[derive(Clone)]
pub struct ApprovalPrompt {
    ask: Arc<dyn Fn(ApprovalQuestion) -> PendingAnswer + Send + Sync>,
    agreement: Agreement,
    keeps_rules: bool,
}

impl ApprovalPrompt {
    /// Asks with `ask`, whose future may be dropped at any time, in the program `client`, where `who` answers: both for the record. Only an
    /// answer of a person may come back; no tool and no model can be asked.
    pub fn through<F, A>(client: &str, who: Option<&str>, ask: F) -> Self
    where
        F: Fn(ApprovalQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Option<ApprovalAnswer>> + Send + 'static,
    {
        let agreement = Agreement {
            how: AgreedBy::Prompt,
            who: who.map(str::to_owned),
            client: Some(client.to_owned()),
        };
        Self::new(agreement, ask)
    }

    /// Asks with `ask`, whose future may be dropped at any time. `agreement` is who answers and how, for the record.
    pub(crate) fn new<F, A>(agreement: Agreement, ask: F) -> Self
    where
        F: Fn(ApprovalQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Option<ApprovalAnswer>> + Send + 'static,
    {
        Self {
            ask: Arc::new(move |question| Box::pin(ask(question))),
            agreement,
            keeps_rules: false,
        }
    }

    /// Tells `begun` of every question that is put, and what that returns of the answer.
    pub(crate) fn observed<F, E>(self, begun: F) -> Self
    where
        F: Fn(&ApprovalQuestion) -> E + Send + Sync + 'static,
        E: FnOnce(Option<ApprovalAnswer>) + Send + 'static,
    {
        let ask = Arc::clone(&self.ask);
        Self {
            ask: Arc::new(move |question| {
                let ended = begun(&question);
                let asked = ask(question);
                Box::pin(async move {
                    let answer = asked.await;
                    ended(answer);
                    answer
                })
            }),
            ..self
        }
    }

    /// An approval for longer than one call is one of all calls that fit the rules of the question, which the user who answers is shown.
    #[must_use]
    pub fn with_rules(self) -> Self {
        Self {
            keeps_rules: true,
            ..self
        }
    }

    /// Whether an approval for longer than one call keeps the rules of the question.
    pub(crate) fn keeps_rules(&self) -> bool {
        self.keeps_rules
    }

    /// Who answers, and how.
    pub(crate) fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// Waits for the answer; `None` when nobody answers, or when `cancel` comes first.
    ///
    /// Limits: the time a person has is the door's; it is no time of the call.
    pub(crate) async fn ask(
        &self,
        question: ApprovalQuestion,
        cancel: &Cancel,
    ) -> Option<ApprovalAnswer> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = (self.ask)(question) => answer,
        }
    }
}

impl fmt::Debug for ApprovalPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ask")
    }
}
