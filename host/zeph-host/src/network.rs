//! Where the requests of plugins meet the way out: the engine hands them over, `zeph-egress` checks and sends them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_body_util::BodyExt as _;
use zeph_core::execution::HostUse;
use zeph_egress::{
    Answer, CallExit, DialError, Egress, EgressError, Patience, PreparedRequest, URL_FIELD,
};
use zeph_engine::{
    HttpExit, HttpFailure, HttpFailureKind, HttpPatience, HttpRequestBody, HttpResponseBody,
    HttpSending, MissingGrant, SentRequest,
};
use zeph_plugins::rights::Rights;
use zeph_plugins::set::InForce;

use self::freshness::Freshness;
use crate::known_secrets::KnownSecrets;

pub(crate) mod freshness;

/// The way out of one call.
#[derive(Debug)]
struct Exit {
    call: CallExit,
    freshness: Arc<Freshness>,
    /// What was let out, each once. Protects the set for the moment of adding to it.
    sent: Mutex<BTreeSet<SentRequest>>,
}

/// Most requests that are told apart.
const SENT_MAX: usize = 256;

/// The way out of a call that holds `rights`. One without a granted host refuses every request, and says which grant would help.
pub(crate) fn exit(
    egress: &Egress,
    in_force: &InForce,
    rights: &Rights,
    secrets: &KnownSecrets,
) -> Arc<dyn HttpExit> {
    let mut owner = in_force.good.plugin.id().0.clone();
    for grant in &rights.granted {
        let written = write!(
            owner,
            "|{}:{}:{}",
            grant.id, grant.granted_at_ms, grant.capability
        );
        written.unwrap_or_default();
    }
    let secrets = secrets.of_call(&rights.secrets, &rights.grant.variables);
    let exit = egress.of_call(owner.into(), Arc::clone(&rights.hosts), secrets);
    let freshness = Arc::<Freshness>::default();
    // An answer to a request with a secret is for this request alone.
    if !rights.secrets.is_empty() {
        freshness.spoil();
    }
    Arc::new(Exit {
        call: exit,
        freshness,
        sent: Mutex::default(),
    })
}

/// The way out of a call as the engine takes it.
pub(crate) fn adapter(call: CallExit) -> Arc<dyn HttpExit> {
    let freshness = Arc::default();
    Arc::new(Exit {
        call,
        freshness,
        sent: Mutex::default(),
    })
}

impl HttpExit for Exit {
    fn send(
        &self,
        request: http::Request<HttpRequestBody>,
        patience: HttpPatience,
    ) -> Result<HttpSending, HttpFailure> {
        let HttpPatience {
            connect,
            header,
            idle,
        } = patience;
        let patience = Patience {
            connect,
            header,
            idle,
        };
        self.freshness.begin();
        // The same call sends the same body.
        let is_general = freshness::is_general(request.method(), request.headers());
        let line = line(&request);
        let prepared = self.call.prepare(request, patience).map_err(failure)?;
        self.note(line);
        let freshness = Arc::clone(&self.freshness);
        Ok(Box::pin(sent(prepared, freshness, is_general)))
    }

    fn fresh_until(&self) -> Option<Instant> {
        self.freshness.until()
    }

    fn hosts(&self) -> Vec<HostUse> {
        self.call.hosts()
    }

    fn requests(&self) -> Vec<SentRequest> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.iter().cloned().collect()
    }
}

impl Exit {
    fn note(&self, line: Option<SentRequest>) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.len() < SENT_MAX {
            sent.extend(line);
        }
    }
}

/// Where a request goes; none without a host.
fn line<B>(request: &http::Request<B>) -> Option<SentRequest> {
    let uri = request.uri();
    let plain_http = uri.scheme_str() == Some("http");
    let port = uri.port_u16().unwrap_or(if plain_http { 80 } else { 443 });
    Some(SentRequest {
        host: format!("{}:{port}", uri.host()?.to_lowercase()),
        method: request.method().to_string(),
        plain_http,
    })
}

