//! One attempt: an answer from its header to its end.

use std::time::Duration;

use http::header::{CONTENT_TYPE, LOCATION};
use zeph_egress::{DialError, OwnAnswer, OwnError};

use crate::draft::Draft;
use crate::error::ProviderErrorKind;
use crate::frames::{Frames, Framing};
use crate::message::{AssistantTurn, Origin};
use crate::provider::{ModelEvent, OnEvent};
use crate::usage::Usage;
use crate::wire::{Failure, Reader, of_status, retry_after};

/// Bytes of the body of an error that are read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Bytes of texts, thoughts and arguments of one answer. They are parsed, stored and sent again with every later request, and take some ten
/// times as much memory meanwhile; the longest answers of models have half a megabyte.
const CONTENT_BYTES_MAX: usize = 8 << 20;

/// How long the end of a body is waited for once the answer is complete, so that its connection can be used again.
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// One attempt.
pub(super) struct Attempt<'a> {
    reader: Box<dyn Reader>,
    draft: Draft,
    on_event: OnEvent<'a>,
    has_shown: bool,
    content_bytes: usize,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(reader: Box<dyn Reader>, on_event: OnEvent<'a>) -> Self {
        Self {
            reader,
            draft: Draft::default(),
            on_event,
            has_shown: false,
            content_bytes: 0,
        }
    }

    /// What it took, and whether something of it was handed out.
    pub(super) fn seen(&self) -> (Usage, bool) {
        (self.draft.usage, self.has_shown)
    }

    /// Reads the whole answer. Once its end has come, the connection may break.
    pub(super) async fn read(
        &mut self,
        mut answer: OwnAnswer,
        framing: Framing,
    ) -> Result<(), Failure> {
        if !answer.status.is_success() {
            return Err(refusal(answer).await);
        }
        let kind = media_type(&answer);
        if kind.eq_ignore_ascii_case("text/html") {
            return Err(Failure::new(
                ProviderErrorKind::Request,
                "the provider answers with a page (text/html) where the answer of a model should be; check its `base_url`",
            ));
        }
        // A server that cannot stream answers at once.
        let is_json = kind.eq_ignore_ascii_case("application/json");
        let framing = if is_json { Framing::Whole } else { framing };
        let mut frames = Frames::new(framing);
        loop {
            match answer.body.next().await {
                Ok(Some(piece)) => frames.push(&piece),
                Ok(None) => break,
                Err(error) => return self.broken(&error),
            }
            // What follows the end is not part of the answer.
            while !self.reader.is_over()
                && let Some(frame) = frames.next().map_err(Failure::protocol)?
            {
                self.frame(&frame, framing)?;
            }
            if self.reader.is_over() {
                let rest = tokio::time::timeout(DRAIN_MAX, answer.body.next());
                let _is_drained = rest
                    .await
                    .is_ok_and(|rest| rest.is_ok_and(|rest| rest.is_none()));
                return self.reader.finish(&mut self.draft);
            }
        }
        if let Some(frame) = frames.last().map_err(Failure::protocol)? {
            self.frame(&frame, framing)?;
        }
        self.reader.finish(&mut self.draft)
    }

    /// The turn of a complete answer.
    pub(super) fn finish(self, origin: &Origin) -> Result<AssistantTurn, Failure> {
        self.draft.finish(origin.clone()).ok_or_else(Failure::cut)
    }

    fn frame(&mut self, frame: &str, framing: Framing) -> Result<(), Failure> {
        match framing {
            Framing::Whole => self.reader.whole(frame, &mut self.draft)?,
            Framing::Events | Framing::Lines => self.reader.read(frame, &mut self.draft)?,
        }
        for event in self.draft.events.drain(..) {
            self.has_shown |= !matches!(event, ModelEvent::Usage(_));
            self.content_bytes += content_bytes(&event);
            (self.on_event)(event);
        }
        match self.content_bytes > CONTENT_BYTES_MAX {
            true => Err(Failure::new(
                ProviderErrorKind::Request,
                format!("the answer has more than {CONTENT_BYTES_MAX} bytes of text and arguments"),
            )),
            false => Ok(()),
        }
    }

    fn broken(&mut self, error: &OwnError) -> Result<(), Failure> {
        self.reader.finish(&mut self.draft).map_err(|cut| {
            let network = of_network(error);
            match network.kind {
                ProviderErrorKind::Timeout | ProviderErrorKind::Request => network,
                _ => Failure {
                    message: format!("{} ({})", cut.message, network.message),
                    ..cut
                },
            }
        })
    }
}

fn content_bytes(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text)
        | ModelEvent::Thinking(text)
        | ModelEvent::CallArguments { text, .. } => text.len(),
        ModelEvent::CallStarted { id, name } => id.len() + name.len(),
        ModelEvent::Usage(_) | ModelEvent::Retry { .. } => 0,
    }
}

/// What an answer says whose status is not that of success.
pub(crate) async fn refusal(answer: OwnAnswer) -> Failure {
    if answer.status.is_redirection() {
        return redirected(&answer);
    }
    let retry_after = retry_after(&answer.headers);
    let status = answer.status.as_u16();
    let failure = of_status(status, &answer.beginning(ERROR_BYTES_MAX).await);
    Failure {
        retry_after: retry_after.or(failure.retry_after),
        ..failure
    }
}

/// A redirect is not followed: the key is for the address that the operator wrote.
fn redirected(answer: &OwnAnswer) -> Failure {
    let to = answer.headers.get(LOCATION);
    let to = to.map_or_else(String::new, |to| {
        let shown = String::from_utf8_lossy(to.as_bytes());
        format!(": `{shown}`")
    });
    let message = format!(
        "the provider redirects, which is not followed; set its `base_url` in `[[llm.providers]]` to where it is{to}"
    );
    Failure {
        status: Some(answer.status.as_u16()),
        ..Failure::new(ProviderErrorKind::Request, message)
    }
}

/// What the answer says that it is, without parameters.
fn media_type(answer: &OwnAnswer) -> &str {
    let kind = answer.headers.get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

/// Why there is no answer, or no more of it.
pub(crate) fn of_network(error: &OwnError) -> Failure {
    let kind = match error {
        OwnError::Url { .. }
        | OwnError::Plain { .. }
        | OwnError::Dial(DialError::Forbidden { .. }) => ProviderErrorKind::Settings,
        OwnError::TimedOut { .. } | OwnError::Dial(DialError::TimedOut { .. }) => {
            ProviderErrorKind::Timeout
        }
        OwnError::TooLarge(_) => ProviderErrorKind::Request,
        OwnError::Dial(_) | OwnError::Protocol(_) | OwnError::Status(_) => {
            ProviderErrorKind::Network
        }
    };
    Failure::new(kind, error.to_string())
}
