//! One HTTP/1.1 connection, driven by the task that waits for something on it: it has none of its own.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::ledger::Traffic;
use crate::metered::Meter;

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Most fields in a header.
const HEADERS_MAX: usize = 256;

/// What a connection is made of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Whom the bytes of a connection are counted for: calls use one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Bill(Arc<Mutex<Arc<Traffic>>>);

impl Bill {
    pub(crate) fn new(traffic: Arc<Traffic>) -> Self {
        Self(Arc::new(Mutex::new(traffic)))
    }

    fn goes_to(&self, traffic: Arc<Traffic>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = traffic;
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Meter for Bill {
    fn sent(&self, n_bytes: usize) -> io::Result<()> {
        self.traffic().sent(n_bytes);
        Ok(())
    }

    fn received(&self, n_bytes: usize) -> io::Result<()> {
        self.traffic().received(n_bytes);
        Ok(())
    }
}

/// An open connection.
pub(crate) struct Connection {
    bill: Option<Bill>,
    sender: SendRequest<RequestBody>,
    driver: Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
}

impl Connection {
    /// Speaks HTTP/1.1 over `stream`, and takes no header larger than `header_bytes`.
    pub(crate) async fn new(stream: Box<dyn Stream>, header_bytes: usize) -> hyper::Result<Self> {
        let (sender, driver) = http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(header_bytes)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            bill: None,
            sender,
            driver: Some(Box::pin(driver)),
        })
    }

    /// This connection, whose bytes are counted by `bill`.
    pub(crate) fn billed_to(self, bill: Bill) -> Self {
        let bill = Some(bill);
        Self { bill, ..self }
    }

    /// Counts a request for `traffic`, and all bytes from now on.
    pub(crate) fn count_for(&self, traffic: &Arc<Traffic>) {
        traffic.begun();
        if let Some(bill) = &self.bill {
            bill.goes_to(Arc::clone(traffic));
        }
    }

    /// Sends a request and waits for the header of the response.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> hyper::Result<Response<Incoming>> {
        let Self { sender, driver, .. } = self;
        let mut response = pin!(sender.send_request(request));
        poll_fn(|context| driving(driver, context, |context| response.as_mut().poll(context))).await
    }

    /// Polls what belongs to this connection, and the connection under it.
    pub(crate) fn poll_with<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        driving(&mut self.driver, context, poll)
    }

    /// Whether another request can be sent: the peer has not closed it, and the last body is over.
    pub(crate) fn is_reusable(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let ready = driving(&mut self.driver, &mut context, |context| {
            self.sender.poll_ready(context)
        });
        matches!(ready, Poll::Ready(Ok(()))) && self.driver.is_some()
    }
}

/// Polls for something, and moves the connection on where that is not there yet.
fn driving<T>(
    driver: &mut Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
    context: &mut Context<'_>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    if let Poll::Ready(done) = poll(context) {
        return Poll::Ready(done);
    }
    if let Some(running) = driver
        && running.as_mut().poll(context).is_ready()
    {
        *driver = None;
    }
    poll(context)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