/// Sends the request. Its answer may be used again when it `is_general`, came from where it went, and says so itself.
async fn sent(
    prepared: PreparedRequest,
    freshness: Arc<Freshness>,
    is_general: bool,
) -> Result<http::Response<HttpResponseBody>, HttpFailure> {
    let Answer {
        mut response,
        redirected_to,
    } = prepared.send().await.map_err(failure)?;
    let lifetime = freshness::lifetime(response.status(), response.headers());
    if let Some(lifetime) = lifetime.filter(|_| is_general && redirected_to.is_none()) {
        freshness.answered(lifetime);
    }
    if let Some(url) = redirected_to.and_then(|url| url.try_into().ok()) {
        response.headers_mut().insert(URL_FIELD, url);
    }
    let broken = move |error| {
        freshness.spoil();
        failure(error)
    };
    Ok(response.map(|body| body.map_err(broken).boxed_unsync()))
}

/// What the guest is told of an error, and what its user is.
fn failure(error: EgressError) -> HttpFailure {
    let reason = error.to_string();
    let refused = match &error {
        EgressError::NotGranted { access, closed } => Some(MissingGrant::Host {
            access: access.clone(),
            closed: closed.clone(),
        }),
        EgressError::Request(_)
        | EgressError::Requests(_)
        | EgressError::Roots(_)
        | EgressError::Dial(DialError::Forbidden { .. }) => Some(MissingGrant::Request { reason }),
        _ => None,
    };
    if refused.is_none() {
        tracing::info!(
            error = &error as &dyn std::error::Error,
            "a request of a plugin failed"
        );
    }
    HttpFailure {
        kind: kind(error),
        refused: refused.map(Box::new),
    }
}

/// Whether the connection ended in the middle of a body.
fn is_cut_off(error: &dyn std::error::Error) -> bool {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::UnexpectedEof)
}

/// What is no error of the system is one of the operator's proxy, which says so: the host of the request has not even been asked.
fn not_connected(error: &std::io::Error) -> HttpFailureKind {
    match error.raw_os_error() {
        None if error.get_ref().is_some() => HttpFailureKind::Other(error.to_string()),
        _ => HttpFailureKind::NotConnected,
    }
}

fn kind(error: EgressError) -> HttpFailureKind {
    match error {
        EgressError::NotGranted { .. } | EgressError::Request(_) => HttpFailureKind::Denied,
        EgressError::Requests(_) => HttpFailureKind::TooMany,
        EgressError::Dial(error) => match error {
            DialError::NoAddress(_) | DialError::Resolve { .. } => HttpFailureKind::NoAddress,
            DialError::Forbidden { .. } => HttpFailureKind::Prohibited,
            DialError::Connect { source, .. } => not_connected(&source),
            DialError::TimedOut { .. } => HttpFailureKind::ConnectTimeout,
        },
        EgressError::Tls { .. } if error.certificate_fault().is_some() => {
            HttpFailureKind::Certificate
        }
        EgressError::Tls { .. } => HttpFailureKind::Tls,
        EgressError::TimedOut { key, .. } => match key {
            "connect_timeout_secs" => HttpFailureKind::ConnectTimeout,
            _ => HttpFailureKind::ResponseTimeout,
        },
        EgressError::TooLarge { limit, key, .. } => match key {
            "max_body_bytes" => HttpFailureKind::BodyTooLarge(limit),
            _ => HttpFailureKind::HeaderTooLarge,
        },
        EgressError::Redirects(_) | EgressError::Redirect { .. } => HttpFailureKind::Redirect,
        EgressError::Encoding(coding) => HttpFailureKind::Encoding(coding),
        EgressError::Http { source, .. } => match source {
            source if source.is_incomplete_message() || is_cut_off(&source) => {
                HttpFailureKind::Incomplete
            }
            source if source.is_parse_too_large() => HttpFailureKind::HeaderTooLarge,
            _ => HttpFailureKind::Protocol,
        },
        EgressError::Upgrade(_) => HttpFailureKind::Protocol,
        EgressError::Decode(_) => HttpFailureKind::Encoding("damaged".to_owned()),
        EgressError::Roots(reason) => HttpFailureKind::Other(reason),
    }
}
