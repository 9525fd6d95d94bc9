//! What a registry may say an artifact is: a manifest of one component, by the conventions of wkg.
//!
//! Everything else is refused by its name. Where the bytes could be had besides (`urls`, `data`) is not read at all.

mod publication;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zeph_core::failure::one_line;
use zeph_core::id::Digest;

pub use self::publication::{ComponentFacts, Publication};
pub(crate) use self::publication::{EMPTY, described};

/// Most bytes of a manifest, and of the description of a component.
pub const MANIFEST_BYTES_MAX: usize = 1024 * 1024;

/// The type of manifests.
///
/// Source: the image specification of OCI, as the two below.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The type of lists of manifests.
pub const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The type of a configuration that says nothing.
pub const EMPTY_CONFIG_TYPE: &str = "application/vnd.oci.empty.v1+json";

/// What lists of manifests were called before.
const DOCKER_LIST_TYPE: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// The type of the description of a component.
///
/// Source: "Wasm OCI artifact layout" of the CNCF, as the next.
const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";

/// The types of components: the one that is written, and two that Wassette reads besides.
const COMPONENT_TYPES: [&str; 3] = [
    "application/wasm",
    "application/vnd.wasm.component.v1",
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
];

/// What Wassette ships beside a component: rights, which here come from the manifest and the operator alone. It is not fetched.
const IGNORED_TYPES: [&str; 2] = [
    "application/vnd.wasm.policy.v1+yaml",
    "application/vnd.wassette.policy+yaml",
];

/// The types that are asked for. Lists are among them, so that a registry says what it has.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// Some bytes in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The type of the bytes.
    pub media_type: String,
    /// Their SHA-256.
    pub digest: Digest,
    /// How many there are.
    pub size: u64,
    /// What kind of artifact a manifest is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// What its publisher says about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A manifest of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentManifest {
    /// The description of the component, where there is one.
    pub config: Option<Descriptor>,
    /// The component.
    pub component: Descriptor,
    /// What its publisher says about it. Hostile: anyone can say anything.
    pub annotations: BTreeMap<String, String>,
}

/// A manifest of an artifact that refers to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReferrerManifest {
    pub(crate) schema_version: u32,
    #[serde(default)]
    pub(crate) media_type: Option<String>,
    #[serde(default)]
    pub(crate) artifact_type: Option<String>,
    pub(crate) config: Descriptor,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(crate) subject: Option<Descriptor>,
}

/// A list of manifests: the artifacts that refer to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReferrerIndex {
    pub(crate) schema_version: u32,
    pub(crate) media_type: String,
    #[serde(default)]
    pub(crate) manifests: Vec<Descriptor>,
}

/// Why a manifest is not one of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadManifest {
    /// It is no JSON, or lacks what every manifest has.
    #[error("it is not a manifest of OCI: {0}")]
    Malformed(String),
    /// A list of manifests.
    #[error(
        "it is a list of manifests (`{0}`), one for each platform; a plugin has a single manifest"
    )]
    List(String),
    /// A manifest of another kind.
    #[error("it is a manifest of the type `{0}`; a plugin has `{MANIFEST_TYPE}`")]
    Type(String),
    /// It says two things about its own type.
    #[error("it says it is `{said}`, and the registry says it is `{sent}`")]
    Contradiction {
        /// What stands in it.
        said: String,
        /// What the registry says.
        sent: String,
    },
    /// What is in the registry is something else.
    #[error("its config has the type `{0}`; a plugin has `{CONFIG_TYPE}` or `{EMPTY_CONFIG_TYPE}`")]
    Config(String),
    /// The description contradicts the manifest.
    #[error("the description of the component is wrong: {0}")]
    Description(String),
    /// A layer of another type.
    #[error(
        "it has a layer of the type `{0}`; a plugin is one layer of the type `application/wasm`"
    )]
    Layer(String),
    /// More or less than one component.
    #[error("it has {0} wasm layers; a plugin has one")]
    Components(usize),
}

/// What tells kinds of manifests apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    manifests: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Body {
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    architecture: String,
    #[serde(default)]
    layer_digests: Vec<Digest>,
}

/// Reads the manifest of a component.
///
/// Shape:  `sent` is the type that the registry says it has.
/// Errors: [`BadManifest`], with the name of what is in the way.
pub fn read(bytes: &[u8], sent: &str) -> Result<ComponentManifest, BadManifest> {
    let head: Head = json(bytes)?;
    let sent = sent.split(';').next().unwrap_or(sent).trim();
    let said = head.media_type.as_deref().unwrap_or(sent);
    let shown = |text: &str| one_line(text, 120);
    let is_list = head.manifests.is_some() || [INDEX_TYPE, DOCKER_LIST_TYPE].contains(&said);
    if is_list {
        return Err(BadManifest::List(shown(said)));
    }
    if said != MANIFEST_TYPE || head.schema_version != 2 {
        return Err(BadManifest::Type(shown(said)));
    }
    if sent != MANIFEST_TYPE {
        let (said, sent) = (shown(said), shown(sent));
        return Err(BadManifest::Contradiction { said, sent });
    }
    let body: Body = json(bytes)?;
    let config = match body.config.media_type.as_str() {
        CONFIG_TYPE => Some(body.config),
        EMPTY_CONFIG_TYPE => None,
        other => return Err(BadManifest::Config(shown(other))),
    };
    Ok(ComponentManifest {
        config,
        component: component(body.layers)?,
        annotations: body.annotations.unwrap_or_default(),
    })
}

/// The only wasm layer.
fn component(layers: Vec<Descriptor>) -> Result<Descriptor, BadManifest> {
    let is_foreign = |layer: &&Descriptor| {
        let media_type = layer.media_type.as_str();
        !COMPONENT_TYPES.contains(&media_type) && !IGNORED_TYPES.contains(&media_type)
    };
    if let Some(foreign) = layers.iter().find(is_foreign) {
        return Err(BadManifest::Layer(one_line(&foreign.media_type, 120)));
    }
    let is_component = |layer: &Descriptor| COMPONENT_TYPES.contains(&layer.media_type.as_str());
    let mut components = layers.into_iter().filter(is_component);
    match (components.next(), components.count()) {
        (Some(only), 0) => Ok(only),
        (first, others) => Err(BadManifest::Components(
            others + usize::from(first.is_some()),
        )),
    }
}

impl ComponentManifest {
    /// Checks the description of the component against the manifest.
    ///
    /// Errors: `Description`.
    pub fn check_description(&self, bytes: &[u8]) -> Result<(), BadManifest> {
        let bad = |why: &str| Err(BadManifest::Description(why.to_owned()));
        let Ok(description) = serde_json::from_slice::<Description>(bytes) else {
            return bad("it is not JSON with `architecture` and `layerDigests`");
        };
        if description.architecture != "wasm" {
            let found = one_line(&description.architecture, 40);
            return bad(&format!("its architecture is `{found}`, not `wasm`"));
        }
        let digests = &description.layer_digests;
        match digests.is_empty() || digests.contains(&self.component.digest) {
            true => Ok(()),
            false => bad("it is the description of another layer"),
        }
    }
}

/// Errors: `Malformed`, without the content.
pub(crate) fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, BadManifest> {
    serde_json::from_slice(bytes).map_err(|error| {
        let why = one_line(&error.to_string(), 200);
        BadManifest::Malformed(why)
    })
}

#[cfg(test)]
mod tests;
