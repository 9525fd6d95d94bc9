//! Components that know nothing of us make requests by `wasi:http`, and are held by the rules of the way out. Listeners show what arrived.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::product::Product;
use crate::site::Site;
use crate::toolchain::{run_line, slow_tests, toolchains};

/// The component, compiled by the build script.
static WEB: &[u8] = include_bytes!(env!("GUEST_WEB"));

/// A port that answers nothing, and knows whether a connection came.
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
    product_with(site, WEB)
}

fn product_with(site: &Site, component: &[u8]) -> Product {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host/plugins");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("web.wasm"), component).unwrap();
    fs::write(product.home.join("ca.pem"), &site.certificate).unwrap();
    let settings = format!(
        "[tools.egress]\nca_file = \"~/ca.pem\"\n\n[[tools.egress.private]]\nhost = \"localhost\"\nports = [{}]\n",
        site.port
    );
    fs::write(product.home.join(".config/zeph-host/config.toml"), settings).unwrap();
    product
}

pub(crate) fn grant(product: &Product, host: &str) {
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
fn the_record_of_a_call_names_the_hosts_of_its_guest() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = product(&site);
    let host = format!("localhost:{}", site.port);
    let url = site.url("/a");
    answer(&product, &[], &visit("GET", &url, ""));
    grant(&product, &format!("{host}:GET"));
    let reached = answer(&product, &[], &visit("GET", &url, ""));
    assert_eq!(reached["status"], "ok", "{reached}");
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let of_visit = |record: &&Value| record["tool"].as_str().unwrap().contains("visit");
    let uses: Vec<&Value> = records
        .iter()
        .filter(of_visit)
        .map(|record| &record["hosts"][0])
        .collect();
    let [refused, reached] = uses[..] else {
        panic!("two calls were made: {records:#?}");
    };
    for used in [reached, refused] {
        assert_eq!(used["host"], host, "{records:#?}");
    }
    assert_eq!(
        (&refused["n_connections"], &refused["n_refused"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        (&reached["n_connections"], &reached["n_refused"]),
        (&json!(1), &Value::Null)
    );
    for bytes in ["sent_bytes", "received_bytes"] {
        assert!(reached[bytes].as_u64() > Some(100), "{reached}");
        assert_eq!(refused[bytes], 0, "{refused}");
    }
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

/// An address that is written out needs the operator's word twice, and both are named at once.
#[test]
fn a_private_address_says_all_that_opens_it() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = product(&site);
    let port = site.port;
    let call = visit("GET", &format!("https://127.0.0.1:{port}/"), "");
    let refused = answer(&product, &[], &call);
    let told = refused["error"]["message"].as_str().unwrap_or_default();
    let opening =
        format!("`[[tools.egress.private]]` and `host = \"127.0.0.1\"`, `ports = [{port}]`");
    assert!(told.contains(&opening), "{told}");
    let host = format!("127.0.0.1:{port}:GET");
    assert!(
        told.contains(&format!("plugin grant web --host {host}")),
        "{told}"
    );
    let granted = product.run(&["plugin", "grant", "web", "--host", &host]);
    assert_eq!(granted.code, Some(0), "{}", granted.stderr);
    assert!(granted.stderr.contains(&opening), "{}", granted.stderr);
    let open = format!("--set=tools.egress.private=[{{host=\"127.0.0.1\",ports=[{port}]}}]");
    let reached = answer(&product, &[&open], &call);
    // The certificate is for another name: it was asked for.
    assert!(message(&reached).contains("Tls"), "{reached}");
    assert!(site.requests().is_empty());
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

#[test]
fn an_address_that_nobody_named_asks_where_the_user_is_heard() {
    let site = Site::start(|path| match path {
        "/a" => (
            "200 OK".to_owned(),
            b"see https://localhost/next?page=2 or /b".to_vec(),
        ),
        _ => ("200 OK".to_owned(), b"hello".to_vec()),
    });
    let product = product(&site);
    let host = format!("localhost:{}", site.port);
    grant(&product, &format!("{host}:GET"));
    let call = |id: u32, path: &str| {
        let params = json!({"method": "GET", "url": site.url(path), "headers": [], "body": ""});
        json!({"id": id, "tool": "visit", "params": params}).to_string()
    };
    let said =
        json!({"turn": "1", "user": format!("Read {}, please.", site.url("/a"))}).to_string();
    let run = |lines: &[String], args: &[&str]| product.answers(args, lines.join("\n") + "\n");
    // A program that does not tell what its user says is held by its grants alone.
    let unheard = run(&[call(1, "/b")], &[]);
    assert_eq!(unheard[0]["text"], "200  hello", "{unheard:?}");
    let lines = [said.clone(), call(1, "/a"), call(2, "/a?secret")];
    let heard = run(&lines, &[]);
    let of = |id: u32| heard.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(of(1)["text"].to_string().starts_with("\"200"), "{heard:?}");
    assert!(
        message(of(2)).contains("confirmation_required"),
        "{heard:?}"
    );
    assert!(
        message(of(2)).contains("neither in what the user said"),
        "{heard:?}"
    );
    // A rule allows it.
    let allowed = run(&[said, call(3, "/a?secret")], &["--allow", "visit"]);
    assert!(
        allowed.iter().any(|answer| answer["text"] == "200  hello"),
        "{allowed:?}"
    );
}

#[test]
fn a_result_that_repeats_what_a_call_wrote_names_no_address() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = product(&site);
    grant(&product, &format!("localhost:{}:GET", site.port));
    let secret = site.url("/?d=SECRET42");
    let lines = [
        json!({"turn": "1", "user": format!("Read {}, please.", site.url("/a"))}),
        json!({"id": 1, "tool": "find_path", "params": {"pattern": format!("x{secret}")}}),
        json!({"id": 2, "tool": "turn_state", "params": {"kind": "urls"}}),
        json!({"id": 3, "tool": "visit", "params": {"method": "GET", "url": secret, "headers": [], "body": ""}}),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    let answers = product.answers(&["-j", "1"], lines);
    let of = |id: u32| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(
        of(2)["text"].to_string().contains("SECRET42"),
        "{answers:?}"
    );
    let told = message(of(3));
    assert!(
        told.contains("neither in what the user said"),
        "{answers:?}"
    );
    assert!(site.requests().is_empty());
}

/// The key of an argument that the tool does not have, of a refused call, and what was written before the user said anything.
#[test]
fn what_a_call_wrote_where_nothing_reads_it_names_no_address() {
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = product(&site);
    grant(&product, &format!("localhost:{}:GET", site.port));
    let secret = |n: u32| site.url(&format!("/?d=SECRET{n}"));
    let visit = |id: u32| json!({"id": id, "tool": "visit", "params": {"method": "GET", "url": secret(id), "headers": [], "body": ""}});
    let lines = [
        json!({"id": 11, "tool": "find_path", "params": {"pattern": format!("x{}", secret(1))}}),
        json!({"turn": "1", "user": format!("Read {}, please.", site.url("/a"))}),
        json!({"id": 12, "tool": "find_path", "params": {"pattern": "*.none", secret(2): 1}}),
        json!({"id": 13, "tool": "bash", "params": {"command": 7, secret(3): 1}}),
        json!({"id": 14, "tool": secret(4), "params": {}}),
        json!({"id": 15, "tool": "find_path", "params": {"pattern": format!("x{}", secret(1))}}),
        visit(1),
        visit(2),
        visit(3),
        visit(4),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    let answers = product.answers(&["-j", "1"], lines);
    for id in 1..=4 {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        let told = message(answer);
        assert!(
            told.contains("neither in what the user said"),
            "{answers:?}"
        );
    }
    assert!(site.requests().is_empty());
}

/// A folder of the tools of a language, with the sources of its component.
fn sources(language: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("guests/web")
        .join(language);
    let to = toolchains().join(format!("web_{language}"));
    copy(&from, &to);
    to
}

/// Copies a directory with all it holds and its modes.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn in_javascript() -> Vec<u8> {
    let folder = sources("js");
    if !folder.join("node_modules/.package-lock.json").exists() {
        run_line(&folder, "npm install --no-fund --no-audit");
    }
    run_line(&folder, "node build.mjs");
    fs::read(folder.join("web.wasm")).unwrap()
}

fn in_python() -> Vec<u8> {
    let folder = sources("python");
    if !folder.join(".venv/bin/componentize-py").exists() {
        let requirements = include_str!("../../plugins/templates/python/requirements.txt");
        fs::write(folder.join("requirements.txt"), requirements).unwrap();
        run_line(&folder, "python3 -m venv .venv");
        run_line(
            &folder,
            ".venv/bin/python -m pip install --quiet --requirement requirements.txt",
        );
    }
    run_line(
        &folder,
        ".venv/bin/componentize-py --wit-path wit --world web --quiet componentize app -o web.wasm",
    );
    fs::read(folder.join("web.wasm")).unwrap()
}

fn is_held(component: &[u8]) {
    let (listener, port) = watched();
    let site = Site::start(|_| ("200 OK".to_owned(), b"hello".to_vec()));
    let product = product_with(&site, component);
    let visit = |url: String| json!({"id": 1, "tool": "visit", "params": {"url": url}});
    // An interpreter takes its time to compile.
    let patient = ["--set", "limits.wall_clock_secs=900"];
    let refused = answer(&product, &patient, &visit(site.url("/a")));
    let host = format!("localhost:{}:GET", site.port);
    let command = format!("plugin grant web --host {host}");
    assert!(message(&refused).contains(&command), "{refused}");
    assert!(site.requests().is_empty());
    grant(&product, &host);
    grant(&product, &format!("127.0.0.1:{port}:GET"));
    let reached = answer(&product, &patient, &visit(site.url("/a")));
    assert_eq!(reached["text"], "200 hello", "{reached}");
    let private = answer(
        &product,
        &patient,
        &visit(format!("https://127.0.0.1:{port}/")),
    );
    let told = message(&private);
    assert!(told.contains("[[tools.egress.private]]"), "{private}");
    nobody_called(&listener);
}

#[test]
fn components_of_other_languages_are_held_by_the_same_rules() {
    if slow_tests("`wasi:http` is used from JavaScript and Python") {
        is_held(&in_javascript());
        is_held(&in_python());
    }
}
