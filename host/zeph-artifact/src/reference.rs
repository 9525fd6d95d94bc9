//! What names an artifact: a reference to a registry, such as `ghcr.io/org/name:1.2`, or the URL of a file.
//!
//! A reference is parsed once into parts that can stand in the path of a URL as they are: nothing of it is escaped, decoded or joined
//! later. The registry always stands in it; there is no default one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;
use zeph_core::failure::one_line;
use zeph_core::id::Digest;
use zeph_core::network::{Destination, HTTPS_PORT, Host};

/// Most bytes of the host and the repository together.
///
/// Source: the distribution specification of OCI, which recommends it.
const NAME_BYTES_MAX: usize = 255;

/// Most bytes of a tag.
///
/// Source: the distribution specification of OCI.
const TAG_BYTES_MAX: usize = 128;

/// The prefix that some tools write before a reference.
const SCHEME: &str = "oci://";

/// The host of a registry, with its port where that is not the usual one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegistryHost {
    host: Host,
    port: Option<u16>,
}

/// An artifact in a registry: host, repository, and a tag, a digest of its manifest, or both.
///
/// Its canonical text is `HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGITS]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    registry: RegistryHost,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Where an artifact comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArtifactSource {
    /// A registry.
    Registry(Reference),
    /// A file on a server.
    Url(Url),
}

/// A text that names no artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a reference to a plugin: {why}")]
pub struct BadReference {
    /// What was read, shortened and in one line.
    text: String,
    /// What is wrong with it.
    why: String,
}

impl BadReference {
    pub(crate) fn new(text: &str, why: impl Into<String>) -> Self {
        let text = one_line(text, 200);
        let why = why.into();
        Self { text, why }
    }
}

impl RegistryHost {
    /// Host and port.
    ///
    /// Shape: `default_port` is that of the protocol that is spoken.
    pub fn destination(&self, default_port: u16) -> Destination {
        Destination {
            host: self.host.clone(),
            port: self.port.unwrap_or(default_port),
        }
    }
}

impl FromStr for RegistryHost {
    type Err = BadReference;

    /// Shape:  `HOST` or `HOST:PORT`; port 443 is dropped, because a registry has one name.
    /// Errors: what is no host.
    fn from_str(text: &str) -> Result<Self, BadReference> {
        let bad = |error: zeph_core::network::BadHost| BadReference::new(text, error.to_string());
        let Destination { host, port } = Destination::parse(text, HTTPS_PORT).map_err(bad)?;
        let port = Some(port).filter(|port| *port != HTTPS_PORT);
        Ok(Self { host, port })
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => self.host.fmt(f),
        }
    }
}

impl Reference {
    /// Whether `text` has the form of a reference, valid or not: a host with a dot or a port, or `localhost`, and a repository behind
    /// it, or `oci://`. Paths of files begin with `/`, `./` or `../`, or their first part has none of these.
    pub fn looks_like_one(text: &str) -> bool {
        if text.starts_with(SCHEME) {
            return true;
        }
        let Some((host, rest)) = text.split_once('/') else {
            return false;
        };
        let is_host = host == "localhost" || host.contains(['.', ':']);
        let last = rest.rsplit('/').next().unwrap_or(rest);
        is_host && !host.starts_with('.') && !rest.starts_with('/') && last.contains([':', '@'])
    }

    /// The host of its registry.
    pub fn registry(&self) -> &RegistryHost {
        &self.registry
    }

    /// Its repository, such as `org/name`: parts of `a-z 0-9 . _ -`, separated by `/`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The last part of the repository.
    pub fn short_name(&self) -> &str {
        let last = self.repository.rsplit('/').next();
        last.unwrap_or(&self.repository)
    }

    /// Registry and repository, such as `ghcr.io/org/name`: what stays the same in all versions.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Its tag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest of its manifest.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// What the registry is asked for: the digest, else the tag.
    pub fn selector(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_default(),
        }
    }

    /// This reference with the digest of a manifest, whatever it had before.
    #[must_use]
    pub fn at(&self, digest: Digest) -> Self {
        let digest = Some(digest);
        Self {
            digest,
            ..self.clone()
        }
    }

    /// Another tag of the same repository, without a digest.
    ///
    /// Errors: what is no tag.
    pub fn tagged(&self, tag: &str) -> Result<Self, BadReference> {
        is_tag(tag)
            .then(|| Self {
                tag: Some(tag.to_owned()),
                digest: None,
                ..self.clone()
            })
            .ok_or_else(|| BadReference::new(tag, BAD_TAG))
    }
}

