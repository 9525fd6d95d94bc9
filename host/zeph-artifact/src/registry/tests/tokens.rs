//! Who is told what: credentials go to the registry, and to issuers of tokens that the operator allowed.

use super::server::Request;
use super::{Reply, Server, World, honest, publication};
use crate::registry::{CredentialState, RegistryError};

/// `open:sesame`
const BASIC: &str = "Basic b3BlbjpzZXNhbWU=";

const ISSUED: &[u8] = b"{\"access_token\":\"t\"}";

fn challenge(realm: &str) -> Reply {
    let value =
        format!("Bearer realm=\"{realm}\",service=\"here\",scope=\"repository:other:push\"");
    let said = b"{\"errors\":[{\"message\":\"who are you\"}]}";
    Reply::whole(401, said).field("www-authenticate", &value)
}

/// A registry that wants the token `t`, and says that it is issued at `realm`.
async fn registry(realm: impl Into<String>) -> Server {
    let (artifact, realm) = (publication("wasm"), realm.into());
    Server::start(move |request| match request.authorization == "Bearer t" {
        true => honest(&artifact, request),
        false => challenge(&realm),
    })
    .await
}

/// A registry that issues its tokens itself, by this answer.
async fn own_issuer(issued: Reply) -> Server {
    let artifact = publication("wasm");
    Server::start(move |request| match request.authorization.as_str() {
        _ if request.path.starts_with("/token") => issued.clone(),
        "Bearer t" => honest(&artifact, request),
        _ => challenge(&format!("http://{}/token", request.host)),
    })
    .await
}

fn for_tokens(server: &Server) -> Vec<Request> {
    let requests = server.requests().into_iter();
    requests
        .filter(|request| request.path.starts_with("/token"))
        .collect()
}

#[tokio::test]
async fn a_token_of_the_registry_itself_is_asked_for_once_with_and_without_credentials() {
    for has_login in [false, true] {
        let server = own_issuer(Reply::whole(200, ISSUED)).await;
        let mut world = World::of(&[&server]);
        if has_login {
            world = world.login(server.port());
        }
        world.pull(&server).await.unwrap();
        let [asked] = for_tokens(&server).try_into().unwrap();
        assert_eq!(
            asked.path,
            "/token?scope=repository%3Aorg%2Fname%3Apull&service=here"
        );
        assert_eq!(asked.authorization, if has_login { BASIC } else { "" });
    }
}

#[tokio::test]
async fn a_refresh_token_is_exchanged_at_the_issuer_alone() {
    let server = own_issuer(Reply::whole(200, ISSUED)).await;
    let host = format!("127.0.0.1:{}", server.port());
    let login = format!("{{\"auths\":{{\"{host}\":{{\"identitytoken\":\"refresh\"}}}}}}");
    World::of(&[&server])
        .docker(&login)
        .pull(&server)
        .await
        .unwrap();
    let [asked] = for_tokens(&server).try_into().unwrap();
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", "/token")
    );
    let body = String::from_utf8(asked.body).unwrap();
    assert!(body.contains("grant_type=refresh_token"), "{body}");
    assert!(body.contains("refresh_token=refresh"), "{body}");
    assert!(asked.authorization.is_empty());
}

#[tokio::test]
async fn an_issuer_elsewhere_is_told_nothing_unless_the_operator_allowed_it() {
    let issuer = Server::start(|_| Reply::whole(200, ISSUED)).await;
    let server = registry(issuer.url("/token")).await;
    let error = World::of(&[&server])
        .login(server.port())
        .refusal(&server)
        .await;
    assert!(matches!(error, RegistryError::Realm { .. }), "{error:?}");
    assert!(error.to_string().contains(&issuer.url("/token")), "{error}");
    assert_eq!(issuer.n_connections(), 0);
    let world = World::of(&[&server, &issuer]).login(server.port());
    world.pull(&server).await.unwrap();
    assert_eq!(issuer.requests()[0].authorization, BASIC);
}

