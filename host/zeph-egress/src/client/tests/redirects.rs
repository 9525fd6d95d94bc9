//! Where a server may send a request, and what goes there with it.

use http::{HeaderValue, Method};

use super::server::Reply;
use super::{PUBLIC, World, get, request, send};
use crate::{DialError, EgressError};

#[tokio::test]
async fn a_redirect_within_the_grants_is_followed() {
    let world = World::new(|line| match line {
        "GET /a" => Reply::to("b?x=1#here"),
        "GET /b?x=1" => Reply::to("//other.example/c"),
        _ => Reply::of("200 OK", "zeph-url: https://evil.example/\r\n", "there"),
    })
    .await;
    let call = world.call(&["example.org", "other.example"]);
    let got = get(&call, "https://example.org/a").await.unwrap();
    assert_eq!(got.text(), "there");
    assert_eq!(got.url.as_deref(), Some("https://other.example/c"));
    assert!(got.headers.get("zeph-url").is_none());
}

/// Every class of what is forbidden, in many spellings: each hop is checked like the first.
#[tokio::test]
async fn no_redirect_leads_to_what_is_forbidden() {
    for target in [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://%31%32%37.0.0.1/",
        "https://１２７.0.0.1/",
        "https://0.0.0.0/",
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://100.64.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://168.63.129.16/",
        "https://192.0.2.1/",
        "https://198.18.0.1/",
        "https://224.0.0.1/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://[::]/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[64:ff9b:1::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
        "https://[2606::5efe:10.0.0.1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[ff02::1]/",
        "https://[2001:db8::1]/",
        "https://rebound.example/",
        "https://mixed.example/",
    ] {
        let world = World::new(move |_| Reply::to(target)).await;
        world.name("rebound.example", &[&["127.0.0.1"]]);
        world.name("mixed.example", &[&[PUBLIC, "127.0.0.1"]]);
        // With a grant for it, which only the check of the address is left to refuse; and without one.
        let host = url::Url::parse(target)
            .unwrap()
            .host_str()
            .unwrap()
            .to_owned();
        let granted = world.call(&["example.org", &host]);
        let error = get(&granted, "https://example.org/").await.unwrap_err();
        let is_forbidden = matches!(error, EgressError::Dial(DialError::Forbidden { .. }));
        assert!(is_forbidden, "{target}: {error}");
        let ungranted = world.call(&["example.org", "*"]);
        let error = get(&ungranted, "https://example.org/").await.unwrap_err();
        let is_refused = matches!(
            error,
            EgressError::NotGranted { .. } | EgressError::Dial(DialError::Forbidden { .. })
        );
        assert!(is_refused, "{target}: {error}");
        let dialled = world.dialled();
        assert!(
            dialled
                .iter()
                .all(|address| address == &format!("{PUBLIC}:443")),
            "{target}: {dialled:?}"
        );
    }
}

#[tokio::test]
async fn what_is_no_place_is_not_followed() {
    for target in [
        "http://example.org/",
        "https://example.org:8443/",
        "https://user@example.org/",
        "https://user:pw@example.org/",
        "https://example.org:0/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "javascript:alert(1)",
        "unix:/run/x.sock",
        "https://",
        "https://exa mple.org/",
        "https://[fe80::1%25eth0]/",
        "https://not-granted.example/",
    ] {
        let world = World::new(move |_| Reply::to(target)).await;
        let call = world.call(&["example.org"]);
        let error = get(&call, "https://example.org/").await.unwrap_err();
        let is_refused = matches!(
            error,
            EgressError::NotGranted { .. } | EgressError::Redirect { .. }
        );
        assert!(is_refused, "{target}: {error}");
        assert_eq!(world.server.requests().len(), 1, "{target}");
    }
}

#[tokio::test]
async fn redirects_end() {
    let world = World::new(|_| Reply::to("/again")).await;
    let call = world.call(&["example.org"]);
    let error = get(&call, "https://example.org/").await.unwrap_err();
    assert!(matches!(error, EgressError::Redirects(3)), "{error}");
    assert_eq!(world.server.requests().len(), 4);
}

#[tokio::test]
async fn what_belongs_to_one_origin_stays_there() {
    let world = World::new(|line| match line {
        "GET /start" => Reply::to("/same"),
        "GET /same" => Reply::to("https://other.example/away"),
        "GET /away" => Reply::to("https://example.org/back"),
        _ => Reply::text("end"),
    })
    .await;
    let call = world.call(&["example.org", "other.example"]);
    let mut own = request(Method::GET, "https://example.org/start", "");
    for (name, value) in [
        ("authorization", "Bearer s3cret"),
        ("cookie", "s3cret"),
        ("x-api-key", "s3cret"),
        ("accept", "text/html"),
        ("user-agent", "guest"),
    ] {
        own.headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    assert_eq!(send(&call, own).await.unwrap().text(), "end");
    let sent = world.server.requests();
    let secrets: Vec<_> = sent
        .iter()
        .map(|text| text.matches("s3cret").count())
        .collect();
    assert_eq!(secrets, [3, 3, 0, 0], "{sent:?}");
    assert!(
        sent.iter()
            .all(|text| text.contains("accept: text/html\r\n"))
    );
    assert!(sent[2].contains("host: other.example\r\n"), "{}", sent[2]);
}

#[tokio::test]
async fn who_sends_something_gets_the_redirect_itself() {
    let world = World::new(|_| Reply::to("https://other.example/")).await;
    let call = world.call(&["example.org", "other.example"]);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let got = send(&call, request(method, "https://example.org/", ""))
            .await
            .unwrap();
        assert_eq!((got.status, got.text().as_str()), (302, "moved"));
    }
    let mut manual = request(Method::GET, "https://example.org/", "");
    manual
        .headers_mut()
        .insert("zeph-redirects", HeaderValue::from_static("manual"));
    let got = send(&call, manual).await.unwrap();
    assert_eq!(got.headers["location"], "https://other.example/");
    let sent = world.server.requests();
    assert!(
        sent.iter().all(|text| text.contains("host: example.org")),
        "{sent:?}"
    );
    assert!(
        sent.iter().all(|text| !text.contains("zeph-redirects")),
        "{sent:?}"
    );
}
