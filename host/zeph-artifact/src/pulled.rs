//! An artifact that was fetched: nothing of it was run, and every byte of it has the digest that was asked for or declared.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

use bytes::Bytes;
use zeph_core::id::Digest;

use crate::reference::ArtifactSource;

/// An artifact that was fetched.
#[derive(Debug)]
pub struct Pulled {
    /// Where it comes from, as it was asked for.
    pub source: ArtifactSource,
    /// What the registry says it is. None for a URL.
    pub manifest: Option<RawManifest>,
    /// The component.
    pub component: Blob,
    /// What its publisher says about it. Hostile: anyone can say anything.
    pub annotations: BTreeMap<String, String>,
    /// The signatures that were found for it, in the order in which they were found. None of them was checked.
    pub signatures: Vec<FoundSignature>,
}

/// A manifest as the registry sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawManifest {
    /// The SHA-256 of its bytes.
    pub digest: Digest,
    /// Its bytes: at most 1 MiB.
    pub bytes: Bytes,
}

/// Bytes in a temporary file without a name, which is gone when this is.
#[derive(Debug)]
pub struct Blob {
    pub(crate) file: File,
    pub(crate) digest: Digest,
    pub(crate) n_bytes: u64,
}

/// A signature that refers to an artifact. It was not checked.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundSignature {
    /// What kind of signature it is, as its manifest says. Empty for a file beside a URL.
    pub artifact_type: String,
    /// The type of `bytes`.
    pub media_type: String,
    /// The signature: at most 256 KiB.
    pub bytes: Bytes,
}

impl Pulled {
    /// The digest of its manifest. None for a URL.
    pub fn manifest_digest(&self) -> Option<Digest> {
        self.manifest.as_ref().map(|manifest| manifest.digest)
    }
}

impl Blob {
    /// The SHA-256 of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many bytes it has.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Its bytes.
    ///
    /// Errors: of the file.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        self.file.rewind()?;
        let capacity = usize::try_from(self.n_bytes).unwrap_or_default();
        let mut bytes = Vec::with_capacity(capacity);
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl fmt::Debug for FoundSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_bytes = self.bytes.len();
        write!(
            f,
            "FoundSignature({}, {}, {n_bytes} bytes)",
            self.artifact_type, self.media_type
        )
    }
}
