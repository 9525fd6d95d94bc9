//! What is looked at in a request before anything of it is sent.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, RANGE,
};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Empty};
use url::Url;
use zeph_core::network::{Destination, HTTP_PORT, HTTPS_PORT, HostAccess};

use crate::connection::RequestBody;
use crate::error::EgressError;
use crate::hop;

/// Most bytes of a URL. More is what data is carried out with.
pub const URL_BYTES_MAX: usize = 2_048;

/// Fields that we set, besides those of a connection.
const OURS: [HeaderName; 4] = [
    ACCEPT_ENCODING,
    EXPECT,
    HOST,
    HeaderName::from_static("http2-settings"),
];

/// Where a request goes, apart from the path: what a redirect may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_plain: bool,
    pub(crate) destination: Destination,
}

impl Origin {
    fn scheme(&self) -> &'static str {
        match self.is_plain {
            true => "http",
            false => "https",
        }
    }

    /// Host and port as they stand in a URL and in `Host`.
    pub(crate) fn authority(&self) -> String {
        let Destination { host, port } = &self.destination;
        match *port == default_port(self.is_plain) {
            true => host.to_string(),
            false => self.destination.to_string(),
        }
    }
}

fn default_port(is_plain: bool) -> u16 {
    match is_plain {
        true => HTTP_PORT,
        false => HTTPS_PORT,
    }
}

/// A request that may be sent as far as it alone can say.
#[derive(Debug)]
pub(crate) struct CheckedRequest {
    pub(crate) origin: Origin,
    pub(crate) path: PathAndQuery,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
}

impl CheckedRequest {
    /// Checks scheme, authority, method, lengths; takes off what is ours to say. The body comes beside it, where the method has one.
    ///
    /// Errors: `Request`, `TooLarge`.
    pub(crate) fn new(
        request: Request<RequestBody>,
        header_bytes: usize,
        body_bytes: u64,
    ) -> Result<(Self, Option<RequestBody>), EgressError> {
        let (parts, body) = request.into_parts();
        let origin = origin(&parts.uri)?;
        let path = path(&parts.uri)?;
        let method = method(parts.method)?;
        let headers = own_headers(parts.headers, header_bytes)?;
        let length = content_length(&headers)?;
        if length > body_bytes {
            return Err(EgressError::TooLarge {
                what: "the body of the request",
                key: "max_body_bytes",
                limit: body_bytes,
            });
        }
        let fetches = matches!(method, Method::GET | Method::HEAD);
        if fetches && length > 0 {
            let problem = format!("`{method}` sends no body");
            return Err(EgressError::Request(problem));
        }
        let request = Self {
            origin,
            path,
            method,
            headers,
        };
        request.check_length()?;
        Ok((request, (!fetches).then_some(body)))
    }

    /// The next request after a redirect to `target`.
    pub(crate) fn redirected(&mut self, target: &Url) -> Result<(), String> {
        let origin = origin_of(target)?;
        let path = &target[url::Position::BeforePath..url::Position::AfterQuery];
        self.path = path.parse().map_err(|_| "its path is none".to_owned())?;
        if origin != self.origin {
            let kept = ["accept", "accept-language", "user-agent"];
            let names: Vec<HeaderName> = self.headers.keys().cloned().collect();
            for name in names.iter().filter(|name| !kept.contains(&name.as_str())) {
                self.headers.remove(name);
            }
            self.origin = origin;
        }
        self.check_length().map_err(|error| error.to_string())
    }

    /// The whole of it.
    pub(crate) fn url(&self) -> String {
        format!(
            "{}://{}{}",
            self.origin.scheme(),
            self.origin.authority(),
            self.path
        )
    }

    fn check_length(&self) -> Result<(), EgressError> {
        let n_bytes = self.url().len();
        match n_bytes > URL_BYTES_MAX {
            true => Err(EgressError::Request(format!(
                "the URL has {n_bytes} bytes; at most {URL_BYTES_MAX} are sent"
            ))),
            false => Ok(()),
        }
    }

