//! Requests over HTTP, through `wasi:http/outgoing-handler`.
//!
//! The host decides which hosts may be reached, resolves names, speaks TLS, follows redirects and decodes bodies; a plugin sees the last
//! response. Only granted hosts answer: name them as `[[host]]` in `plugin.toml`. Nothing is sent in a native build.
//!
//! ```
//! use zeph_plugin::http::Request;
//! use zeph_plugin::{Output, ToolError};
//!
//! fn forecast(city: &str) -> Result<Output, ToolError> {
//!     let url = format!("https://api.example.com/forecast?city={city}");
//!     let response = Request::get(url).header("accept", "application/json").send()?;
//!     let response = response.succeeded(|status| format!("the service answered with status {status}"))?;
//!     let Some(body) = response.bytes(1024 * 1024)? else {
//!         return Err(ToolError::permanent("the forecast is longer than 1 MiB"));
//!     };
//!     Ok(Output::text(String::from_utf8_lossy(&body)))
//! }
//! ```

mod retry_after;
mod wire;

use std::time::Duration;

use crate::{Category, ToolError};

/// How long a request takes at most, unless it says otherwise.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The field of a response by which the host names the URL after the last redirect. No server can set it.
const URL_FIELD: &str = "zeph-url";

/// A request that was not sent yet.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    timeout: Duration,
}

/// The head of a response, and its body as it comes in.
#[derive(Debug)]
pub struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: wire::Body,
}

impl Request {
    /// A `method`, such as `GET`, for an absolute `url`. What follows a `#` is not sent.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: TIMEOUT,
        }
    }

    /// A `GET` for an absolute `url`.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Adds a header. The host sets `Host` and those of the connection itself.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body. A call that sends one needs the user's approval, unless a rule allows it.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets how long everything may take, from here to the last byte of the body; 15 seconds otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends it and waits for the head of the response, whatever its status.
    ///
    /// Errors: `invalid_parameters` for a URL or header that cannot be sent; `policy_blocked`, `network_error` and `timeout` when there
    ///         is no response.
    pub fn send(self) -> Result<Response, ToolError> {
        let (status, headers, body) = wire::send(&self)?;
        Ok(Response {
            status,
            headers,
            body,
        })
    }
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first header of a name, in any case, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let is_named = |(given, _): &&(String, Vec<u8>)| given.eq_ignore_ascii_case(name);
        let (_, value) = self.headers.iter().find(is_named)?;
        std::str::from_utf8(value).ok()
    }

    /// The URL it came from, when the host was redirected there.
    pub fn redirected_to(&self) -> Option<&str> {
        self.header(URL_FIELD)
    }

    /// The length of the body in bytes, when the server said it.
    pub fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    /// How long the server asks to wait before the next request (`Retry-After`, as seconds or as a date).
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after::read(self.header("retry-after")?, self.header("date"))
    }

    /// The response, unless its status is 400 or above.
    ///
    /// Errors: the category of the status (see [`ToolError::http`]), told as `message`, with the time to wait.
    pub fn succeeded(self, message: impl FnOnce(u16) -> String) -> Result<Self, ToolError> {
        if self.status < 400 {
            return Ok(self);
        }
        let wait = self.retry_after();
        let wait = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        Err(ToolError {
            retry_after_ms: wait,
            ..ToolError::http(self.status, message(self.status))
        })
    }

    /// The next bytes of the body, up to 64 KiB; empty at its end.
    ///
    /// Errors: `network_error` when the connection breaks, `timeout` when the request's time is over.
    pub fn read(&mut self) -> Result<Vec<u8>, ToolError> {
        self.body.read()
    }

    /// All of the body; none when it has more than `bytes_max`, which are then not read to the end.
    ///
    /// Errors: as [`read`](Self::read).
    pub fn bytes(mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, ToolError> {
        let known = self
            .content_length()
            .map_or(0, |len| usize::try_from(len).unwrap_or(usize::MAX));
        if known > bytes_max {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(known);
        loop {
            let piece = self.read()?;
            match piece.is_empty() {
                true => return Ok(Some(bytes)),
                false if bytes.len() + piece.len() > bytes_max => return Ok(None),
                false => bytes.extend_from_slice(&piece),
            }
        }
    }
}

/// The parts of an absolute URL that a request names apart: scheme, authority, and path with query.
fn parts(url: &str) -> Result<(&str, &str, &str), ToolError> {
    let unusable = || {
        ToolError::invalid_parameters(format!(
            "`{}` is not an absolute URL, such as `https://example.com/page`",
            shown(url)
        ))
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(unusable)?;
    let rest = rest.split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match scheme.is_empty() || authority.is_empty() {
        true => Err(unusable()),
        false => Ok((scheme, authority, path)),
    }
}

/// A URL in a message: one line of a bearable length.
fn shown(url: &str) -> String {
    let line: String = url
        .chars()
        .filter(|letter| !letter.is_control())
        .take(200)
        .collect();
    line
}

/// A response that did not come, told as `message`.
fn failure(category: Category, message: impl Into<String>) -> ToolError {
    ToolError::new(category, message)
}

#[cfg(test)]
mod tests;
