use super::*;

fn inspected(pattern: &str, methods: &str, paths: &[&str]) -> ExitHost {
    let inspection = Inspection {
        methods: Some(methods.parse().unwrap()),
        paths: Some(paths.iter().map(|&path| path.to_owned()).collect()),
        ..Inspection::default()
    };
    exit_host(pattern, Passage::Inspected(inspection))
}

async fn ask(lab: &Lab, request: &str) -> String {
    let (stream, head) = lab.connect("example.org:443").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let request = request.replace('\n', "\r\n");
    lab.fetch_over(stream, "example.org", &request)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_request_that_is_allowed_passes_and_no_other() {
    let lab = Lab::new(vec![inspected("example.org", "GET", &["/v1/*"])]).await;
    let text = ask(
        &lab,
        "GET /v1/a HTTP/1.1\nhost: example.org\nconnection: close\n\n",
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(
        text.contains("GET /v1/a HTTP/1.1\r\nhost: example.org"),
        "{text}"
    );
    for (request, expect) in [
        (
            "POST /v1/a HTTP/1.1\nhost: example.org\ncontent-length: 0\n",
            "`POST /v1/a`",
        ),
        ("GET /v2 HTTP/1.1\nhost: example.org\n", "`GET /v2`"),
        (
            "GET /v1/../v2 HTTP/1.1\nhost: example.org\n",
            "`GET /v1/../v2`",
        ),
        ("GET /v1/a HTTP/1.1\nhost: example.net\n", "another host"),
        (
            "GET /v1/a HTTP/1.1\nhost: example.org:8443\n",
            "another host",
        ),
        (
            "GET /v1/a HTTP/1.1\nhost: example.org\nhost: example.net\n",
            "another host",
        ),
        ("GET /v1/a HTTP/1.1\n", "another host"),
        (
            "GET https://example.net/v1/a HTTP/1.1\nhost: example.org\n",
            "another host",
        ),
    ] {
        let text = ask(&lab, &format!("{request}connection: close\n\n")).await;
        assert!(text.starts_with("HTTP/1.1 40"), "{request}: {text}");
        assert!(text.contains(expect), "{request}: {text}");
    }
    assert_eq!(lab.n_dialled(), 1);
    let notes = lab.report().notes;
    assert!(notes[0].contains("[[tools.sandbox.hosts]]"), "{notes:?}");
}

#[tokio::test]
async fn the_host_behind_an_inspected_one_must_be_the_one_it_says() {
    let (stranger, _) = certified(&["example.org"], false);
    let mut lab = Lab::new(Vec::new()).await;
    let hosts = vec![inspected("example.org", "GET", &["/*"])];
    lab.reopen(hosts, &[], stranger);
    let text = ask(
        &lab,
        "GET / HTTP/1.1\nhost: example.org\nconnection: close\n\n",
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 502"), "{text}");
    assert!(text.contains("certificate"), "{text}");
}

#[tokio::test]
async fn an_inspected_host_that_says_nothing_is_given_up() {
    let limits = ExitLimits {
        request_timeout: Duration::from_secs(1),
        ..ExitLimits::default()
    };
    let hosts = vec![inspected("example.org:22", "GET", &["/*"])];
    // What serves there waits for the end of a head.
    let lab = Lab::with(hosts, limits).await;
    let (stream, head) = lab.connect("example.org:22").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let request = "GET / HTTP/1.1\r\nhost: example.org:22\r\nconnection: close\r\n\r\n";
    let text = lab
        .fetch_over(stream, "example.org", request)
        .await
        .unwrap();
    assert!(text.starts_with("HTTP/1.1 502"), "{text}");
    assert!(text.contains("did not begin TLS within 1 s"), "{text}");
}

#[tokio::test]
async fn commands_are_given_the_certificate_only_where_a_host_is_inspected() {
    let lab = Lab::new(tls(&["example.org"])).await;
    assert_eq!(lab.proxy.certificates(), None);
    let lab = Lab::new(vec![inspected("example.org", "GET", &["/*"])]).await;
    let bundle = lab.proxy.certificates().unwrap();
    let text = String::from_utf8(bundle.to_vec()).unwrap();
    assert!(text.ends_with("-----END CERTIFICATE-----\n"), "{text}");
    assert!(!text.contains("PRIVATE"), "{text}");
}

#[tokio::test]
async fn a_secret_is_added_to_the_requests_of_its_host_and_taken_out_of_the_answers() {
    let secret = SecretUse::new("KEY", "example.org", "authorization", None).unwrap();
    let inspection = Inspection {
        secrets: vec![secret],
        ..Inspection::default()
    };
    let lab = Lab::new(vec![exit_host(
        "example.org",
        Passage::Inspected(inspection),
    )])
    .await;
    // The server answers with what it got.
    let asked = "GET /a HTTP/1.1\nhost: example.org\nauthorization: mine\nconnection: close\n\n";
    let text = ask(&lab, asked).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let stars = "*".repeat(VALUE.len());
    assert!(
        text.contains(&format!("authorization: {stars}\r\n")),
        "{text}"
    );
    assert!(!text.contains("mine") && !text.contains(VALUE), "{text}");

    let in_url = "GET /a?key=Bearer%20the-value-of-the-secret HTTP/1.1\nhost: example.org\nconnection: close\n\n";
    let text = ask(&lab, in_url).await;
    assert!(text.starts_with("HTTP/1.1 502"), "{text}");
    assert_eq!(lab.n_dialled(), 1);
}

#[tokio::test]
async fn a_placeholder_becomes_the_secret_at_its_host_and_nowhere_else() {
    let placeholder = |name: &str, host: &str| {
        let inspection = Inspection {
            placeholders: vec![name.to_owned()],
            ..Inspection::default()
        };
        exit_host(host, Passage::Inspected(inspection))
    };
    let lab = Lab::new(vec![
        placeholder("KEY", "example.org"),
        inspected("example.net", "GET", &["/*"]),
    ])
    .await;
    let variables = lab.proxy.variables();
    let [(name, text)] = &variables[..] else {
        panic!("there is one placeholder: {variables:?}");
    };
    assert_eq!(name, "KEY");
    assert!(
        text.starts_with("zeph-secret-") && text.len() > 40,
        "{text}"
    );
    // The server answers with what it got, and so with stars.
    let asked = |host: &str| {
        format!(
            "GET / HTTP/1.1\r\nhost: {host}\r\nx-key: token {text}\r\nconnection: close\r\n\r\n"
        )
    };
    let stars = "*".repeat(VALUE.len());
    for (host, expect) in [("example.org", &stars), ("example.net", text)] {
        let (stream, _) = lab.connect(&format!("{host}:443")).await;
        let answer = lab.fetch_over(stream, host, &asked(host)).await.unwrap();
        assert!(
            answer.contains(&format!("x-key: token {expect}\r\n")),
            "{answer}"
        );
        assert!(!answer.contains(VALUE), "{answer}");
    }
    // Without a value nothing is sent.
    let lab = Lab::new(vec![placeholder("UNSET", "example.org")]).await;
    let text = lab.proxy.variables().remove(0).1;
    let asked = format!("GET / HTTP/1.1\nhost: example.org\nx-key: {text}\nconnection: close\n\n");
    let answer = ask(&lab, &asked).await;
    assert!(answer.contains("secret set UNSET"), "{answer}");
}

#[tokio::test]
async fn a_command_that_speaks_only_http_2_is_told_what_to_do() {
    for (offered, sent) in [
        (&[b"h2".to_vec()][..], ""),
        (&[], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let lab = Lab::new(vec![inspected("example.org", "GET", &["/*"])]).await;
        let own = lab.proxy.settings.authority.as_ref().unwrap();
        let mut config = (*trusting(&[own.certificate()])).clone();
        config.alpn_protocols = offered.to_vec();
        let connector = TlsConnector::from(Arc::new(config));
        let (stream, _) = lab.connect("example.org:443").await;
        let name = "example.org".to_owned().try_into().unwrap();
        if let Ok(mut stream) = connector.connect(name, stream).await {
            stream.write_all(sent.as_bytes()).await.unwrap();
            drop(rest_of(stream).await);
        }
        let notes = lab.report().notes;
        assert!(
            notes.iter().any(|note| note.contains("HTTP/2 only")),
            "{notes:?}"
        );
        assert_eq!(lab.n_dialled(), 0);
    }
}

/// What a stream gives until its end.
async fn rest_of(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    bytes
}

/// As clients that are strict do: Python since 3.13, for one.
#[test]
#[expect(clippy::disallowed_methods, reason = "another reads certificates")]
fn certificates_are_those_that_strict_clients_want() {
    let authority = Authority::new(&[]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let trusted = dir.path().join("trusted.pem");
    std::fs::write(&trusted, authority.bundle()).unwrap();
    let long = format!("{0}.{0}.example.org", "a".repeat(50));
    for host in ["example.org", "192.0.2.1", &long] {
        let (leaf, _) = authority.certificate_of(&host.parse().unwrap()).unwrap();
        let path = dir.path().join("leaf.pem");
        std::fs::write(&path, leaf.pem()).unwrap();
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["verify", "-x509_strict", "-purpose", "sslserver"]);
        let verified = openssl.arg("-CAfile").arg(&trusted).arg(&path).output();
        match verified {
            Ok(verified) => assert!(verified.status.success(), "{host}: {verified:?}"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => panic!("{error}"),
        }
    }
}
