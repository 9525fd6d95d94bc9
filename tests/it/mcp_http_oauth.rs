//! Access tokens of an authorisation server, which the test is.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::mcp_ends::waits_until;
use crate::mcp_http_client::HttpServer;
use crate::product::Product;

const AUDIENCE: &str = "https://tools.example.com/mcp";

/// Serves the public key of `key` at any path; gives back the URL.
fn issuer(key: &Ed25519KeyPair) -> String {
    let x = URL_SAFE_NO_PAD.encode(key.public_key());
    let keys =
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x }] }).to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            drop(stream.read(&mut [0; 4_096]));
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{keys}",
                keys.len()
            );
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    url
}

fn token(key: &Ed25519KeyPair, claims: &Value) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({ "alg": "EdDSA", "kid": "k" }).to_string());
    let text = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(text.as_bytes()));
    format!("authorization: Bearer {text}.{signature}\r\n")
}

fn new_key() -> Ed25519KeyPair {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap()
}

/// A server that takes access tokens of the issuer at `url`.
fn server_for(product: &Product, url: &str) -> HttpServer {
    let settings = [
        format!("mcp.serve.oauth.issuer={url}"),
        format!("mcp.serve.oauth.audience={AUDIENCE}"),
        format!("mcp.serve.oauth.jwks_url={url}/keys"),
    ];
    let args: Vec<&str> = settings
        .iter()
        .flat_map(|setting| ["--set", setting])
        .collect();
    HttpServer::start(product, &args)
}

/// Its holder would throw a token away that is called invalid.
#[test]
fn a_token_that_cannot_be_checked_is_not_called_invalid() {
    let product = Product::new();
    // Nobody listens where the keys were.
    let away = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{away}");
    let server = server_for(&product, &url);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let claims = json!({ "iss": url, "aud": [AUDIENCE], "sub": "alice", "exp": now + 600 });
    let reply = server.call(
        &token(&new_key(), &claims),
        "list_directory",
        &json!({ "path": "." }),
    );
    assert_eq!(reply.status, 503, "{reply:?}");
    let head = reply.head.to_ascii_lowercase();
    assert!(
        head.contains("retry-after: ") && !head.contains("www-authenticate"),
        "{reply:?}"
    );
}

#[test]
fn access_tokens_of_the_configured_server_let_their_subjects_in() {
    let product = Product::new();
    let key = new_key();
    let url = issuer(&key);
    let server = server_for(&product, &url);
    let listing = json!({ "path": "." });

    let reply = server.call("", "list_directory", &listing);
    let metadata =
        "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
    assert!(
        reply.status == 401 && reply.head.contains(metadata),
        "{reply:?}"
    );
    let reply = server.request("GET /.well-known/oauth-protected-resource/mcp", "", "");
    let described: Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(described["authorization_servers"], json!([url]));

    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let claims = json!({ "iss": url, "aud": [AUDIENCE], "sub": "alice", "exp": now + 600 });
    let reply = server.call(&token(&key, &claims), "list_directory", &listing);
    assert_eq!(reply.result()["isError"], false, "{reply:?}");
    let caller = format!("oauth:{url}|alice");
    waits_until("it is recorded", || {
        let records = product.run(&["audit", "query", "--json"]).json_lines();
        records
            .last()
            .is_some_and(|record| record["caller_id"] == caller)
    });
    for (claim, value) in [
        ("aud", json!("other")),
        ("iss", json!("other")),
        ("exp", json!(now - 60)),
    ] {
        let mut claims = claims.clone();
        claims[claim] = value;
        let reply = server.call(&token(&key, &claims), "list_directory", &listing);
        assert_eq!(reply.status, 401, "{claim}: {reply:?}");
    }
}
