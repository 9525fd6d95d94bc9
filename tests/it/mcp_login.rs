//! `mcp login`: the whole trip to a remote server that asks for tokens, over TLS, with a browser that the test is.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::mcp_ends::waits_until;
use crate::product::{Product, Ran};
use crate::site::Site;

/// A remote server that is its own authorization server.
struct Remote {
    site: Site,
    product: Product,
    args: Vec<String>,
    /// Seconds that the next tokens are good for.
    lifetime: Arc<AtomicU64>,
    n_tokens: Arc<AtomicU64>,
}

impl Remote {
    fn start() -> Self {
        let (lifetime, n_tokens) = (Arc::new(AtomicU64::new(3_600)), Arc::new(AtomicU64::new(0)));
        let place: Arc<Mutex<String>> = Arc::default();
        let (lives, count, at) = (
            Arc::clone(&lifetime),
            Arc::clone(&n_tokens),
            Arc::clone(&place),
        );
        let site = Site::answering(move |request| {
            let at = at.lock().unwrap().clone();
            answer(request, &at, lives.load(Ordering::SeqCst), &count)
        });
        *place.lock().unwrap() = site.url("");
        let product = Product::new();
        let certificate = product.home.join("ca.pem");
        fs::write(&certificate, &site.certificate).unwrap();
        let args = vec![
            "--set".to_owned(),
            format!("tools.egress.ca_file={}", certificate.display()),
            "--set".to_owned(),
            format!("mcp.servers.remote={{url=\"{}\"}}", site.url("/mcp")),
        ];
        Self {
            site,
            product,
            args,
            lifetime,
            n_tokens,
        }
    }

    fn args<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let own = self.args.iter().map(String::as_str);
        own.chain(command.iter().copied()).collect()
    }

    fn run(&self, command: &[&str]) -> Ran {
        self.product.run(&self.args(command))
    }

    /// Logs in as on a machine without a browser. `change` is done to the URL that is pasted.
    fn log_in(&self, change: impl Fn(String) -> String) -> Ran {
        let mut command =
            self.product
                .command(&self.args(&["-vvv", "mcp", "login", "remote", "--no-browser"]));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut told, mut opened) = (String::new(), None);
        while opened.is_none() {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{told}");
            opened = line
                .find("https://")
                .filter(|_| line.contains("code_challenge="))
                .map(|at| {
                    line[at..]
                        .split(|c: char| c.is_whitespace() || c == '\x1b')
                        .next()
                        .unwrap()
                        .to_owned()
                });
            told.push_str(&line);
        }
        let back = back(&opened.unwrap(), &self.site.url(""));
        writeln!(child.stdin.take().unwrap(), "{}", change(back)).unwrap();
        stderr.read_to_string(&mut told).unwrap();
        Ran {
            code: child.wait().unwrap().code(),
            stdout: String::new(),
            stderr: told,
        }
    }
}

/// Where the browser is sent once the person has agreed.
fn back(opened: &str, issuer: &str) -> String {
    let find = |name: &str| {
        let (_, rest) = opened.split_once(&format!("{name}=")).unwrap();
        rest.split('&')
            .next()
            .unwrap()
            .replace("%3A", ":")
            .replace("%2F", "/")
    };
    format!(
        "{}?code=the-code-9f&state={}&iss={issuer}",
        find("redirect_uri"),
        find("state")
    )
}

fn answer(request: &str, at: &str, lifetime: u64, n_tokens: &AtomicU64) -> (String, Vec<u8>) {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let token = format!("access-{}-", n_tokens.load(Ordering::SeqCst));
    let document = match path {
        "/mcp" if !request.contains(&format!("Bearer {token}")) => {
            let hint = format!(
                "www-authenticate: Bearer resource_metadata=\"{at}/.well-known/oauth-protected-resource/mcp\""
            );
            return (format!("401 Unauthorized\r\n{hint}"), Vec::new());
        }
        "/mcp" => return message(request),
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{at}/mcp"), "authorization_servers": [at]})
        }
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": at, "authorization_endpoint": format!("{at}/authorize"), "token_endpoint": format!("{at}/token"),
            "registration_endpoint": format!("{at}/register"), "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
        }),
        "/register" => json!({"client_id": "registered", "redirect_uris": []}),
        "/token" => {
            let n = n_tokens.fetch_add(1, Ordering::SeqCst) + 1;
            json!({
                "access_token": format!("access-{n}-secret"), "refresh_token": format!("refresh-{n}-secret"),
                "token_type": "Bearer", "expires_in": lifetime, "id_token": "id-token-secret",
            })
        }
        _ => return ("404 Not Found".to_owned(), Vec::new()),
    };
    (
        "200 OK\r\ncontent-type: application/json".to_owned(),
        document.to_string().into_bytes(),
    )
}

