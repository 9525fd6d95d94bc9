use std::time::Duration;

use super::{Request, parts, retry_after};
use crate::Category;

#[test]
fn a_url_falls_into_its_parts() {
    for (url, expected) in [
        ("https://example.com", ("https", "example.com", "")),
        (
            "https://example.com/a?b#c",
            ("https", "example.com", "/a?b"),
        ),
        ("http://[::1]:8443?q=/", ("http", "[::1]:8443", "?q=/")),
    ] {
        assert_eq!(parts(url).ok(), Some(expected), "{url}");
    }
    for url in ["", "example.com", "https://", "https:///a", "://host"] {
        assert_eq!(
            parts(url).err().map(|error| error.category),
            Some(Category::InvalidParameters),
            "{url}"
        );
    }
}

#[test]
fn a_wait_is_seconds_or_a_date() {
    let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
    for (value, date, secs) in [
        ("120", None, Some(120)),
        (" 0 ", None, Some(0)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", date, Some(60)),
        ("Sun, 06 Nov 1994 08:00:00 GMT", date, Some(0)),
        ("Sun, 06 Nov 1994 08:50:37 GMT", None, None),
        ("soon", date, None),
        ("-1", date, None),
    ] {
        assert_eq!(
            retry_after::read(value, date),
            secs.map(Duration::from_secs),
            "{value}"
        );
    }
}

#[test]
fn nothing_is_sent_natively() {
    let answer = Request::get("https://example.com").send();
    assert_eq!(
        answer.err().map(|error| error.category),
        Some(Category::NetworkError)
    );
}
