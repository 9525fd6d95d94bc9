//! Commands that may reach one host (`tools.sandbox.allow_hosts`), with the clients of this machine against a real server.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::left_out::leave_out;
use crate::product::Product;
use crate::running::Running;

/// What the server answers to everything.
const HELLO: &str = "hello from the host";

/// The path that is answered with the request itself.
const ECHO: &str = "/echo";

/// The path that is never answered.
const HELD: &str = "/held";

/// A TLS server on the loopback of this machine, by the name `localhost`.
struct Server {
    port: u16,
    /// Its authority, as PEM.
    authority: String,
    /// Of a request for [`HELD`]: that it came, then that its connection ended.
    held: Receiver<&'static str>,
    _runtime: Runtime,
}

impl Server {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // A certificate whose issuer has its own name counts as self-signed.
        params
            .distinguished_name
            .push(DnType::CommonName, "the authority of the tests");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (holds, held) = channel();
        runtime.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), holds));
        Self {
            port,
            authority: issuer.pem(),
            held,
            _runtime: runtime,
        }
    }

    /// A product whose commands may reach the server, and more settings.
    fn product(&self, more: &str) -> Product {
        let product = Product::new();
        product.file("ca.pem", &self.authority);
        let port = self.port;
        let ca_file = product.work.join("ca.pem");
        let config = format!(
            "[tools.sandbox]\nallow_hosts = [\"localhost:{port}\"]\n{more}\n\
             [tools.egress]\nca_file = \"{}\"\n\
             [[tools.egress.private]]\nhost = \"localhost\"\nports = [{port}]\n",
            ca_file.display()
        );
        product.user_config(config);
        product
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, holds: Sender<&'static str>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, acceptor.clone(), holds.clone()));
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    holds: Sender<&'static str>,
) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(stream.read_u8().await?);
    }
    if String::from_utf8_lossy(&seen).contains(HELD) {
        let _ = holds.send("came");
        // Nothing more comes: this ends with the connection.
        drop(stream.read_u8().await);
        let _ = holds.send("ended");
        return Ok(());
    }
    let head = String::from_utf8_lossy(&seen).into_owned();
    let body = if head.contains(ECHO) { &head } else { HELLO };
    let length = body.len();
    let text =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

fn bash(product: &Product, command: &str) -> Value {
    product.call("bash", json!({ "command": command }))
}

fn stdout(answer: &Value) -> &str {
    answer["structured"]["stdout"].as_str().unwrap_or_default()
}

