use super::*;

async fn ask(lab: &Lab, line: &str, host: &str) -> String {
    let mut stream = lab.stream().await;
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\nproxy-authorization: {}\r\nproxy-connection: keep-alive\r\nx-own: kept\r\n\r\n",
        basic(TOKEN)
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(&mut stream).await
}

#[tokio::test]
async fn plain_http_goes_to_port_80_with_the_host_of_its_url() {
    let lab = Lab::new(tls(&["example.org:80"])).await;
    let text = ask(&lab, "GET http://example.org/a?b=c", "evil.example.net").await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let (_, sent) = text.split_once("\r\n\r\n").unwrap();
    assert!(sent.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("host: example.org\r\n"), "{sent}");
    assert!(sent.contains("x-own: kept\r\n"), "{sent}");
    for gone in ["evil", "proxy-", TOKEN, &basic(TOKEN)] {
        assert!(!sent.contains(gone), "{sent}");
    }
    assert_eq!(lab.report().hosts[0].host, "example.org:80");
}

#[tokio::test]
async fn each_plain_request_is_decided_about_by_itself() {
    let lab = Lab::new(tls(&["example.org:80"])).await;
    let mut stream = lab.stream().await;
    let credentials = format!("proxy-authorization: {}", basic(TOKEN));
    let two = format!(
        "GET http://example.org/ HTTP/1.1\r\nhost: example.org\r\n{credentials}\r\n\r\n\
         GET http://example.net/ HTTP/1.1\r\nhost: example.org\r\n{credentials}\r\n\r\n"
    );
    stream.write_all(two.as_bytes()).await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn plain_requests_to_an_inspected_host_are_held_to_its_methods_and_paths() {
    let inspection = Inspection {
        methods: Some("GET".parse().unwrap()),
        paths: Some(vec!["/v1/*".to_owned()]),
        ..Inspection::default()
    };
    let host = exit_host("example.org:80", Passage::Inspected(inspection));
    let lab = Lab::new(vec![host]).await;
    for (line, status) in [
        ("GET http://example.org/v1/a?b=c", "200"),
        ("GET http://example.org/v2", "403"),
        ("GET http://example.org/v1/../v2", "403"),
        ("DELETE http://example.org/v1/a", "403"),
    ] {
        let text = ask(&lab, line, "example.org").await;
        let head = format!("HTTP/1.1 {status}");
        assert!(text.starts_with(&head), "{line}: {text}");
        assert_eq!(status == "403", text.contains("is not among"), "{text}");
    }
}

#[tokio::test]
async fn plain_http_elsewhere_is_refused() {
    let lab = Lab::new(tls(&["example.org", "a.example.org:8443"])).await;
    for (line, expect) in [
        (
            "GET http://example.org/",
            "host example.org:80 is not allowed",
        ),
        ("GET http://a.example.org:8443/", "reached by TLS only"),
        (
            "GET http://example.net/",
            "host example.net:80 is not allowed",
        ),
        ("GET http://127.0.0.1/", "is an address"),
        ("GET http://[::1]:80/", "is an address"),
        (
            "GET http://user:password@example.org/",
            "a user or password",
        ),
        ("GET https://example.org/", "CONNECT host:port"),
        ("GET ftp://example.org/", "CONNECT host:port"),
        ("GET /", "CONNECT host:port"),
    ] {
        let text = ask(&lab, line, "example.org").await;
        assert!(text.starts_with("HTTP/1.1 40"), "{line}: {text}");
        assert!(text.contains(expect), "{line}: {text}");
    }
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn a_private_host_takes_plain_http_only_where_its_entry_says_so() {
    let mut lab = Lab::new(Vec::new()).await;
    let trusted = lab.authority[0].clone();
    for (plain_http, expect) in [(false, "HTTP/1.1 403"), (true, "HTTP/1.1 200")] {
        let private = PrivateHost {
            host: "inner.example.org".parse().unwrap(),
            ports: vec![80],
            plain_http,
        };
        lab.reopen(tls(&["inner.example.org:80"]), &[private], trusted.clone());
        let text = ask(&lab, "GET http://inner.example.org/", "inner.example.org").await;
        assert!(text.starts_with(expect), "{plain_http}: {text}");
        assert!(plain_http || text.contains("`plain_http = true`"), "{text}");
    }
}
