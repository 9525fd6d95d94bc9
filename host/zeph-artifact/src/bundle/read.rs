//! From the bytes of a bundle to its parts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;

use sha2::{Digest as _, Sha256};
use zeph_core::failure::one_line;
use zeph_core::id::Digest;

use super::{
    BLOCK, BUNDLE_BYTES_MAX, BundleError, BundledIndex, BundledPlugin, COMPONENT_BYTES_MAX,
    CONTENTS, CONTENTS_BYTES_MAX, Contents, FORMAT, LOCK, LOCK_BYTES_MAX, PARTS, PARTS_MAX, header,
    padded,
};

/// Blocks of zeros at the end of an archive.
const END: u64 = 2 * BLOCK;

/// Characters of a name in a message.
const NAME_CHARS_MAX: usize = 100;

/// A bundle whose form was checked: the file stays open, and parts are read from it.
#[derive(Debug)]
pub struct Bundle {
    file: File,
    contents: Contents,
    lock: String,
    parts: BTreeMap<Digest, Extent>,
}

/// Where a part is in the file.
#[derive(Debug, Clone, Copy)]
struct Extent {
    start: u64,
    n_bytes: u64,
}

/// An entry, as its header says.
struct TarEntry {
    name: String,
    extent: Extent,
}

impl Bundle {
    /// Looks through a bundle, without reading its components.
    ///
    /// Errors: `Bad` for what [`BundleDraft::write`](super::BundleDraft::write) would not have written: other names, kinds or orders of
    ///        entries, links, lengths that do not fit, parts that nothing names or that are not there, anything behind the end;
    ///        `Newer`, `TooLarge`, `File`.
    /// Limits: 8 GiB, 4096 parts; it reads the headers, the contents and the lock.
    pub fn open(mut file: File) -> Result<Self, BundleError> {
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(BundleError::Bad("it is not a regular file".to_owned()));
        }
        if metadata.len() > BUNDLE_BYTES_MAX {
            return Err(BundleError::TooLarge(format!(
                "the bundle has {} bytes; the limit is {BUNDLE_BYTES_MAX}",
                metadata.len()
            )));
        }
        let entries = entries(&mut file, metadata.len())?;
        let [contents, lock, parts @ ..] = entries.as_slice() else {
            return Err(BundleError::Bad("it is empty".to_owned()));
        };
        let contents = text(&file, contents, (CONTENTS, CONTENTS_BYTES_MAX))?;
        let contents = read_contents(&contents)?;
        let lock = text(&file, lock, (LOCK, LOCK_BYTES_MAX))?;
        let parts = indexed(parts)?;
        check_parts(&contents, &parts)?;
        Ok(Self {
            file,
            contents,
            lock,
            parts,
        })
    }

    /// The plugins in it, by name.
    pub fn plugins(&self) -> &[BundledPlugin] {
        &self.contents.plugins
    }

    /// The indexes in it, by source.
    pub fn indexes(&self) -> &[BundledIndex] {
        &self.contents.indexes
    }

    /// The text of its lock.
    pub fn lock(&self) -> &str {
        &self.lock
    }

    /// The bytes of a part.
    ///
    /// Errors: `Missing`, `Changed`, `File`. Blocks; a component may have 128 MiB.
    pub fn part(&self, digest: Digest) -> Result<Vec<u8>, BundleError> {
        let extent = self
            .parts
            .get(&digest)
            .ok_or(BundleError::Missing(digest))?;
        let bytes = bytes(&self.file, *extent)?;
        match Digest::new(Sha256::digest(&bytes).into()) == digest {
            true => Ok(bytes),
            false => Err(BundleError::Changed(digest)),
        }
    }
}

/// Every entry, in order. Each header must be the one that is written for its name and length.
fn entries(file: &mut File, whole: u64) -> Result<Vec<TarEntry>, BundleError> {
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut archive = tar::Archive::new(&mut *file);
    let mut found = Vec::new();
    let mut end = 0;
    // Raw: what other entries would be made of (long names, extended headers) is an entry here, and refused.
    let entries = archive.entries_with_seek().map_err(unreadable)?.raw(true);
    for entry in entries {
        let entry = entry.map_err(damaged)?;
        let name = name(&entry)?;
        let extent = Extent {
            start: entry.raw_file_position(),
            n_bytes: entry.size(),
        };
        let is_ours = header(&name, extent.n_bytes)
            .is_ok_and(|header| header.as_bytes() == entry.header().as_bytes());
        if !is_ours || entry.raw_header_position() != end {
            let name = one_line(&name, NAME_CHARS_MAX);
            return Err(BundleError::Bad(format!(
                "the entry `{name}` is no plain file, or was written by another program"
            )));
        }
        end += padded(extent.n_bytes);
        if end > whole || found.len() > PARTS_MAX + 2 {
            return Err(BundleError::Bad("it is cut off, or too long".to_owned()));
        }
        found.push(TarEntry { name, extent });
    }
    match end + END == whole && is_zero(file, end)? {
        true => Ok(found),
        false => Err(BundleError::Bad(
            "it is cut off, or something stands behind its end".to_owned(),
        )),
    }
}

