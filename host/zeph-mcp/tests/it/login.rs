//! Logins to a remote server, with an authorization server that the tests run themselves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use url::Url;
use zeph_core::network::{EgressLimits, EgressSettings, HTTPS_PORT, HostPattern, PrivateHost};
use zeph_egress::{Egress, Pending};
use zeph_mcp::client::Credentials as _;
use zeph_mcp::client::oauth::{
    Access, ClientIdentity, LoginError, LoginStore, LoginTokens, PendingLogin, RemoteServer,
};

const CALLBACK: &str = "http://127.0.0.1:1/callback";

/// A resource server and its authorization server, each on a port of its own.
struct Issuer {
    resource: SocketAddr,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What is done to a document before it is sent.
type Change = Box<dyn Fn(&str, &mut Value) + Send + Sync>;

struct Shared {
    change: Change,
    addresses: Mutex<(String, String)>,
    /// Path and body of every request but for documents.
    requests: Mutex<Vec<(String, String)>>,
    challenge: Mutex<String>,
    n_tokens: AtomicU64,
    refuses_refresh: Mutex<bool>,
}

impl Issuer {
    async fn start(change: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            change: Box::new(change),
            addresses: Mutex::default(),
            requests: Mutex::default(),
            challenge: Mutex::default(),
            n_tokens: AtomicU64::new(0),
            refuses_refresh: Mutex::new(false),
        });
        let (resource, address) = (serve(&shared).await, serve(&shared).await);
        *shared.addresses.lock().unwrap() =
            (format!("http://{resource}"), format!("http://{address}"));
        Self {
            resource,
            address,
            shared,
        }
    }

    /// As its operator named it, with the authorization server or without.
    fn server(&self, names_issuer: bool) -> RemoteServer {
        let host = HostPattern::parse(&self.address.to_string(), HTTPS_PORT).unwrap();
        let url = Url::parse(&format!("http://{}/mcp", self.resource)).unwrap();
        let hosts: Vec<HostPattern> = names_issuer.then_some(host).into_iter().collect();
        RemoteServer::new("remote", url, hosts)
    }

    fn egress(&self) -> Egress {
        let private = PrivateHost {
            host: self.address.ip().to_string().parse().unwrap(),
            ports: vec![self.address.port()],
            plain_http: true,
        };
        let second = Duration::from_secs(20);
        Egress::new(&EgressSettings {
            private: Arc::new([private]),
            proxy: None,
            ca_file: None,
            limits: EgressLimits {
                connect: second,
                header: second,
                idle: second,
                total: second,
                header_bytes: 64 * 1024,
                body_bytes: 1 << 20,
                redirects: 3,
                requests: 8,
                connections: 4,
            },
        })
    }

    async fn begin(&self) -> Result<PendingLogin, LoginError> {
        let redirect = Url::parse(CALLBACK).unwrap();
        let identity = ClientIdentity::default();
        PendingLogin::begin(&self.server(true), &self.egress(), &redirect, &identity).await
    }

    /// What the browser is sent back with after the person agreed.
    fn agree(&self, login: &PendingLogin, issuer: &str) -> String {
        let find = |name: &str| {
            let found = login.url().query_pairs().find(|(key, _)| key == name);
            found.unwrap_or_else(|| panic!("no {name}")).1.into_owned()
        };
        assert_eq!(find("code_challenge_method"), "S256");
        assert_eq!(find("resource"), format!("http://{}/mcp", self.resource));
        assert_eq!(find("redirect_uri"), CALLBACK);
        *self.shared.challenge.lock().unwrap() = find("code_challenge");
        format!(
            "{CALLBACK}?code=the-code&state={}&iss={issuer}",
            find("state")
        )
    }

    async fn login(&self) -> LoginTokens {
        let login = self.begin().await.unwrap();
        let redirect = self.agree(&login, &format!("http://{}", self.address));
        let redirect = login.read(&redirect).unwrap();
        login.complete(redirect, 1_000).await.unwrap()
    }

    fn requests(&self, path: &str) -> Vec<String> {
        let requests = self.shared.requests.lock().unwrap();
        let of_path = requests.iter().filter(|(asked, _)| asked == path);
        of_path.map(|(_, body)| body.clone()).collect()
    }
}

async fn serve(shared: &Arc<Shared>) -> SocketAddr {
    let app = Router::new()
        .fallback(answer)
        .with_state(Arc::clone(shared));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    drop(tokio::spawn(
        async move { axum::serve(listener, app).await },
    ));
    address
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, body: Bytes) -> Response {
    let (resource, issuer) = shared.addresses.lock().unwrap().clone();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let mut document = match uri.path() {
        "/mcp" => {
            let hint = format!(
                "Bearer resource_metadata=\"{resource}/.well-known/oauth-protected-resource/mcp\", scope=\"tools\""
            );
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", hint)]).into_response();
        }
        "/.well-known/oauth-protected-resource/mcp" => json!({
            "resource": format!("{resource}/mcp"),
            "authorization_servers": [issuer],
        }),
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "authorization_response_iss_parameter_supported": true,
        }),
        path => {
            let mut requests = shared.requests.lock().unwrap();
            requests.push((path.to_owned(), body.clone()));
            drop(requests);
            return match path {
                "/register" => {
                    let client = json!({
                        "client_id": "registered", "client_secret": "client-secret-value", "redirect_uris": [CALLBACK],
                    });
                    (StatusCode::CREATED, client.to_string()).into_response()
                }
                "/token" => token(&shared, &body),
                _ => StatusCode::NOT_FOUND.into_response(),
            };
        }
    };
    (shared.change)(uri.path(), &mut document);
    match document.is_null() {
        true => StatusCode::NOT_FOUND.into_response(),
        false => document.to_string().into_response(),
    }
}

