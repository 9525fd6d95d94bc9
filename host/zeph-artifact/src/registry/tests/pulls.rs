//! What comes of an artifact, and of references that stand for nothing that may be fetched.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use zeph_core::network::Destination;
use zeph_egress::OwnHost;

use super::super::session::{Actions, Session};
use super::super::{Progress, Registries, RegistrySettings};
use super::{
    BYTES_MAX, LONG, Reply, Server, World, egress, honest, local, lying, publication, reference,
};
use crate::credentials::CredentialFiles;
use crate::manifest::{EMPTY, described};
use crate::reference::ArtifactSource;
use crate::registry::RegistryError;

#[tokio::test]
async fn an_artifact_is_fetched_by_its_tag_and_by_its_digest() {
    let artifact = publication(vec![7; 1_000_000]);
    let server = lying(&artifact, |_| None).await;
    let digest = artifact.manifest.digest;
    let world = World::of(&[&server]);
    for selector in [
        ":1.2".to_owned(),
        format!("@{digest}"),
        format!(":old@{digest}"),
    ] {
        let reference = reference(server.port(), &selector);
        let mut pulled = world.registries().pull(&reference).await.unwrap();
        assert_eq!(pulled.component.read().unwrap(), artifact.component);
        assert_eq!(pulled.component.n_bytes(), 1_000_000);
        assert_eq!(
            pulled.component.digest(),
            described("", &artifact.component).digest
        );
        assert_eq!(pulled.manifest, Some(artifact.manifest.clone()));
        assert_eq!(
            pulled.annotations["org.opencontainers.image.version"],
            "1.2.0"
        );
        assert_eq!(pulled.source, ArtifactSource::Registry(reference));
        assert!(pulled.signatures.is_empty());
    }
    let asked = server.asked();
    assert_eq!(asked[0], "GET /v2/org/name/manifests/1.2");
    assert!(
        asked
            .iter()
            .all(|asked| asked.starts_with("GET /v2/org/name/")),
        "{asked:?}"
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.authorization.is_empty())
    );
}

#[tokio::test]
async fn a_description_that_says_nothing_is_not_fetched() {
    let artifact = publication("wasm");
    let manifest = json!({
        "schemaVersion": 2,
        "config": described("application/vnd.oci.empty.v1+json", EMPTY),
        "layers": [described("application/wasm", b"wasm")],
    });
    let server = lying(&artifact, move |request| {
        let reply = Reply::whole(200, manifest.to_string().as_bytes());
        let reply = reply.field("content-type", crate::manifest::MANIFEST_TYPE);
        request.path.ends_with("/manifests/1.2").then_some(reply)
    })
    .await;
    World::of(&[&server]).pull(&server).await.unwrap();
    let blobs = server
        .asked()
        .iter()
        .filter(|asked| asked.contains("/blobs/"))
        .count();
    assert_eq!(blobs, 1);
}

#[tokio::test]
async fn how_far_a_transfer_is_is_reported() {
    let artifact = publication(vec![7; 3_000_000]);
    let server = lying(&artifact, |_| None).await;
    let reports: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let log = Arc::clone(&reports);
    let settings = RegistrySettings {
        allowed: vec![local(server.port())],
        bytes_max: BYTES_MAX,
        timeout: LONG,
    };
    let report = Arc::new(move |progress| log.lock().unwrap().push(progress));
    let registries = Registries::new(&egress(), settings, CredentialFiles::default(), report);
    registries
        .pull(&reference(server.port(), ":1.2"))
        .await
        .unwrap();
    let reports = reports.lock().unwrap();
    assert!((2..=12).contains(&reports.len()), "{reports:?}");
    assert!(reports.is_sorted_by_key(|progress| progress.n_bytes));
    assert!(
        reports
            .iter()
            .all(|progress| progress.n_bytes_total == Some(3_000_000))
    );
}

#[tokio::test]
async fn a_registry_that_is_not_allowed_is_not_reached() {
    let artifact = publication("wasm");
    let server = lying(&artifact, |_| None).await;
    let nothing_allowed = World::of(&[]);
    let error = nothing_allowed.refusal(&server).await;
    assert!(matches!(error, RegistryError::NotAllowed(_)), "{error}");
    let hints = error.hints().join("\n");
    assert!(
        hints.contains(&format!("host = \"127.0.0.1:{}\"", server.port())),
        "{hints}"
    );
    // Allowed, but neither as a private host nor over plain HTTP.
    for (plain_http, private) in [(true, false), (false, true)] {
        let mut world = World::of(&[&server]);
        world.allowed[0].plain_http = plain_http;
        world.allowed[0].private = private;
        // It waits for a request that is not TLS.
        world.timeout = Duration::from_millis(300);
        let error = world.refusal(&server).await;
        match plain_http {
            true => assert!(error.hints()[0].contains("private = true"), "{error}"),
            false => assert!(matches!(error, RegistryError::TimedOut(_)), "{error}"),
        }
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_registry_that_does_not_speak_tls_is_said_to_be_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        std::future::pending::<()>().await;
    };
    let mut world = World::of(&[]);
    world.allowed.push(local(port));
    world.allowed[0].plain_http = false;
    let (registries, from) = (world.registries(), reference(port, ":1"));
    let error = tokio::select! {
        pulled = registries.pull(&from) => pulled.unwrap_err(),
        () = answering => unreachable!(),
    };
    assert!(error.hints()[0].contains("plain_http = true"), "{error:?}");
}