const BAD_TAG: &str =
    "a tag is 1 to 128 letters, digits, `_`, `.` and `-`, and begins with a letter, digit or `_`";

impl FromStr for Reference {
    type Err = BadReference;

    /// Shape:  the canonical text, perhaps behind `oci://`.
    /// Errors: [`BadReference`]: what a registry could read in another way, a digest other than SHA-256, neither tag nor digest.
    fn from_str(text: &str) -> Result<Self, BadReference> {
        let bad = |why: &str| BadReference::new(text, why);
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (host, rest) = rest
            .split_once('/')
            .ok_or_else(|| bad("it begins with the host of a registry and `/`"))?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        let (repository, tag) = match rest.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        if host.len() + repository.len() > NAME_BYTES_MAX {
            return Err(bad("host and repository have more than 255 bytes"));
        }
        if !repository.split('/').all(is_part) {
            return Err(bad(
                "the parts of a repository are small letters and digits, separated by `.`, `_`, `__` or `-`",
            ));
        }
        if !tag.is_none_or(is_tag) {
            return Err(bad(BAD_TAG));
        }
        let digest = digest.map(str::parse).transpose();
        let digest = digest.map_err(|error: zeph_core::id::BadDigest| bad(&error.to_string()))?;
        if tag.is_none() && digest.is_none() {
            return Err(bad(
                "it has neither a tag (`:1.2`) nor a digest (`@sha256:…`)",
            ));
        }
        Ok(Self {
            registry: host
                .parse()
                .map_err(|error: BadReference| bad(&error.why))?,
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }
}

/// Whether `part` can stand between two `/` of a repository: letters and digits, with separators between them.
fn is_part(part: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    let is_bounded =
        ends.is_some_and(|(first, last)| is_alphanumeric(*first) && is_alphanumeric(*last));
    let separators = part.split(|char: char| char.is_ascii_lowercase() || char.is_ascii_digit());
    is_bounded && separators.into_iter().all(is_separator)
}

fn is_separator(text: &str) -> bool {
    matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-')
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = text.bytes();
    text.len() <= TAG_BYTES_MAX
        && bytes.next().is_some_and(is_word)
        && bytes.all(|byte| is_word(byte) || b".-".contains(&byte))
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl ArtifactSource {
    /// Whether `text` has the form of a source, valid or not: a URL of `https` or `http`, or a reference.
    pub fn looks_like_one(text: &str) -> bool {
        is_url(text) || Reference::looks_like_one(text)
    }

    /// What a plugin from there is named after: the last part of the repository, or the file's name without `.wasm`.
    pub fn short_name(&self) -> String {
        match self {
            Self::Registry(reference) => reference.short_name().to_owned(),
            Self::Url(url) => {
                let last = url.path_segments().and_then(|mut parts| parts.next_back());
                let last = last.unwrap_or_default();
                last.strip_suffix(".wasm").unwrap_or(last).to_owned()
            }
        }
    }

    /// The reference, where it is one.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Self::Registry(reference) => Some(reference),
            Self::Url(_) => None,
        }
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

impl FromStr for ArtifactSource {
    type Err = BadReference;

    /// Shape:  a URL of `https` or `http`, or a [`Reference`].
    /// Errors: those of a reference; a URL that is none, or holds a user, a password or a fragment.
    fn from_str(text: &str) -> Result<Self, BadReference> {
        if !is_url(text) {
            return text.parse().map(Self::Registry);
        }
        let url = Url::parse(text).map_err(|error| BadReference::new(text, error.to_string()))?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        match has_user || url.fragment().is_some() {
            // A password must not be repeated.
            true => Err(BadReference::new(
                url.host_str().unwrap_or_default(),
                "a URL here has no user, password or fragment",
            )),
            false => Ok(Self::Url(url)),
        }
    }
}

impl fmt::Display for ArtifactSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(reference) => reference.fmt(f),
            Self::Url(url) => url.fmt(f),
        }
    }
}

/// As its canonical text.
impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

/// As the text of its reference or URL.
impl Serialize for ArtifactSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArtifactSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

fn parsed<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err = BadReference>,
    D: Deserializer<'de>,
{
    let text = Cow::<str>::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests;
