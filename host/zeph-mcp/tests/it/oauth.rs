//! Access tokens of an authorisation server that the tests run themselves.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get as route;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use zeph_core::network::{EgressLimits, EgressSettings};
use zeph_egress::{Egress, OwnClient, OwnLimits};
use zeph_mcp::http::{FETCH_MAX, KEYS_BYTES_MAX, KeyFetcher, OAuthOptions};

use crate::server::{Served, now_ms};
use crate::wire::{bearer, call_tool, get};

const AUDIENCE: &str = "https://tools.example.com/mcp";

/// An authorisation server, as far as a resource server sees it.
struct Issuer {
    address: SocketAddr,
    /// By their ids.
    keys: Arc<Mutex<Vec<(String, Ed25519KeyPair)>>>,
    n_fetched: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start() -> Self {
        let keys: Arc<Mutex<Vec<(String, Ed25519KeyPair)>>> = Arc::default();
        let n_fetched = Arc::new(AtomicUsize::new(0));
        let (served, counted) = (Arc::clone(&keys), Arc::clone(&n_fetched));
        let app = Router::new().route(
            "/keys",
            route(move || async move {
                counted.fetch_add(1, Ordering::Relaxed);
                let keys = served.lock().unwrap();
                let keys: Vec<Value> = keys.iter().map(|(id, key)| jwk(id, key)).collect();
                json!({ "keys": keys }).to_string()
            }),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        drop(tokio::spawn(
            async move { axum::serve(listener, app).await },
        ));
        let issuer = Self {
            address,
            keys,
            n_fetched,
        };
        issuer.add_key("first");
        issuer
    }

    fn add_key(&self, id: &str) {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        self.keys.lock().unwrap().push((id.to_owned(), key));
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A token of `subject`, with some claims changed, signed with the key `id`.
    fn token(&self, id: &str, subject: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = json!({
            "iss": self.url(), "aud": AUDIENCE, "sub": subject, "exp": now_ms() / 1_000 + 600,
        });
        change(&mut claims);
        let keys = self.keys.lock().unwrap();
        let key = keys.iter().find(|(name, _)| name == id);
        let header = json!({ "alg": "EdDSA", "kid": id, "typ": "at+jwt" }).to_string();
        let text = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = key.map(|(_, key)| key.sign(text.as_bytes()).as_ref().to_vec());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap_or_default());
        format!("{text}.{signature}")
    }

    async fn served(&self, audience: &str) -> Served {
        let jwks_url = format!("{}/keys", self.url());
        let mut oauth = OAuthOptions::new(
            self.url(),
            audience.to_owned(),
            jwks_url.clone(),
            fetcher(jwks_url),
        );
        oauth.fetch_again_after = Duration::ZERO;
        Served::start_with(|options| options.oauth = Some(oauth)).await
    }
}

/// Fetches as the host does.
fn fetcher(url: String) -> KeyFetcher {
    let settings = EgressSettings {
        private: Arc::default(),
        proxy: None,
        ca_file: None,
        limits: EgressLimits {
            connect: FETCH_MAX,
            header: FETCH_MAX,
            idle: FETCH_MAX,
            total: FETCH_MAX,
            header_bytes: 65_536,
            body_bytes: 65_536,
            redirects: 0,
            requests: 1,
            connections: 1,
        },
    };
    let limits = OwnLimits {
        time: FETCH_MAX,
        bytes: KEYS_BYTES_MAX,
    };
    let client = OwnClient::new(&Egress::new(&settings), &[&url], limits).unwrap();
    KeyFetcher::new(move || {
        let (client, url) = (client.clone(), url.clone());
        async move { Ok(client.get(&url).await?) }
    })
}

fn jwk(id: &str, key: &Ed25519KeyPair) -> Value {
    let x = URL_SAFE_NO_PAD.encode(key.public_key());
    json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": id, "x": x })
}

#[tokio::test]
async fn an_access_token_for_this_server_is_accepted_and_no_other() {
    let issuer = Issuer::start().await;
    let served = issuer.served(AUDIENCE).await;
    let token = issuer.token("first", "ci", |_| {});
    let reply = call_tool(served.address, &bearer(&token), "who").await;
    let expect = format!("oauth:{}|ci", issuer.url());
    assert!(
        reply.status == 200 && reply.body.contains(&expect),
        "{reply:?}"
    );
    // A token of the store with the same name is another caller, and works beside it.
    let own = served.tokens.add("ci", |_| {});
    let reply = call_tool(served.address, &bearer(&own), "who").await;
    assert!(reply.body.contains(r#""text":"ci""#), "{reply:?}");
    let parts: Vec<&str> = token.split('.').collect();
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    for (token, word) in [
        (
            issuer.token("first", "ci", |claims| claims["aud"] = json!("other")),
            "audience",
        ),
        (
            issuer.token("first", "ci", |claims| claims["iss"] = json!("other")),
            "issuer",
        ),
        (
            issuer.token("first", "ci", |claims| {
                claims["exp"] = json!(now_ms() / 1_000 - 60);
            }),
            "expired",
        ),
        (issuer.token("nobody", "ci", |_| {}), "key is unknown"),
        (format!("{}.{}.", none, parts[1]), "algorithm"),
        (format!("{}.{}.AAAA", parts[0], parts[1]), "signature"),
    ] {
        let reply = call_tool(served.address, &bearer(&token), "who").await;
        assert_eq!(reply.status, 401, "{word}: {reply:?}");
        assert!(
            reply.body.contains(word) && reply.head.contains("error=\"invalid_token\""),
            "{reply:?}"
        );
    }
}

#[tokio::test]
async fn clients_are_told_where_to_get_an_access_token() {
    let issuer = Issuer::start().await;
    let served = issuer.served(AUDIENCE).await;
    // With an authorisation server there is no open door.
    let reply = call_tool(served.address, "", "who").await;
    assert_eq!(reply.status, 401);
    let url = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";
    assert!(
        reply.head.contains(&format!("resource_metadata=\"{url}\"")),
        "{reply:?}"
    );
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let reply = get(served.address, path, "").await;
        let metadata: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.url()]));
    }
    // An audience that is not a URL: the address that was asked for stands in its place.
    let served = issuer.served("tools").await;
    let reply = call_tool(served.address, "", "who").await;
    let url = "http://localhost/.well-known/oauth-protected-resource/mcp";
    assert!(
        reply.head.contains(&format!("resource_metadata=\"{url}\"")),
        "{reply:?}"
    );
}

