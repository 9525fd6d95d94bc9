//! The registry of Debian (`docker-registry`), started on a free port.

#[path = "docker_registry.rs"]
mod docker_registry;

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;

use self::docker_registry::DockerRegistry;
use super::{World, local, publication, reference};
use crate::manifest::MANIFEST_TYPE;
use crate::pulled::FoundSignature;
use crate::registry::{RegistryError, SIGNATURE_TYPE};

fn world(registry: &DockerRegistry) -> World {
    let mut world = World::of(&[]);
    world.allowed.push(local(registry.port));
    world
}

#[tokio::test]
async fn what_was_published_is_fetched_again_with_its_signature() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let world = world(&registry);
    let registries = world.registries();
    let artifact = publication(vec![7; 3_000_000]);
    let to = reference(registry.port, ":1.2");
    let error = registries.pull(&to).await.unwrap_err();
    assert!(matches!(error, RegistryError::NotFound(_)), "{error:?}");
    // Twice the same: the second time everything is there.
    for _ in 0..2 {
        registries.publish(&to, &artifact).await.unwrap();
    }
    let signature = FoundSignature {
        artifact_type: SIGNATURE_TYPE.to_owned(),
        media_type: "application/vnd.minisign".to_owned(),
        bytes: "signature".into(),
    };
    registries
        .attach(&to, &artifact.manifest, &signature)
        .await
        .unwrap();
    let by_digest = reference(registry.port, &format!("@{}", artifact.manifest.digest));
    for from in [&to, &by_digest] {
        let mut pulled = registries.pull(from).await.unwrap();
        assert_eq!(pulled.component.read().unwrap(), artifact.component);
        assert_eq!(pulled.manifest.as_ref(), Some(&artifact.manifest));
        assert_eq!(pulled.signatures, std::slice::from_ref(&signature));
    }
    let tags = registries.tags(&to).await.unwrap();
    assert!(tags.contains(&"1.2".to_owned()), "{tags:?}");
}

#[tokio::test]
async fn what_is_no_plugin_is_refused_by_its_name() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let world = world(&registry);
    let artifact = publication("wasm");
    let to = reference(registry.port, ":1.2");
    world.registries().publish(&to, &artifact).await.unwrap();
    let listed = json!({
        "mediaType": MANIFEST_TYPE, "digest": artifact.manifest.digest, "size": artifact.manifest.bytes.len(),
        "platform": { "architecture": "wasm", "os": "wasip2" },
    });
    let list_type = "application/vnd.oci.image.index.v1+json";
    let list = json!({ "schemaVersion": 2, "mediaType": list_type, "manifests": [listed] });
    registry.put(
        "org/name/manifests/list",
        list_type,
        list.to_string().as_bytes(),
    );
    let mut image: serde_json::Value = serde_json::from_slice(&artifact.manifest.bytes).unwrap();
    image["config"]["mediaType"] = "application/vnd.oci.image.config.v1+json".into();
    registry.put(
        "org/name/manifests/image",
        MANIFEST_TYPE,
        image.to_string().as_bytes(),
    );
    for (tag, words) in [
        (":list", "a list of manifests"),
        (":image", "application/vnd.oci.image.config.v1+json"),
    ] {
        let from = reference(registry.port, tag);
        let error = world
            .registries()
            .pull(&from)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_registry_with_passwords_is_told_one() {
    let Some(registry) = DockerRegistry::start(true) else {
        return;
    };
    let artifact = publication("wasm");
    let to = reference(registry.port, ":1.2");
    let nobody = world(&registry).registries();
    let error = nobody.publish(&to, &artifact).await.unwrap_err();
    assert!(matches!(error, RegistryError::Denied { .. }), "{error:?}");
    let known = world(&registry).login(registry.port);
    known.registries().publish(&to, &artifact).await.unwrap();
    known.registries().pull(&to).await.unwrap();
    let error = nobody.pull(&to).await.unwrap_err();
    assert!(matches!(error, RegistryError::Denied { .. }), "{error:?}");
}

#[tokio::test]
async fn a_component_that_was_damaged_on_its_disk_is_refused() {
    let Some(registry) = DockerRegistry::start(false) else {
        return;
    };
    let artifact = publication(vec![7; 100_000]);
    let to = reference(registry.port, ":1.2");
    let registries = world(&registry).registries();
    registries.publish(&to, &artifact).await.unwrap();
    let digest = crate::manifest::described("", &artifact.component).digest;
    let mut damaged = artifact.component.to_vec();
    damaged[50_000] ^= 1;
    for bytes in [damaged.as_slice(), &artifact.component[..50_000]] {
        registry.overwrite(&digest.hex(), bytes);
        let error = registries.pull(&to).await.unwrap_err();
        let is_refused = matches!(
            error,
            RegistryError::Digest { .. }
                | RegistryError::Size { .. }
                | RegistryError::Truncated { .. }
        );
        assert!(is_refused, "{error:?}");
    }
}

/// Writes an authority and a certificate of it for the address of loopback, and gives back the settings of a registry that has it.
fn certificates(folder: &Path) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &root).unwrap();
    fs::write(folder.join("root.pem"), root.pem()).unwrap();
    fs::write(folder.join("registry.pem"), certificate.pem()).unwrap();
    fs::write(folder.join("registry.key"), key.serialize_pem()).unwrap();
    let path = folder.display();
    format!("  tls:\n    certificate: {path}/registry.pem\n    key: {path}/registry.key\n")
}

#[tokio::test]
async fn a_registry_with_a_certificate_is_who_the_authorities_say() {
    let folder = tempfile::tempdir().unwrap();
    let settings = certificates(folder.path());
    let root = folder.path().join("root.pem");
    let Some(registry) = DockerRegistry::start_with(folder, &settings) else {
        return;
    };
    let mut world = world(&registry);
    world.allowed[0].plain_http = false;
    let artifact = publication("wasm");
    let to = reference(registry.port, ":1.2");
    let unknown = world.registries().publish(&to, &artifact).await;
    let error = unknown.unwrap_err();
    assert!(matches!(error, RegistryError::Connection(_)), "{error:?}");
    // What helps is the authority, not to do without TLS.
    let hints = error.hints().join("\n");
    assert!(hints.contains("ca_file"), "{hints}");
    assert!(!hints.contains("plain_http"), "{hints}");
    world.ca_file = Some(root);
    let registries = world.registries();
    registries.publish(&to, &artifact).await.unwrap();
    let mut pulled = registries.pull(&to).await.unwrap();
    assert_eq!(pulled.component.read().unwrap(), artifact.component);
    // It speaks nothing but TLS: who says otherwise gets nothing.
    world.allowed[0].plain_http = true;
    world.registries().pull(&to).await.unwrap_err();
}
