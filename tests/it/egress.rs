//! A component that knows nothing of us makes requests by `wasi:http`, and is held by the rules of the way out. Listeners show what arrived.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::product::Product;
use crate::site::Site;

/// The component, compiled by the build script.
static WEB: &[u8] = include_bytes!(env!("GUEST_WEB"));

/// A port that answers nobody, and knows whether somebody came.
fn watched() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[track_caller]
fn nobody_called(listener: &TcpListener) {
    let error = listener.accept().expect_err("somebody connected");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// A product with the component as plugin `web`, to which the site is opened.
pub(crate) fn product(site: &Site) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host/plugins");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("web.wasm"), WEB).unwrap();
    fs::write(product.home.join("ca.pem"), &site.certificate).unwrap();
    let settings = format!(
        "[tools.egress]\nca_file = \"~/ca.pem\"\n\n[[tools.egress.private]]\nhost = \"localhost\"\nports = [{}]\n",
        site.port
    );
    fs::write(product.home.join(".config/zeph-host/config.toml"), settings).unwrap();
    product
}

fn grant(product: &Product, host: &str) {
    let ran = product.run(&["plugin", "grant", "web", "--host", host]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

pub(crate) fn visit(method: &str, url: &str, body: &str) -> Value {
    json!({"id": 1, "tool": "visit", "params": {"method": method, "url": url, "headers": [], "body": body}})
}

fn answer(product: &Product, args: &[&str], call: &Value) -> Value {
    product.answers(args, format!("{call}\n")).remove(0)
}

fn message(answer: &Value) -> String {
    answer["error"].to_string()
}

#[test]
fn a_host_is_reached_from_the_grant_on_and_not_before() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = product(&site);
    let call = visit("GET", &site.url("/a"), "");
    let refused = answer(&product, &[], &call);
    let host = format!("localhost:{}", site.port);
    let command = format!("plugin grant web --host {host}:GET");
    assert!(message(&refused).contains(&command), "{refused}");
    assert!(message(&refused).contains("policy_blocked"), "{refused}");
    assert!(site.requests().is_empty());
    grant(&product, &format!("{host}:GET"));
    // What only fetches runs without asking.
    let reached = answer(&product, &[], &call);
    assert_eq!(reached["text"], "200  hello", "{reached}");
    // A body needs a grant for it, and then asks.
    let post = visit("POST", &site.url("/a"), "data");
    let refused = answer(&product, &[], &post);
    let command = format!("plugin grant web --host {host}:POST");
    assert!(message(&refused).contains(&command), "{refused}");
    grant(&product, &format!("{host}:POST"));
    let asks = answer(&product, &[], &post);
    assert!(message(&asks).contains("confirmation_required"), "{asks}");
    assert_eq!(site.requests().len(), 1);
    let sent = answer(&product, &["--allow", "visit"], &post);
    assert_eq!(sent["text"], "200  hello", "{sent}");
    assert!(site.requests()[1].contains("data"), "{:?}", site.requests());
    let revoked = product.run(&["plugin", "revoke", "web", "--host", &host]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    let refused = answer(&product, &["--allow", "visit"], &call);
    assert!(
        message(&refused).contains("it was not granted"),
        "{refused}"
    );
    assert_eq!(site.requests().len(), 2);
}

#[test]
fn nothing_reaches_what_is_private_whatever_is_granted() {
    let (listener, port) = watched();
    let site = Site::start(move |path| {
        let target = path.trim_start_matches("/to/");
        let target = target.replace("PORT", &port.to_string());
        (
            format!("302 Found\r\nlocation: https://{target}"),
            Vec::new(),
        )
    });
    let product = product(&site);
    grant(&product, &format!("localhost:{}:GET", site.port));
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "127.0.0.2",
    ] {
        grant(&product, &format!("{host}:{port}:GET"));
        grant(&product, &format!("http://{host}:{port}:GET"));
    }
    let hosts = [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "127.1",
        "localhost",
        "[::1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "127.0.0.2",
    ];
    let mut calls = Vec::new();
    for host in hosts {
        calls.push(visit("GET", &format!("https://{host}:{port}/"), ""));
        calls.push(visit("GET", &format!("http://{host}:{port}/"), ""));
        calls.push(visit("GET", &site.url(&format!("/to/{host}:PORT/")), ""));
    }
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let answers = product.answers(&[], lines);
    assert_eq!(answers.len(), calls.len());
    for answer in &answers {
        let told = message(answer);
        assert!(told.contains("[[tools.egress.private]]"), "{answer}");
        assert!(told.contains("policy_blocked"), "{answer}");
    }
    assert_eq!(site.requests().len(), hosts.len());
    nobody_called(&listener);
}

#[test]
fn what_is_no_request_never_leaves() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"no".to_vec()));
    let product = product(&site);
    grant(&product, &format!("localhost:{}", site.port));
    let long = site.url(&format!("/{}", "a".repeat(3_000)));
    let with_user = site.url("/").replace("localhost", "user:pw@localhost");
    let fragment = format!("https://localhost:{}x/", site.port);
    for (method, url) in [
        ("CONNECT", site.url("/")),
        ("TRACE", site.url("/")),
        ("GET", long),
        ("GET", with_user),
        ("GET", fragment),
        ("GET", "gopher://localhost/".to_owned()),
        ("GET", site.url("/").replace("https", "http")),
    ] {
        let answer = answer(&product, &["--allow", "visit"], &visit(method, &url, ""));
        assert!(answer["error"].is_object(), "{method} {url}: {answer}");
    }
    assert!(site.requests().is_empty(), "{:?}", site.requests());
}

#[test]
fn bodies_are_bounded_and_many_requests_use_few_connections() {
    let site = Site::start(|path| match path {
        "/large" => ("200 OK".to_owned(), vec![b'x'; 20 << 20]),
        _ => ("200 OK".to_owned(), vec![b'x'; 1 << 20]),
    });
    let product = product(&site);
    grant(&product, &format!("localhost:{}:GET", site.port));
    let measure =
        |path: &str| json!({"id": 1, "tool": "measure", "params": {"url": site.url(path)}});
    let whole = answer(&product, &[], &measure("/whole"));
    assert_eq!(whole["text"], "1048576", "{whole}");
    let large = answer(&product, &[], &measure("/large"));
    assert!(message(&large).contains("HttpResponseBodySize"), "{large}");
    let repeat = |times: u32| json!({"id": 1, "tool": "repeat", "params": {"url": site.url("/"), "times": times}});
    let many = answer(&product, &[], &repeat(20));
    assert_eq!(many["text"], "20", "{many}");
    let too_many = answer(&product, &[], &repeat(101));
    assert!(
        message(&too_many).contains("tools.egress.max_requests"),
        "{too_many}"
    );
}
