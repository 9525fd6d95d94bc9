//! A bundle: everything that a machine without a network needs to install the plugins of a lock, in one archive.
//!
//! A tar archive of the ustar format, not compressed, whose bytes depend on its content alone. Reading it is strict: an archive that
//! this module would not have written, byte for byte of its headers, is refused, so that no two programs can read it differently.
//! Nothing is unpacked: parts are read through the handle that was looked at, and each is compared with its digest again.

mod read;
mod write;

use std::io;

use serde::{Deserialize, Serialize};
use zeph_core::id::Digest;

pub use self::read::Bundle;
pub use self::write::{BundleDraft, PartSource};

/// Version of the format.
const FORMAT: u32 = 1;

/// The name of the first entry: what is in the bundle.
const CONTENTS: &str = "zeph-bundle.json";

/// The name of the second entry.
const LOCK: &str = "zeph.lock";

/// What stands before the digits of a digest in the names of all other entries.
const PARTS: &str = "sha256/";

/// Most bytes of the contents.
const CONTENTS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Most bytes of the lock, as of the lock beside a folder.
const LOCK_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most bytes of a manifest, of signatures, or of an index.
const SMALL_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Most bytes of a component: the most that a host loads.
pub const COMPONENT_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Most bytes of a bundle.
pub const BUNDLE_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// Most entries of a bundle.
const PARTS_MAX: usize = 4096;

/// Bytes of a header, and what the content of an entry is padded to.
const BLOCK: u64 = 512;

/// A plugin in a bundle. Hostile until its digests are those of a lock that the operator accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledPlugin {
    /// Its name in the lock.
    pub name: String,
    /// The component.
    pub component: Digest,
    /// Its signatures of minisign, unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minisign: Option<Digest>,
    /// Its bundles of Sigstore, unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigstore: Option<Digest>,
    /// The manifest it has in its registry, which those are over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
}

/// An index in a bundle, whole: an excerpt would have no signature that could be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledIndex {
    /// Where it comes from, as the configuration of its machine names it.
    pub source: String,
    /// The document.
    pub document: Digest,
    /// Its signature.
    pub signature: Digest,
}

/// The first entry, exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    plugins: Vec<BundledPlugin>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<BundledIndex>,
}

/// A bundle that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The operating system refused.
    #[error("the bundle cannot be {operation}")]
    File {
        /// What was tried.
        operation: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is no bundle, or a damaged one.
    #[error("this is no bundle of plugins: {0}")]
    Bad(String),
    /// Written by a newer program.
    #[error("the bundle has format {found}; this program knows format {FORMAT}")]
    Newer {
        /// The format in it.
        found: u32,
    },
    /// A part that is not there.
    #[error("the bundle does not hold {0}")]
    Missing(Digest),
    /// Bytes that have another digest.
    #[error("what the bundle holds as {0} has another digest: it was changed or is damaged")]
    Changed(Digest),
    /// More than a bundle may hold.
    #[error("{0}")]
    TooLarge(String),
}

impl Contents {
    /// Each part that the contents name, with the most bytes it may have.
    fn parts(&self) -> impl Iterator<Item = (Digest, u64)> + '_ {
        let plugins = self.plugins.iter().flat_map(|plugin| {
            let small = [plugin.minisign, plugin.sigstore, plugin.manifest];
            let small = small.into_iter().flatten();
            std::iter::once((plugin.component, COMPONENT_BYTES_MAX))
                .chain(small.map(|part| (part, SMALL_BYTES_MAX)))
        });
        let indexes = self.indexes.iter();
        let indexes = indexes.flat_map(|index| [index.document, index.signature]);
        plugins.chain(indexes.map(|part| (part, SMALL_BYTES_MAX)))
    }
}

/// Bytes of an entry with its header.
fn padded(n_bytes: u64) -> u64 {
    BLOCK + n_bytes.next_multiple_of(BLOCK)
}

/// The name of the entry of a part.
fn part_name(part: Digest) -> String {
    format!("{PARTS}{}", part.hex())
}

/// The header of an entry: a plain file that everybody may read, of no time and of nobody.
fn header(name: &str, n_bytes: u64) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_path(name)?;
    header.set_size(n_bytes);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

#[cfg(test)]
mod tests;
