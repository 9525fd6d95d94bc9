//! What calls come to by what their conversation did before (`tools.governance`): gathers the facts of `zeph_core::policy`, and keeps what
//! follows from the end of a call.
//!
//! A call is entered when it is decided, in the order in which calls were asked for; one that may not run is taken out again. What its
//! result is made of is known when it was shown: the labels are held by the conversation then, and by the handle of a stored output.

mod known;
mod labels;
mod lesson;
mod meaning;
mod reach;
mod revoke;
mod trajectory;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use zeph_agent::budget::CallMeter;
use zeph_config::GovernanceSettings;
use zeph_core::call::ResolvedCall;
use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::CallId;
use zeph_core::output::Outcome;
use zeph_core::policy::{
    CallWords, Decision, FLOW_CHECK, FlowFacts, HeldLabels, Label, LearnedCause, MappedCall,
    NearSequence, Policy, PrivatePaths, SessionFacts, TrajectoryFacts, Verdict, destination,
    may_keep_files, may_show_files, private_sources, untrusted_result, words_of,
};
use zeph_core::redact::Redactor;
use zeph_core::tool::Backend;
use zeph_store::{Store, StoreError};

pub(crate) use self::known::KnownSequences;
pub(crate) use self::lesson::CallEnd;
pub(crate) use self::meaning::{TextVectors, VectorSource};
pub(crate) use self::reach::CallReach;
pub(crate) use self::revoke::{RevokeError, RevokedSequence, forget, revoke};
pub(crate) use self::trajectory::{AskedStep, Trajectory};

use self::known::SequenceCache;
use self::lesson::{OWN_RULES, is_specific};
use self::trajectory::{RememberedCall, ResultSource};
use crate::calls::CallControl;
use crate::clock::now_ms;
use crate::known_secrets::KnownSecrets;
use crate::session::Session;

/// What the stage works with.
#[derive(Debug)]
pub(crate) struct GovernanceRoom {
    settings: GovernanceSettings,
    /// For what results name.
    private: Arc<PrivatePaths>,
    store: Store,
    secrets: Arc<KnownSecrets>,
    cache: SequenceCache,
    /// Compares calls by their meaning; none where they are compared by their words.
    vectors: Option<Arc<dyn VectorSource>>,
}

/// What is known of a conversation at the moment at which a call of it is decided.
#[derive(Debug)]
pub(crate) struct GovernanceView {
    known: Option<Arc<KnownSequences>>,
    window: Vec<Arc<MappedCall>>,
    call: Arc<MappedCall>,
    held: Arc<HeldLabels>,
    passed: Vec<Label>,
    reach: CallReach,
    /// The learned sequence that is nearest by its meaning; none where meaning was not compared.
    near: Option<Option<NearSequence>>,
}

impl GovernanceView {
    /// The facts with those of the conversation.
    pub(crate) fn tell<'a>(&'a self, facts: SessionFacts<'a>) -> SessionFacts<'a> {
        let trajectory = self.known.as_ref().map(|known| TrajectoryFacts {
            sequences: &known.set,
            window: &self.window,
            call: &self.call,
            near: self.near.flatten(),
            has_compared: self.near.is_some(),
        });
        SessionFacts {
            trajectory,
            flow: Some(FlowFacts {
                held: &self.held,
                passed: &self.passed,
                reaches_network: self.reach.reaches_network,
            }),
            ..facts
        }
    }
}

impl GovernanceRoom {
    /// `private`: the files whose content is private.
    pub(crate) fn new(
        settings: GovernanceSettings,
        private: Arc<PrivatePaths>,
        (store, secrets): (Store, Arc<KnownSecrets>),
        vectors: Option<Arc<dyn VectorSource>>,
    ) -> Self {
        let cache = SequenceCache::new(Arc::clone(&settings.sequences));
        Self {
            settings,
            private,
            store,
            secrets,
            cache,
            vectors,
        }
    }

    /// Reads what was learned again at the next call.
    pub(crate) fn changed(&self) {
        self.cache.forget();
    }

