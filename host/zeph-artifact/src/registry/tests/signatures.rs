//! Signatures that refer to an artifact: found, bounded, and passed over where they are broken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::server::Request;
use super::{Reply, Server, World, honest, publication, reference};
use crate::manifest::{INDEX_TYPE, MANIFEST_TYPE, Publication, ReferrerManifest, described};
use crate::pulled::{FoundSignature, RawManifest};
use crate::registry::{SIGNATURE_BYTES_MAX, SIGNATURE_TYPE};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// What a registry has besides an artifact, by its path below the repository.
#[derive(Default, Clone)]
struct Shelf(BTreeMap<String, (String, Vec<u8>)>);

impl Shelf {
    fn put(&mut self, path: impl Into<String>, media_type: &str, bytes: impl Into<Vec<u8>>) {
        let content = (media_type.to_owned(), bytes.into());
        self.0.insert(path.into(), content);
    }

    /// A signature of `subject`; returns its descriptor.
    fn sign(&mut self, subject: &RawManifest, kind: &str, bytes: &[u8]) -> Value {
        let layer = described(kind, bytes);
        self.put(format!("blobs/{}", layer.digest), "", bytes);
        let manifest = ReferrerManifest::new(subject, kind, layer);
        self.referrer(&json!(manifest), kind)
    }

    fn referrer(&mut self, manifest: &Value, kind: &str) -> Value {
        let bytes = manifest.to_string();
        let descriptor = described(MANIFEST_TYPE, bytes.as_bytes());
        self.put(
            format!("manifests/{}", descriptor.digest),
            MANIFEST_TYPE,
            bytes,
        );
        let mut descriptor = json!(descriptor);
        descriptor["artifactType"] = kind.into();
        descriptor
    }

    fn index(&mut self, path: String, referrers: &[Value]) {
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": referrers });
        self.put(path, INDEX_TYPE, index.to_string());
    }

    async fn serve(self, artifact: &Publication) -> Server {
        let artifact = artifact.clone();
        Server::start(move |request| self.answer(&artifact, request)).await
    }

    fn answer(&self, artifact: &Publication, request: &Request) -> Reply {
        let path = request
            .path
            .strip_prefix("/v2/org/name/")
            .unwrap_or_default();
        match self.0.get(path) {
            Some((media_type, bytes)) => Reply::whole(200, bytes).field("content-type", media_type),
            None => honest(artifact, request),
        }
    }
}

fn listed(artifact: &Publication) -> String {
    format!("referrers/{}", artifact.manifest.digest)
}

fn tagged(artifact: &Publication) -> String {
    format!("manifests/sha256-{}", artifact.manifest.digest.hex())
}

async fn found(shelf: Shelf, artifact: &Publication) -> Vec<FoundSignature> {
    let server = shelf.serve(artifact).await;
    World::of(&[&server])
        .pull(&server)
        .await
        .unwrap()
        .signatures
}

fn texts(found: &[FoundSignature]) -> Vec<String> {
    let texts = found.iter();
    texts
        .map(|signature| String::from_utf8(signature.bytes.to_vec()).unwrap())
        .collect()
}

#[tokio::test]
async fn signatures_are_found_where_the_registry_lists_them_and_under_the_tag() {
    for path in [listed, tagged] {
        let artifact = publication("wasm");
        let mut shelf = Shelf::default();
        let ours = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"ours");
        let bundle = shelf.sign(&artifact.manifest, BUNDLE, b"bundle");
        let bill = shelf.sign(&artifact.manifest, "application/spdx+json", b"bill");
        // Some lists do not say of what kind a manifest is.
        let mut unnamed = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"unnamed");
        unnamed.as_object_mut().unwrap().remove("artifactType");
        let mut other = bill.clone();
        other.as_object_mut().unwrap().remove("artifactType");
        shelf.index(path(&artifact), &[ours, bill, bundle, other, unnamed]);
        let found = found(shelf, &artifact).await;
        assert_eq!(texts(&found), ["ours", "bundle", "unnamed"]);
        assert_eq!(found[1].artifact_type, BUNDLE);
        assert_eq!(found[1].media_type, BUNDLE);
    }
}

