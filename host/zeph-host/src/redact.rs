//! Stage 6 of the line: no known secret is in what a call gives, whichever backend ran it.
//!
//! Known are the stored secrets, and the values of variables that look like credentials and were granted to a plugin. What only looks like
//! a credential is warned of by the stage before, and stays: it may be what the user asked for.

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::execution::{Execution, ExecutionFacts, PrivateFile, SecretValue};
use zeph_core::failure::ToolFailure;
use zeph_core::inquiry::{Inquiry, UserQuestion};
use zeph_core::output::RawOutput;
use zeph_core::redact::{Redactor, is_hideable};
use zeph_engine::Listener;
use zeph_shell::environment::is_secret;

use crate::calls::CallControl;
use crate::filtering::search_results::n_bytes;
use crate::filtering::{BLOCKING_BYTES_MIN, FilteredResult};

/// The variables among `variables` (name, value) whose values must not be told.
pub(crate) fn secrets(variables: &[(String, String)]) -> Vec<SecretValue> {
    let is_one = |(name, value): &&(String, String)| is_hideable(value) && is_secret(name, value);
    let found = variables.iter().filter(is_one);
    found
        .map(|(name, value)| SecretValue {
            name: name.clone(),
            value: value.clone(),
        })
        .collect()
}

/// What came of a call, without any secret. Filters get it so: one that cuts a line would leave half of a value.
///
/// A long output is searched on a thread that may block. When that fails in the host, the call failed: nothing of it is shown.
pub(crate) async fn execution(execution: Execution, redactor: &Redactor) -> Execution {
    let outputs = execution.result.as_ref().ok().into_iter();
    let is_long = |raw: &RawOutput| n_bytes(raw) >= BLOCKING_BYTES_MIN;
    if redactor.is_empty() || !outputs.chain(&execution.partial).any(is_long) {
        return cleaned(execution, redactor);
    }
    let (facts, redactor) = (execution.facts.clone(), redactor.clone());
    let work = tokio::task::spawn_blocking(move || cleaned(execution, &redactor));
    work.await.unwrap_or_else(|error| {
        tracing::error!(%error, "an output could not be redacted");
        let failure = ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::ResultInterpretation,
            "the host failed while it removed secrets from the output",
        );
        let failed = Execution::failed(failure);
        Execution { facts, ..failed }
    })
}

fn cleaned(mut execution: Execution, redactor: &Redactor) -> Execution {
    if redactor.is_empty() {
        return execution;
    }
    match &mut execution.result {
        Ok(raw) => redactor.clean_output(raw),
        Err(failure) => redactor.clean(&mut failure.message),
    }
    if let Some(partial) = &mut execution.partial {
        redactor.clean_output(partial);
    }
    notes(&mut execution.notes, redactor);
    execution
}

/// What is recorded of a call, without any secret: a caller chooses the names of hosts.
pub(crate) fn facts(facts: &ExecutionFacts, redactor: &Redactor) -> ExecutionFacts {
    let mut facts = facts.clone();
    for used in facts.hosts.iter_mut().chain(&mut facts.earlier_hosts) {
        redactor.clean(&mut used.host);
    }
    for PrivateFile::Opened(path) | PrivateFile::Unknown(path) in &mut facts.private_files {
        redactor.clean(path);
    }
    facts
}

/// What filters made of an output, without any secret: they may have undone what it was hidden in.
pub(crate) fn stage(mut shown: FilteredResult, redactor: &Redactor) -> FilteredResult {
    if redactor.is_empty() {
        return shown;
    }
    if let Some(shorter) = &mut shown.shorter {
        redactor.clean(&mut shorter.text);
        if let Some(original) = &mut shorter.original {
            redactor.clean(original);
        }
    }
    notes(&mut shown.notes, redactor);
    shown
}

/// `control`, whose listeners hear no secret: neither in what is printed nor in what is reported.
pub(crate) fn control(control: CallControl, redactor: &Redactor) -> CallControl {
    let on_output = control.on_output;
    CallControl {
        on_output: on_output.map(|listener| listener.redacted(redactor.clone())),
        listener: listener(control.listener, redactor),
        ..control
    }
}

/// `listener`, which is told what a call reports while it runs, without any secret.
pub(crate) fn listener(listener: Option<Listener>, redactor: &Redactor) -> Option<Listener> {
    if redactor.is_empty() {
        return listener;
    }
    let redactor = redactor.clone();
    let edit = move |mut message: String| {
        redactor.clean(&mut message);
        message
    };
    listener.map(|listener| listener.edited(edit))
}