/// The name of an entry, which is one of ours: anything else, such as `../x`, is refused before it is used.
fn name<R: Read>(entry: &tar::Entry<'_, R>) -> Result<String, BundleError> {
    let bytes = entry.path_bytes();
    let shown = String::from_utf8_lossy(&bytes).into_owned();
    let is_part = shown.strip_prefix(PARTS).is_some_and(is_hex);
    match shown == CONTENTS || shown == LOCK || is_part {
        true => Ok(shown),
        false => Err(BundleError::Bad(format!(
            "no entry of a bundle is named `{}`",
            one_line(&shown, NAME_CHARS_MAX)
        ))),
    }
}

fn is_hex(text: &str) -> bool {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 64 && text.bytes().all(is_digit)
}

/// Whether the file ends with zeros from `start` on, as an archive does.
fn is_zero(file: &File, start: u64) -> Result<bool, BundleError> {
    let end = bytes(
        file,
        Extent {
            start,
            n_bytes: END,
        },
    )?;
    Ok(end.iter().all(|byte| *byte == 0))
}

/// The text of one of the first two entries.
fn text(
    file: &File,
    entry: &TarEntry,
    (name, bytes_max): (&str, u64),
) -> Result<String, BundleError> {
    if entry.name != name || entry.extent.n_bytes > bytes_max {
        return Err(BundleError::Bad(format!(
            "`{name}` stands in another place, or is too long"
        )));
    }
    let bytes = bytes(file, entry.extent)?;
    String::from_utf8(bytes).map_err(|_| BundleError::Bad(format!("`{name}` is not text")))
}

/// What any format of the contents has.
#[derive(serde::Deserialize)]
struct AnyFormat {
    format: u32,
}

fn read_contents(text: &str) -> Result<Contents, BundleError> {
    let bad = |error: serde_json::Error| BundleError::Bad(format!("`{CONTENTS}`: {error}"));
    let AnyFormat { format } = serde_json::from_str(text).map_err(bad)?;
    match format {
        FORMAT => serde_json::from_str(text).map_err(bad),
        found if found > FORMAT => Err(BundleError::Newer { found }),
        found => Err(BundleError::Bad(format!("there is no format {found}"))),
    }
}

/// The parts by their digest; they stand in its order, so that none stands there twice.
fn indexed(entries: &[TarEntry]) -> Result<BTreeMap<Digest, Extent>, BundleError> {
    let mut parts = BTreeMap::new();
    let mut before = None;
    for entry in entries {
        let hex = entry.name.strip_prefix(PARTS).unwrap_or_default();
        let digest: Option<Digest> = format!("sha256:{hex}").parse().ok();
        if digest.is_none() || before >= digest {
            return Err(BundleError::Bad(
                "its parts stand twice, or in another order than that of their digests".to_owned(),
            ));
        }
        before = digest;
        parts.extend(digest.map(|digest| (digest, entry.extent)));
    }
    Ok(parts)
}

/// That the contents name the parts that are there and no others, and each plugin and index once.
fn check_parts(contents: &Contents, parts: &BTreeMap<Digest, Extent>) -> Result<(), BundleError> {
    let mut unnamed = parts.clone();
    for (part, bytes_max) in contents.parts() {
        let extent = parts.get(&part).ok_or(BundleError::Missing(part))?;
        unnamed.remove(&part);
        if extent.n_bytes > bytes_max.min(COMPONENT_BYTES_MAX) {
            return Err(BundleError::TooLarge(format!(
                "{part} has {} bytes; a bundle holds at most {bytes_max} of its kind",
                extent.n_bytes
            )));
        }
    }
    let plugins = contents.plugins.windows(2);
    let indexes = contents.indexes.windows(2);
    let is_sorted = plugins.map(|pair| pair[0].name < pair[1].name);
    let is_sorted = is_sorted.chain(indexes.map(|pair| pair[0].source < pair[1].source));
    match unnamed.is_empty() && is_sorted.into_iter().all(|sorted| sorted) {
        true => Ok(()),
        false => Err(BundleError::Bad(
            "its contents name something twice, or leave a part out".to_owned(),
        )),
    }
}

fn bytes(file: &File, extent: Extent) -> Result<Vec<u8>, BundleError> {
    let n_bytes = usize::try_from(extent.n_bytes).unwrap_or(usize::MAX);
    let mut bytes = vec![0; n_bytes];
    file.read_exact_at(&mut bytes, extent.start)
        .map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(source: io::Error) -> BundleError {
    BundleError::File {
        operation: "read",
        source,
    }
}

fn damaged(error: io::Error) -> BundleError {
    BundleError::Bad(one_line(&error.to_string(), NAME_CHARS_MAX))
}
