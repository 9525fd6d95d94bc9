//! `web_scrape` and `fetch` through the whole product: a TLS server on loopback, opened and granted as an operator would do it.

mod site;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use self::site::{Reply, Site};
use crate::product::Product;
use crate::running::Running;
use serde_json::{Value, json};

/// A product whose operator opened the site and granted it to the plugin.
fn product(site: &Site, more: &str) -> Product {
    let product = Product::new();
    // What a first answer leads to is the question here.
    site.open_in(
        &product,
        &format!("[tools.retry]\nmax_attempts = 1\n{more}"),
    );
    let granted = product.run(&["plugin", "grant", "scrape", "--host", &site.authority()]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    product
}

fn fetch(product: &Product, url: &str) -> Value {
    product.call("fetch", json!({"url": url, "whole": true}))
}

/// The text of a call that succeeded.
fn text(answer: &Value) -> &str {
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["text"]
        .as_str()
        .unwrap_or_else(|| panic!("there is a text: {answer}"))
}

/// Category and message of a call that failed.
fn failure(answer: &Value) -> (&str, &str) {
    let error = &answer["error"];
    (
        error["category"].as_str().unwrap_or_default(),
        error["message"].as_str().unwrap_or_default(),
    )
}

#[test]
fn a_page_is_fetched_and_scraped() {
    let site = Site::start(|_| {
        Reply::html(
            "<title>A page</title><p class=a>one</p><p class=a>two <a href=/x>link</a></p><p hidden>SECRET</p>",
        )
    });
    let product = product(&site, "");
    let fetched = fetch(&product, &site.url("/"));
    assert!(
        text(&fetched).starts_with("A page\n\none\n\ntwo link"),
        "{fetched}"
    );
    assert!(!fetched.to_string().contains("SECRET"), "{fetched}");
    let scraped = product.call(
        "web_scrape",
        json!({"url": site.url("/"), "select": "p.a a", "extract": "attr:href"}),
    );
    assert_eq!(scraped["structured"]["matches"], json!(["/x"]), "{scraped}");
    let asked = site.asked();
    assert!(
        asked
            .iter()
            .all(|request| request.starts_with("GET / HTTP/1.1")),
        "{asked:?}"
    );
    assert!(
        asked[0]
            .to_ascii_lowercase()
            .contains("user-agent: zeph-host/"),
        "{asked:?}"
    );
}

#[test]
fn nothing_is_reached_without_a_grant() {
    let site = Site::start(|_| Reply::html("<p>private"));
    let product = Product::new();
    site.open_in(&product, "");
    let mut host = Running::start(&product, &["--allow", "*"]);
    let refused = host.call("fetch", &json!({"url": site.url("/")}));
    let (category, message) = failure(&refused);
    assert_eq!(category, "policy_blocked", "{refused}");
    let command = format!("plugin grant scrape --host {}", site.authority());
    assert!(message.contains(&command), "{message}");
    assert_eq!(site.asked(), Vec::<String>::new());
    let granted = product.run(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let fetched = host.call("fetch", &json!({"url": site.url("/"), "whole": true}));
    assert_eq!(text(&fetched), "private", "{fetched}");
}

#[test]
fn the_public_network_needs_a_grant_by_name() {
    let product = Product::new();
    for host in ["example.org", "169.254.169.254", "localhost"] {
        let refused = product.call("fetch", json!({"url": format!("https://{host}/")}));
        let (category, message) = failure(&refused);
        assert_eq!(category, "policy_blocked", "{refused}");
        assert!(
            message.contains(&format!("plugin grant scrape --host {host}"))
                || host != "example.org",
            "{message}"
        );
    }
}

#[test]
fn plain_http_is_for_private_hosts_that_are_opened_for_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let product = Product::new();
    product.user_config(format!(
        "[[tools.egress.private]]\nhost = \"127.0.0.1\"\nports = [{port}]\nplain_http = true\n"
    ));
    let refused = product.call("fetch", json!({"url": "http://example.org/"}));
    let (category, message) = failure(&refused);
    assert_eq!(category, "policy_blocked", "{refused}");
    assert!(message.contains("`https://` alone"), "{message}");
    assert!(!message.contains("plugin grant"), "{message}");
    let grant = |host: &str| product.run(&["plugin", "grant", "scrape", "--host", host]);
    let public = grant("http://example.org:GET");
    assert_ne!(public.code, Some(0), "{public:?}");
    let url = format!("http://127.0.0.1:{port}/");
    let refused = product.call("fetch", json!({"url": url}));
    let private = format!("127.0.0.1:{port}");
    let (_, message) = failure(&refused);
    let command = format!("plugin grant scrape --host {private}");
    assert!(message.contains(&command), "{message}");
    assert_eq!(grant(&private).code, Some(0));
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\nconnection: close\r\n\r\nplain";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let fetched = product.call("fetch", json!({"url": url}));
    assert_eq!(text(&fetched), "plain", "{fetched}");
    serving.join().unwrap();
}

#[test]
fn a_status_has_its_category() {
    let site = Site::start(|path| match path.trim_start_matches('/') {
        "429" => Reply::status(429).header("retry-after", "7"),
        status => Reply::status(status.parse().expect("the path is a status")),
    });
    let product = product(&site, "");
    for (status, category) in [
        (204, "permanent_failure"),
        (304, "permanent_failure"),
        (400, "invalid_parameters"),
        (401, "policy_blocked"),
        (403, "policy_blocked"),
        (404, "permanent_failure"),
        (410, "permanent_failure"),
        (429, "rate_limited"),
        (500, "server_error"),
        (503, "server_error"),
    ] {
        let answer = fetch(&product, &site.url(&format!("/{status}")));
        let (found, message) = failure(&answer);
        assert_eq!(found, category, "{status}: {answer}");
        assert!(message.contains(&format!("status {status}")), "{message}");
        if status == 429 {
            assert_eq!(answer["error"]["retry_after_ms"], 7_000, "{answer}");
        }
    }
}

/// The model saw the status alone.
#[test]
fn the_text_of_an_error_is_shown_and_a_part_is_named() {
    let long = "é".repeat(200_000);
    let site = Site::start(move |path| match path {
        "/json" => Reply::status(422).text("{\"message\":\n\"`name` is taken\"}"),
        "/long" => Reply::status(500).text(long.clone()),
        _ => Reply::status(206)
            .header("content-range", "bytes 0-3/9000")
            .text("part"),
    });
    let product = product(&site, "");
    let of =
        |tool: &str, path: &str| product.call(tool, json!({"url": site.url(path), "select": "p"}));
    for tool in ["fetch", "web_scrape"] {
        let answer = match tool {
            "fetch" => fetch(&product, &site.url("/json")),
            _ => of(tool, "/json"),
        };
        let (category, message) = failure(&answer);
        assert_eq!(category, "invalid_parameters", "{answer}");
        let expect = "answered with status 422; its page says: {\"message\": \"`name` is taken\"}";
        assert!(message.ends_with(expect), "{message}");
    }
    let answer = fetch(&product, &site.url("/long"));
    let (_, message) = failure(&answer);
    assert!(
        message.contains("status 500") && message.ends_with("é…"),
        "{message}"
    );
    assert!(message.chars().count() < 1_200, "{message}");
    let answer = fetch(&product, &site.url("/part"));
    let expect = "part\n\n[the server sent only a part of the page: bytes 0-3/9000]";
    assert_eq!(text(&answer), expect, "{answer}");
}

#[test]
fn redirects_are_followed_and_named() {
    let site = Site::start(|path| match path {
        "/end" => Reply::html("<p>the end</p><a href=other>link</a>"),
        "/loop" => Reply::status(302).header("location", "/loop"),
        "/away" => {
            Reply::status(302).header("location", "https://169.254.169.254/latest/meta-data")
        }
        "/ungranted" => Reply::status(302).header("location", "https://example.org/"),
        _ => Reply::status(301).header("location", "/end"),
    });
    let product = product(&site, "");
    let answer = product.call(
        "fetch",
        json!({"url": site.url("/start"), "whole": true, "links": true}),
    );
    assert_eq!(answer["structured"]["url"], site.url("/end"), "{answer}");
    assert!(
        text(&answer).contains(&format!("link <{}>", site.url("/other"))),
        "{answer}"
    );
    for path in ["/loop", "/away", "/ungranted"] {
        let answer = fetch(&product, &site.url(path));
        assert_ne!(answer["status"], "ok", "{answer}");
    }
}

#[test]
fn limits_of_bytes_and_time_hold() {
    let site = Site::start(|path| match path {
        "/declared" => Reply::html("x").header("content-length", "5000000"),
        "/chunks" => Reply::endless(b"words and words ".repeat(64)),
        "/silent" => Reply::html("<p>begun").then_silence(),
        "/line" => Reply::html("a".repeat(300_000)),
        _ => Reply::html(format!("<p>{}", "b".repeat(199_000))),
    });
    let product = product(
        &site,
        "[tools.scrape]\ntimeout = 2\nmax_body_bytes = 200000",
    );
    let fits = fetch(&product, &site.url("/fits"));
    assert_eq!(
        fits["structured"]["total_chars"], 199_000,
        "{}",
        fits["status"]
    );
    for path in ["/declared", "/chunks", "/line"] {
        let answer = fetch(&product, &site.url(path));
        let (category, message) = failure(&answer);
        assert_eq!(category, "permanent_failure", "{path}: {answer}");
        assert!(
            message.contains("200 KB") && message.contains("`tools.scrape.max_body_bytes`"),
            "{message}"
        );
    }
    let answer = fetch(&product, &site.url("/silent"));
    assert_eq!(failure(&answer).0, "timeout", "{answer}");
}

#[test]
fn a_page_has_a_limit_of_its_own() {
    let site = Site::start(|path| match path {
        "/text" => Reply::of("text/plain", b"b".repeat(150_000)),
        // Only its content says what it is.
        "/unnamed" => Reply::of("", format!("<!doctype html>{}", "b".repeat(150_000)).into()),
        _ => Reply::html(format!("<p>{}", "b".repeat(150_000))),
    });
    let product = product(
        &site,
        "[tools.scrape]\nmax_body_bytes = 200000\nmax_html_bytes = 100000",
    );
    let text = fetch(&product, &site.url("/text"));
    assert_eq!(text["structured"]["total_chars"], 150_000, "{text}");
    for path in ["/page", "/unnamed"] {
        let answer = fetch(&product, &site.url(path));
        let (category, message) = failure(&answer);
        assert_eq!(category, "permanent_failure", "{path}: {answer}");
        assert!(
            message.contains("100 KB") && message.contains("`tools.scrape.max_html_bytes`"),
            "{message}"
        );
    }
}

/// The longest pages there may be, with as much as possible to keep of each: a call has four times the limit of bodies for them.
#[test]
fn a_page_takes_at_most_four_times_the_limit_of_bodies() {
    const HTML_BYTES_MAX: usize = 2 * 1024 * 1024;
    const MEMORY_BYTES_MAX: usize = 4 * 8 * 1024 * 1024;
    let site = Site::start(|path| {
        let piece = match path {
            "/article" => {
                "<p>A paragraph of an article, with some words, commas, and a reader.</p>"
            }
            "/items" => "<li><a href=/a>one</a> <em>two</em></li>\n",
            "/table" => "<table><td></table>",
            "/bare" => "<p>",
            "/attributes" => "<p a b c d e f g h i j k l m n>",
            "/names" => "<b data-some-longer-name='with a value that is long'></b>",
            _ => "&amp;&lt;",
        };
        Reply::html(piece.repeat(HTML_BYTES_MAX / piece.len()))
    });
    let product = product(
        &site,
        &format!("[limits]\nmemory_bytes = {MEMORY_BYTES_MAX}"),
    );
    for path in [
        "/article",
        "/items",
        "/table",
        "/bare",
        "/attributes",
        "/names",
        "/text",
    ] {
        let url = site.url(path);
        for (tool, arguments) in [
            (
                "fetch",
                json!({"url": url, "format": "markdown", "links": true}),
            ),
            (
                "web_scrape",
                json!({"url": url, "select": "p", "extract": "html"}),
            ),
        ] {
            let answer = product.call(tool, arguments.clone());
            let (_, message) = failure(&answer);
            let is_refused = message.contains("elements and attributes")
                || message.contains("no element matches");
            assert!(
                answer["status"] == "ok" || is_refused,
                "{tool} {arguments}: {message}"
            );
        }
    }
}

#[test]
fn a_page_is_fetched_again_when_its_server_does_not_vouch_for_it() {
    let site = Site::start(|path| {
        let page = Reply::html(format!("<p>{path}"));
        match path {
            "/fresh" => page.header("cache-control", "max-age=600"),
            "/private" => page.header("cache-control", "private, max-age=600"),
            "/old" => page
                .header("cache-control", "max-age=600")
                .header("age", "600"),
            "/moved" => Reply::status(302).header("location", "/fresh"),
            "/broken" => Reply::status(503).header("cache-control", "max-age=600"),
            _ => page,
        }
    });
    let product = product(&site, "");
    let mut host = Running::start(&product, &["--jobs", "1"]);
    host.ready();
    let is_cached = |answer: &Value| answer.to_string().contains("cached ");
    let n_asked = |path: &str| {
        let line = format!("GET {path} ");
        site.asked()
            .iter()
            .filter(|head| head.starts_with(&line))
            .count()
    };
    for (path, n_expected) in [
        ("/fresh", 1),
        ("/silent", 3),
        ("/private", 3),
        ("/old", 3),
        ("/moved", 3),
        ("/broken", 3),
    ] {
        let params = json!({"url": site.url(path)});
        let answers: Vec<Value> = (0..3).map(|_| host.call("fetch", &params)).collect();
        let n_made = answers.iter().filter(|answer| !is_cached(answer)).count();
        assert_eq!(
            (n_made, n_asked(path)),
            (n_expected, n_expected),
            "{path}: {answers:#?}"
        );
    }
    // Another question, and another tool, are other calls.
    for (tool, params) in [
        ("fetch", json!({"url": site.url("/fresh"), "whole": true})),
        (
            "web_scrape",
            json!({"url": site.url("/fresh"), "select": "p"}),
        ),
    ] {
        assert!(!is_cached(&host.call(tool, &params)), "{tool}");
        assert!(is_cached(&host.call(tool, &params)), "{tool}");
    }
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let hits = records
        .iter()
        .filter(|record| record["cache_age_ms"].is_u64());
    let hits: Vec<&Value> = hits.collect();
    // The second and third of `/fresh`, and one of each other.
    assert_eq!(hits.len(), 4, "{records:#?}");
    for hit in hits {
        assert!(hit["hosts"].is_null(), "nothing was reached: {hit}");
    }
    // Rights come first.
    let revoked = product.run(&["plugin", "revoke", "scrape", "--host", &site.authority()]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let refused = host.call("fetch", &json!({"url": site.url("/fresh")}));
    assert_eq!(failure(&refused).0, "policy_blocked", "{refused}");
}

#[test]
fn content_encodings_are_decoded() {
    // `<p>packed` by gzip, brotli and Zstandard.
    const PACKED: [(&str, &[u8]); 3] = [
        (
            "gzip",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xb3\x29\xb0\x2b\x48\x4c\xce\x4e\x4d\x01\x00",
        ),
        ("br", b"\x0b\x04\x80<p>packed\x03"),
        ("zstd", b"\x28\xb5\x2f\xfd\x20\x09\x49\x00\x00<p>packed"),
    ];
    let site = Site::start(|path| {
        let name = path.trim_start_matches('/');
        let packed = PACKED.iter().find(|(known, _)| *known == name);
        let (name, bytes) = packed.expect("the path is an encoding");
        let mut bytes = bytes.to_vec();
        if *name == "gzip" {
            bytes.extend(site::crc32(b"<p>packed").to_le_bytes());
            bytes.extend(9_u32.to_le_bytes());
        }
        Reply::html(bytes).header("content-encoding", name)
    });
    let product = product(&site, "");
    for (name, _) in PACKED {
        assert_eq!(
            text(&fetch(&product, &site.url(&format!("/{name}")))),
            "packed",
            "{name}"
        );
    }
}

/// The body of a response ends early in several ways, and each has its category: what no second try changes is not tried again.
#[test]
fn a_body_that_ends_early_says_why() {
    let site = Site::start(|path| match path {
        "/damaged" => Reply::html("this is not packed").header("content-encoding", "gzip"),
        "/silent" => Reply::html("<p>half of").then_silence(),
        "/short" => Reply::html("<p>half of").header("content-length", "100"),
        _ => Reply::endless(vec![b'a'; 16 * 1024]),
    });
    let product = product(&site, "");
    let limits = [
        "--set=tools.retry.max_attempts=2",
        "--set=tools.egress.idle_timeout_secs=1",
        "--set=tools.egress.max_body_bytes=1048576",
    ];
    for (path, category, reason, n_attempts) in [
        ("/damaged", "permanent_failure", "encoding is damaged", 1),
        ("/silent", "timeout", "did not answer in time", 2),
        (
            "/short",
            "network_error",
            "before its answer was complete",
            2,
        ),
        (
            "/endless",
            "permanent_failure",
            "tools.egress.max_body_bytes",
            1,
        ),
    ] {
        let call = json!({"id": 1, "tool": "fetch", "params": {"url": site.url(path)}});
        let answer = product.answers(&limits, format!("{call}\n")).remove(0);
        let (told, message) = failure(&answer);
        assert_eq!(told, category, "{path}: {message}");
        assert!(message.contains(reason), "{path}: {message}");
        let asked = site.asked();
        let line = format!("GET {path} ");
        let asked = asked.iter().filter(|asked| asked.starts_with(&line));
        assert_eq!(asked.count(), n_attempts, "{path}: {message}");
    }
}

/// The server of a page is not blamed for the operator's proxy.
#[test]
fn a_proxy_that_refuses_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let refusing = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 407 -\r\n\r\n").unwrap();
        String::from_utf8(head).unwrap()
    });
    let product = Product::new();
    let granted = product.run(&["plugin", "grant", "scrape", "--host", "93.184.216.34"]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let call = json!({"id": 1, "tool": "fetch", "params": {"url": "https://93.184.216.34/"}});
    let settings = [
        format!("--set=tools.egress.proxy=http://{proxy}"),
        "--set=tools.retry.max_attempts=1".to_owned(),
    ];
    let settings = settings.each_ref().map(String::as_str);
    let answer = product.answers(&settings, format!("{call}\n")).remove(0);
    let (category, message) = failure(&answer);
    assert_eq!(category, "network_error", "{answer}");
    assert!(
        message.contains("(`tools.egress.proxy`) answers with 407"),
        "{answer}"
    );
    let asked = refusing.join().unwrap();
    assert!(asked.starts_with("CONNECT 93.184.216.34:443 "), "{asked}");
}