#[tokio::test]
async fn a_realm_that_is_none_is_refused() {
    for realm in [
        "http://169.254.169.254/token",
        "https://10.0.0.1/token",
        "https://auth.example/token",
        "https://user:pw@auth.example/token",
        "http://localhost/token",
        "file:///etc/passwd",
        "/token",
        "",
    ] {
        let server = registry(realm).await;
        let world = World::of(&[&server]).login(server.port());
        let error = world.refusal(&server).await;
        assert!(
            matches!(error, RegistryError::Realm { .. }),
            "{realm}: {error:?}"
        );
        let hints = error.hints().join("\n");
        let can_be_allowed = realm.starts_with("https://") && !realm.contains('@');
        assert_eq!(
            hints.contains("[[plugins.registries]]"),
            can_be_allowed,
            "{realm}: {hints}"
        );
        assert!(
            server
                .requests()
                .iter()
                .all(|request| request.authorization.is_empty())
        );
    }
}

#[tokio::test]
async fn an_answer_without_a_token_is_an_error() {
    let far = vec![b' '; 65 * 1024];
    for (body, words) in [
        (&b"{}"[..], "does not stand in the answer"),
        (b"{\"token\":\"\"}", "does not stand in the answer"),
        (b"{\"token\":\"a\\nb: c\"}", "does not stand in the answer"),
        (b"token", "does not stand in the answer"),
        (&far, "more than 65536 bytes"),
    ] {
        let server = own_issuer(Reply::whole(200, body)).await;
        let error = World::of(&[&server]).refusal(&server).await.to_string();
        assert!(error.contains(words), "{error}");
    }
    // Nor is a redirect followed: it would be told the credentials.
    let server = own_issuer(Reply::redirect("/token2")).await;
    let world = World::of(&[&server]).login(server.port());
    let error = world.refusal(&server).await;
    assert!(matches!(error, RegistryError::Status { .. }), "{error:?}");
    assert_eq!(for_tokens(&server).len(), 1);
}

/// A registry that wants this user and password.
async fn with_basic() -> Server {
    let artifact = publication("wasm");
    Server::start(move |request| match request.authorization == BASIC {
        true => honest(&artifact, request),
        false => Reply::whole(401, b"").field("www-authenticate", "Basic realm=\"r\""),
    })
    .await
}

#[tokio::test]
async fn credentials_are_sent_when_they_are_asked_for() {
    let server = with_basic().await;
    World::of(&[&server])
        .login(server.port())
        .pull(&server)
        .await
        .unwrap();
    let requests = server.requests();
    assert!(requests[0].authorization.is_empty());
    assert!(
        requests[1..]
            .iter()
            .all(|request| request.authorization == BASIC)
    );
}

#[tokio::test]
async fn who_is_not_permitted_learns_what_to_do() {
    let server = with_basic().await;
    let host = format!("127.0.0.1:{}", server.port());
    let told = async |world: World| {
        let error = world.refusal(&server).await;
        let hints = error.hints().join("\n");
        match error {
            RegistryError::Denied { credentials, .. } => (credentials, hints),
            error => panic!("{error:?}"),
        }
    };
    let (state, hints) = told(World::of(&[&server])).await;
    assert_eq!(state, CredentialState::None);
    assert!(hints.contains(&format!("docker login {host}")), "{hints}");

    let helper = World::of(&[&server]).docker("{\"credsStore\":\"desktop\"}");
    let (state, hints) = told(helper).await;
    assert_eq!(state, CredentialState::Helper("desktop".to_owned()));
    assert!(hints.contains("wasm-pkg/config.toml"), "{hints}");

    let wrong = format!("{{\"auths\":{{\"{host}\":{{\"auth\":\"b3BlbjptZQ==\"}}}}}}");
    let (state, hints) = told(World::of(&[&server]).docker(&wrong)).await;
    assert_eq!(state, CredentialState::Refused);
    assert!(
        !hints.contains("open") && !hints.contains("me\""),
        "{hints}"
    );

    let error = World::of(&[&server]).docker("{").refusal(&server).await;
    assert!(matches!(error, RegistryError::Credentials(_)), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_named() {
    for value in ["Negotiate", "Bearer", ""] {
        let server =
            Server::start(move |_| Reply::whole(401, b"").field("www-authenticate", value)).await;
        let error = World::of(&[&server]).refusal(&server).await;
        assert!(matches!(error, RegistryError::Challenge(_)), "{error:?}");
    }
}