    /// The grant that would let it be sent.
    pub(crate) fn wanted(&self) -> HostAccess {
        let method = match self.method.as_str() {
            "HEAD" => "GET",
            other => other,
        };
        HostAccess::to(&self.origin.destination, method, self.origin.is_plain)
    }

    /// As it goes over the wire: our own fields, and the body when there is one.
    pub(crate) fn to_wire(
        &self,
        body: Option<RequestBody>,
        accept_encoding: &'static str,
    ) -> Request<RequestBody> {
        let mut request = Request::new(body.unwrap_or_else(no_body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = Uri::from(self.path.clone());
        let mut headers = self.headers.clone();
        let host = HeaderValue::from_str(&self.origin.authority());
        headers.insert(HOST, host.unwrap_or_else(|_| HeaderValue::from_static("")));
        let encoding = match headers.contains_key(RANGE) {
            true => "identity",
            false => accept_encoding,
        };
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding));
        *request.headers_mut() = headers;
        request
    }
}

fn no_body() -> RequestBody {
    Empty::<Bytes>::new()
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn refused<T>(problem: impl Into<String>) -> Result<T, EgressError> {
    Err(EgressError::Request(problem.into()))
}

fn origin(uri: &Uri) -> Result<Origin, EgressError> {
    let is_plain = match uri.scheme_str() {
        Some("https") => false,
        Some("http") => true,
        _ => return refused("only `https` and `http` are spoken"),
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    match Destination::parse(authority, default_port(is_plain)) {
        Ok(destination) => Ok(Origin {
            is_plain,
            destination,
        }),
        Err(error) => refused(error.to_string()),
    }
}

/// Errors: a sentence.
pub(crate) fn origin_of(url: &Url) -> Result<Origin, String> {
    let is_plain = match url.scheme() {
        "https" => false,
        "http" => true,
        other => return Err(format!("`{other}` is not spoken")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user or password stands in it".to_owned());
    }
    let host = url.host_str().unwrap_or_default().parse();
    let host = host.map_err(|error| format!("{error}"))?;
    let port = url.port().unwrap_or(default_port(is_plain));
    if port == 0 {
        return Err("its port is 0".to_owned());
    }
    let destination = Destination { host, port };
    Ok(Origin {
        is_plain,
        destination,
    })
}

fn path(uri: &Uri) -> Result<PathAndQuery, EgressError> {
    let text = uri.path_and_query().map_or("", PathAndQuery::as_str);
    let whole = match text.starts_with('/') {
        true => text.to_owned(),
        false if text.is_empty() || text.starts_with('?') => format!("/{text}"),
        false => return refused("the path does not begin with `/`"),
    };
    let parsed = whole.parse();
    parsed.or_else(|_| refused("the path contains what no path has"))
}

fn method(method: Method) -> Result<Method, EgressError> {
    let is_plain = method
        .as_str()
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    let is_sent = !matches!(method.as_str(), "CONNECT" | "TRACE" | "TRACK");
    match is_plain && is_sent && method.as_str().len() <= 32 {
        true => Ok(method),
        false => refused(format!(
            "the method `{}` is not sent",
            zeph_core::failure::one_line(method.as_str(), 32)
        )),
    }
}

/// The fields of the guest that are its to say.
fn own_headers(mut headers: HeaderMap, bytes_max: usize) -> Result<HeaderMap, EgressError> {
    hop::strip(&mut headers, &OURS);
    if header_bytes(&headers) > bytes_max {
        return Err(EgressError::TooLarge {
            what: "the header of the request",
            key: "max_header_bytes",
            limit: bytes_max as u64,
        });
    }
    Ok(headers)
}

/// Bytes of fields as they go over the wire.
pub(crate) fn header_bytes(headers: &HeaderMap) -> usize {
    let fields = headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum()
}

/// The length the guest announces; 0 when it announces none.
fn content_length(headers: &HeaderMap) -> Result<u64, EgressError> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let Some(value) = values.next() else {
        return Ok(0);
    };
    let digits = value
        .to_str()
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match (digits.and_then(|text| text.parse().ok()), values.next()) {
        (Some(length), None) => Ok(length),
        _ => refused("its `content-length` is not one number"),
    }
}