#[tokio::test]
async fn the_list_of_a_registry_goes_before_that_under_the_tag() {
    let artifact = publication("wasm");
    let mut shelf = Shelf::default();
    let stale = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"stale");
    shelf.index(tagged(&artifact), &[stale]);
    shelf.index(listed(&artifact), &[]);
    assert!(found(shelf, &artifact).await.is_empty());
}

#[tokio::test]
async fn what_is_broken_or_of_another_artifact_is_passed_over() {
    let artifact = publication("wasm");
    let other = publication("other");
    let mut shelf = Shelf::default();
    let of_other = shelf.sign(&other.manifest, SIGNATURE_TYPE, b"of another");
    let without_subject = {
        let mut manifest = json!(ReferrerManifest::new(
            &artifact.manifest,
            SIGNATURE_TYPE,
            described(SIGNATURE_TYPE, b"ours"),
        ));
        manifest.as_object_mut().unwrap().remove("subject");
        shelf.referrer(&manifest, SIGNATURE_TYPE)
    };
    let junk = shelf.referrer(&json!("junk"), SIGNATURE_TYPE);
    let missing = json!(described(MANIFEST_TYPE, b"missing"));
    let changed = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"changed");
    let digest = changed["digest"].as_str().unwrap().to_owned();
    shelf.put(format!("manifests/{digest}"), MANIFEST_TYPE, "{}");
    let long = shelf.sign(
        &artifact.manifest,
        SIGNATURE_TYPE,
        &[b'x'; SIGNATURE_BYTES_MAX + 1],
    );
    let ours = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"ours");
    let referrers = [
        of_other,
        without_subject,
        junk,
        missing,
        changed,
        long,
        ours,
    ];
    shelf.index(listed(&artifact), &referrers);
    assert_eq!(texts(&found(shelf, &artifact).await), ["ours"]);
}

#[tokio::test]
async fn no_more_than_some_are_fetched() {
    let artifact = publication("wasm");
    let mut shelf = Shelf::default();
    let referrers: Vec<Value> = (0..40)
        .map(|idx| {
            shelf.sign(
                &artifact.manifest,
                SIGNATURE_TYPE,
                format!("{idx}").as_bytes(),
            )
        })
        .collect();
    shelf.index(listed(&artifact), &referrers);
    assert_eq!(found(shelf, &artifact).await.len(), 16);
}

#[tokio::test]
async fn a_signature_of_the_first_kind_is_named() {
    let artifact = publication("wasm");
    let mut shelf = Shelf::default();
    shelf.put(format!("{}.sig", tagged(&artifact)), MANIFEST_TYPE, "{}");
    let found = found(shelf, &artifact).await;
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].artifact_type,
        "application/vnd.dev.cosign.simplesigning.v1+json"
    );
}

#[tokio::test]
async fn a_registry_that_does_not_know_what_refers_fails_closed() {
    let artifact = publication("wasm");
    let server = super::lying(&artifact, |request| {
        request
            .path
            .contains("/referrers/")
            .then(|| Reply::whole(500, b""))
    })
    .await;
    let error = World::of(&[&server]).refusal(&server).await.to_string();
    assert!(error.contains("status 500"), "{error}");
    // A page for every path is no list; the tag is asked.
    let server = super::lying(&artifact, |request| {
        request
            .path
            .contains("/referrers/")
            .then(|| Reply::whole(200, b"<html>"))
    })
    .await;
    World::of(&[&server]).pull(&server).await.unwrap();
}

