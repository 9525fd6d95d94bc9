//! `wasi:http/outgoing-handler`: a guest's request on its way to the exit of its call.

use std::sync::Arc;

use http::uri::{PathAndQuery, Scheme as UriScheme};
use http_body_util::{BodyExt as _, Empty};
use wasmtime::component::Resource;
use wasmtime_wasi::runtime::spawn;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Method, Scheme};
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::{NetworkAnswer, Refuser, SharedRefusals};
use crate::http_exit::{
    HttpFailure, HttpFailureKind, HttpPatience, HttpRequestBody, HttpResponseBody, HttpSending,
};

impl Refuser<'_> {
    /// Takes the request, whatever it is like; what the exit refuses is never begun.
    pub(super) fn handle(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        options: Option<Resource<RequestOptions>>,
    ) -> wasmtime::Result<NetworkAnswer> {
        let request = self.table.delete(request)?;
        let options = match options {
            Some(options) => self.table.delete(options)?,
            None => RequestOptions::default(),
        };
        let Some(exit) = self.network.exit.clone() else {
            let authority = request.authority.as_deref().unwrap_or_default();
            self.network.refused().no_exit(authority);
            return Ok(Err(ErrorCode::HttpRequestDenied));
        };
        let request = match outgoing(request) {
            Ok(request) => request,
            Err(code) => return Ok(Err(code)),
        };
        let sending = match exit.send(request, patience(options)) {
            Ok(sending) => sending,
            Err(failure) => {
                let code = told(failure, &self.network.refusals);
                return Ok(Err(code));
            }
        };
        self.network.is_used = true;
        let refusals = Arc::clone(&self.network.refusals);
        let pending = spawn(answer(sending, refusals));
        let pending = HostFutureIncomingResponse::Pending(pending);
        Ok(Ok(self.table.push(pending)?))
    }
}

type Answer = Result<
    (
        http::Response<WasiBody>,
        wasmtime_wasi::runtime::AbortOnDropJoinHandle<()>,
    ),
    Error,
>;

async fn answer(sending: HttpSending, refusals: SharedRefusals) -> Answer {
    let response = sending
        .await
        .map_err(|failure| Error::from(told(failure, &refusals)))?;
    let body = |body: HttpResponseBody| {
        body.map_err(move |failure| Error::from(told(failure, &refusals)))
            .boxed_unsync()
    };
    // The body moves its connection itself.
    Ok((response.map(body), spawn(async {})))
}

/// What the guest is told; what its user has to know is kept.
fn told(failure: HttpFailure, refusals: &SharedRefusals) -> ErrorCode {
    let HttpFailure { kind, refused } = failure;
    if let Some(refused) = refused {
        super::lock(refusals).noted(*refused);
    }
    kind.into()
}

fn patience(options: RequestOptions) -> HttpPatience {
    HttpPatience {
        connect: options.connect_timeout,
        header: options.first_byte_timeout,
        idle: options.between_bytes_timeout,
    }
}

/// The request as the exit takes it: nothing is judged here, but what cannot be written down.
fn outgoing(request: HostOutgoingRequest) -> Result<http::Request<HttpRequestBody>, ErrorCode> {
    let HostOutgoingRequest {
        method,
        scheme,
        authority,
        path_with_query,
        headers,
        body,
    } = request;
    let path = match path_with_query.as_deref() {
        None | Some("") => PathAndQuery::from_static("/"),
        Some(path) => path.parse().map_err(|_| ErrorCode::HttpRequestUriInvalid)?,
    };
    let uri = http::Uri::builder()
        .scheme(uri_scheme(scheme)?)
        .authority(authority.unwrap_or_default())
        .path_and_query(path)
        .build()
        .map_err(|_| ErrorCode::HttpRequestUriInvalid)?;
    let body = match body {
        Some(body) => body.map_err(Into::into).boxed_unsync(),
        None => Empty::new().map_err(|never| match never {}).boxed_unsync(),
    };
    let mut request = http::Request::new(body);
    *request.method_mut() = http_method(method)?;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.into();
    Ok(request)
}

fn uri_scheme(scheme: Option<Scheme>) -> Result<UriScheme, ErrorCode> {
    match scheme {
        None | Some(Scheme::Https) => Ok(UriScheme::HTTPS),
        Some(Scheme::Http) => Ok(UriScheme::HTTP),
        Some(Scheme::Other(_)) => Err(ErrorCode::HttpProtocolError),
    }
}

fn http_method(method: Method) -> Result<http::Method, ErrorCode> {
    Ok(match method {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Delete => http::Method::DELETE,
        Method::Connect => http::Method::CONNECT,
        Method::Options => http::Method::OPTIONS,
        Method::Trace => http::Method::TRACE,
        Method::Patch => http::Method::PATCH,
        Method::Other(name) => {
            let method = http::Method::from_bytes(name.as_bytes());
            return method.map_err(|_| ErrorCode::HttpRequestMethodInvalid);
        }
    })
}

/// A failure that only the guest is told of.
impl From<HttpFailureKind> for HttpFailure {
    fn from(kind: HttpFailureKind) -> Self {
        let refused = None;
        Self { kind, refused }
    }
}