/// What the MCP server answers.
fn message(request: &str) -> (String, Vec<u8>) {
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "remote", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [{
            "name": "greet", "description": "Greets.", "inputSchema": {"type": "object"},
        }]}),
        Some(_) if message["id"].is_null() => return ("202 Accepted".to_owned(), Vec::new()),
        Some(_) => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}});
            return (
                "200 OK\r\ncontent-type: application/json".to_owned(),
                error.to_string().into_bytes(),
            );
        }
        None => return ("405 Method Not Allowed".to_owned(), Vec::new()),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    (
        "200 OK\r\ncontent-type: application/json".to_owned(),
        answer.to_string().into_bytes(),
    )
}

fn is_clean(text: &str) {
    for secret in ["access-", "refresh-", "id-token-", "the-code-9f"] {
        let shown = text
            .match_indices(secret)
            .find(|(at, _)| text[*at..].contains("-secret") || secret == "the-code-9f");
        assert!(shown.is_none(), "{secret}: {text}");
    }
}

#[test]
fn a_login_without_a_browser_leads_to_a_server_that_can_be_used() {
    let remote = Remote::start();
    let before = remote.run(&["mcp", "test", "remote"]);
    assert_ne!(before.code, Some(0), "{before:?}");
    let told = format!("{}{}", before.stdout, before.stderr);
    assert!(told.contains("zeph-host mcp login remote"), "{told}");

    let logged_in = remote.log_in(|back| back);
    assert_eq!(logged_in.code, Some(0), "{}", logged_in.stderr);
    is_clean(&logged_in.stderr);
    let file = remote.product.run(&["secret", "list", "--json"]);
    assert_eq!(
        file.stdout.trim(),
        "[]",
        "a plugin could be granted the tokens"
    );

    let tested = remote.run(&["-vvv", "mcp", "test", "remote"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.stdout.contains("greet"), "{}", tested.stdout);
    is_clean(&format!("{}{}", tested.stdout, tested.stderr));
    is_clean(&remote.run(&["audit", "query", "--json"]).stdout);
    assert_eq!(remote.n_tokens.load(Ordering::SeqCst), 1);

    let out = remote.run(&["mcp", "logout", "remote"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_ne!(remote.run(&["mcp", "test", "remote"]).code, Some(0));
}

#[test]
fn tokens_lie_in_a_file_of_their_owner_alone() {
    let remote = Remote::start();
    assert_eq!(remote.log_in(|back| back).code, Some(0));
    let mut folders = vec![remote.product.home.clone()];
    let mut holding = Vec::new();
    while let Some(folder) = folders.pop() {
        for found in fs::read_dir(folder).unwrap().flatten() {
            let path = found.path();
            if path.is_dir() {
                folders.push(path);
            } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains("access-1-secret")
            {
                holding.push((
                    path.clone(),
                    fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                ));
            }
        }
    }
    assert_eq!(holding.len(), 1, "{holding:?}");
    assert!(
        holding[0].0.ends_with("logins.json") && holding[0].1 == 0o600,
        "{holding:?}"
    );
}

#[test]
fn two_processes_renew_a_token_once() {
    let remote = Remote::start();
    // Renewed at the next use.
    remote.lifetime.store(0, Ordering::SeqCst);
    assert_eq!(remote.log_in(|back| back).code, Some(0));
    remote.lifetime.store(3_600, Ordering::SeqCst);
    thread::scope(|scope| {
        let running: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| remote.run(&["mcp", "test", "remote"])))
            .collect();
        for one in running {
            let ran = one.join().unwrap();
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
    });
    assert_eq!(remote.n_tokens.load(Ordering::SeqCst), 2);
}

#[test]
fn the_answer_to_another_login_is_refused() {
    let remote = Remote::start();
    for change in [
        |back: String| back.replace("state=", "state=x"),
        |back: String| back.replace("iss=https://localhost", "iss=https://evil.example"),
        |back: String| back.replace("/callback", "/other"),
        |_: String| String::new(),
    ] {
        let refused = remote.log_in(change);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    }
    assert_eq!(remote.n_tokens.load(Ordering::SeqCst), 0);
}

#[test]
fn the_browser_comes_back_to_a_port_of_this_machine() {
    let remote = Remote::start();
    let programs = remote.product.home.join("programs");
    fs::create_dir(&programs).unwrap();
    let (opener, opened) = (
        programs.join("xdg-open"),
        remote.product.home.join("opened"),
    );
    let script = format!(
        "#!/bin/sh\nprintf '%s' \"$1\" > {0}.part && mv {0}.part {0}\n",
        opened.display()
    );
    fs::write(&opener, script).unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = remote
        .product
        .command(&remote.args(&["mcp", "login", "remote"]));
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    let child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    waits_until("the browser is opened", || opened.exists());
    let back = back(&fs::read_to_string(&opened).unwrap(), &remote.site.url(""));
    let (place, target) = back
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let visit = |target: &str| {
        let mut stream = TcpStream::connect(place).unwrap();
        write!(stream, "GET /{target} HTTP/1.1\r\nhost: {place}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(visit(&target.replace("state=", "state=x")).starts_with("HTTP/1.1 404"));
    assert!(visit(target).starts_with("HTTP/1.1 200"));
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(TcpStream::connect(place).is_err());
}