    /// Looks at the conversation before `call` is decided, and enters the call into it.
    ///
    /// Calls that were asked for before it and are not decided yet are awaited, where there are sequences.
    /// Errors: `server_error` when the store cannot be read: then nothing runs.
    pub(crate) async fn enter(
        &self,
        policy: &Policy,
        session: &Session,
        (call, reach): (&ResolvedCall, CallReach),
        control: &CallControl,
    ) -> Result<GovernanceView, ToolFailure> {
        let known = self.prepare(session).await?;
        let trajectory = session.trajectory();
        let has_sequences = known.as_ref().is_some_and(|known| !known.set.is_empty());
        if has_sequences {
            trajectory.await_turn(call.frame.id, &control.cancel).await;
        }
        let entry = self.entry(policy, call, (known.as_ref(), reach));
        let window = trajectory.enter(entry, known.as_ref(), self.settings.window_calls.get());
        let mut view = self.view(session, known, window, (call, reach));
        let is_person = call.frame.principal.is_operator();
        if policy.governance.blocks_risky && !is_person {
            let of = (call.frame.id, control.meter.as_ref());
            view.near = self.near(session, of, view.known.as_ref()).await;
        }
        let heard = session.heard();
        let facts = view.tell(SessionFacts {
            heard: heard.as_deref(),
            ..SessionFacts::default()
        });
        let destination = match policy.governance.flow {
            Some(_) => destination(policy, &facts, call).map(|destination| destination.key),
            None => None,
        };
        trajectory.leads_to(call.frame.id, destination);
        Ok(view)
    }

    /// Looks at the conversation for a call that is not made: nothing is entered.
    ///
    /// Errors: `server_error` when the store cannot be read.
    pub(crate) async fn look(
        &self,
        policy: &Policy,
        session: &Session,
        (call, reach): (&ResolvedCall, CallReach),
    ) -> Result<GovernanceView, ToolFailure> {
        let known = self.prepare(session).await?;
        let entry = self.entry(policy, call, (known.as_ref(), reach));
        let n_calls = self.settings.window_calls.get();
        let window = session.trajectory().window(known.as_ref(), n_calls);
        let window = (window, entry.mapped);
        Ok(self.view(session, known, window, (call, reach)))
    }

    /// The sequences of this moment, for a conversation whose past is known.
    async fn prepare(&self, session: &Session) -> Result<Option<Arc<KnownSequences>>, ToolFailure> {
        let past = async {
            if session.trajectory().has_past() {
                let n_calls = u32::try_from(self.settings.window_calls.get()).unwrap_or(u32::MAX);
                let past = self.store.conversation_past(session.conversation, n_calls);
                session.trajectory().recall(past.await?);
            }
            match self.settings.trajectory {
                true => self.cache.now(&self.store).await.map(Some),
                false => Ok(None),
            }
        };
        past.await.map_err(|error| cannot_read(&error))
    }

    fn entry(
        &self,
        policy: &Policy,
        call: &ResolvedCall,
        (known, reach): (Option<&Arc<KnownSequences>>, CallReach),
    ) -> RememberedCall {
        let words = match known {
            Some(known) if known.set.is_empty() => words_of(call, None),
            Some(known) => words_of(call, Some(&|word| known.set.knows(word))),
            None => Default::default(),
        };
        let mapped = known.map(|known| known.set.map(&words)).unwrap_or_default();
        // Content of the network is followed without the rule, too: records tell what was called after it.
        let source = ResultSource {
            private: private_sources(&policy.governance.followed(), call),
            untrusted: untrusted_result(policy, call, reach.is_remote),
            may_show_files: call.command.as_ref().is_none_or(may_show_files),
            may_keep: match &call.command {
                Some(line) => may_keep_files(line),
                None => call.can_change && matches!(call.tool.backend, Backend::Wasm(_)),
            },
        };
        // What holds a secret takes part in no lesson and is not kept; the sequences of this moment have been looked for in it.
        let redactor = self.secrets.last_redactor();
        let words = match holds_secret(&redactor, &call.arguments.values) {
            true => CallWords::default(),
            false => words,
        };
        RememberedCall {
            id: call.frame.id,
            words: Arc::new(words),
            mapped: Arc::new(mapped),
            version: known.map_or(0, |known| known.version),
            is_shell: call.tool.backend == Backend::Shell,
            reads_handles: call.tool.name.as_str() == crate::builtin::READ_OVERFLOW,
            source,
        }
    }

    fn view(
        &self,
        session: &Session,
        known: Option<Arc<KnownSequences>>,
        (window, call): (Vec<Arc<MappedCall>>, Arc<MappedCall>),
        (resolved, reach): (&ResolvedCall, CallReach),
    ) -> GovernanceView {
        let trajectory = session.trajectory();
        let passed = trajectory.passed_by(&resolved.arguments.values);
        trajectory.passes(resolved.frame.id, &passed);
        GovernanceView {
            known,
            window,
            call,
            held: trajectory.held(),
            passed,
            reach,
            near: None,
        }
    }

