//! Manifests as tools write them, and those that are no manifest of a plugin.

use bytes::Bytes;
use serde_json::{Value, json};

use super::publication::digest;
use super::{BadManifest, ComponentFacts, MANIFEST_TYPE, Publication, read};

fn layer(media_type: &str) -> Value {
    json!({ "mediaType": media_type, "digest": digest(b"wasm"), "size": 4 })
}

fn manifest() -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": layer("application/vnd.wasm.config.v0+json"),
        "layers": [layer("application/wasm")],
        "annotations": { "org.opencontainers.image.version": "1.2.0" },
    })
}

fn refusal(manifest: &Value, sent: &str) -> BadManifest {
    read(manifest.to_string().as_bytes(), sent).unwrap_err()
}

fn with(change: impl Fn(&mut Value)) -> Value {
    let mut manifest = manifest();
    change(&mut manifest);
    manifest
}

#[test]
fn what_the_tools_of_others_publish_is_read() {
    let wkg = manifest();
    // `oras push`, and an artifact with rights for Wassette beside the component; where else bytes could be had is not read.
    let oras = with(|manifest| {
        manifest["config"] = layer("application/vnd.oci.empty.v1+json");
        manifest["artifactType"] = "application/vnd.wasm.component.v1+wasm".into();
        manifest.as_object_mut().unwrap().remove("mediaType");
    });
    let wassette = with(|manifest| {
        let policy = layer("application/vnd.wasm.policy.v1+yaml");
        manifest["layers"].as_array_mut().unwrap().push(policy);
        manifest["layers"][0]["urls"] = json!(["http://169.254.169.254/"]);
    });
    for manifest in [wkg, oras, wassette] {
        let sent = format!("{MANIFEST_TYPE}; charset=utf-8");
        let read = read(manifest.to_string().as_bytes(), &sent).unwrap();
        assert_eq!(read.component.digest, digest(b"wasm"));
        assert_eq!(read.component.size, 4);
        assert_eq!(
            read.annotations["org.opencontainers.image.version"],
            "1.2.0"
        );
    }
}

#[test]
fn what_is_no_plugin_is_refused_by_its_name() {
    let list = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": list, "manifests": [] });
    assert_eq!(refusal(&index, list), BadManifest::List(list.to_owned()));
    let docker_list = "application/vnd.docker.distribution.manifest.list.v2+json";
    let unnamed = json!({ "schemaVersion": 2, "manifests": [] });
    assert_eq!(
        refusal(&unnamed, docker_list),
        BadManifest::List(docker_list.to_owned())
    );
    // A list that calls itself a manifest is a list.
    let disguised = with(|manifest| manifest["manifests"] = json!([]));
    assert!(matches!(
        refusal(&disguised, MANIFEST_TYPE),
        BadManifest::List(_)
    ));
    let image = "application/vnd.docker.distribution.manifest.v2+json";
    let docker = with(|manifest| manifest["mediaType"] = image.into());
    assert_eq!(refusal(&docker, image), BadManifest::Type(image.to_owned()));
    assert!(matches!(
        refusal(&manifest(), list),
        BadManifest::Contradiction { .. }
    ));

    let container = "application/vnd.oci.image.config.v1+json";
    let container_image = with(|manifest| manifest["config"] = layer(container));
    assert_eq!(
        refusal(&container_image, MANIFEST_TYPE),
        BadManifest::Config(container.to_owned())
    );
    let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
    let archive = with(|manifest| manifest["layers"] = json!([layer(tar)]));
    assert_eq!(
        refusal(&archive, MANIFEST_TYPE),
        BadManifest::Layer(tar.to_owned())
    );
    let two = with(|manifest| {
        manifest["layers"] = json!([layer("application/wasm"), layer("application/wasm")]);
    });
    assert_eq!(refusal(&two, MANIFEST_TYPE), BadManifest::Components(2));
    let none = with(|manifest| manifest["layers"] = json!([]));
    assert_eq!(refusal(&none, MANIFEST_TYPE), BadManifest::Components(0));
}

#[test]
fn what_is_malformed_is_refused() {
    let bad_digests = [
        "sha256:../../etc/passwd",
        "sha512:00",
        "sha256:ABCD",
        "../x",
        "",
    ];
    let mut malformed: Vec<String> = bad_digests
        .iter()
        .map(|digest| with(|manifest| manifest["layers"][0]["digest"] = (*digest).into()))
        .map(|manifest| manifest.to_string())
        .collect();
    for size in [json!(-1), json!(1.5), json!("4"), Value::Null] {
        malformed.push(with(|manifest| manifest["layers"][0]["size"] = size.clone()).to_string());
    }
    malformed.extend(["", "null", "[]", "{}", "{\"schemaVersion\":2}"].map(str::to_owned));
    // One key twice could be read in two ways.
    malformed.push(manifest().to_string().replacen('{', "{\"layers\":[],", 1));
    malformed.push("[".repeat(100_000));
    for text in malformed {
        let error = read(text.as_bytes(), MANIFEST_TYPE).unwrap_err();
        assert!(
            matches!(error, BadManifest::Malformed(_)),
            "{error}: {text:.200}"
        );
    }
}

#[test]
fn a_description_has_to_fit() {
    let read = read(manifest().to_string().as_bytes(), MANIFEST_TYPE).unwrap();
    let check = |text: Value| read.check_description(text.to_string().as_bytes());
    check(json!({ "architecture": "wasm", "layerDigests": [digest(b"wasm")] })).unwrap();
    check(json!({ "architecture": "wasm", "os": "wasip2" })).unwrap();
    for bad in [
        json!({ "architecture": "amd64", "os": "linux" }),
        json!({ "architecture": "wasm", "layerDigests": [digest(b"other")] }),
        json!({ "architecture": "wasm", "layerDigests": ["sha256:x"] }),
        json!([]),
    ] {
        let error = check(bad).unwrap_err();
        assert!(matches!(error, BadManifest::Description(_)), "{error}");
    }
}

#[test]
fn a_publication_depends_on_the_component_alone_and_can_be_read() {
    let facts = ComponentFacts {
        author: Some("A. Author".to_owned()),
        exports: vec!["zeph:plugin/tools@0.1.0".to_owned()],
        imports: vec!["wasi:io/poll@0.2.6".to_owned()],
        annotations: [(
            "org.opencontainers.image.version".to_owned(),
            "1.2".to_owned(),
        )]
        .into(),
    };
    let component = Bytes::from_static(b"wasm");
    let publication = Publication::new(component.clone(), &facts).unwrap();
    assert_eq!(publication, Publication::new(component, &facts).unwrap());
    // Recorded: another digest would be another plugin to everyone who has pinned this one.
    assert_eq!(publication.manifest.digest.to_string(), RECORDED);
    let read = read(&publication.manifest.bytes, MANIFEST_TYPE).unwrap();
    assert_eq!(read.component.digest, digest(b"wasm"));
    assert_eq!(read.annotations, facts.annotations);
    assert_eq!(
        read.config.as_ref().unwrap().digest,
        digest(&publication.config)
    );
    read.check_description(&publication.config).unwrap();
}

const RECORDED: &str = "sha256:77c4b6f6292062a7cbd1fc226f48c7e86f18630e08cc66f187bd5cb2b608065c";
