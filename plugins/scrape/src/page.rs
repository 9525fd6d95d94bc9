//! One page from the network: asked for through the host, checked by status and type, read within the operator's limits.

use url::Url;
use zeph_plugin::http::{Request, Response};
use zeph_plugin::{Category, ToolError};

use crate::charset::{self, Decoded};
use crate::media::{Kind, MediaType};
use crate::settings::{Limit, Settings};
use crate::text::clean;
use crate::xhtml;

/// What is asked for, best first.
const ACCEPT: &str =
    "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.9,application/json;q=0.9,*/*;q=0.5";
/// Who asks. Several servers refuse requests that do not say it.
const USER_AGENT: &str = concat!(
    "zeph-host/",
    env!("CARGO_PKG_VERSION"),
    " (tool of an agent)"
);
/// Characters of an address in a message.
const SHOWN_MAX: usize = 300;

/// A page as it came.
#[derive(Debug)]
pub struct Page {
    /// Its address, after redirects.
    pub url: Url,
    /// What the server says it is.
    pub media: MediaType,
    /// What it is: never binary.
    pub kind: Kind,
    body: Vec<u8>,
}

impl Page {
    /// Gets the page at `address`.
    ///
    /// Errors: the address is none, there is no response, its status is none of success, it is no text, or it exceeds the limits.
    pub fn get(address: &str, settings: &Settings) -> Result<Self, ToolError> {
        let url = parse_address(address)?;
        let request = Request::get(url.as_str())
            .header("accept", ACCEPT)
            .header("user-agent", USER_AGENT)
            .timeout(settings.timeout());
        let response = request.send().map_err(|error| about(&url, error))?;
        let moved = response.redirected_to().and_then(|to| Url::parse(to).ok());
        let url = moved.unwrap_or(url);
        let response = response.succeeded(|status| status_text(&url, status))?;
        let status = response.status();
        if !(200..300).contains(&status) || status == 204 {
            return Err(ToolError {
                http_status: Some(status),
                ..ToolError::permanent(format!("{}, without a page", status_text(&url, status)))
            });
        }
        let media = response
            .header("content-type")
            .map(MediaType::parse)
            .unwrap_or_default();
        Self::read(url, media, response, settings)
    }

    fn read(
        url: Url,
        media: MediaType,
        response: Response,
        settings: &Settings,
    ) -> Result<Self, ToolError> {
        let len = response.content_length();
        let declared = media.kind(&[]);
        if let Kind::Binary(name) = declared {
            return Err(no_text(&url, name, &media, len));
        }
        let limit = settings.limit(declared);
        let body = response
            .bytes(limit.bytes)
            .map_err(|error| about(&url, error))?;
        let Some(body) = body else {
            return Err(too_large(&url, len, limit));
        };
        let page = Self::of(url, media, body)?;
        // What no header calls HTML may be some.
        let limit = settings.limit(page.kind);
        match page.body.len() > limit.bytes {
            true => Err(too_large(&page.url, Some(page.body.len() as u64), limit)),
            false => Ok(page),
        }
    }

    /// The page that `body` is.
    ///
    /// Errors: `permanent_failure` when it is no text.
    pub fn of(url: Url, media: MediaType, body: Vec<u8>) -> Result<Self, ToolError> {
        match media.kind(&body) {
            Kind::Binary(name) => Err(no_text(&url, name, &media, Some(body.len() as u64))),
            kind => Ok(Self {
                url,
                media,
                kind,
                body,
            }),
        }
    }

    /// Its text, and the charset it was written in. The bytes are given up. XHTML becomes HTML.
    pub fn decode(&mut self) -> Decoded {
        let decoded = charset::decode(
            std::mem::take(&mut self.body),
            self.media.charset.as_deref(),
            self.kind,
        );
        match self.kind == Kind::Html && self.media.is_xhtml() {
            true => Decoded {
                text: xhtml::to_html(&decoded.text),
                ..decoded
            },
            false => decoded,
        }
    }
}