fn token(shared: &Shared, body: &str) -> Response {
    let fields: BTreeMap<String, String> = url::form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let is_good = match fields["grant_type"].as_str() {
        "authorization_code" => {
            let hash = Sha256::digest(fields["code_verifier"].as_bytes());
            fields["code"] == "the-code"
                && URL_SAFE_NO_PAD.encode(hash) == *shared.challenge.lock().unwrap()
        }
        _ => {
            let last = format!("refresh-{}", shared.n_tokens.load(Ordering::SeqCst));
            fields["refresh_token"] == last && !*shared.refuses_refresh.lock().unwrap()
        }
    };
    if !is_good {
        let refusal = json!({"error": "invalid_grant"});
        return (StatusCode::BAD_REQUEST, refusal.to_string()).into_response();
    }
    let n = shared.n_tokens.fetch_add(1, Ordering::SeqCst) + 1;
    let tokens = json!({
        "access_token": format!("access-{n}"), "refresh_token": format!("refresh-{n}"),
        "token_type": "Bearer", "expires_in": 600, "id_token": "personal",
    });
    ([("content-type", "application/json")], tokens.to_string()).into_response()
}

/// Keeps one login in memory. The clock is the test's.
#[derive(Debug, Default)]
struct Kept {
    tokens: Mutex<Option<LoginTokens>>,
    now: AtomicU64,
    renewing: Arc<tokio::sync::Mutex<()>>,
}

impl LoginStore for Kept {
    fn load(&self, _name: &str) -> Result<Option<LoginTokens>, LoginError> {
        Ok(self.tokens.lock().unwrap().clone())
    }

    fn save(&self, _name: &str, tokens: &LoginTokens) -> Result<(), LoginError> {
        *self.tokens.lock().unwrap() = Some(tokens.clone());
        Ok(())
    }

    fn hold<'a>(&'a self, _name: &'a str) -> Pending<'a, Result<Box<dyn Send>, LoginError>> {
        Box::pin(async {
            Ok(Box::new(Arc::clone(&self.renewing).lock_owned().await) as Box<dyn Send>)
        })
    }

    fn now_s(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }
}

fn access(issuer: &Issuer, tokens: LoginTokens, now: u64) -> (Access, Arc<Kept>) {
    let kept = Arc::new(Kept {
        tokens: Mutex::new(Some(tokens)),
        now: AtomicU64::new(now),
        ..Kept::default()
    });
    let store = Arc::clone(&kept) as Arc<dyn LoginStore>;
    (
        Access::new(issuer.server(true), issuer.egress(), store),
        kept,
    )
}