/// Clients, and how each asks the server at `PORT`. Programs do not use a proxy for this machine's own name unless they are told to.
const CLIENTS: [(&str, &str); 4] = [
    (
        "curl",
        "curl -sS --noproxy '' --cacert ca.pem https://localhost:PORT/",
    ),
    (
        "curl",
        "curl -sS --noproxy '' --proxy \"${HTTPS_PROXY/http:/socks5h:}\" --cacert ca.pem https://localhost:PORT/",
    ),
    (
        "python3",
        "no_proxy= NO_PROXY= SSL_CERT_FILE=ca.pem python3 -c \
         'import urllib.request as r; print(r.urlopen(\"https://localhost:PORT/\").read().decode(), end=\"\")'",
    ),
    (
        "node",
        "node -e '
            const proxy = new URL(process.env.HTTPS_PROXY), tls = require(\"tls\");
            const authorization = \"Basic \" + Buffer.from(proxy.username + \":\" + proxy.password).toString(\"base64\");
            require(\"http\").request({ host: proxy.hostname, port: proxy.port, method: \"CONNECT\", path: \"localhost:PORT\",
                headers: { \"proxy-authorization\": authorization } }).on(\"connect\", (answer, socket) => {
                const ca = require(\"fs\").readFileSync(\"ca.pem\");
                const secure = tls.connect({ socket, servername: \"localhost\", ca }, () => secure.write(\"GET / HTTP/1.1\\r\\n\\r\\n\"));
                secure.on(\"data\", (data) => process.stdout.write(String(data).split(\"\\r\\n\\r\\n\")[1]));
            }).end()'",
    ),
];

#[test]
fn clients_of_this_machine_reach_the_host_that_is_allowed() {
    let server = Server::new();
    let product = server.product("");
    for (program, command) in CLIENTS {
        let there = bash(&product, &format!("command -v {program}"));
        if stdout(&there).is_empty() {
            leave_out(&format!("there is no {program} for commands"));
            continue;
        }
        let command = command.replace("PORT", &server.port.to_string());
        let answer = bash(&product, &command);
        assert_eq!(stdout(&answer), HELLO, "{command}: {answer:#}");
    }
}

#[test]
fn a_host_that_is_not_allowed_is_named_with_the_key() {
    let server = Server::new();
    let product = server.product("");
    let answer = bash(&product, "curl -sS https://example.org/");
    let note = "host example.org is not allowed; add it to [tools.sandbox] allow_hosts";
    assert!(answer.to_string().contains(note), "{answer:#}");
    let other = format!(
        "curl -sS --noproxy '' https://localhost:{}/",
        server.port ^ 1
    );
    let answer = bash(&product, &other);
    assert!(answer.to_string().contains("is not allowed"), "{answer:#}");
    let direct = format!("cat </dev/tcp/127.0.0.1/{}", server.port);
    let answer = bash(&product, &direct);
    assert!(answer.to_string().contains("refused"), "{answer:#}");
}

#[test]
fn requests_to_an_inspected_host_are_held_to_its_methods() {
    let server = Server::new();
    let port = server.port;
    let product = server.product(&format!(
        "[[tools.sandbox.hosts]]\nhost = \"localhost:{port}\"\ntls = \"inspect\"\nmethods = [\"GET\"]"
    ));
    let curl = format!("curl -sS --noproxy '' https://localhost:{port}/a");
    let answer = bash(&product, &curl);
    assert_eq!(stdout(&answer), HELLO, "{answer:#}");
    let answer = bash(&product, &format!("{curl} --data x"));
    assert!(
        stdout(&answer).contains("`POST /a` is not among"),
        "{answer:#}"
    );
    let hidden = bash(
        &product,
        "grep -c PRIVATE \"$SSL_CERT_FILE\"; : >\"$SSL_CERT_FILE\"",
    );
    assert_eq!(stdout(&hidden), "0\n", "{hidden:#}");
}

#[test]
fn a_command_holds_a_placeholder_that_becomes_the_secret_at_its_host() {
    const VALUE: &str = "k7-value-of-the-secret";
    let server = Server::new();
    let port = server.port;
    let product = server.product(&format!(
        "[[tools.sandbox.hosts]]\nhost = \"localhost:{port}\"\ntls = \"inspect\"\nsecrets = [\"GIT_TOKEN\"]"
    ));
    let curl = format!(
        "curl -sS --noproxy '' -H \"authorization: token $GIT_TOKEN\" https://localhost:{port}{ECHO}"
    );
    let unset = bash(&product, &curl);
    assert!(
        stdout(&unset).contains("`zeph-host secret set GIT_TOKEN`"),
        "{unset:#}"
    );
    assert_eq!(product.set_secret("GIT_TOKEN", VALUE).code, Some(0));
    let held = bash(
        &product,
        "printf %s \"$GIT_TOKEN\"; env | grep -c k7-value || true",
    );
    assert!(stdout(&held).starts_with("zeph-secret-"), "{held:#}");
    assert!(stdout(&held).ends_with("0\n"), "{held:#}");
    let sent = bash(&product, &curl);
    let stars = "*".repeat(VALUE.len());
    assert!(
        stdout(&sent).contains(&format!("authorization: token {stars}")),
        "{sent:#}"
    );
    assert!(!sent.to_string().contains(VALUE), "{sent:#}");
}

#[test]
fn the_record_of_a_command_names_its_hosts_with_their_bytes() {
    let server = Server::new();
    let product = server.product("");
    let port = server.port;
    let curl = format!("curl -sS --noproxy '' --cacert ca.pem https://localhost:{port}/");
    bash(&product, &curl);
    let records = product.run(&["audit", "query", "--json"]).json_lines();
    let used = &records[0]["hosts"][0];
    assert_eq!(used["host"], format!("localhost:{port}"), "{records:#?}");
    assert_eq!(used["n_connections"], 1);
    for bytes in ["sent_bytes", "received_bytes"] {
        assert!(used[bytes].as_u64() > Some(100), "{used}");
    }
}

/// Whether a process has `mark` in its command line.
fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[test]
fn nothing_is_left_of_a_tunnel_when_the_host_is_killed() {
    const PATIENCE: Duration = Duration::from_secs(120);
    let server = Server::new();
    for how in ["", "tls = \"inspect\"", "raw = true"] {
        let port = server.port;
        let table = format!("[[tools.sandbox.hosts]]\nhost = \"localhost:{port}\"\n{how}");
        let product = server.product(if how.is_empty() { "" } else { &table });
        let mut host = Running::start(&product, &["--allow", "*"]);
        host.ready();
        let mark = format!("86399.{port}");
        let trust = match how {
            "tls = \"inspect\"" => "",
            _ => "--cacert ca.pem",
        };
        let command = format!(
            "setsid -f sleep {mark}; curl -sS --noproxy '' {trust} https://localhost:{port}{HELD} -A {mark}"
        );
        host.begin("bash", &json!({ "command": command }));
        assert_eq!(server.held.recv_timeout(PATIENCE), Ok("came"), "{how}");
        assert!(is_running(&mark), "{how}");
        // With SIGKILL: it cannot put anything in order.
        drop(host);
        assert_eq!(server.held.recv_timeout(PATIENCE), Ok("ended"), "{how}");
        let deadline = Instant::now() + PATIENCE;
        while is_running(&mark) {
            assert!(Instant::now() < deadline, "{how}: a process is left");
            std::thread::yield_now();
        }
        // The next host works, and finds the record of what it does not know the end of.
        let next = bash(&product, "echo again");
        assert_eq!(stdout(&next), "again\n", "{how}: {next:#}");
        let records = product.run(&["audit", "query", "--json"]).json_lines();
        assert_eq!(records.len(), 3, "{how}: {records:#?}");
    }
}
