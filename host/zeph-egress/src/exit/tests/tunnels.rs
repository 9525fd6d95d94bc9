use tokio_rustls::rustls::ClientConnection;

use super::*;

#[tokio::test]
async fn a_tunnel_leads_to_the_host_it_was_asked_for() {
    let lab = Lab::new(tls(&["example.org", "*.example.org:8443"])).await;
    let text = lab.fetch("example.org:443", "example.org").await.unwrap();
    assert!(text.contains("GET /x HTTP/1.1"), "{text}");
    let text = lab.fetch("A.Example.Org.:8443", "a.example.org").await;
    assert!(text.unwrap().contains("GET /x"));
    let report = lab.report();
    let hosts: Vec<&str> = report.hosts.iter().map(|one| one.host.as_str()).collect();
    assert_eq!(hosts, ["a.example.org:8443", "example.org:443"]);
    for one in &report.hosts {
        assert_eq!(one.n_connections, 1);
        assert!(one.sent_bytes > 100 && one.received_bytes > 100, "{one:?}");
    }
    assert!(report.notes.is_empty(), "{report:?}");
}

#[tokio::test]
async fn what_no_entry_allows_is_refused_with_host_and_key() {
    let lab = Lab::new(tls(&["example.org", "*.example.net"])).await;
    for (authority, shown) in [
        ("example.net:443", "example.net"),
        ("a.example.org:443", "a.example.org"),
        ("notexample.org:443", "notexample.org"),
        ("example.org.evil.com:443", "example.org.evil.com"),
        ("example.org:8443", "example.org:8443"),
        ("example.org:80", "example.org:80"),
    ] {
        let (_, head) = lab.connect(authority).await;
        let note = format!("host {shown} is not allowed; add it to [tools.sandbox] allow_hosts");
        assert!(head.starts_with("HTTP/1.1 403"), "{authority}: {head}");
        assert!(head.ends_with(&format!("{note}\n")), "{authority}: {head}");
        assert!(lab.report().notes.contains(&note), "{authority}");
    }
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn an_empty_list_allows_nothing() {
    let lab = Lab::new(Vec::new()).await;
    let (_, head) = lab.connect("example.org:443").await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
}

#[tokio::test]
async fn addresses_are_no_hosts_however_they_are_spelled() {
    let lab = Lab::new(tls(&["example.org", "*"])).await;
    for authority in [
        "93.184.215.14:443",
        "127.0.0.1:443",
        "0x7f.1:443",
        "2130706433:443",
        "0177.0.0.1:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
    ] {
        let (_, head) = lab.connect(authority).await;
        assert!(head.starts_with("HTTP/1.1 4"), "{authority}: {head}");
    }
    for authority in ["localhost:443", "user@example.org:443", "example.org:0"] {
        let (_, head) = lab.connect(authority).await;
        assert!(head.starts_with("HTTP/1.1 4"), "{authority}: {head}");
    }
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn a_name_at_a_private_address_is_refused_with_the_key_that_opens_it() {
    let lab = Lab::new(tls(&["inner.example.org"])).await;
    let (_, head) = lab.connect("inner.example.org:443").await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert!(head.contains("[[tools.egress.private]]"), "{head}");
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn tls_to_another_server_is_refused_before_anything_is_dialled() {
    let lab = Lab::new(tls(&["example.org", "example.net"])).await;
    let error = lab.fetch("example.org:443", "example.net").await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("AccessDenied"), "{error}");
    let note = "host example.org:443: the first message of TLS names another server";
    assert_eq!(lab.report().notes, [note]);
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn what_is_not_tls_needs_a_raw_host() {
    let mut hosts = tls(&["example.org"]);
    hosts.push(exit_host("*.example.org:22", Passage::Tls));
    hosts.push(exit_host("a.example.org:22", Passage::Raw));
    let lab = Lab::new(hosts).await;
    let (mut stream, _) = lab.connect("example.org:443").await;
    stream.write_all(b"SSH-2.0-client\r\n\r\n").await.unwrap();
    assert_eq!(rest(&mut stream).await, b"");
    let notes = lab.report().notes;
    assert!(notes[0].contains("`raw = true`"), "{notes:?}");
    assert_eq!(lab.n_dialled(), 0);

    let (mut stream, _) = lab.connect("a.example.org:22").await;
    stream.write_all(b"SSH-2.0-client\r\n\r\n").await.unwrap();
    let text = rest(&mut stream).await;
    assert!(text.ends_with(b"SSH-2.0-client\r\n\r\n"));
}

#[tokio::test]
async fn a_hello_that_is_late_or_without_end_is_given_up() {
    let limits = ExitLimits {
        hello_timeout: Duration::from_millis(100),
        ..ExitLimits::default()
    };
    let lab = Lab::with(tls(&["example.org"]), limits).await;
    let (mut stream, _) = lab.connect("example.org:443").await;
    stream.write_all(&[22, 3, 1, 1, 0, 1]).await.unwrap();
    assert_eq!(rest(&mut stream).await, b"");
    let notes = lab.report().notes;
    assert!(notes[0].contains("within 0.1 s"), "{notes:?}");

    let lab = Lab::new(tls(&["example.org"])).await;
    let (mut stream, _) = lab.connect("example.org:443").await;
    let record = [22, 3, 1, 0x3f, 0xff]
        .into_iter()
        .chain(std::iter::repeat_n(1, 0x3fff));
    drop(stream.write_all(&record.collect::<Vec<u8>>()).await);
    let end = rest(&mut stream).await;
    assert!(end.is_empty() || end == [21, 3, 3, 0, 2, 2, 49], "{end:?}");
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn a_head_that_is_late_or_without_end_is_given_up() {
    let limits = ExitLimits {
        request_timeout: Duration::from_millis(100),
        ..ExitLimits::default()
    };
    let lab = Lab::with(tls(&["example.org"]), limits).await;
    for begun in ["", "CONNECT exa", "\u{5}"] {
        let mut stream = lab.stream().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        let end = rest(&mut stream).await;
        assert!(
            end.is_empty() || end.starts_with(b"HTTP/1.1 4"),
            "{begun}: {end:?}"
        );
    }
    let lab = Lab::new(tls(&["example.org"])).await;
    let mut stream = lab.stream().await;
    let endless = "x-header: value\r\n".repeat(100_000);
    let request = format!("CONNECT example.org:443 HTTP/1.1\r\n{endless}");
    drop(stream.write_all(request.as_bytes()).await);
    let end = rest(&mut stream).await;
    assert!(end.is_empty() || end.starts_with(b"HTTP/1.1 4"), "{end:?}");
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn only_who_has_the_password_of_the_run_is_served() {
    let lab = Lab::new(tls(&["example.org"])).await;
    let (_other, address) = open(&lab.proxy, "another");
    for (address, line) in [
        (lab.address, String::new()),
        (
            lab.address,
            format!("proxy-authorization: {}\r\n", basic("another")),
        ),
        (
            lab.address,
            format!("proxy-authorization: {}x\r\n", basic(TOKEN)),
        ),
        (
            address,
            format!("proxy-authorization: {}\r\n", basic(TOKEN)),
        ),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n{line}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 407"), "{answer}");
    }
    assert_eq!(lab.n_dialled(), 0);
}

#[tokio::test]
async fn what_is_open_ends_with_the_exit() {
    let mut lab = Lab::new(vec![exit_host("example.org:22", Passage::Raw)]).await;
    let (mut stream, head) = lab.connect("example.org:22").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stream.write_all(b"half").await.unwrap();
    let report = lab.exit.take().unwrap().close();
    assert!(report.hosts.len() <= 1, "{report:?}");
    assert_eq!(rest(&mut stream).await, b"");
    let gone = TcpStream::connect(lab.address).await;
    let refused = gone.map_err(|error| error.kind()).map(drop);
    assert_eq!(refused, Err(io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn a_run_that_opens_many_connections_or_sends_much_meets_its_own_limits_only() {
    let limits = ExitLimits {
        connections_max: 2,
        bytes_max: 100,
        ..ExitLimits::default()
    };
    let lab = Lab::with(vec![exit_host("example.org:22", Passage::Raw)], limits).await;
    let held = [lab.stream().await, lab.stream().await];
    let mut waiting = lab.stream().await;
    let request = "CONNECT example.net:443 HTTP/1.1\r\nhost: example.net\r\n\r\n";
    waiting.write_all(request.as_bytes()).await.unwrap();
    let (other, address) = open(&lab.proxy, "another");
    let mut free = TcpStream::connect(address).await.unwrap();
    free.write_all(request.as_bytes()).await.unwrap();
    assert!(answer(&mut free).await.starts_with("HTTP/1.1 407"));
    let mut byte = [0];
    assert!(waiting.try_read(&mut byte).is_err());
    drop(held);
    assert!(answer(&mut waiting).await.starts_with("HTTP/1.1 407"));
    drop((waiting, other));

    let (mut stream, _) = lab.connect("example.org:22").await;
    stream.write_all(&[b'x'; 200]).await.unwrap();
    assert_eq!(rest(&mut stream).await, b"");
}

#[tokio::test]
async fn a_connection_on_which_nothing_moves_is_closed() {
    let limits = ExitLimits {
        idle_timeout: Duration::from_millis(50),
        ..ExitLimits::default()
    };
    let lab = Lab::with(vec![exit_host("example.org:22", Passage::Raw)], limits).await;
    let (mut stream, _) = lab.connect("example.org:22").await;
    assert_eq!(rest(&mut stream).await, b"");
}

/// What a client that asks for `name` sends first.
fn hello(name: &str) -> Vec<u8> {
    let name = name.to_owned().try_into().unwrap();
    let mut client = ClientConnection::new(trusting(&[]), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_second_hello_is_held_against_the_host_too() {
    let hosts = || tls(&["example.org", "example.net"]);
    let lab = Lab::serving(hosts(), ExitLimits::default(), true).await;
    let text = lab.fetch("example.org:443", "example.org").await.unwrap();
    assert!(text.contains("GET /x"), "{text}");
    for (second, expect) in [
        (hello("example.net"), "names another server"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "is not TLS"),
    ] {
        let lab = Lab::serving(hosts(), ExitLimits::default(), true).await;
        let (mut stream, _) = lab.connect("example.org:443").await;
        stream.write_all(&hello("example.org")).await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        let mut retry = vec![0; u16::from_be_bytes([head[3], head[4]]).into()];
        stream.read_exact(&mut retry).await.unwrap();
        let change_cipher_spec = [20, 3, 3, 0, 1, 1];
        stream.write_all(&change_cipher_spec).await.unwrap();
        drop(stream.write_all(&second).await);
        drop(rest(&mut stream).await);
        let notes = lab.report().notes;
        assert!(notes.iter().any(|note| note.contains(expect)), "{notes:?}");
        assert_eq!(lab.report().hosts[0].n_connections, 1);
    }
}
