//! Archives that depend on nothing but what they hold: times, owners and order are given.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::release::Release;

/// Something in an archive, below its root.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Relative, with `/`.
    pub(crate) path: String,
    pub(crate) mode: u32,
    /// User and group, by number.
    pub(crate) owner: u64,
    /// `None` for a folder.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Item {
    pub(crate) fn file(path: impl Into<String>, bytes: &[u8]) -> Self {
        Self::new(path, 0o644, Some(bytes.to_vec()))
    }

    pub(crate) fn program(path: impl Into<String>, bytes: &[u8]) -> Self {
        Self::new(path, 0o755, Some(bytes.to_vec()))
    }

    pub(crate) fn folder(path: impl Into<String>, mode: u32) -> Self {
        Self::new(path, mode, None)
    }

    pub(crate) fn owned_by(self, owner: u64) -> Self {
        Self { owner, ..self }
    }

    fn new(path: impl Into<String>, mode: u32, bytes: Option<Vec<u8>>) -> Self {
        let path = path.into();
        Self {
            path,
            mode,
            owner: 0,
            bytes,
        }
    }
}

/// The items by their names, each folder before what it holds. Folders that are not named get mode 755.
pub(crate) fn tar(release: &Release, items: &[Item]) -> Result<Vec<u8>> {
    tar_below("", release, items)
}

/// As [`tar`], with a prefix before every name: `./` is what packages of Debian have.
pub(crate) fn tar_below(prefix: &str, release: &Release, items: &[Item]) -> Result<Vec<u8>> {
    let mut all = with_folders(items);
    all.sort_by(|one, other| one.path.cmp(&other.path));
    let mut builder = Builder::new(Vec::new());
    let time = u64::try_from(release.time.as_second())?;
    if !prefix.is_empty() {
        let root = Item::folder("", 0o755);
        append(&mut builder, prefix, &root, time)?;
    }
    for item in &all {
        append(&mut builder, prefix, item, time)?;
    }
    Ok(builder.into_inner()?)
}

fn with_folders(items: &[Item]) -> Vec<Item> {
    let mut known: BTreeSet<&str> = items.iter().map(|item| item.path.as_str()).collect();
    let mut all = items.to_vec();
    for item in items {
        let ends = item.path.match_indices('/').map(|(end, _)| end);
        for folder in ends.filter_map(|end| item.path.get(..end)) {
            if known.insert(folder) {
                all.push(Item::folder(folder, 0o755));
            }
        }
    }
    all
}

fn append(builder: &mut Builder<Vec<u8>>, prefix: &str, item: &Item, time: u64) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(item.mode);
    header.set_uid(item.owner);
    header.set_gid(item.owner);
    header.set_mtime(time);
    let bytes = item.bytes.as_deref().unwrap_or_default();
    header.set_size(bytes.len() as u64);
    let slash = match item.bytes {
        Some(_) => "",
        None => {
            header.set_entry_type(EntryType::Directory);
            "/"
        }
    };
    let path = format!("{prefix}{}{slash}", item.path).replace("//", "/");
    builder.append_data(&mut header, path, bytes)?;
    Ok(())
}

/// Packs, with the time of the release in the head.
pub(crate) fn gzip(release: &Release, bytes: &[u8]) -> Result<Vec<u8>> {
    let time = u32::try_from(release.time.as_second())?;
    let mut packed = GzBuilder::new()
        .mtime(time)
        // The same on every system.
        .operating_system(255)
        .write(Vec::new(), Compression::new(release.level));
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

/// An archive of `ar`, as packages of Debian are.
pub(crate) fn ar(release: &Release, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    let time = release.time.as_second();
    for (name, bytes) in members {
        let (user, group, mode) = (0, 0, "100644");
        let head = format!(
            "{name:<16}{time:<12}{user:<6}{group:<6}{mode:<8}{:<10}`\n",
            bytes.len()
        );
        archive.extend(head.as_bytes());
        archive.extend(*bytes);
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}