#[tokio::test]
async fn keys_change_without_a_restart_and_are_fetched_seldom() {
    let issuer = Issuer::start().await;
    let served = issuer.served(AUDIENCE).await;
    let who = |token: String| async move {
        call_tool(served.address, &bearer(&token), "who")
            .await
            .status
    };
    for _ in 0..3 {
        assert_eq!(who(issuer.token("first", "ci", |_| {})).await, 200);
    }
    assert_eq!(issuer.n_fetched.load(Ordering::Relaxed), 1);
    issuer.add_key("second");
    assert_eq!(who(issuer.token("second", "ci", |_| {})).await, 200);
    assert_eq!(who(issuer.token("first", "ci", |_| {})).await, 200);
    assert_eq!(issuer.n_fetched.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn tokens_with_made_up_keys_cause_no_flood_of_fetches() {
    let issuer = Issuer::start().await;
    let oauth = OAuthOptions::new(
        issuer.url(),
        AUDIENCE.to_owned(),
        format!("{}/keys", issuer.url()),
        fetcher(format!("{}/keys", issuer.url())),
    );
    let served = Served::start_with(|options| options.oauth = Some(oauth)).await;
    for n in 0..20 {
        let token = issuer.token(&format!("made-up-{n}"), "ci", |_| {});
        assert_eq!(
            call_tool(served.address, &bearer(&token), "who")
                .await
                .status,
            401
        );
    }
    assert_eq!(issuer.n_fetched.load(Ordering::Relaxed), 1);
    let token = issuer.token("first", "ci", |_| {});
    assert_eq!(
        call_tool(served.address, &bearer(&token), "who")
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn without_keys_nobody_gets_in() {
    let issuer = Issuer::start().await;
    for path in ["/none", "/keys?a"] {
        let mut oauth = OAuthOptions::new(
            issuer.url(),
            AUDIENCE.to_owned(),
            format!("{}{path}", issuer.url()),
            fetcher(format!("{}{path}", issuer.url())),
        );
        oauth.fetch_again_after = Duration::ZERO;
        let served = Served::start_with(|options| options.oauth = Some(oauth)).await;
        let token = issuer.token("first", "ci", |_| {});
        let reply = call_tool(served.address, &bearer(&token), "who").await;
        let expect = if path == "/none" { 503 } else { 200 };
        assert_eq!(reply.status, expect, "{path}: {reply:?}");
    }
}
