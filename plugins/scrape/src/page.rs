//! One page from the network: asked for through the host, checked by status and type, read within the operator's limits.

use url::Url;
use zeph_plugin::http::{Request, Response};
use zeph_plugin::{Category, ToolError};

use crate::charset::{self, Decoded};
use crate::document;
use crate::main_text::{self, Wish};
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
/// Bytes that are read of a page with an error, and characters of its text in the message.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const ERROR_CHARS_MAX: usize = 1_000;

/// A page as it came.
#[derive(Debug)]
pub struct Page {
    /// Its address, after redirects.
    pub url: Url,
    /// What the server says it is.
    pub media: MediaType,
    /// What it is: never binary.
    pub kind: Kind,
    /// Which part of the page it is, when the server says that it is not all of it.
    pub part: Option<String>,
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
        let status = response.status();
        let response = match status >= 400 {
            true => refused(&url, response)?,
            false => response,
        };
        if !(200..300).contains(&status) || status == 204 {
            return Err(ToolError {
                http_status: Some(status),
                ..ToolError::permanent(format!("{}, without a page", status_text(&url, status)))
            });
        }
        let part = (status == 206).then(|| response.header("content-range"));
        let part = part.and_then(|range| part_of(range.unwrap_or_default()));
        let media = media_of(&response);
        let page = Self::read(url, media, response, settings)?;
        Ok(Self { part, ..page })
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
                part: None,
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

fn media_of(response: &Response) -> MediaType {
    let named = response.header("content-type");
    named.map(MediaType::parse).unwrap_or_default()
}

/// What is missing of an answer with status 206, by its `Content-Range`; none when nothing is.
fn part_of(range: &str) -> Option<String> {
    let given = range.trim().strip_prefix("bytes ").map(str::trim);
    let whole = given.and_then(|given| {
        let (span, total) = given.split_once('/')?;
        let (first, last) = span.split_once('-')?;
        let (last, total) = (last.parse::<u64>().ok()?, total.parse::<u64>().ok()?);
        Some(first == "0" && last.checked_add(1) == Some(total))
    });
    match (whole, given) {
        (Some(true), _) => None,
        (_, Some(given)) => {
            let given = shortened(given);
            Some(format!(
                "the server sent only a part of the page: bytes {given}"
            ))
        }
        (_, None) => Some("the server sent only a part of the page".to_owned()),
    }
}

/// The error for a status of 400 or above, with the beginning of what its page says. That it cannot be read is not told.
///
/// Errors: always.
fn refused(url: &Url, mut response: Response) -> Result<Response, ToolError> {
    let media = media_of(&response);
    let mut body = Vec::new();
    if !matches!(media.kind(&[]), Kind::Binary(_)) {
        while body.len() < ERROR_BYTES_MAX {
            match response.read() {
                Ok(piece) if !piece.is_empty() => body.extend_from_slice(&piece),
                _ => break,
            }
        }
        if body.len() >= ERROR_BYTES_MAX {
            body.truncate(ERROR_BYTES_MAX);
            // Half a letter would make another charset of it.
            let is_inside = |byte: &&u8| **byte & 0xc0 == 0x80;
            let n_inside = body.iter().rev().take_while(is_inside).count();
            body.truncate(body.len().saturating_sub(n_inside + 1));
        }
    }
    let said = said(url, media, body);
    response.succeeded(|status| format!("{}{said}", status_text(url, status)))
}

/// The beginning of the text of a page with an error, for a message; empty when it has none.
fn said(url: &Url, media: MediaType, body: Vec<u8>) -> String {
    let Ok(mut page) = Page::of(url.clone(), media, body) else {
        return String::new();
    };
    let decoded = page.decode();
    let text = match page.kind {
        Kind::Html => {
            let wish = Wish {
                whole: true,
                ..Wish::default()
            };
            let html = document::parse(decoded.text);
            html.map(|html| main_text::of(html, url, wish).text)
        }
        _ => Ok(clean(&decoded.text)),
    };
    let text = text.unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.join(" ") {
        line if line.is_empty() => line,
        line => format!("; its page says: {}", cut(&line, ERROR_CHARS_MAX)),
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
    cut(&line, SHOWN_MAX)
}

/// At most `chars_max` characters of a line.
fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_page_is_not_taken_as_the_whole() {
        for (range, expected) in [
            ("bytes 0-99/100", None),
            ("bytes 0-49/100", Some(": bytes 0-49/100")),
            ("bytes 50-99/100", Some(": bytes 50-99/100")),
            ("bytes 0-99/*", Some(": bytes 0-99/*")),
            ("", Some("")),
            ("lines 1-2/2", Some("")),
        ] {
            let told = "the server sent only a part of the page";
            let expected = expected.map(|rest| format!("{told}{rest}"));
            assert_eq!(part_of(range), expected, "{range}");
        }
    }

    #[test]
    fn an_error_has_the_beginning_of_its_text() {
        let url = Url::parse("https://example.com/a").unwrap();
        let long = "word ".repeat(900);
        for (media, body, expected) in [
            (
                "application/json",
                "{\"message\":\n \"no such user\"}",
                "{\"message\": \"no such user\"}",
            ),
            (
                "text/html",
                "<title>t</title><p>Gone <p hidden>HIDDEN</p><p>away.<script>x</script>",
                "Gone away.",
            ),
            ("text/plain", long.as_str(), long[..1_000].trim()),
        ] {
            let said = said(&url, MediaType::parse(media), body.as_bytes().to_vec());
            let said = said.trim_end_matches('…').trim_end();
            assert_eq!(said, format!("; its page says: {expected}"));
        }
        for (media, body) in [
            ("image/png", "\u{89}PNG\r\n\u{1a}\n"),
            ("text/html", "<p> </p>"),
            ("text/plain", ""),
        ] {
            let said = said(&url, MediaType::parse(media), body.as_bytes().to_vec());
            assert_eq!(said, "", "{media}");
        }
    }

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
