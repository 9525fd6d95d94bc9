//! Registries that lie, redirect, hang and flood.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::Request;
use super::{BYTES_MAX, Reply, Server, World, is_for_component, lying, publication, reference};
use crate::manifest::{MANIFEST_BYTES_MAX, MANIFEST_TYPE, Publication, described};
use crate::registry::RegistryError;

/// A registry that answers like this when it is asked for the component.
async fn component(
    artifact: &Publication,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Server {
    let is_for_component = is_for_component(artifact);
    lying(artifact, move |request| {
        is_for_component(request).then(&reply)
    })
    .await
}

fn manifest(body: &[u8]) -> Reply {
    Reply::whole(200, body).field("content-type", MANIFEST_TYPE)
}

fn is_for_manifest(request: &Request) -> bool {
    request.path.ends_with("/manifests/1.2")
}

#[tokio::test]
async fn a_component_that_breaks_off_is_refused() {
    let artifact = publication("0123456789");
    let half = || Reply::whole(200, b"01234");
    for reply in [half().announcing(10), half().unannounced()] {
        let server = component(&artifact, move || reply.clone()).await;
        let error = World::of(&[&server]).refusal(&server).await;
        assert!(
            matches!(
                error,
                RegistryError::Truncated {
                    found: 5,
                    declared: Some(10),
                    ..
                }
            ),
            "{error:?}"
        );
        assert_eq!(
            error.to_string(),
            "the component ended after 5 bytes of 10; nothing of it is used"
        );
    }
}

#[tokio::test]
async fn another_size_than_the_declared_one_is_refused() {
    let artifact = publication("0123456789");
    // As it is announced: before anything of it is read.
    for announced in [9, 11, 1_000_000_000] {
        let server = component(&artifact, move || {
            Reply::whole(200, b"0").announcing(announced)
        })
        .await;
        let error = World::of(&[&server]).refusal(&server).await;
        assert!(
            matches!(error, RegistryError::Size { declared: 10, .. }),
            "{error:?}"
        );
    }
    let flood = || Reply::whole(200, &[b'0'; 4_096]).repeated(Duration::ZERO);
    let server = component(&artifact, flood).await;
    let error = World::of(&[&server]).refusal(&server).await;
    assert!(
        matches!(error, RegistryError::Size { declared: 10, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn more_than_the_operator_allows_is_not_asked_for() {
    let artifact = publication("0123456789");
    let mut declared: Value = serde_json::from_slice(&artifact.manifest.bytes).unwrap();
    declared["layers"][0]["size"] = (BYTES_MAX + 1).into();
    let declared = declared.to_string();
    let server = lying(&artifact, move |request| {
        is_for_manifest(request).then(|| manifest(declared.as_bytes()))
    })
    .await;
    let error = World::of(&[&server]).refusal(&server).await;
    assert!(matches!(error, RegistryError::TooLarge { .. }), "{error:?}");
    assert!(error.hints()[0].contains("plugins.download_bytes_max"));
    let is_for_component = is_for_component(&artifact);
    assert!(!server.requests().iter().any(is_for_component));
}

#[tokio::test]
async fn other_bytes_than_those_of_the_digest_are_refused() {
    let artifact = publication("0123456789");
    let server = component(&artifact, || Reply::whole(200, b"012345678X")).await;
    let error = World::of(&[&server]).refusal(&server).await;
    assert!(
        matches!(
            error,
            RegistryError::Digest {
                what: "the component",
                ..
            }
        ),
        "{error:?}"
    );

    let other = described("", b"other").digest;
    let lie = other.to_string();
    let server = lying(&artifact, {
        let bytes = artifact.manifest.bytes.clone();
        move |request| {
            let reply = manifest(&bytes).field("docker-content-digest", &lie);
            is_for_manifest(request).then_some(reply)
        }
    })
    .await;
    let error = World::of(&[&server]).refusal(&server).await;
    assert!(
        matches!(
            error,
            RegistryError::Digest {
                what: "the manifest",
                ..
            }
        ),
        "{error:?}"
    );

    // A manifest that is in order, but not the one that was asked for.
    let bytes = artifact.manifest.bytes.clone();
    let server = Server::start(move |_| manifest(&bytes)).await;
    let asked = reference(server.port(), &format!(":1.2@{other}"));
    let error = World::of(&[&server])
        .registries()
        .pull(&asked)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::Digest { expected, .. } if expected == other),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_description_of_another_component_is_refused() {
    let artifact = publication("0123456789");
    let config = json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [described("", b"x").digest] });
    let config = config.to_string();
    let mut declared: Value = serde_json::from_slice(&artifact.manifest.bytes).unwrap();
    declared["config"] = json!(described(
        "application/vnd.wasm.config.v0+json",
        config.as_bytes()
    ));
    let declared = declared.to_string();
    let server = lying(&artifact, move |request| match is_for_manifest(request) {
        true => Some(manifest(declared.as_bytes())),
        false => request
            .path
            .ends_with(&described("", config.as_bytes()).digest.to_string())
            .then(|| Reply::whole(200, config.as_bytes())),
    })
    .await;
    let error = World::of(&[&server]).refusal(&server).await.to_string();
    assert!(
        error.contains("the description of another layer"),
        "{error}"
    );
}

#[tokio::test]
async fn a_huge_manifest_is_not_read_to_its_end() {
    let artifact = publication("0123456789");
    let huge = vec![b' '; MANIFEST_BYTES_MAX + 1];
    let replies = [
        manifest(&huge),
        manifest(&[b' '; 4_096]).repeated(Duration::ZERO),
        manifest(&compressed_zeros(2 * MANIFEST_BYTES_MAX)).field("content-encoding", "zstd"),
    ];
    for reply in replies {
        let server = lying(&artifact, move |request| {
            is_for_manifest(request).then(|| reply.clone())
        })
        .await;
        let error = World::of(&[&server]).refusal(&server).await;
        assert!(matches!(error, RegistryError::TooLarge { .. }), "{error:?}");
    }
}

/// A frame of zstd that decodes to that many zeros: for each 128 KiB a block of four bytes.
fn compressed_zeros(n_bytes: usize) -> Vec<u8> {
    const BLOCK: u32 = 128 * 1024;
    const WINDOW_OF_128_KIB: u8 = 7 << 3;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, WINDOW_OF_128_KIB];
    let n_blocks = n_bytes / BLOCK as usize;
    for idx in 1..=n_blocks {
        let is_last = u32::from(idx == n_blocks);
        let header = is_last | (1 << 1) | (BLOCK << 3);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

#[tokio::test]
async fn what_is_compressed_is_counted_as_it_comes_out() {
    let artifact = publication("0123456789");
    let bomb = || Reply::whole(200, &compressed_zeros(1 << 30)).field("content-encoding", "zstd");
    let server = component(&artifact, bomb).await;
    let error = World::of(&[&server]).refusal(&server).await;
    assert!(
        matches!(error, RegistryError::Size { declared: 10, .. }),
        "{error:?}"
    );
    for encoding in ["gzip", "gzip, gzip", "deflate", "x"] {
        let junk = move || Reply::whole(200, b"0123456789").field("content-encoding", encoding);
        let server = component(&artifact, junk).await;
        let error = World::of(&[&server]).refusal(&server).await;
        let is_refused = matches!(
            error,
            RegistryError::Truncated { .. } | RegistryError::Connection(_)
        );
        assert!(is_refused, "{encoding}: {error:?}");
    }
    // An encoding that was not asked for, and that decodes to the right bytes, is no lie.
    let artifact = publication(vec![0; 128 * 1024]);
    let encoded =
        || Reply::whole(200, &compressed_zeros(128 * 1024)).field("content-encoding", "zstd");
    let server = component(&artifact, encoded).await;
    World::of(&[&server]).pull(&server).await.unwrap();
}

#[tokio::test]
async fn where_else_bytes_could_be_had_is_ignored() {
    let elsewhere = Server::start(|_| Reply::whole(200, b"0123456789")).await;
    let artifact = publication("0123456789");
    let mut declared: Value = serde_json::from_slice(&artifact.manifest.bytes).unwrap();
    declared["layers"][0]["urls"] = json!([elsewhere.url("/"), "file:///etc/passwd"]);
    declared["config"]["urls"] = json!([elsewhere.url("/")]);
    declared["layers"][0]["data"] = "MDEyMzQ1Njc4OQ==".into();
    let declared = declared.to_string();
    let is_for_component = is_for_component(&artifact);
    let server = lying(&artifact, move |request| match is_for_manifest(request) {
        true => Some(manifest(declared.as_bytes())),
        false => is_for_component(request).then(|| Reply::whole(404, b"")),
    })
    .await;
    // Even where that would be allowed, and the registry has nothing.
    let error = World::of(&[&server, &elsewhere]).refusal(&server).await;
    assert!(matches!(error, RegistryError::NotFound(_)), "{error:?}");
    assert_eq!(elsewhere.n_connections(), 0);
}

#[tokio::test]
async fn a_redirect_leads_to_public_hosts_and_allowed_ones_only() {
    let artifact = publication("0123456789");
    let storage = Server::start(|_| Reply::whole(200, b"0123456789")).await;
    let place = storage.url("/blob?signature=x");
    let server = component(&artifact, move || Reply::redirect(&place)).await;
    let error = World::of(&[&server]).refusal(&server).await;
    assert!(
        matches!(error, RegistryError::Forbidden { .. }),
        "{error:?}"
    );
    assert_eq!(storage.n_connections(), 0);

    let world = World::of(&[&server, &storage]).login(server.port());
    world.pull(&server).await.unwrap();
    assert_eq!(storage.asked(), ["GET /blob?signature=x"]);

    for place in [
        "http://169.254.169.254/latest/meta-data/",
        "https://[::ffff:10.0.0.1]/x",
        "https://localhost/x",
        "http://2130706433/x",
        "https://user:pw@example.org/x",
        "file:///etc/passwd",
        "ftp://example.org/x",
        "https://",
        "//",
        "",
    ] {
        let server = component(&artifact, move || Reply::redirect(place)).await;
        let error = World::of(&[&server]).refusal(&server).await;
        let is_refused = matches!(
            error,
            RegistryError::Forbidden { .. }
                | RegistryError::Redirect { .. }
                | RegistryError::Connection(_)
        );
        assert!(is_refused, "{place}: {error:?}");
    }
}

#[tokio::test]
async fn a_redirect_gets_no_credentials_and_does_not_go_on_for_ever() {
    let artifact = publication("0123456789");
    let is_for_component = is_for_component(&artifact);
    let server = lying(&artifact, move |request| {
        match request.authorization.is_empty() {
            true if request.path == "/elsewhere" => Some(Reply::whole(200, b"0123456789")),
            true => Some(Reply::whole(401, b"").field("www-authenticate", "Basic realm=\"r\"")),
            // Even to the same host.
            false => is_for_component(request).then(|| Reply::redirect("/elsewhere#fragment")),
        }
    })
    .await;
    let world = World::of(&[&server]).login(server.port());
    world.pull(&server).await.unwrap();

    let looping = component(&artifact, || Reply::redirect("?again")).await;
    let error = World::of(&[&looping]).refusal(&looping).await;
    assert!(error.to_string().contains("more than 4 times"), "{error}");
}

#[tokio::test]
async fn a_registry_that_hangs_or_drips_is_ended() {
    let artifact = publication(vec![b'0'; 1_000]);
    let slow = Duration::from_millis(40);
    let hangs = [
        Reply::whole(200, b"0").announcing(1_000).hanging(),
        Reply::whole(200, b"0").repeated(slow),
    ];
    for reply in hangs {
        let server = component(&artifact, move || reply.clone()).await;
        assert_is_ended(&server).await;
    }
    let mute = Server::start(|_| Reply::whole(200, b"").announcing(5).hanging()).await;
    assert_is_ended(&mute).await;
}

async fn assert_is_ended(server: &Server) {
    let mut world = World::of(&[server]);
    world.timeout = Duration::from_millis(400);
    let begun = Instant::now();
    let error = world.refusal(server).await;
    assert!(matches!(error, RegistryError::TimedOut(_)), "{error:?}");
    assert!(error.hints()[0].contains("plugins.download_timeout_secs"));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_registry_cannot_have_an_upload_sent_elsewhere_or_be_read_in_another_way() {
    let artifact = publication("0123456789");
    let elsewhere = Server::start(|_| Reply::whole(201, b"")).await;
    let place = elsewhere.url("/upload");
    let server = Server::start(move |request| match request.method.as_str() {
        "POST" => Reply::whole(202, b"").field("location", &place),
        _ => Reply::whole(404, b""),
    })
    .await;
    let to = reference(server.port(), ":1.2");
    let publishing = World::of(&[&server]).registries();
    let error = publishing.publish(&to, &artifact).await.unwrap_err();
    assert!(
        matches!(error, RegistryError::Forbidden { .. }),
        "{error:?}"
    );
    assert_eq!(elsewhere.n_connections(), 0);

    let other = described("", b"other").digest.to_string();
    let server = Server::start(move |request| match request.method.as_str() {
        "HEAD" => Reply::whole(200, b""),
        _ => Reply::whole(201, b"").field("docker-content-digest", &other),
    })
    .await;
    let to = reference(server.port(), ":1.2");
    let publishing = World::of(&[&server]).registries();
    let error = publishing.publish(&to, &artifact).await.unwrap_err();
    assert!(matches!(error, RegistryError::Digest { .. }), "{error:?}");
    let without_tag = reference(server.port(), &format!("@{}", artifact.manifest.digest));
    let error = publishing
        .publish(&without_tag, &artifact)
        .await
        .unwrap_err();
    assert!(matches!(error, RegistryError::NoTag), "{error:?}");
}
