//! Components from URLs.

use url::Url;
use zeph_core::id::Digest;

use super::{BYTES_MAX, Reply, Server, World};
use crate::manifest::described;
use crate::reference::ArtifactSource;
use crate::registry::RegistryError;

fn digest() -> Digest {
    described("", b"wasm").digest
}

async fn server() -> Server {
    let bytes_max = usize::try_from(BYTES_MAX).unwrap();
    Server::start(move |request| match request.path.as_str() {
        "/p/weather.wasm?x=1" => Reply::whole(200, b"wasm"),
        "/moved" => Reply::redirect("/p/weather.wasm?x=1"),
        "/p/weather.wasm.minisig?x=1" => Reply::whole(200, b"untrusted comment: s\n"),
        "/long" => Reply::whole(200, &vec![0; bytes_max]).repeated(std::time::Duration::ZERO),
        "/announced" => Reply::whole(200, b"").announcing(bytes_max + 1),
        "/half" => Reply::whole(200, b"wa").announcing(4),
        "/page.minisig" => Reply::whole(200, &vec![b'x'; 300_000]),
        "/page" => Reply::whole(200, b"wasm"),
        _ => Reply::whole(404, b"no"),
    })
    .await
}

fn source(server: &Server, path: &str) -> ArtifactSource {
    server.url(path).parse().unwrap()
}

#[tokio::test]
async fn a_component_is_fetched_with_the_signature_beside_it() {
    let server = server().await;
    let registries = World::of(&[&server]).registries();
    let from = source(&server, "/p/weather.wasm?x=1");
    let mut pulled = registries.fetch(&from, Some(digest())).await.unwrap();
    assert_eq!(pulled.component.read().unwrap(), b"wasm");
    assert_eq!((pulled.manifest_digest(), &pulled.source), (None, &from));
    let [signature] = &pulled.signatures[..] else {
        panic!("{pulled:?}")
    };
    assert_eq!(signature.bytes, "untrusted comment: s\n");
    let moved = source(&server, "/moved");
    let pulled = registries.fetch(&moved, Some(digest())).await.unwrap();
    assert!(
        pulled.signatures.is_empty(),
        "none lies beside what was named"
    );
}

#[tokio::test]
async fn a_url_needs_the_digest_and_has_to_have_it() {
    let server = server().await;
    let registries = World::of(&[&server]).registries();
    let from = source(&server, "/p/weather.wasm?x=1");
    let error = registries.fetch(&from, None).await.unwrap_err();
    assert!(matches!(error, RegistryError::NoDigest), "{error:?}");
    let other = described("", b"other").digest;
    let error = registries.fetch(&from, Some(other)).await.unwrap_err();
    assert!(matches!(error, RegistryError::Digest { .. }), "{error:?}");
}

#[tokio::test]
async fn what_is_too_long_or_breaks_off_is_refused() {
    let server = server().await;
    let registries = World::of(&[&server]).registries();
    for path in ["/long", "/announced"] {
        let fetched = registries
            .fetch(&source(&server, path), Some(digest()))
            .await;
        let error = fetched.unwrap_err();
        assert!(
            matches!(error, RegistryError::TooLarge { .. }),
            "{path}: {error:?}"
        );
    }
    for (path, words) in [
        ("/half", "ended after 2 bytes"),
        ("/nowhere", "there is no"),
        ("/page", "more than 262144"),
    ] {
        let fetched = registries
            .fetch(&source(&server, path), Some(digest()))
            .await;
        let error = fetched.unwrap_err().to_string();
        assert!(error.contains(words), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_private_host_is_reached_only_as_its_operator_said() {
    let server = server().await;
    let from = source(&server, "/p/weather.wasm?x=1");
    let fetched = World::of(&[])
        .registries()
        .fetch(&from, Some(digest()))
        .await;
    let error = fetched.unwrap_err();
    assert!(
        matches!(error, RegistryError::Forbidden { .. }),
        "{error:?}"
    );
    // Named for TLS: that is what is wrong, and not where it is.
    for private in [false, true] {
        let mut world = World::of(&[&server]);
        world.allowed[0].plain_http = false;
        world.allowed[0].private = private;
        let fetched = world.registries().fetch(&from, Some(digest())).await;
        let error = fetched.unwrap_err();
        assert!(error.hints()[0].contains("plain_http = true"), "{error:?}");
    }
    assert_eq!(server.n_connections(), 0);
}

#[tokio::test]
async fn a_small_file_is_fetched_within_its_bounds() {
    let server = server().await;
    let registries = World::of(&[&server]).registries();
    let url: Url = server.url("/moved").parse().unwrap();
    assert_eq!(registries.file(&url, 4).await.unwrap(), "wasm");
    let error = registries.file(&url, 3).await.unwrap_err();
    assert!(matches!(error, RegistryError::TooLarge { .. }), "{error:?}");
}
