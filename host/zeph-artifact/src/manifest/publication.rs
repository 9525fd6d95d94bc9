//! What is published: the bytes of a description and of a manifest, which depend on the component alone.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;

use super::{CONFIG_TYPE, Descriptor, EMPTY_CONFIG_TYPE, MANIFEST_TYPE, ReferrerManifest};
use crate::pulled::RawManifest;

/// The time of every description. A real one would make two publications of the same component differ.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// The bytes of a configuration that says nothing.
pub(crate) const EMPTY: &[u8] = b"{}";

/// What is said about a component beside its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentFacts {
    /// Who wrote it.
    pub author: Option<String>,
    /// The names of its exports.
    pub exports: Vec<String>,
    /// The names of its imports.
    pub imports: Vec<String>,
    /// Annotations of the manifest, such as `org.opencontainers.image.version`.
    pub annotations: BTreeMap<String, String>,
}

/// What goes to a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The component.
    pub component: Bytes,
    /// Its description.
    pub config: Bytes,
    /// Its manifest.
    pub manifest: RawManifest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description<'a> {
    created: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    architecture: &'a str,
    os: &'a str,
    layer_digests: [Digest; 1],
    component: Interfaces<'a>,
}

#[derive(Serialize)]
struct Interfaces<'a> {
    exports: &'a [String],
    imports: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    schema_version: u32,
    media_type: &'a str,
    config: Descriptor,
    layers: [Descriptor; 1],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

impl Publication {
    /// The same bytes for the same component and facts, at any time and on any machine.
    ///
    /// Errors: none that happen; those of writing JSON.
    pub fn new(component: Bytes, facts: &ComponentFacts) -> serde_json::Result<Self> {
        let layer = described("application/wasm", &component);
        let config = Bytes::from(serde_json::to_vec(&Description {
            created: CREATED,
            author: facts.author.as_deref(),
            architecture: "wasm",
            os: "wasip2",
            layer_digests: [layer.digest],
            component: Interfaces {
                exports: &facts.exports,
                imports: &facts.imports,
            },
        })?);
        let manifest = RawManifest::new(serde_json::to_vec(&Manifest {
            schema_version: 2,
            media_type: MANIFEST_TYPE,
            config: described(CONFIG_TYPE, &config),
            layers: [layer],
            annotations: &facts.annotations,
        })?);
        Ok(Self {
            component,
            config,
            manifest,
        })
    }
}

impl ReferrerManifest {
    /// One of an artifact of one layer that refers to `subject`.
    pub(crate) fn new(subject: &RawManifest, artifact_type: &str, layer: Descriptor) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(MANIFEST_TYPE.to_owned()),
            artifact_type: Some(artifact_type.to_owned()),
            config: described(EMPTY_CONFIG_TYPE, EMPTY),
            layers: vec![layer],
            subject: Some(described(MANIFEST_TYPE, &subject.bytes)),
        }
    }
}

impl RawManifest {
    /// A manifest of these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let digest = digest(&bytes);
        Self { digest, bytes }
    }
}

/// The descriptor of some bytes.
pub(crate) fn described(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: digest(bytes),
        size: bytes.len() as u64,
        artifact_type: None,
        annotations: BTreeMap::new(),
    }
}

/// The SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}