/// What a tool asks the user, without any secret; its state keeps its length.
///
/// Errors: `server_error` when nothing is left that could be asked.
pub(crate) fn inquiry(inquiry: Inquiry, redactor: &Redactor) -> Result<Inquiry, ToolFailure> {
    if redactor.is_empty() {
        return Ok(inquiry);
    }
    let question = |question: &UserQuestion| {
        let (mut id, mut schema) = (question.id().to_owned(), question.schema().schema().clone());
        redactor.clean(&mut id);
        redactor.clean_json(&mut schema);
        UserQuestion::new(id, &redactor.text(question.message()), schema)
    };
    let questions: Result<Vec<_>, String> = inquiry.questions().iter().map(question).collect();
    let mut state = inquiry.state().map(<[u8]>::to_vec);
    if let Some(state) = &mut state {
        redactor.clean_bytes(state);
    }
    let made = questions.and_then(|questions| Inquiry::new(questions, state));
    made.map_err(|problem| {
        ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::ResultInterpretation,
            format!("the tool asks with the value of a secret, and without it: {problem}"),
        )
    })
}

fn notes(notes: &mut [String], redactor: &Redactor) {
    notes.iter_mut().for_each(|note| redactor.clean(note));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zeph_core::category::{ErrorCategory, ErrorPhase};
    use zeph_core::execution::Execution;
    use zeph_core::failure::ToolFailure;
    use zeph_core::inquiry::{Inquiry, UserQuestion};
    use zeph_core::output::RawOutput;
    use zeph_core::redact::Redactor;

    use super::{cleaned, inquiry, secrets, stage};
    use crate::filtering::{FilteredResult, Shorter};

    const VALUE: &str = "s3cr3t-value";

    fn granted() -> Vec<(String, String)> {
        let pairs = [
            ("API_TOKEN", VALUE),
            ("LANG", "en_GB.UTF-8"),
            ("SHORT_KEY", "1"),
        ];
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    fn redactor() -> Redactor {
        Redactor::new(&secrets(&granted()))
    }

    #[test]
    fn only_what_looks_like_a_credential_is_a_secret() {
        let names: Vec<String> = secrets(&granted()).into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["API_TOKEN"]);
    }

    #[test]
    fn no_part_of_an_output_tells_a_secret() {
        let told = format!("en_GB.UTF-8 1 {VALUE}{VALUE}");
        let raw = RawOutput {
            structured: Some(json!({ VALUE: [1, { "deep": told }] })),
            ..RawOutput::text(told.clone())
        };
        let failed = ToolFailure::new(
            ErrorCategory::ServerError,
            ErrorPhase::Execution,
            told.clone(),
        );
        let ran = Execution::ended(Ok(raw))
            .failed_by(failed)
            .with_notes([told.clone()]);
        let ran = cleaned(ran, &redactor());
        assert!(!format!("{ran:?}").contains(VALUE), "{ran:?}");
        assert_eq!(
            ran.partial.unwrap().to_text(),
            "en_GB.UTF-8 1 [redacted: API_TOKEN][redacted: API_TOKEN]"
        );
        let shown = FilteredResult {
            shorter: Some(Shorter {
                text: told.clone(),
                line: None,
                original: Some(told.clone()),
                rules: Vec::new(),
                handle: None,
            }),
            notes: vec![told],
            ..FilteredResult::default()
        };
        let shown = stage(shown, &redactor());
        assert!(!format!("{shown:?}").contains(VALUE), "{shown:?}");
    }

    #[test]
    fn no_part_of_a_question_tells_a_secret() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "string", "description": VALUE } },
        });
        let question = UserQuestion::new("q".to_owned(), &format!("Use {VALUE}?"), schema).unwrap();
        let asked = Inquiry::new(vec![question], Some(VALUE.as_bytes().to_vec())).unwrap();
        let asked = inquiry(asked, &redactor()).unwrap();
        assert_eq!(asked.questions()[0].message(), "Use [redacted: API_TOKEN]?");
        assert!(!format!("{asked:?}").contains(VALUE), "{asked:?}");
        assert_eq!(asked.state().unwrap(), b"*".repeat(VALUE.len()));
    }
}
