//! HTTP requests of tools: each hop is checked, dialled, sent and bounded on its own.

mod hop;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, Response};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use zeph_core::execution::HostUse;
use zeph_core::network::{EgressLimits, EgressSettings, HostAccess};

use crate::body::ResponseBody;
use crate::connection::RequestBody;
use crate::dial::{Dialer, private_host_entry};
use crate::error::EgressError;
use crate::ledger::Ledger;
use crate::pool::Pool;
use crate::proxy::ProxyConnector;
use crate::request::{CheckedRequest, Origin};
use crate::secret::CallSecrets;
use crate::tls::Tls;

/// The way out for every plugin of the host: made once, cheap to clone.
#[derive(Debug, Clone)]
pub struct Egress(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dialer: Dialer,
    tls: Tls,
    limits: EgressLimits,
    pool: Pool,
}

impl Egress {
    /// One that uses the resolver and the network of the machine.
    pub fn new(settings: &EgressSettings) -> Self {
        let private = Arc::clone(&settings.private);
        let dialer = match &settings.proxy {
            None => Dialer::new(private),
            Some(proxy) => {
                Dialer::new(private).through(Arc::new(ProxyConnector::new(proxy.clone())))
            }
        };
        Self::with(dialer, settings)
    }

    /// One with another dialer.
    pub fn with(dialer: Dialer, settings: &EgressSettings) -> Self {
        Self(Arc::new(Shared {
            dialer: dialer.within(settings.limits.connect),
            tls: Tls::new(settings.ca_file.clone()),
            limits: settings.limits,
            pool: Pool::default(),
        }))
    }

    /// What opens connections, with all checks.
    pub fn dialer(&self) -> &Dialer {
        &self.0.dialer
    }

    /// Whom TLS trusts.
    pub fn tls(&self) -> &Tls {
        &self.0.tls
    }

    /// The way out of one call.
    ///
    /// Shape: `owner` is equal for calls that may share a connection, and for no others: plugin, grants and secrets. `hosts` is
    ///        what the call holds, `secrets` what is added to its requests and what its responses must not hold.
    pub fn of_call(
        &self,
        owner: Arc<str>,
        hosts: Arc<[HostAccess]>,
        secrets: CallSecrets,
    ) -> CallExit {
        CallExit(Arc::new(Call {
            egress: self.clone(),
            owner,
            hosts,
            secrets,
            ledger: Ledger::default(),
            requests: AtomicU32::new(0),
            open: Arc::new(Semaphore::new(self.0.limits.connections as usize)),
        }))
    }
}

/// The way out of one call, with what it has used up. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CallExit(Arc<Call>);

#[derive(Debug)]
struct Call {
    egress: Egress,
    owner: Arc<str>,
    hosts: Arc<[HostAccess]>,
    secrets: CallSecrets,
    ledger: Ledger,
    requests: AtomicU32,
    open: Arc<Semaphore>,
}

/// Limits of time that a caller wants lower than those of the configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    /// Connecting.
    pub connect: Option<Duration>,
    /// Until the header of the response.
    pub header: Option<Duration>,
    /// Between two pieces of the body.
    pub idle: Option<Duration>,
}

impl Patience {
    fn clamp(self, mut limits: EgressLimits) -> EgressLimits {
        let least = |wanted: Option<Duration>, limit: Duration| {
            wanted.map_or(limit, |wanted| wanted.min(limit))
        };
        limits.connect = least(self.connect, limits.connect);
        limits.header = least(self.header, limits.header);
        limits.idle = least(self.idle, limits.idle);
        limits
    }
}

/// An answer, with the place it came from.
#[derive(Debug)]
pub struct Answer {
    /// The answer. Its body is decoded and bounded.
    pub response: Response<ResponseBody>,
    /// Where it came from when that is not where the request went: the URL after the last redirect.
    pub redirected_to: Option<String>,
}

/// A request that was checked and counted, and of which nothing was sent yet.
#[derive(Debug)]
pub struct PreparedRequest {
    call: CallExit,
    request: CheckedRequest,
    body: Option<RequestBody>,
    limits: EgressLimits,
    follows: bool,
}

/// The field by which a plugin says that it wants redirects itself: `manual`.
pub const REDIRECTS_FIELD: &str = "zeph-redirects";

/// The field of a response that names the URL after the last redirect. No server can set it.
pub const URL_FIELD: &str = "zeph-url";

