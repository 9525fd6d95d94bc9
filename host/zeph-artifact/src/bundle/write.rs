//! From parts to the bytes of a bundle.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;

use sha2::{Digest as _, Sha256};
use zeph_core::id::Digest;

use super::{
    BUNDLE_BYTES_MAX, BundleError, BundledIndex, BundledPlugin, CONTENTS, Contents, FORMAT, LOCK,
    PARTS_MAX, header, padded, part_name,
};

/// Where the bytes of a part are.
#[derive(Debug)]
pub enum PartSource {
    /// In memory.
    Bytes(Vec<u8>),
    /// In an open file, from its beginning. What is written is compared with the digest of the part.
    File {
        /// The file.
        file: File,
        /// How many bytes it has.
        n_bytes: u64,
    },
}

/// A bundle that is being put together.
#[derive(Debug, Default)]
pub struct BundleDraft {
    plugins: BTreeMap<String, BundledPlugin>,
    indexes: BTreeMap<String, BundledIndex>,
    parts: BTreeMap<Digest, PartSource>,
}

impl PartSource {
    fn n_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { n_bytes, .. } => *n_bytes,
        }
    }
}

impl BundleDraft {
    /// Adds a part and says its digest.
    pub fn add(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::new(Sha256::digest(&bytes).into());
        self.put(digest, PartSource::Bytes(bytes));
        digest
    }

    /// Adds a part whose digest is known.
    pub fn put(&mut self, digest: Digest, source: PartSource) {
        self.parts.entry(digest).or_insert(source);
    }

    /// Adds a plugin whose parts were added.
    pub fn plugin(&mut self, plugin: BundledPlugin) {
        self.plugins.insert(plugin.name.clone(), plugin);
    }

    /// Adds an index whose parts were added.
    pub fn index(&mut self, index: BundledIndex) {
        self.indexes.insert(index.source.clone(), index);
    }

    /// Writes the bundle. The same draft gives the same bytes, in whatever order it was put together.
    ///
    /// Shape:  parts that nothing names are left out.
    /// Errors: `Missing` for a part that was not added, `Changed` for a file that is no longer what it was, `TooLarge`, `File`.
    pub fn write(self, lock: &str, out: &mut impl Write) -> Result<(), BundleError> {
        let Self {
            plugins,
            indexes,
            mut parts,
        } = self;
        let contents = Contents {
            format: FORMAT,
            plugins: plugins.into_values().collect(),
            indexes: indexes.into_values().collect(),
        };
        let mut named = BTreeMap::new();
        for (part, bytes_max) in contents.parts() {
            let source = parts.remove(&part);
            if let Some(source) = source {
                check(part, source.n_bytes(), bytes_max)?;
                named.insert(part, source);
            }
            if !named.contains_key(&part) {
                return Err(BundleError::Missing(part));
            }
        }
        let mut text = serde_json::to_string_pretty(&contents)
            .map_err(|error| BundleError::Bad(error.to_string()))?;
        text.push('\n');
        check_whole(&named, text.len() + lock.len())?;
        written(&text, lock, named, out).map_err(|error| match error.downcast::<BundleError>() {
            Ok(error) => error,
            Err(source) => BundleError::File {
                operation: "written",
                source,
            },
        })
    }
}

fn check(part: Digest, n_bytes: u64, bytes_max: u64) -> Result<(), BundleError> {
    match n_bytes <= bytes_max {
        true => Ok(()),
        false => Err(BundleError::TooLarge(format!(
            "{part} has {n_bytes} bytes; a bundle takes at most {bytes_max} of its kind"
        ))),
    }
}

fn check_whole(named: &BTreeMap<Digest, PartSource>, text: usize) -> Result<(), BundleError> {
    let sizes = named.values().map(|part| padded(part.n_bytes()));
    let whole = sizes.sum::<u64>() + text as u64;
    match whole <= BUNDLE_BYTES_MAX && named.len() <= PARTS_MAX {
        true => Ok(()),
        false => Err(BundleError::TooLarge(format!(
            "a bundle has at most {BUNDLE_BYTES_MAX} bytes and {PARTS_MAX} parts"
        ))),
    }
}

fn written(
    text: &str,
    lock: &str,
    parts: BTreeMap<Digest, PartSource>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    archive.append(&header(CONTENTS, text.len() as u64)?, text.as_bytes())?;
    archive.append(&header(LOCK, lock.len() as u64)?, lock.as_bytes())?;
    for (digest, source) in parts {
        let header = header(&part_name(digest), source.n_bytes())?;
        let mut checked = CheckedReader::new(digest, source);
        archive.append(&header, &mut checked)?;
    }
    archive.into_inner()?.flush()
}

/// Reads a part, and fails at its end when its digest is another.
struct CheckedReader {
    digest: Digest,
    source: PartSource,
    at: u64,
    hash: Sha256,
}

impl CheckedReader {
    fn new(digest: Digest, source: PartSource) -> Self {
        Self {
            digest,
            source,
            at: 0,
            hash: Sha256::new(),
        }
    }

    fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.source {
            PartSource::Bytes(bytes) => {
                let at = usize::try_from(self.at).unwrap_or(usize::MAX);
                bytes.get(at..).unwrap_or_default().read(buffer)
            }
            PartSource::File { file, n_bytes } => {
                let rest = usize::try_from(n_bytes - self.at).unwrap_or(usize::MAX);
                let n_wanted = buffer.len().min(rest);
                file.read_at(&mut buffer[..n_wanted], self.at)
            }
        }
    }
}

impl Read for CheckedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.read_some(buffer)?;
        self.hash.update(&buffer[..n_read]);
        self.at += n_read as u64;
        if n_read == 0 && !buffer.is_empty() {
            let found = Digest::new(self.hash.clone().finalize().into());
            if found != self.digest || self.at != self.source.n_bytes() {
                return Err(io::Error::other(BundleError::Changed(self.digest)));
            }
        }
        Ok(n_read)
    }
}
