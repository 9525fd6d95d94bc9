//! A component that makes requests as another author would write it: plain functions over `wasi:http`.

#![expect(unsafe_code, reason = "the binding generator's code")]

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
};
use wasip2::io::streams::StreamError;

#[allow(warnings, reason = "the binding generator's code")]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "web" });
}

struct Web;

impl bindings::Guest for Web {
    fn visit(
        method: String,
        url: String,
        headers: Vec<(String, String)>,
        body: String,
    ) -> Result<String, String> {
        let response = request(&method, &url, &headers, &body)?;
        let status = response.status();
        let url = response.headers().get("zeph-url").pop();
        let url = url.map_or_else(String::new, |url| {
            String::from_utf8_lossy(&url).into_owned()
        });
        let mut text = Vec::new();
        read(&response, |piece| text.extend_from_slice(piece))?;
        Ok(format!("{status} {url} {}", String::from_utf8_lossy(&text)))
    }

    fn measure(url: String) -> Result<u64, String> {
        let response = request("GET", &url, &[], "")?;
        let mut n_bytes = 0;
        read(&response, |piece| n_bytes += piece.len() as u64)?;
        Ok(n_bytes)
    }

    fn repeat(url: String, times: u32) -> Result<u32, String> {
        for n in 0..times {
            let response =
                request("GET", &url, &[], "").map_err(|error| format!("{n}: {error}"))?;
            read(&response, |_| ())?;
        }
        Ok(times)
    }
}

fn request(
    method: &str,
    url: &str,
    headers: &[(String, String)],
    body: &str,
) -> Result<IncomingResponse, String> {
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let fields = Fields::new();
    for (name, value) in headers {
        let appended = fields.append(name, value.as_bytes());
        appended.map_err(|error| format!("{name}: {error:?}"))?;
    }
    let request = OutgoingRequest::new(fields);
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        other => Method::Other(other.to_owned()),
    };
    request
        .set_method(&method)
        .map_err(|()| "the method is refused")?;
    let scheme = match scheme {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        other => Scheme::Other(other.to_owned()),
    };
    request
        .set_scheme(Some(&scheme))
        .map_err(|()| "the scheme is refused")?;
    request
        .set_authority(Some(authority))
        .map_err(|()| "the authority is refused")?;
    request
        .set_path_with_query(Some(path))
        .map_err(|()| "the path is refused")?;
    let outgoing = request.body().map_err(|()| "no body")?;
    let sent = handle(request, None).map_err(|code| format!("{code:?}"))?;
    if !body.is_empty() {
        let stream = outgoing.write().map_err(|()| "no stream")?;
        let written = stream.blocking_write_and_flush(body.as_bytes());
        written.map_err(|error| format!("{error:?}"))?;
    }
    OutgoingBody::finish(outgoing, None).map_err(|code| format!("{code:?}"))?;
    sent.subscribe().block();
    let response = sent.get().ok_or("not ready")?.map_err(|()| "taken")?;
    response.map_err(|code| format!("{code:?}"))
}

/// Hands every piece of the body to `take`.
fn read(response: &IncomingResponse, mut take: impl FnMut(&[u8])) -> Result<(), String> {
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    loop {
        match stream.blocking_read(64 * 1024) {
            Ok(piece) => take(&piece),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                let code = wasip2::http::types::http_error_code(&error);
                return Err(match code {
                    Some(code) => format!("{code:?}"),
                    None => error.to_debug_string(),
                });
            }
        }
    }
    drop(stream);
    drop(IncomingBody::finish(body));
    Ok(())
}

bindings::export!(Web with_types_in bindings);
