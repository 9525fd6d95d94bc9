//! What is sent, and what never is.

use http::{HeaderValue, Method};
use zeph_core::category::ErrorCategory;
use zeph_core::network::PrivateHost;

use super::server::Reply;
use super::{PUBLIC, World, get, limits, request, send};
use crate::secret::CallSecrets;
use crate::{DialError, EgressError};

#[tokio::test]
async fn a_granted_host_is_reached_at_the_address_that_was_checked() {
    let world = World::new(|_| Reply::text("hello")).await;
    let call = world.call(&["example.org"]);
    let got = get(&call, "https://example.org/a?b=c").await.unwrap();
    assert_eq!(
        (got.status, got.text().as_str(), got.url),
        (200, "hello", None)
    );
    assert_eq!(world.dialled(), [format!("{PUBLIC}:443")]);
    let sent = world.server.requests().remove(0);
    assert!(sent.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("host: example.org\r\n"), "{sent}");
    assert!(
        sent.contains("accept-encoding: gzip, br, zstd\r\n"),
        "{sent}"
    );
    // The connection is used again, and the name is looked up and checked again.
    world.name("example.org", &[&["127.0.0.1"]]);
    let error = get(&call, "https://example.org/").await.unwrap_err();
    assert!(
        matches!(error, EgressError::Dial(DialError::Forbidden { .. })),
        "{error}"
    );
    world.name("example.org", &[&[PUBLIC]]);
    get(&call, "https://example.org/").await.unwrap();
    assert_eq!(world.dialled().len(), 1);
}

#[tokio::test]
async fn what_goes_to_a_host_is_counted_for_the_call_that_sends_it() {
    let world = World::new(|_| Reply::text(&"x".repeat(10_000))).await;
    world.name("inner.example", &[&["10.0.0.1"]]);
    let counted = |call: &crate::CallExit, host: &str| {
        let hosts = call.hosts();
        let found = hosts.into_iter().find(|used| used.host == host);
        found.unwrap_or_else(|| panic!("{host} was counted"))
    };
    let first = world.call(&["example.org", "inner.example"]);
    for _ in 0..2 {
        get(&first, "https://example.org/").await.unwrap();
    }
    let of_first = counted(&first, "example.org:443");
    assert_eq!((of_first.n_connections, of_first.n_refused), (2, 0));
    assert!(of_first.received_bytes > 20_000, "{of_first:?}");
    assert!((200..10_000).contains(&of_first.sent_bytes), "{of_first:?}");
    for (url, host) in [
        ("https://other.example/", "other.example:443"),
        ("https://inner.example/", "inner.example:443"),
    ] {
        get(&first, url).await.unwrap_err();
        let refused = counted(&first, host);
        let counts = (refused.n_connections, refused.n_refused, refused.sent_bytes);
        assert_eq!(counts, (0, 1, 0), "{refused:?}");
    }
    // Another call goes over the same connection, without its handshake, and to its own account.
    let second = world.call(&["example.org"]);
    get(&second, "https://example.org/").await.unwrap();
    assert_eq!(world.dialled().len(), 1);
    let of_second = counted(&second, "example.org:443");
    assert_eq!(of_second.n_connections, 1);
    assert!(
        (10_000..12_000).contains(&of_second.received_bytes),
        "{of_second:?}"
    );
    assert_eq!(counted(&first, "example.org:443"), of_first);
}