#[test]
fn charsets_and_kinds_are_told_apart() {
    let site = Site::start(|path| match path {
        "/koi8" => Reply::of("text/html; charset=koi8-r", b"<p>\xfe\xd5\xdb\xd8".to_vec()),
        "/meta" => Reply::of(
            "text/html",
            b"<meta charset=shift_jis><p>\x82\xa2\x82\xeb\x82\xcd".to_vec(),
        ),
        "/utf16" => Reply::of("text/plain", b"\xff\xfeh\0i\0".to_vec()),
        "/json" => Reply::of("application/json", b"{\"a\": [1]}".to_vec()),
        "/pdf" => Reply::of("application/pdf", b"%PDF-1.7 body".to_vec()),
        _ => Reply::of("text/html", b"\x89PNG\r\n\x1a\n\0\0\0".to_vec()),
    });
    let product = product(&site, "");
    for (path, expected) in [
        ("/koi8", "Чушь"),
        ("/meta", "いろは"),
        ("/utf16", "hi"),
        ("/json", "{\"a\": [1]}"),
    ] {
        assert_eq!(text(&fetch(&product, &site.url(path))), expected, "{path}");
    }
    for (path, name) in [
        ("/pdf", "a PDF document (application/pdf, 13 bytes)"),
        ("/image", "a PNG image (text/html, 11 bytes)"),
    ] {
        let answer = fetch(&product, &site.url(path));
        let (category, message) = failure(&answer);
        assert_eq!(category, "permanent_failure", "{answer}");
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn hostile_pages_end_in_bounds() {
    let site = Site::start(|path| match path {
        "/nested" => Reply::html("<div>".repeat(100_000)),
        "/attributes" => Reply::html(format!(
            "<p {}>text",
            (0..30_000).map(|n| format!("a{n:x} ")).collect::<String>()
        )),
        "/value" => Reply::html(format!("<p title='{}'>text", "x".repeat(900_000))),
        "/entities" => Reply::html("&nLt;&amp;".repeat(90_000)),
        "/formatting" => Reply::html(format!(
            "{}{}",
            (0..2_000)
                .map(|n| format!("<font a={n}>"))
                .collect::<String>(),
            "<p>x".repeat(2_000)
        )),
        _ => Reply::html("a".repeat(10_000_000)),
    });
    let product = product(&site, "");
    for path in [
        "/nested",
        "/attributes",
        "/value",
        "/entities",
        "/formatting",
        "/huge",
    ] {
        for tool in [
            json!({"tool": "fetch", "more": {}}),
            json!({"tool": "web_scrape", "more": {"select": "p"}}),
        ] {
            let mut arguments = json!({"url": site.url(path)});
            for (key, value) in tool["more"].as_object().expect("it is a table") {
                arguments[key] = value.clone();
            }
            let answer = product.call(tool["tool"].as_str().expect("it is a name"), arguments);
            let (category, message) = failure(&answer);
            let is_clear =
                answer["status"] == "ok" || ["permanent_failure", "timeout"].contains(&category);
            assert!(
                is_clear && !message.contains("unreachable") && !message.contains("stack"),
                "{path}: {message}"
            );
        }
    }
}

#[test]
fn an_untrusted_certificate_is_refused() {
    let site = Site::start(|_| Reply::html("<p>no"));
    let product = Product::new();
    site.open_untrusted(&product);
    let granted = product.run(&["plugin", "grant", "scrape", "--host", &site.authority()]);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    let answer = fetch(&product, &site.url("/"));
    assert_eq!(failure(&answer).0, "permanent_failure", "{answer}");
    assert_eq!(site.asked(), Vec::<String>::new());
}

#[test]
fn settings_have_one_place() {
    let product = Product::new();
    let folder = product.home.join(".config/zeph-host");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        "[plugins.settings.scrape]\ntimeout = 3\n",
    )
    .unwrap();
    let ran = product.run(&["config", "show"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("`tools.scrape`"), "{ran:?}");
}
