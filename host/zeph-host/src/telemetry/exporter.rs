//! Sends spans to a collector, some at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use zeph_config::TelemetrySettings;
use zeph_egress::{Egress, OwnClient, OwnLimits, OwnPatience};

use super::otlp::{self, SpanRecord};

/// Spans that wait at most. One that does not fit is lost, and counted.
const WAITING_MAX: usize = 2_048;

/// Spans and bytes of one request, and how long a span waits for others.
const BATCH_MAX: usize = 512;
const BATCH_BYTES_MAX: usize = 1 << 20;
const BATCH_WAIT: Duration = Duration::from_secs(5);

/// How long the end of the process waits for the last spans.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// How often a request is made, and how long the first pause is, unless the collector says so itself.
const ATTEMPTS_MAX: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);

/// Bytes of an answer; nothing is read from it.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What sends the spans. It runs until the process ends.
#[derive(Debug)]
pub(super) struct Exporter {
    settings: TelemetrySettings,
    queue: mpsc::Sender<Queued>,
    n_lost: AtomicU64,
    /// Runs the sender. Never locked again.
    _task: Mutex<JoinSet<()>>,
}

/// What waits for the sender.
#[derive(Debug)]
enum Queued {
    /// A span, as JSON.
    Span(String),
    /// A caller that waits until all before it is sent.
    Flush(oneshot::Sender<()>),
}

/// Makes the requests.
struct Sender {
    client: OwnClient,
    request: Request<()>,
    resource: Vec<(String, String)>,
    patience: OwnPatience,
    has_warned: bool,
}

impl Exporter {
    /// Begins to send spans.
    ///
    /// Errors: a sentence; the URL or a header is none.
    pub(super) fn start(egress: &Egress, settings: TelemetrySettings) -> Result<Self, String> {
        let sender = Sender::new(egress, &settings)?;
        let (queue, queued) = mpsc::channel(WAITING_MAX);
        let mut task = JoinSet::new();
        task.spawn(sender.run(queued));
        Ok(Self {
            settings,
            queue,
            n_lost: AtomicU64::new(0),
            _task: Mutex::new(task),
        })
    }

    pub(super) fn settings(&self) -> &TelemetrySettings {
        &self.settings
    }

    /// Queues a span. Never waits.
    pub(super) fn send(&self, span: &SpanRecord) {
        let queued = self.queue.try_send(Queued::Span(span.json().to_string()));
        if queued.is_err() && self.n_lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("spans are lost: the collector takes them too slowly");
        }
    }

    /// Waits until everything queued was sent or given up.
    ///
    /// Limits: 5 s.
    pub(super) async fn flush(&self) {
        let flushed = async {
            let (tell, told) = oneshot::channel();
            if self.queue.send(Queued::Flush(tell)).await.is_ok() {
                drop(told.await);
            }
        };
        if timeout(FLUSH_MAX, flushed).await.is_err() {
            tracing::warn!("spans are lost: the collector did not take them in time");
        }
    }
}

impl Sender {
    fn new(egress: &Egress, settings: &TelemetrySettings) -> Result<Self, String> {
        let limits = OwnLimits {
            time: settings.timeout,
            bytes: ANSWER_BYTES_MAX,
        };
        let client = OwnClient::new(egress, &[settings.url.as_str()], limits);
        let client = client.map_err(|error| error.to_string())?;
        let request = Request::post(settings.url.as_str()).body(());
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &settings.headers {
            let bad = || format!("`{name}` of OTEL_EXPORTER_OTLP_HEADERS is no header");
            let name = HeaderName::try_from(name).map_err(|_| bad())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self {
            client,
            request,
            resource: settings.resource.clone(),
            patience: OwnPatience {
                headers: settings.timeout,
                idle: settings.timeout,
                total: settings.timeout,
            },
            has_warned: false,
        })
    }

    async fn run(mut self, mut queued: mpsc::Receiver<Queued>) {
        loop {
            let Some(first) = queued.recv().await else {
                return;
            };
            let mut batch = Batch::default();
            let deadline = Instant::now() + BATCH_WAIT;
            let mut next = Some(first);
            while let Some(one) = next {
                batch.add(one);
                if batch.is_full() {
                    break;
                }
                let waiting = timeout_at(deadline, queued.recv()).await;
                next = waiting.ok().flatten();
            }
            if !batch.spans.is_empty() {
                self.deliver(&batch.spans).await;
            }
            if let Some(waiting) = batch.flush {
                // The caller that waited may have given up.
                let _gone = waiting.send(());
            }
        }
    }

    /// Sends spans, again after a failure that may pass.
    async fn deliver(&mut self, spans: &[String]) {
        let body = Bytes::from(otlp::request(&self.resource, spans));
        for attempt in 1..=ATTEMPTS_MAX {
            let Err(failure) = self.post(body.clone()).await else {
                return;
            };
            let is_last = attempt == ATTEMPTS_MAX || !failure.can_pass;
            if is_last {
                self.warn(&failure.reason);
                return;
            }
            let pause = failure
                .retry_after
                .unwrap_or(PAUSE * 2_u32.pow(attempt - 1));
            sleep(pause.min(BATCH_WAIT)).await;
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), PostFailure> {
        let mut request = Request::new(body);
        *request.method_mut() = self.request.method().clone();
        *request.uri_mut() = self.request.uri().clone();
        *request.headers_mut() = self.request.headers().clone();
        let sent = self.client.send(request, self.patience).await;
        let answer = sent.map_err(|error| PostFailure {
            can_pass: true,
            reason: error.to_string(),
            retry_after: None,
        })?;
        let status = answer.status;
        if status.is_success() {
            // Read to its end, so that the connection serves again.
            drop(answer.bytes(ANSWER_BYTES_MAX).await);
            return Ok(());
        }
        let retry_after = answer.headers.get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        Err(PostFailure {
            can_pass: matches!(status.as_u16(), 429 | 502 | 503 | 504),
            reason: format!("the collector answers with {status}"),
            retry_after: retry_after.map(Duration::from_secs),
        })
    }

    /// Says once that spans are not taken: it is not the work that is done here.
    fn warn(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!(reason, "spans are not sent");
        }
    }
}

/// Why a request did not deliver.
struct PostFailure {
    can_pass: bool,
    reason: String,
    retry_after: Option<Duration>,
}

/// Spans that go out together.
#[derive(Default)]
struct Batch {
    spans: Vec<String>,
    n_bytes: usize,
    flush: Option<oneshot::Sender<()>>,
}

impl Batch {
    fn add(&mut self, queued: Queued) {
        match queued {
            Queued::Span(span) => {
                self.n_bytes += span.len();
                self.spans.push(span);
            }
            Queued::Flush(waiting) => self.flush = Some(waiting),
        }
    }

    fn is_full(&self) -> bool {
        self.flush.is_some() || self.spans.len() >= BATCH_MAX || self.n_bytes >= BATCH_BYTES_MAX
    }
}

#[cfg(test)]
mod tests;