/// The address as the host needs it: absolute, of the web, without a fragment or credentials.
fn parse_address(address: &str) -> Result<Url, ToolError> {
    let shown = shortened(address);
    let invalid = |reason: &str| {
        ToolError::invalid_parameters(format!("`{shown}` is not an address of a page: {reason}"))
    };
    let mut url = Url::parse(address.trim()).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => {
            invalid("write it with its scheme, as in `https://example.com/page`")
        }
        error => invalid(&error.to_string()),
    })?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(invalid("it must start with `https://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it must not hold a user name or password"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// An error with the address it is about.
fn about(url: &Url, error: ToolError) -> ToolError {
    let message = format!("`{}`: {}", shortened(url.as_str()), error.message);
    ToolError { message, ..error }
}

fn status_text(url: &Url, status: u16) -> String {
    let reason = match status {
        204 => " (no content)",
        301 | 302 | 303 | 307 | 308 => " (a redirect)",
        304 => " (not modified)",
        400 => " (bad request)",
        401 => " (it asks for credentials)",
        403 => " (forbidden)",
        404 => " (not found)",
        405 => " (method not allowed)",
        406 => " (not acceptable)",
        408 => " (request timeout)",
        410 => " (gone)",
        429 => " (too many requests)",
        451 => " (unavailable for legal reasons)",
        500 => " (internal server error)",
        502 => " (bad gateway)",
        503 => " (service unavailable)",
        504 => " (gateway timeout)",
        _ => "",
    };
    format!(
        "`{}` answered with status {status}{reason}",
        shortened(url.as_str())
    )
}

fn no_text(url: &Url, name: &str, media: &MediaType, size: Option<u64>) -> ToolError {
    let mut facts = Vec::new();
    if !media.essence.is_empty() {
        facts.push(clean(&media.essence));
    }
    if let Some(bytes) = size {
        facts.push(size_text(bytes));
    }
    let facts = if facts.is_empty() {
        String::new()
    } else {
        format!(" ({})", facts.join(", "))
    };
    ToolError::new(
        Category::PermanentFailure,
        format!("`{}` is {name}{facts}, not text", shortened(url.as_str())),
    )
}

fn too_large(url: &Url, len: Option<u64>, limit: Limit) -> ToolError {
    let size = match len {
        Some(bytes) => format!("is {} long", size_text(bytes)),
        None => "is longer".to_owned(),
    };
    ToolError::permanent(format!(
        "`{}` {size}; the limit is {} (`{}`)",
        shortened(url.as_str()),
        size_text(limit.bytes as u64),
        limit.key
    ))
}

/// `12 bytes`, `3.4 KB`, `1.2 MB`.
fn size_text(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} bytes"),
        1_000..1_000_000 => (1_000, "KB"),
        _ => (1_000_000, "MB"),
    };
    let tenths = bytes * 10 / unit;
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
    }
}

fn shortened(address: &str) -> String {
    let line: String = clean(address)
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .collect();
    match line.char_indices().nth(SHOWN_MAX) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_absolute_and_of_the_web() {
        for (address, expected) in [
            ("https://example.com", "https://example.com/"),
            (
                " https://EXAMPLE.com/a b?c=ü#part ",
                "https://example.com/a%20b?c=%C3%BC",
            ),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ] {
            assert_eq!(
                parse_address(address).ok().map(String::from).as_deref(),
                Some(expected)
            );
        }
        for address in [
            "",
            "example.com/page",
            "/page",
            "ftp://example.com/",
            "file:///etc/passwd",
            "data:text/html,x",
            "https://user:word@example.com/",
            "https://",
        ] {
            assert_eq!(
                parse_address(address).err().map(|error| error.category),
                Some(Category::InvalidParameters),
                "{address}"
            );
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1 KB"),
            (1_048_576, "1 MB"),
            (1_250_000, "1.2 MB"),
            (34_567, "34.5 KB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn what_is_no_text_is_named_with_its_size() {
        let url = parse_address("https://example.com/a.pdf").expect("it is valid");
        let error = Page::of(
            url,
            MediaType::parse("application/octet-stream"),
            b"%PDF-1.7 and more".to_vec(),
        )
        .expect_err("it is no text");
        assert_eq!(
            error.message,
            "`https://example.com/a.pdf` is a PDF document (application/octet-stream, 17 bytes), not text"
        );
        assert_eq!(error.category, Category::PermanentFailure);
    }
}