/// A registry that keeps what it is given, and lists what refers to others if `lists`.
async fn keeping(artifact: &Publication, lists: bool) -> Server {
    let (artifact, shelf) = (artifact.clone(), Arc::new(Mutex::new(Shelf::default())));
    Server::start(move |request| {
        let path = request
            .path
            .strip_prefix("/v2/org/name/")
            .unwrap_or_default();
        let mut shelf = shelf.lock().unwrap();
        match request.method.as_str() {
            "POST" => {
                Reply::whole(202, b"").field("location", "/v2/org/name/blobs/uploads/1?state=x")
            }
            "PUT" if path.starts_with("blobs/uploads/1?state=x&digest=") => {
                let digest = described("", &request.body).digest;
                shelf.put(format!("blobs/{digest}"), "", request.body.clone());
                Reply::whole(201, b"")
            }
            "PUT" => {
                let kind = match path.starts_with("manifests/sha256-") {
                    true => INDEX_TYPE,
                    false => MANIFEST_TYPE,
                };
                shelf.put(path, kind, request.body.clone());
                match lists && kind == MANIFEST_TYPE {
                    true => Reply::whole(201, b"").field("oci-subject", "yes"),
                    false => Reply::whole(201, b""),
                }
            }
            _ => shelf.answer(&artifact, request),
        }
    })
    .await
}

#[tokio::test]
async fn a_signature_is_published_beside_its_artifact_and_listed_where_the_registry_does_not() {
    for lists in [false, true] {
        let artifact = publication("wasm");
        let server = keeping(&artifact, lists).await;
        let world = World::of(&[&server]);
        let to = reference(server.port(), ":1.2");
        let registries = world.registries();
        let mut digests = Vec::new();
        for text in ["one", "two", "one"] {
            let signature = FoundSignature {
                artifact_type: SIGNATURE_TYPE.to_owned(),
                media_type: SIGNATURE_TYPE.to_owned(),
                bytes: text.into(),
            };
            let attached = registries.attach(&to, &artifact.manifest, &signature);
            digests.push(attached.await.unwrap());
        }
        assert_eq!(digests[0], digests[2]);
        let under_tag = server
            .asked()
            .iter()
            .filter(|asked| asked.starts_with("PUT") && asked.contains("manifests/sha256-"))
            .count();
        assert_eq!(under_tag, if lists { 0 } else { 2 });
        if !lists {
            let found = world.pull(&server).await.unwrap().signatures;
            assert_eq!(texts(&found), ["one", "two"]);
        }
    }
}

/// A registry that lists one signature a page, and says of each page but the last where the next is.
async fn paging(artifact: &Publication, shelf: Shelf, next: fn(&str, usize) -> String) -> Server {
    let (artifact, lists) = (
        artifact.clone(),
        format!("/v2/org/name/{}", listed(artifact)),
    );
    Server::start(move |request| {
        let (path, query) = request
            .path
            .split_once('?')
            .unwrap_or((&request.path, "n=0"));
        if path != lists {
            return shelf.answer(&artifact, request);
        }
        let n: usize = query.strip_prefix("n=").unwrap().parse().unwrap();
        let (kind, page) = &shelf.0[&format!("page {n}")];
        let reply = Reply::whole(200, page).field("content-type", kind);
        match shelf.0.contains_key(&format!("page {}", n + 1)) {
            true => reply.field("link", &next(&lists, n + 1)),
            false => reply,
        }
    })
    .await
}

/// As many signatures as `n_pages`, each on a page of its own.
fn pages(artifact: &Publication, n_pages: usize) -> Shelf {
    let mut shelf = Shelf::default();
    for n in 0..n_pages {
        let text = format!("signature {n}");
        let signature = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, text.as_bytes());
        shelf.index(format!("page {n}"), &[signature]);
    }
    shelf
}

#[tokio::test]
async fn a_list_in_several_pages_is_read_to_its_end() {
    let next: [fn(&str, usize) -> String; 2] = [
        |lists, n| format!("<{lists}?n={n}>; rel=\"next\""),
        |_, n| format!("</elsewhere>; rel=help, <?n={n}>;rel=next"),
    ];
    for next in next {
        let artifact = publication("wasm");
        let server = paging(&artifact, pages(&artifact, 3), next).await;
        let found = World::of(&[&server])
            .pull(&server)
            .await
            .unwrap()
            .signatures;
        let expected = ["signature 0", "signature 1", "signature 2"];
        assert_eq!(texts(&found), expected);
    }
}

