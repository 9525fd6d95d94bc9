use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{Freshness, is_general, lifetime};

/// Lines as a server writes them.
fn headers(lines: &str) -> HeaderMap {
    let fields = lines.split('|').filter(|line| !line.is_empty());
    let fields = fields.map(|line| {
        let (name, value) = line.split_once(':').expect("name and value");
        let name: HeaderName = name.trim().parse().expect("a name");
        (name, HeaderValue::from_str(value.trim()).expect("a value"))
    });
    fields.collect()
}

fn check(lines: &str, seconds: Option<u64>) {
    let found = lifetime(StatusCode::OK, &headers(lines));
    assert_eq!(found, seconds.map(Duration::from_secs), "{lines}");
}

#[test]
fn a_response_is_used_as_long_as_it_says_and_no_longer() {
    const DATES: &str =
        "date: Sun, 06 Nov 1994 08:49:37 GMT|expires: Sun, 06 Nov 1994 08:50:37 GMT";
    for (lines, seconds) in [
        ("cache-control: max-age=60", Some(60)),
        (
            "cache-control: public, MAX-AGE=\"60\" , must-revalidate",
            Some(60),
        ),
        ("cache-control: max-age=60|age: 20", Some(40)),
        ("cache-control: max-age=60|age: 60", None),
        (
            "cache-control: max-age=60|cache-control: max-age=10",
            Some(10),
        ),
        ("cache-control: max-age=60, max-age=x", None),
        ("cache-control: max-age=-1", None),
        ("cache-control: max-age=99999999999", Some(31_536_000)),
        ("cache-control: max-age=60|age: old", None),
        (DATES, Some(60)),
        (&format!("{DATES}|age: 59"), Some(1)),
        // The one that says seconds wins.
        (&format!("{DATES}|cache-control: max-age=5"), Some(5)),
        (&format!("{DATES}|expires: 0"), None),
        ("expires: Sun, 06 Nov 2094 08:50:37 GMT", None),
        ("date: Sun, 06 Nov 1994 08:49:37 GMT|expires: 0", None),
        // Nothing is guessed.
        ("last-modified: Sun, 06 Nov 1994 08:49:37 GMT", None),
        ("", None),
    ] {
        check(lines, seconds);
    }
}

#[test]
fn what_is_for_one_reader_or_one_request_is_not_used_again() {
    for more in [
        "cache-control: no-store",
        "cache-control: No-Cache",
        "cache-control: no-cache=\"set-cookie\"",
        "cache-control: private",
        "cache-control: private=\"x\"",
        "set-cookie: a=b",
        "vary: *",
        "vary: accept, *",
    ] {
        check(&format!("cache-control: max-age=60|{more}"), None);
    }
    check(
        "pragma: no-cache|date: Sun, 06 Nov 1994 08:49:37 GMT|expires: Sun, 06 Nov 1994 08:50:37 GMT",
        None,
    );
    check("cache-control: max-age=60|vary: accept-encoding", Some(60));
    let fresh = headers("cache-control: max-age=60");
    for status in [201, 204, 206, 301, 302, 304, 404, 410, 500] {
        let status = StatusCode::from_u16(status).expect("a status");
        assert_eq!(lifetime(status, &fresh), None, "{status}");
    }
}

#[test]
fn a_request_with_anything_of_its_own_has_its_own_answer() {
    assert!(is_general(
        &Method::GET,
        &headers("accept: */*|user-agent: x")
    ));
    for own in [
        "authorization: x",
        "proxy-authorization: x",
        "cookie: a=b",
        "range: bytes=0-1",
        "if-none-match: x",
        "if-modified-since: x",
        "cache-control: no-cache",
        "cache-control: no-store",
        "pragma: no-cache",
    ] {
        assert!(!is_general(&Method::GET, &headers(own)), "{own}");
    }
    for method in [Method::HEAD, Method::POST, Method::PUT, Method::DELETE] {
        assert!(!is_general(&method, &headers("")), "{method}");
    }
}

#[test]
fn all_answers_of_a_call_have_to_be_fresh() {
    let call = Freshness::default();
    assert_eq!(call.until(), None);
    call.begin();
    call.answered(Duration::from_secs(60));
    let first = call.until().expect("one answer");
    call.begin();
    assert_eq!(call.until(), None, "it waits for another");
    call.answered(Duration::from_secs(600));
    assert_eq!(call.until(), Some(first));
    call.spoil();
    call.answered(Duration::from_secs(60));
    assert_eq!(call.until(), None);
}