    /// The learned sequence that a call that was entered is nearest to by its meaning; none where there are no vectors.
    async fn near(
        &self,
        session: &Session,
        (id, meter): (CallId, Option<&CallMeter>),
        known: Option<&Arc<KnownSequences>>,
    ) -> Option<Option<NearSequence>> {
        let (source, known) = (self.vectors.as_ref()?, known?);
        let words = session.trajectory().words(id)?;
        let pattern = session.trajectory().pattern(id)?;
        let texts = vec![words.pattern().join(" "), pattern.join(" ")];
        meaning::nearest(&**source, known, texts, meter).await.ok()
    }

    /// What follows from a decision: a call that may run is remembered, one that may not is taken out, and a person who agreed to it
    /// released what it carries.
    pub(crate) async fn decided<W>(
        &self,
        session: &Session,
        id: CallId,
        decision: &Result<Decision<W>, ToolFailure>,
    ) {
        let trajectory = session.trajectory();
        match decision {
            Ok(Decision::Allow(call)) => {
                let asked = |step: &zeph_core::policy::TraceStep| {
                    step.check == FLOW_CHECK && step.verdict == Verdict::Ask
                };
                if call.approval().is_some() && call.trace().iter().any(asked) {
                    self.release(session, id).await;
                }
                self.remember(session, id).await;
            }
            Ok(Decision::Deny(refusal)) => {
                let learns = !OWN_RULES.iter().any(|rule| refusal.rule.starts_with(rule));
                if learns {
                    self.learn(session, id, LearnedCause::Refused).await;
                }
                trajectory.take_out(id);
            }
            Ok(Decision::Ask(_)) | Err(_) => trajectory.take_out(id),
        }
    }

    /// Keeps the words of a call for the time after a restart.
    async fn remember(&self, session: &Session, id: CallId) {
        // Without sequences, what this process remembers is enough.
        if !self.settings.trajectory || !self.cache.has_sequences() {
            return;
        }
        let Some(words) = session.trajectory().words(id) else {
            return;
        };
        let Ok(words) = serde_json::to_string(&*words) else {
            return;
        };
        let n_calls = u32::try_from(self.settings.window_calls.get()).unwrap_or(u32::MAX);
        let kept = self
            .store
            .remember_call(session.conversation, (id, words), n_calls, now_ms());
        told(kept.await, "a call cannot be remembered");
    }

    /// What follows from the end of a call that ran. Returns the labels of its result, for the record.
    pub(crate) async fn ended(
        &self,
        session: &Session,
        id: CallId,
        end: CallEnd<'_>,
    ) -> Vec<String> {
        let trajectory = session.trajectory();
        if let Some(cause) = trajectory
            .is_shell(id)
            .and_then(|is_shell| end.cause(is_shell))
        {
            self.learn(session, id, cause).await;
        } else if matches!(end.output.outcome, Outcome::Done) {
            self.went_well(session, id).await;
        }
        self.label(session, id, end.output, end.facts).await
    }
}

/// Whether any text in arguments holds a known secret.
fn holds_secret(redactor: &Redactor, arguments: &Map<String, Value>) -> bool {
    fn is_secret(redactor: &Redactor, value: &Value) -> bool {
        match value {
            Value::String(text) => matches!(redactor.text(text), Cow::Owned(_)),
            Value::Array(items) => items.iter().any(|item| is_secret(redactor, item)),
            Value::Object(members) => holds_secret(redactor, members),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let is_in = |(name, value): (&String, &Value)| {
        matches!(redactor.text(name), Cow::Owned(_)) || is_secret(redactor, value)
    };
    !redactor.is_empty() && arguments.iter().any(is_in)
}

fn told(result: Result<(), StoreError>, problem: &'static str) {
    if let Err(error) = result {
        tracing::error!(error = &error as &dyn std::error::Error, "{problem}");
    }
}

fn cannot_read(error: &StoreError) -> ToolFailure {
    tracing::error!(
        error = error as &dyn std::error::Error,
        "a call was not made: what its conversation did before cannot be read"
    );
    ToolFailure::new(
        ErrorCategory::ServerError,
        ErrorPhase::Setup,
        "the call was not made: the host cannot read what the conversation did before",
    )
}

#[cfg(test)]
mod tests;