#[tokio::test]
async fn a_list_that_goes_on_elsewhere_or_without_an_end_is_refused() {
    let artifact = publication("wasm");
    let shelf = pages(&artifact, 2);
    let elsewhere = |_: &str, n: usize| format!("<http://127.0.0.2:1/?n={n}>; rel=\"next\"");
    let server = paging(&artifact, shelf, elsewhere).await;
    let error = World::of(&[&server]).refusal(&server).await.to_string();
    assert!(error.contains("goes on at `http://127.0.0.2:1`"), "{error}");
    let again = |lists: &str, _: usize| format!("<{lists}?n=0>; rel=\"next\"");
    let server = paging(&artifact, pages(&artifact, 2), again).await;
    let error = World::of(&[&server]).refusal(&server).await.to_string();
    assert!(error.contains("more than 32 pages"), "{error}");
}

/// When another publisher puts a list of its own under the tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// Before our first one, which the registry refuses.
    Compared,
    /// Right after our first one.
    AtOnce,
    /// Right after our first one, at which the registry fails.
    Faulty,
    /// After ours was read again.
    Later,
}

/// A registry that keeps a list only under the tag, where another publisher puts a list of its own.
async fn contested(artifact: &Publication, other: Other) -> Server {
    let (artifact, tag) = (artifact.clone(), tagged(artifact));
    let shelf = Mutex::new(Shelf::default());
    Server::start(move |request| {
        let path = request
            .path
            .strip_prefix("/v2/org/name/")
            .unwrap_or_default();
        let mut shelf = shelf.lock().unwrap();
        match request.method.as_str() {
            "POST" => Reply::whole(202, b"").field("location", "/v2/org/name/blobs/uploads/1?s=x"),
            "PUT" if path.starts_with("blobs/uploads/") => {
                let digest = described("", &request.body).digest;
                shelf.put(format!("blobs/{digest}"), "", request.body.clone());
                Reply::whole(201, b"")
            }
            "PUT" if path == tag && !shelf.0.contains_key(&tag) && other != Other::Later => {
                let theirs = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"theirs");
                shelf.index(tag.clone(), &[theirs]);
                let status = match other {
                    Other::Compared => 412,
                    Other::Faulty => 500,
                    Other::AtOnce | Other::Later => 201,
                };
                Reply::whole(status, b"")
            }
            "GET" if path == tag && shelf.0.contains_key(&tag) && other == Other::Later => {
                let reply = shelf.answer(&artifact, request);
                if !shelf.0.contains_key("theirs") {
                    let theirs = shelf.sign(&artifact.manifest, SIGNATURE_TYPE, b"theirs");
                    shelf.index(tag.clone(), std::slice::from_ref(&theirs));
                    shelf.put("theirs", "", Vec::new());
                }
                reply
            }
            "PUT" => {
                let kind = if path == tag {
                    INDEX_TYPE
                } else {
                    MANIFEST_TYPE
                };
                shelf.put(path, kind, request.body.clone());
                Reply::whole(201, b"")
            }
            _ => shelf.answer(&artifact, request),
        }
    })
    .await
}

#[tokio::test]
async fn two_publishers_at_once_lose_no_signature() {
    for other in [Other::Compared, Other::AtOnce, Other::Faulty, Other::Later] {
        let artifact = publication("wasm");
        let server = contested(&artifact, other).await;
        let world = World::of(&[&server]);
        let signature = FoundSignature {
            artifact_type: SIGNATURE_TYPE.to_owned(),
            media_type: SIGNATURE_TYPE.to_owned(),
            bytes: "ours".into(),
        };
        let to = reference(server.port(), ":1.2");
        let registries = world.registries();
        let attached = registries.attach(&to, &artifact.manifest, &signature);
        attached.await.unwrap();
        let found = world.pull(&server).await.unwrap().signatures;
        assert_eq!(texts(&found), ["theirs", "ours"]);
        let asked = server.asked();
        let is_list =
            |asked: &&String| asked.starts_with("PUT") && asked.contains("manifests/sha256-");
        assert_eq!(asked.iter().filter(is_list).count(), 2);
    }
}