#[tokio::test]
async fn connections_are_not_shared_between_owners() {
    let world = World::new(|_| Reply::text("hello")).await;
    for owner in ["one", "two", "one"] {
        let hosts = vec!["example.org".parse().unwrap()];
        let call = world
            .egress
            .of_call(owner.into(), hosts.into(), CallSecrets::default());
        get(&call, "https://example.org/").await.unwrap();
    }
    assert_eq!(world.dialled().len(), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_made_anew() {
    let world = World::new(|_| Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")).await;
    let call = world.call(&["example.org"]);
    for _ in 0..3 {
        assert_eq!(
            get(&call, "https://example.org/").await.unwrap().text(),
            "ok"
        );
    }
}

#[tokio::test]
async fn what_is_not_granted_is_not_even_looked_up() {
    let world = World::new(|_| Reply::text("no")).await;
    let call = world.call(&[
        "example.org:443:GET",
        "*.example.net",
        "http://plain.example",
    ]);
    for (method, url, wanted) in [
        (Method::GET, "https://other.example/", "other.example:GET"),
        (
            Method::GET,
            "https://example.org:8443/",
            "example.org:8443:GET",
        ),
        (Method::GET, "https://example.net/", "example.net:GET"),
        (
            Method::GET,
            "https://www.example.org/",
            "www.example.org:GET",
        ),
        (
            Method::GET,
            "https://example.org.evil.test/",
            "example.org.evil.test:GET",
        ),
        (
            Method::GET,
            "https://xn--exmple-cua.org/",
            "xn--exmple-cua.org:GET",
        ),
        (Method::GET, "http://example.org/", "http://example.org:GET"),
        (Method::GET, "https://plain.example/", "plain.example:GET"),
        (Method::GET, "https://127.0.0.1/", "127.0.0.1:GET"),
        (Method::GET, "https://0x7f.1/", "127.0.0.1:GET"),
        (Method::GET, "https://[::1]:8443/", "[::1]:8443:GET"),
        (Method::POST, "https://example.org/", "example.org:POST"),
        (Method::DELETE, "https://example.org/", "example.org:DELETE"),
        (Method::HEAD, "https://other.example/", "other.example:GET"),
    ] {
        let error = send(&call, request(method, url, "")).await.unwrap_err();
        let EgressError::NotGranted { access, .. } = &error else {
            panic!("{url}: {error}");
        };
        assert_eq!(access.to_string(), wanted, "{url}");
        assert_eq!(error.category(), ErrorCategory::PolicyBlocked);
    }
    assert!(world.dialled().is_empty());
}

#[tokio::test]
async fn what_no_request_is_is_not_sent() {
    let world = World::new(|_| Reply::text("no")).await;
    let call = world.call(&["example.org", "http://example.org"]);
    let long = format!("https://example.org/{}", "a".repeat(2_048));
    for (method, url) in [
        ("CONNECT", "https://example.org/"),
        ("TRACE", "https://example.org/"),
        ("TRACK", "https://example.org/"),
        ("get", "https://example.org/"),
        ("GET", "ftp://example.org/"),
        ("GET", "https://user:hunter2@example.org/"),
        ("GET", "https://example.org@other.example/"),
        ("GET", "https://example.org:0/"),
        ("GET", "https://example.org:/"),
        ("GET", "https://example.org:00443/"),
        ("GET", "https://example_.-org/"),
        ("GET", long.as_str()),
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let error = send(&call, request(method, url, "")).await.unwrap_err();
        assert!(matches!(error, EgressError::Request(_)), "{url}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    for length in ["+5", "5, 5", "x", "-1", "99999999999999999999"] {
        let mut bad = request(Method::POST, "https://example.org/", "");
        bad.headers_mut()
            .insert("content-length", HeaderValue::from_static(length));
        let error = send(&call, bad).await.unwrap_err();
        assert!(
            matches!(error, EgressError::Request(_)),
            "{length}: {error}"
        );
    }
    assert!(world.dialled().is_empty());
}

#[tokio::test]
async fn fields_of_the_connection_are_ours() {
    let world = World::new(|_| Reply::text("ok")).await;
    let call = world.call(&["example.org"]);
    let mut own = request(Method::POST, "https://example.org/", "body");
    for (name, value) in [
        ("host", "evil.example"),
        ("connection", "x-mine, upgrade"),
        ("x-mine", "gone"),
        ("upgrade", "websocket"),
        ("te", "trailers"),
        ("expect", "100-continue"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("accept-encoding", "xz"),
        ("x-kept", "yes"),
        ("content-length", "4"),
    ] {
        own.headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    send(&call, own).await.unwrap();
    let sent = world.server.requests().remove(0);
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.lines().skip(1).collect();
    lines.sort_unstable();
    let expected = [
        "accept-encoding: gzip, br, zstd",
        "content-length: 4",
        "host: example.org",
        "x-kept: yes",
    ];
    assert_eq!((lines.as_slice(), body), (&expected[..], "body"));
}

#[tokio::test]
async fn a_request_that_fetches_carries_no_body() {
    let world = World::new(|_| Reply::text("ok")).await;
    let call = world.call(&["example.org:GET"]);
    let mut announced = request(Method::GET, "https://example.org/", "data");
    announced
        .headers_mut()
        .insert("content-length", HeaderValue::from_static("4"));
    let error = send(&call, announced).await.unwrap_err();
    assert!(matches!(error, EgressError::Request(_)), "{error}");
    send(&call, request(Method::GET, "https://example.org/", "data"))
        .await
        .unwrap();
    let sent = world.server.requests().remove(0);
    assert!(
        sent.ends_with("\r\n\r\n") && !sent.contains("transfer-encoding"),
        "{sent}"
    );
}

#[tokio::test]
async fn plain_http_needs_a_grant_or_a_private_host_for_it() {
    let private = |plain_http| PrivateHost {
        host: "git.corp".parse().unwrap(),
        ports: vec![8080],
        plain_http,
    };
    for (granted, private, may) in [
        ("git.corp:8080", vec![private(true)], true),
        ("git.corp:8080", vec![private(false)], false),
        ("http://git.corp:8080", vec![private(false)], true),
        ("http://git.corp:8080", vec![], false),
        ("git.corp", vec![private(true)], false),
        ("other.example", vec![private(true)], false),
    ] {
        let world = World::with(limits(), &private, |_| Reply::text("ok")).await;
        world.name("git.corp", &[&["10.0.0.1"]]);
        let got = get(&world.call(&[granted]), "http://git.corp:8080/").await;
        assert_eq!(got.is_ok(), may, "{granted} {private:?} {got:?}");
        let expected: &[&str] = if may { &["10.0.0.1:8080"] } else { &[] };
        assert_eq!(world.dialled(), expected, "{granted}");
    }
}

#[tokio::test]
async fn only_the_certificate_of_that_very_host_is_taken() {
    let world = World::new(|_| Reply::text("ok")).await;
    let call = world.call(&[
        "example.org",
        "evil.example",
        "93.184.216.34",
        "1.1.1.1",
        "xn--bcher-kva.example",
    ]);
    for (url, is_good) in [
        ("https://example.org/", true),
        ("https://EXAMPLE.org./", true),
        ("https://93.184.216.34/", true),
        ("https://xn--bcher-kva.example/", true),
        ("https://evil.example/", false),
        ("https://1.1.1.1/", false),
    ] {
        match get(&call, url).await {
            Ok(_) => assert!(is_good, "{url}"),
            Err(EgressError::Tls { .. }) => assert!(!is_good, "{url}"),
            Err(error) => panic!("{url}: {error}"),
        }
    }
    assert_eq!(world.server.requests().len(), 4);
}

#[tokio::test]
async fn requests_of_a_call_are_counted() {
    let limits = zeph_core::network::EgressLimits {
        requests: 2,
        ..limits()
    };
    let world = World::with(limits, &[], |_| Reply::text("ok")).await;
    let call = world.call(&["example.org"]);
    for _ in 0..2 {
        get(&call, "https://example.org/").await.unwrap();
    }
    let error = get(&call, "https://example.org/").await.unwrap_err();
    assert!(matches!(error, EgressError::Requests(2)), "{error}");
    // Another call counts anew.
    get(&world.call(&["example.org"]), "https://example.org/")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_private_address_without_a_grant_says_all_that_would_open_it() {
    let opened = PrivateHost {
        host: "10.0.0.2".parse().unwrap(),
        ports: vec![8443],
        plain_http: false,
    };
    let world = World::with(limits(), &[opened], |_| Reply::text("no")).await;
    let call = world.call(&["example.org"]);
    for (url, closed) in [
        (
            "https://127.0.0.1/",
            Some(
                "it is a loopback address, which the operator opens with `[[tools.egress.private]]` and `host = \"127.0.0.1\"`, `ports = [443]`",
            ),
        ),
        (
            "http://0xa000001:8080/",
            Some(
                "it is a private address, which the operator opens with `[[tools.egress.private]]` and `host = \"10.0.0.1\"`, `ports = [8080]`",
            ),
        ),
        (
            "https://[::1]:8443/",
            Some(
                "it is a loopback address, which the operator opens with `[[tools.egress.private]]` and `host = \"[::1]\"`, `ports = [8443]`",
            ),
        ),
        ("https://10.0.0.2:8443/", None),
        ("https://93.184.216.34/", None),
        ("https://other.example/", None),
    ] {
        let error = get(&call, url).await.unwrap_err();
        let EgressError::NotGranted { closed: told, .. } = &error else {
            panic!("{url}: {error}");
        };
        assert_eq!(told.as_deref(), closed, "{url}");
    }
    assert!(world.dialled().is_empty());
}