impl CallExit {
    /// Checks a request and counts it.
    ///
    /// Errors: `Request`, `TooLarge`, `NotGranted`, `Requests`.
    pub fn prepare(
        &self,
        mut request: Request<RequestBody>,
        patience: Patience,
    ) -> Result<PreparedRequest, EgressError> {
        let limits = patience.clamp(self.limits());
        let wish = request.headers_mut().remove(REDIRECTS_FIELD);
        let is_manual = wish.is_some_and(|wish| wish.as_bytes() == b"manual");
        let (request, body) = CheckedRequest::new(request, limits.header_bytes, limits.body_bytes)?;
        self.allow(&request)?;
        self.check_secrets(&request).map_err(EgressError::Request)?;
        Ok(PreparedRequest {
            call: self.clone(),
            follows: !is_manual && limits.redirects > 0 && body.is_none(),
            request,
            body,
            limits,
        })
    }

    /// The hosts that requests were sent to or refused at until now, with requests and bytes, TLS included.
    pub fn hosts(&self) -> Vec<HostUse> {
        self.0.ledger.report().hosts
    }

    fn limits(&self) -> EgressLimits {
        self.0.egress.0.limits
    }

    /// Whether the grants of the call cover a request; then it is counted.
    ///
    /// Errors: `NotGranted`, `Requests`.
    fn allow(&self, request: &CheckedRequest) -> Result<(), EgressError> {
        if !self.covers(&request.origin, request.method.as_str()) {
            self.0.ledger.refused_at(&request.origin.destination);
            return Err(self.not_granted(request));
        }
        let max = self.limits().requests;
        let counted = self.0.requests.fetch_add(1, Ordering::Relaxed);
        match counted < max {
            true => Ok(()),
            false => Err(EgressError::Requests(max)),
        }
    }

    /// What is missing for a request that no grant covers. An address that is private needs its operator's word besides.
    fn not_granted(&self, request: &CheckedRequest) -> EgressError {
        let destination = &request.origin.destination;
        let forbidden = self.0.egress.0.dialer.forbidden_literal(destination);
        EgressError::NotGranted {
            access: request.wanted(),
            closed: forbidden.map(|why| {
                format!(
                    "it is {why}, which the operator opens with {}",
                    private_host_entry(destination)
                )
            }),
        }
    }

    /// Errors: a sentence.
    fn check_secrets(&self, request: &CheckedRequest) -> Result<(), String> {
        let (destination, method) = (&request.origin.destination, request.method.as_str());
        let checked = self.0.secrets.check(&request.url(), destination, method);
        checked.inspect_err(|_| self.0.ledger.refused_at(destination))
    }

    /// `https` needs a grant for it. Plain `http` needs one for that, or a private host that the operator opened for it.
    fn covers(&self, origin: &Origin, method: &str) -> bool {
        let Origin {
            is_plain,
            destination,
        } = origin;
        let private = self.0.egress.0.dialer.private(destination);
        let is_opened = *is_plain && private.is_some_and(|private| private.plain_http);
        self.0.hosts.iter().any(|access| {
            access.name.matches(destination)
                && (access.plain_http == *is_plain || is_opened)
                && access.allows_method(method)
        })
    }
}

impl PreparedRequest {
    /// Sends the request, and follows what it is redirected to, each hop through all checks.
    ///
    /// A request with a body, or of another method than GET and HEAD, gets the redirect itself. Across origins all fields are dropped but
    /// `Accept`, `Accept-Language` and `User-Agent`, and stay off on later hops.
    /// Errors: [`EgressError`]. Dropping the future ends everything.
    pub async fn send(mut self) -> Result<Answer, EgressError> {
        let deadline = Instant::now() + self.limits.total;
        let first = self.request.origin.clone();
        let (mut n_redirects, mut has_left_origin) = (0, false);
        loop {
            has_left_origin |= self.request.origin != first;
            let hop = hop::Hop {
                call: &self.call.0,
                limits: self.limits,
                deadline,
                has_left_origin,
            };
            let received = hop.send(&self.request, self.body.take()).await?;
            let target = match self.follows {
                true => received.redirect(&self.request)?,
                false => None,
            };
            let Some(target) = target else {
                let is_elsewhere = n_redirects > 0;
                return Ok(Answer {
                    redirected_to: is_elsewhere.then(|| self.request.url()),
                    response: received.into_response(&self.request.method, &self.call.0.secrets)?,
                });
            };
            n_redirects += 1;
            if n_redirects > self.limits.redirects {
                return Err(EgressError::Redirects(self.limits.redirects));
            }
            let from = self.request.origin.destination.clone();
            let redirected = self.request.redirected(&target);
            let redirected = redirected.and_then(|()| self.call.check_secrets(&self.request));
            redirected.map_err(|why| EgressError::Redirect {
                destination: from,
                why,
            })?;
            self.call.allow(&self.request)?;
        }
    }
}

#[cfg(test)]
mod tests;