async fn header(access: &Access) -> String {
    let header = access.header().await.unwrap().unwrap();
    assert!(header.is_sensitive());
    header.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_login_leads_to_tokens_that_are_renewed_early() {
    let issuer = Issuer::start(|_, _| {}).await;
    let tokens = issuer.login().await;
    assert_eq!(
        tokens.secrets(),
        ["access-1", "refresh-1", "client-secret-value"]
    );
    assert_eq!(
        (tokens.lifetime_s, tokens.scopes.as_slice()),
        (Some(600), ["tools".to_owned()].as_slice())
    );
    let (access, kept) = access(&issuer, tokens, 1_500);
    assert_eq!(header(&access).await, "Bearer access-1");
    kept.now.store(1_541, Ordering::SeqCst);
    assert_eq!(header(&access).await, "Bearer access-2");
    assert_eq!(header(&access).await, "Bearer access-2");
    assert_eq!(issuer.requests("/register").len(), 1);
    assert_eq!(issuer.requests("/token").len(), 2);
}

#[tokio::test]
async fn many_that_renew_at_once_renew_once() {
    let issuer = Issuer::start(|_, _| {}).await;
    let (access, _) = access(&issuer, issuer.login().await, 9_000);
    let access = &access;
    let (a, b, c, d) = tokio::join!(
        header(access),
        header(access),
        header(access),
        header(access)
    );
    assert_eq!([a, b, c, d].map(|it| it == "Bearer access-2"), [true; 4]);
    assert_eq!(issuer.requests("/token").len(), 2);
}

#[tokio::test]
async fn a_token_that_the_server_refuses_is_renewed_once() {
    let issuer = Issuer::start(|_, _| {}).await;
    let (access, kept) = access(&issuer, issuer.login().await, 1_001);
    let used = access.header().await.unwrap();
    assert!(!access.refused(used.as_ref(), 403, None).await);
    assert!(access.refused(used.as_ref(), 401, None).await);
    // Another that was late finds the new one.
    assert!(access.refused(used.as_ref(), 401, None).await);
    assert_eq!(issuer.requests("/token").len(), 2);
    // One that is accepted no more is not sent again.
    *issuer.shared.refuses_refresh.lock().unwrap() = true;
    let used = access.header().await.unwrap();
    for _ in 0..3 {
        assert!(!access.refused(used.as_ref(), 401, None).await);
    }
    assert_eq!(issuer.requests("/token").len(), 3);
    kept.now.store(9_000, Ordering::SeqCst);
    let error = access.bearer(None).await.unwrap_err();
    assert!(error.needs_login(), "{error}");
    assert_eq!(error.hint().unwrap(), "run `zeph-host mcp login remote`");
}

#[tokio::test]
async fn tokens_go_to_no_other_server_than_that_of_the_login() {
    let issuer = Issuer::start(|_, _| {}).await;
    let mut tokens = issuer.login().await;
    tokens.url = "http://127.0.0.1:2/mcp".to_owned();
    let (other, _) = access(&issuer, tokens, 1_001);
    assert!(other.bearer(None).await.unwrap_err().needs_login());
    let mut tokens = issuer.login().await;
    tokens.issuer = Some("https://another.example".to_owned());
    let n_before = issuer.requests("/token").len();
    let (moved, _) = access(&issuer, tokens, 9_000);
    let error = moved.bearer(None).await.unwrap_err();
    assert!(
        error.to_string().contains("another authorization server"),
        "{error}"
    );
    assert_eq!(issuer.requests("/token").len(), n_before);
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused_before_the_code_is_sent() {
    let issuer = Issuer::start(|_, _| {}).await;
    for other in ["https://evil.example", ""] {
        let login = issuer.begin().await.unwrap();
        let redirect = issuer.agree(&login, other);
        let redirect = match other {
            "" => redirect.replace("&iss=", ""),
            _ => redirect,
        };
        let redirect = login.read(&redirect).unwrap();
        let refused = login.complete(redirect, 1_000).await;
        assert!(matches!(refused, Err(LoginError::Issuer(_))), "{refused:?}");
    }
    let login = issuer.begin().await.unwrap();
    let redirect = issuer.agree(&login, &format!("http://{}", issuer.address));
    let forged = redirect.replace(login.state(), "forged");
    assert!(matches!(login.read(&forged), Err(LoginError::Redirect(_))));
    assert_eq!(issuer.requests("/token"), [""; 0]);
}

async fn refused_with(change: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> LoginError {
    let issuer = Issuer::start(change).await;
    let refused = issuer.begin().await.err().unwrap();
    assert_eq!(issuer.requests("/register"), [""; 0], "{refused}");
    refused
}

#[tokio::test]
async fn metadata_leads_to_no_host_that_was_not_named() {
    let issuer = Issuer::start(|_, _| {}).await;
    let redirect = Url::parse(CALLBACK).unwrap();
    let (server, identity) = (issuer.server(false), ClientIdentity::default());
    let unnamed = PendingLogin::begin(&server, &issuer.egress(), &redirect, &identity).await;
    let error = unnamed.err().unwrap();
    let hint = error.hint().unwrap_or_default();
    assert!(
        hint.contains("mcp.servers.remote.hosts") && hint.contains(&issuer.address.to_string()),
        "{error} {hint}"
    );
    for field in [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
    ] {
        let refused = refused_with(move |_, document| {
            if document.get(field).is_some() {
                document[field] = json!("https://evil.example/x");
            }
        });
        let refused = refused.await;
        assert!(
            matches!(&refused, LoginError::Host { host, .. } if host == "evil.example"),
            "{field}: {refused}"
        );
    }
    let script = refused_with(|_, document| {
        if document.get("authorization_endpoint").is_some() {
            document["authorization_endpoint"] = json!("file:///bin/sh");
        }
    });
    assert!(matches!(script.await, LoginError::Unsupported(_)));
}

#[tokio::test]
async fn metadata_that_breaks_the_protocol_is_refused() {
    let other_issuer = refused_with(|_, document| {
        if document.get("issuer").is_some() {
            document["issuer"] = json!("https://evil.example");
        }
    });
    let other_issuer = other_issuer.await;
    assert!(
        matches!(other_issuer, LoginError::Issuer(_)),
        "{other_issuer}"
    );
    let no_pkce = refused_with(|_, document| {
        if let Some(fields) = document.as_object_mut() {
            fields.remove("code_challenge_methods_supported");
        }
    });
    let no_pkce = no_pkce.await;
    assert!(no_pkce.to_string().contains("PKCE"), "{no_pkce}");
    let other_resource = refused_with(|_, document| {
        if document.get("resource").is_some() {
            document["resource"] = json!("https://bank.example/mcp");
        }
    });
    let other_resource = other_resource.await;
    assert!(
        matches!(other_resource, LoginError::Unsupported(_)),
        "{other_resource}"
    );
}
