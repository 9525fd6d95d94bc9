//! Who approves the calls of a model: the user at the terminal of a chat, or nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use zeph_core::inquiry::GivenAnswers;
use zeph_core::lifetime::Lifetime;

use crate::approval::{self, ApprovalAnswer, ApprovalPrompt, ApprovalQuestion};
use crate::questions::SealedInquiry;

/// Questions that wait for the terminal: one for each call that runs.
const QUESTIONS_MAX: usize = 16;

/// A question to the user, and where the answer goes.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Whether a call may run.
    Approval {
        question: Box<ApprovalQuestion>,
        answer: oneshot::Sender<UserAnswer>,
    },
    /// What a tool asks.
    Inquiry {
        tool: String,
        asked: Box<SealedInquiry>,
        answer: oneshot::Sender<GivenAnswers>,
    },
}

/// What a user answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserAnswer {
    /// The call may run, and such calls for this long.
    Approved(Lifetime),
    /// It may not, for this reason if there is one, which the model is told.
    Denied(Option<String>),
}

/// A way to the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Approver {
    ask: Option<Way>,
    denials: Arc<Mutex<HashMap<String, Option<String>>>>,
    /// Questions that were put.
    asked: Arc<AtomicU64>,
    /// What came of them, by their calls, where another way than a channel asks.
    questions: Arc<Mutex<HashMap<String, PutQuestion>>>,
}

/// A question that was put to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PutQuestion {
    /// Why the call asks.
    pub(crate) reason: String,
    /// None when nobody answered.
    pub(crate) answer: Option<ApprovalAnswer>,
}

#[derive(Debug, Clone)]
enum Way {
    /// The reader of the channel.
    Channel(mpsc::Sender<Asked>),
    /// Another one, such as the terminal of the process.
    Prompt(ApprovalPrompt),
}

impl Approver {
    /// The reader of the channel asks.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Asked>) {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        let approver = Self {
            ask: Some(Way::Channel(sender)),
            ..Self::default()
        };
        (approver, receiver)
    }

    /// `prompt` asks.
    pub(crate) fn with(prompt: Option<ApprovalPrompt>) -> Self {
        Self {
            ask: prompt.map(Way::Prompt),
            ..Self::default()
        }
    }

    /// Questions that were put so far.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// What a call asks with.
    pub(crate) fn prompt(&self, call_id: &str) -> Option<ApprovalPrompt> {
        let way = match self.ask.clone()? {
            Way::Channel(way) => way,
            Way::Prompt(prompt) => return Some(self.recorded(prompt, call_id)),
        };
        let (approver, call_id) = (self.clone(), call_id.to_owned());
        let ask = move |question| {
            let (approver, call_id, way) = (approver.clone(), call_id.clone(), way.clone());
            async move { approver.put(&call_id, question, &way).await }
        };
        Some(ApprovalPrompt::new(approval::at_prompt(), ask).with_rules())
    }

    /// `prompt`, and what comes of its questions is kept for [`take_put`](Self::take_put).
    fn recorded(&self, prompt: ApprovalPrompt, call_id: &str) -> ApprovalPrompt {
        let (approver, call_id) = (self.clone(), call_id.to_owned());
        let begun = move |question: &ApprovalQuestion| {
            approver.asked.fetch_add(1, Ordering::Relaxed);
            let put = PutQuestion {
                reason: question.reason.clone(),
                answer: None,
            };
            approver.questions().insert(call_id.clone(), put);
            let (approver, call_id) = (approver.clone(), call_id.clone());
            move |answer| {
                if answer == Some(ApprovalAnswer::Denied) {
                    approver.denials().insert(call_id.clone(), None);
                }
                if let Some(put) = approver.questions().get_mut(&call_id) {
                    put.answer = answer;
                }
            }
        };
        prompt.observed(begun)
    }

    /// The question that was put about a call, once, where another way than a channel asks.
    pub(crate) fn take_put(&self, call_id: &str) -> Option<PutQuestion> {
        self.questions().remove(call_id)
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, PutQuestion>> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(
        &self,
        call_id: &str,
        question: ApprovalQuestion,
        way: &mpsc::Sender<Asked>,
    ) -> Option<ApprovalAnswer> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let question = Box::new(question);
        way.send(Asked::Approval { question, answer }).await.ok()?;
        match answered.await.ok()? {
            UserAnswer::Approved(lifetime) => Some(ApprovalAnswer::Approved(lifetime)),
            UserAnswer::Denied(reason) => {
                self.denials().insert(call_id.to_owned(), reason);
                Some(ApprovalAnswer::Denied)
            }
        }
    }

    /// Puts the questions of a tool; none when nobody can be asked.
    pub(crate) async fn inquire(&self, tool: &str, asked: &SealedInquiry) -> Option<GivenAnswers> {
        let Some(Way::Channel(way)) = &self.ask else {
            return None;
        };
        let (answer, answered) = oneshot::channel();
        let asked = Asked::Inquiry {
            tool: tool.to_owned(),
            asked: Box::new(asked.clone()),
            answer,
        };
        way.send(asked).await.ok()?;
        answered.await.ok()
    }

    /// The denial of a call by the user, once, with the reason.
    pub(crate) fn take_denial(&self, call_id: &str) -> Option<Option<String>> {
        self.denials().remove(call_id)
    }

    fn denials(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a typed line means: `o`, `s`, `a`, or `n` and a reason; `None` when it has to be asked again.
pub(crate) fn understood(line: &str) -> Option<UserAnswer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match (word.to_ascii_lowercase().as_str(), rest) {
        ("o" | "once" | "y" | "yes", "") => Some(UserAnswer::Approved(Lifetime::Once)),
        ("s" | "session" | "conversation", "") => Some(UserAnswer::Approved(Lifetime::Session)),
        ("a" | "always", "") => Some(UserAnswer::Approved(Lifetime::Always)),
        ("" | "n" | "no", "") => Some(UserAnswer::Denied(None)),
        ("n" | "no", reason) => Some(UserAnswer::Denied(Some(reason.to_owned()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{UserAnswer, understood};
    use zeph_core::lifetime::Lifetime;

    #[test]
    fn an_answer_is_one_letter_and_a_denial_may_have_a_reason() {
        let approved = |lifetime| Some(UserAnswer::Approved(lifetime));
        assert_eq!(understood(" o "), approved(Lifetime::Once));
        assert_eq!(understood("s"), approved(Lifetime::Session));
        assert_eq!(understood("Always"), approved(Lifetime::Always));
        assert_eq!(understood(""), Some(UserAnswer::Denied(None)));
        let denied = UserAnswer::Denied(Some("use the other file".to_owned()));
        assert_eq!(understood("n use the other file"), Some(denied));
        assert_eq!(understood("o please"), None);
        assert_eq!(understood("what?"), None);
    }
}
