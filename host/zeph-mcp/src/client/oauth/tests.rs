use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;
use zeph_core::network::{HTTPS_PORT, HostPattern};

use super::{CallbackListener, LoginError, LoginTokens, Redirect, RemoteServer};

fn server(hosts: &[&str]) -> RemoteServer {
    let hosts = hosts
        .iter()
        .map(|host| HostPattern::parse(host, HTTPS_PORT).unwrap());
    let url = Url::parse("https://mcp.example.com/mcp").unwrap();
    RemoteServer::new("remote", url, hosts.collect::<Vec<_>>())
}

#[test]
fn a_login_reaches_the_server_and_the_hosts_that_were_named() {
    let check = |hosts: &[&str], url: &str, expected: bool| {
        let allowed = server(hosts).allowed(url);
        assert_eq!(allowed.is_ok(), expected, "{hosts:?} {url}: {allowed:?}");
    };
    check(&[], "https://mcp.example.com/token", true);
    check(&[], "https://mcp.example.com:8443/token", false);
    check(&[], "http://mcp.example.com/token", false);
    check(&[], "https://login.example.com/token", false);
    check(
        &["login.example.com"],
        "https://login.example.com/token",
        true,
    );
    check(
        &["login.example.com"],
        "http://login.example.com/token",
        false,
    );
    check(
        &["login.example.com"],
        "https://login.example.com:8443/token",
        false,
    );
    check(
        &["login.example.com:8443"],
        "https://login.example.com:8443/token",
        true,
    );
    check(&["*.example.com"], "https://login.example.com/token", false);
    check(&["localhost:9000"], "http://localhost:9000/token", true);
    check(&["localhost:9000"], "http://localhost:9001/token", false);
    for url in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://user@mcp.example.com/",
        "https://mcp.example.com@evil.example/",
        "ftp://mcp.example.com/",
        "no url",
    ] {
        check(&[], url, false);
    }
}

#[test]
fn a_refused_host_is_named_with_its_key() {
    let refused = server(&[])
        .allowed("https://login.example.com:8443/x")
        .unwrap_err();
    let hint = refused.hint().unwrap();
    assert!(
        hint.contains("add `\"login.example.com:8443\"` to `mcp.servers.remote.hosts`"),
        "{hint}"
    );
}

#[test]
fn only_the_answer_to_this_login_is_taken() {
    let expected = Url::parse("http://127.0.0.1:5000/callback").unwrap();
    let read = |text: &str| Redirect::read(text, &expected, "the-state");
    let good =
        read("http://127.0.0.1:5000/callback?code=c&state=the-state&iss=https%3A%2F%2Fi").unwrap();
    assert_eq!(
        (good.secret(), good.issuer.as_deref()),
        ("c", Some("https://i"))
    );
    assert!(!format!("{good:?}").contains("the-state"));
    for other in [
        "http://127.0.0.1:5001/callback?code=c&state=the-state",
        "http://localhost:5000/callback?code=c&state=the-state",
        "https://127.0.0.1:5000/callback?code=c&state=the-state",
        "http://127.0.0.1:5000/callback/?code=c&state=the-state",
        "http://127.0.0.1:5000/other?code=c&state=the-state",
        "http://127.0.0.1:5000/callback?code=c&state=another",
        "http://127.0.0.1:5000/callback?code=c&state=",
        "http://127.0.0.1:5000/callback?code=c",
        "http://127.0.0.1:5000/callback?state=the-state",
        "http://127.0.0.1:5000/callback?code=&state=the-state",
        "http://127.0.0.1:5000/callback?code=c&code=d&state=the-state",
        "http://127.0.0.1:5000/callback?code=c&state=the-state&state=the-state",
        "http://127.0.0.1:5000/callback?code=c&state=the-state&iss=a&iss=b",
        "",
        "callback?code=c&state=the-state",
    ] {
        assert!(
            matches!(read(other), Err(LoginError::Redirect(_))),
            "{other}"
        );
    }
    let refused = read(
        "http://127.0.0.1:5000/callback?error=access_denied&error_description=no%0Away&state=the-state",
    );
    assert_eq!(refused, Err(LoginError::Refused("no way".to_owned())));
    let forged = read("http://127.0.0.1:5000/callback?error=access_denied&state=another");
    assert!(matches!(forged, Err(LoginError::Redirect(_))), "{forged:?}");
}

#[test]
fn tokens_are_renewed_before_they_expire() {
    let tokens = |lifetime_s| LoginTokens {
        url: String::new(),
        issuer: None,
        token_endpoint: String::new(),
        client_id: "c".to_owned(),
        client_secret: None,
        access_token: "secret-value".to_owned(),
        refresh_token: None,
        scopes: Vec::new(),
        received_at_s: 1_000,
        lifetime_s,
    };
    for (lifetime, now, is_due, is_over) in [
        (Some(3_600), 1_000, false, false),
        (Some(3_600), 4_539, false, false),
        (Some(3_600), 4_540, true, false),
        (Some(3_600), 4_600, true, true),
        (Some(10), 1_007, false, false),
        (Some(10), 1_008, true, false),
        (Some(0), 1_000, true, true),
        (Some(u64::MAX), u64::MAX / 2, false, false),
        (None, u64::MAX, false, false),
    ] {
        let tokens = tokens(lifetime);
        assert_eq!(
            (tokens.is_due(now), tokens.is_over(now)),
            (is_due, is_over),
            "{lifetime:?} {now}"
        );
    }
    let shown = format!("{:?}{:?}", tokens(None), tokens(None).bearer());
    assert!(!shown.contains("secret-value"), "{shown}");
}

async fn ask(url: &Url, request: String) -> String {
    let mut stream = TcpStream::connect(url.authority()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_listener_waits_for_the_right_redirect_and_is_gone_then() {
    let listener = CallbackListener::bind().await.unwrap();
    let url = listener.url().clone();
    let place = url.authority().to_owned();
    let waiting = listener.wait("the-state", Duration::from_secs(60));
    let browser = async {
        // Opened in advance, as browsers do.
        let idle = TcpStream::connect(&place).await.unwrap();
        for (target, host) in [
            ("/callback?code=c&state=wrong", place.as_str()),
            ("/favicon.ico", &place),
            ("/callback?code=c&state=the-state", "evil.example"),
            (
                "http://evil.example/callback?code=c&state=the-state",
                &place,
            ),
        ] {
            let answer = ask(
                &url,
                format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n\r\n"),
            )
            .await;
            assert!(
                answer.starts_with("HTTP/1.1 404"),
                "{target} {host}: {answer}"
            );
        }
        let posted =
            format!("POST /callback?code=c&state=the-state HTTP/1.1\r\nhost: {place}\r\n\r\n");
        assert!(ask(&url, posted).await.starts_with("HTTP/1.1 404"));
        let right =
            format!("GET /callback?code=right&state=the-state HTTP/1.1\r\nHost: {place}\r\n\r\n");
        assert!(ask(&url, right).await.starts_with("HTTP/1.1 200"));
        drop(idle);
    };
    let (redirect, ()) = tokio::join!(waiting, browser);
    assert_eq!(redirect.unwrap().secret(), "right");
    assert!(TcpStream::connect(&place).await.is_err());
}

#[tokio::test]
async fn a_login_that_nobody_finishes_ends() {
    let listener = CallbackListener::bind().await.unwrap();
    let ended = listener.wait("the-state", Duration::from_millis(10)).await;
    assert_eq!(ended, Err(LoginError::Timeout(0)));
}