/// The host in references to the registry of docker is not the one that answers.
#[test]
fn the_registry_of_docker_is_asked_where_it_answers() {
    let mut world = World::of(&[]);
    let host = OwnHost {
        destination: Destination {
            host: "docker.io".parse().unwrap(),
            port: 443,
        },
        plain_http: false,
        private: false,
    };
    world.allowed.push(host);
    let registries = world.registries();
    let reference = "docker.io/org/name:1".parse().unwrap();
    let session = Session::new(&registries, &reference, Actions::Pull).unwrap();
    let url = session.url("manifests/1");
    assert_eq!(
        url.as_str(),
        "https://registry-1.docker.io/v2/org/name/manifests/1"
    );
    assert!(session.is_own(&url));
}

#[tokio::test]
async fn what_is_not_there_and_what_fails_is_named() {
    let missing = Server::start(|_| Reply::whole(404, b"{\"errors\":[]}")).await;
    let error = World::of(&[&missing]).refusal(&missing).await;
    assert!(matches!(error, RegistryError::NotFound(_)), "{error}");
    assert!(error.to_string().contains("/org/name:1.2"), "{error}");
    let failing = Server::start(|_| {
        Reply::whole(
            503,
            b"{\"errors\":[{\"code\":\"BUSY\",\"message\":\"come\\nback\"}]}",
        )
    })
    .await;
    let error = World::of(&[&failing]).refusal(&failing).await.to_string();
    assert!(
        error.ends_with("the answer has status 503 Service Unavailable: come back"),
        "{error}"
    );
}

/// Registries have limits of their own for one answer.
#[tokio::test]
async fn tags_are_listed_to_the_last_page() {
    let server = Server::start(move |request| {
        let page = |tags: &str, next: &str| {
            let body = format!("{{\"tags\":[{tags}]}}");
            Reply::whole(200, body.as_bytes()).field("link", &format!("<{next}>; rel=\"next\""))
        };
        match request.path.as_str() {
            "/v2/org/name/tags/list?n=1000" => {
                page("\"1.1\"", "/v2/org/name/tags/list?last=1.1&n=1")
            }
            "/v2/org/name/tags/list?last=1.1&n=1" => Reply::whole(200, b"{\"tags\":[\"1.2\"]}"),
            path if path.starts_with("/v2/org/away/") => page("", "http://127.0.0.1:1/v2/"),
            path => page("\"1.1\"", path),
        }
    })
    .await;
    let registries = World::of(&[&server]).registries();
    let all = reference(server.port(), ":1");
    assert_eq!(registries.tags(&all).await.unwrap(), ["1.1", "1.2"]);
    for (name, why) in [
        ("endless", "the list of tags has more than 32 pages"),
        ("away", "the list of tags goes on at `http://127.0.0.1:1`"),
    ] {
        let reference = format!("127.0.0.1:{}/org/{name}:1", server.port());
        let error = registries
            .tags(&reference.parse().unwrap())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn tags_are_listed() {
    let artifact = publication("wasm");
    let server = Server::start(move |request| match request.path.as_str() {
        "/v2/org/name/tags/list?n=1000" => Reply::whole(200, b"{\"tags\":[\"1.1\",\"1.2\"]}"),
        "/v2/org/empty/tags/list?n=1000" => Reply::whole(200, b"{\"tags\":null}"),
        _ => honest(&artifact, request),
    })
    .await;
    let registries = World::of(&[&server]).registries();
    let tags = registries
        .tags(&reference(server.port(), ":1"))
        .await
        .unwrap();
    assert_eq!(tags, ["1.1", "1.2"]);
    let empty = format!("127.0.0.1:{}/org/empty:1", server.port());
    assert!(
        registries
            .tags(&empty.parse().unwrap())
            .await
            .unwrap()
            .is_empty()
    );
    let manifest = registries
        .manifest(&reference(server.port(), ":1.2"))
        .await
        .unwrap();
    assert_eq!(manifest.digest, publication("wasm").manifest.digest);
}
