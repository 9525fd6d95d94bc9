//! The same operations over `std::fs`, so that the tools' logic is tested without a host. Never in the component.
//!
//! The walk knows hidden names but no `.gitignore`: that is the host's work and tested there.

use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use zeph_plugin::walk;

use super::{Entry, Kind, Links, Stat, WALK_BATCH};

/// A granted directory.
#[derive(Debug)]
pub struct Root {
    path: String,
    others: Vec<String>,
}

/// A directory.
#[derive(Debug)]
pub struct Directory(PathBuf);

/// An open regular file.
#[derive(Debug)]
pub struct File(fs::File);

/// A walk, already done.
#[derive(Debug)]
pub struct Walk(std::vec::IntoIter<walk::Entry>);

/// Where relative paths start: nowhere without a host.
pub fn working_directory() -> Option<String> {
    None
}

impl Root {
    /// All granted directories: none without a host.
    pub fn granted() -> Vec<Self> {
        Vec::new()
    }

    /// The directory at the absolute `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            others: Vec::new(),
        }
    }

    /// The same with another absolute path.
    #[must_use]
    pub fn or(mut self, other: impl Into<String>) -> Self {
        self.others.push(other.into());
        self
    }

    /// Its other absolute paths.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Its absolute path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Looks at `path`.
    ///
    /// Errors: there is nothing at `path`, or it is not granted.
    pub fn stat(&self, path: &str, links: Links) -> io::Result<Stat> {
        Ok(stat(&match links {
            Links::Follow => fs::metadata(self.at(path))?,
            Links::Keep => fs::symlink_metadata(self.at(path))?,
        }))
    }

    /// Finds a directory, in order to look at several of its entries.
    ///
    /// Errors: it is no directory.
    pub fn directory(&self, path: &str) -> io::Result<Directory> {
        match fs::metadata(self.at(path))?.is_dir() {
            true => Ok(Directory(self.at(path))),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens a file for reading.
    ///
    /// Errors: there is no file that can be read.
    pub fn open(&self, path: &str) -> io::Result<File> {
        fs::File::open(self.at(path)).map(File)
    }

    /// Makes a file that must not exist yet, for writing.
    ///
    /// Errors: the name is taken, or nothing can be made there.
    pub fn create(&self, path: &str) -> io::Result<File> {
        fs::File::create_new(self.at(path)).map(File)
    }

    /// Opens a file that was made a moment ago, for writing.
    ///
    /// Errors: the file cannot be written.
    pub fn open_own(&self, path: &str) -> io::Result<File> {
        let opened = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.at(path));
        opened.map(File)
    }

    /// Lists a directory, in no order.
    ///
    /// Errors: it is no directory that can be read.
    pub fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let entries = fs::read_dir(self.at(path))?.map(|entry| {
            let entry = entry?;
            Ok(Entry {
                name: entry.file_name().to_string_lossy().into_owned(),
                kind: kind(entry.file_type()?),
            })
        });
        entries.collect()
    }

    /// Makes a directory; its parent must exist.
    ///
    /// Errors: the name is taken, or nothing can be made there.
    pub fn create_directory(&self, path: &str) -> io::Result<()> {
        fs::create_dir(self.at(path))
    }

    /// Removes a file or a symbolic link.
    ///
    /// Errors: there is none, or it cannot be removed.
    pub fn remove_file(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }

    /// Removes an empty directory.
    ///
    /// Errors: there is none, it is not empty, or cannot be removed.
    pub fn remove_directory(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.at(path))
    }

    /// Gives `path` the name `new_path` under `target`, in place of what has that name.
    ///
    /// Errors: one of the two names cannot be changed.
    pub fn rename(&self, path: &str, target: &Self, new_path: &str) -> io::Result<()> {
        fs::rename(self.at(path), target.at(new_path))
    }

    /// Gives `path` the name `name` in `target`, in place of what has that name.
    ///
    /// Errors: one of the two names cannot be changed.
    pub fn rename_into(&self, path: &str, target: &Directory, name: &str) -> io::Result<()> {
        fs::rename(self.at(path), target.0.join(name))
    }

    /// Makes a symbolic link at `path` with the text `target`.
    ///
    /// Errors: the name is taken, or nothing can be made there.
    #[cfg(unix)]
    pub fn symlink(&self, target: &str, path: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(target, self.at(path))
    }

    /// Makes a symbolic link at `path` with the text `target`.
    ///
    /// Errors: always: there is none here.
    #[cfg(not(unix))]
    pub fn symlink(&self, _target: &str, _path: &str) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    /// The text of a symbolic link.
    ///
    /// Errors: it is no symbolic link.
    pub fn read_link(&self, path: &str) -> io::Result<String> {
        Ok(fs::read_link(self.at(path))?.to_string_lossy().into_owned())
    }

    /// Whether two paths name one object, links not followed.
    pub fn is_same(&self, path: &str, other: &Self, other_path: &str) -> bool {
        match (
            self.at(path).canonicalize(),
            other.at(other_path).canonicalize(),
        ) {
            (Ok(one), Ok(two)) => one == two,
            _ => false,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        Path::new(&self.path).join(path)
    }
}

impl Directory {
    /// Looks at its entry `name`; a link is described itself.
    ///
    /// Errors: there is no such entry.
    pub fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(stat(&fs::symlink_metadata(self.0.join(name))?))
    }

    /// Opens its file `name` for reading.
    ///
    /// Errors: there is no file that can be read.
    pub fn open(&self, name: &str) -> io::Result<File> {
        fs::File::open(self.0.join(name)).map(File)
    }
}

impl File {
    /// Bytes from `offset` on, at most `len` of them; fewer or none at the end.
    ///
    /// Errors: the file cannot be read.
    pub fn read_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let mut file = &self.0;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// Errors: the file cannot be written, or the disk is full.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    /// Waits until the content is on the disk.
    ///
    /// Errors: the disk does not take it.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Walk {
    /// Starts at the absolute path `root`.
    ///
    /// Errors: `root` is no directory that can be read.
    pub fn open(root: &str, options: &walk::Options) -> io::Result<Self> {
        if !fs::symlink_metadata(root)?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        let (only, skip) = (globs(&options.only)?, globs(&options.skip)?);
        let mut entries = Vec::new();
        let mut pending = vec![String::new()];
        while let Some(directory) = pending.pop() {
            let depth = directory.matches('/').count() + usize::from(!directory.is_empty());
            if options.max_depth.is_some_and(|max| depth >= max as usize) {
                continue;
            }
            for entry in Root::new(root).list(&directory)? {
                let path = match directory.as_str() {
                    "" => entry.name.clone(),
                    directory => format!("{directory}/{}", entry.name),
                };
                let hidden = options.standard_filters && entry.name.starts_with('.');
                if hidden || skip.is_match(&path) {
                    continue;
                }
                if entry.kind == Kind::Directory {
                    pending.push(path.clone());
                } else if !only.is_empty() && !only.is_match(&path) {
                    continue;
                }
                let size = fs::symlink_metadata(Path::new(root).join(&path))?.len();
                entries.push(walk::Entry {
                    path,
                    kind: match entry.kind {
                        Kind::File => walk::EntryKind::File,
                        Kind::Directory => walk::EntryKind::Directory,
                        Kind::Symlink => walk::EntryKind::Symlink,
                        Kind::Special(_) => walk::EntryKind::Other,
                    },
                    size,
                    modified_ms: None,
                });
            }
        }
        entries.sort_by(|one, two| one.path.split('/').cmp(two.path.split('/')));
        Ok(Self(entries.into_iter()))
    }

    /// The next entries, none at the end.
    ///
    /// Errors: a directory cannot be read any more.
    pub fn next_batch(&mut self) -> io::Result<Vec<walk::Entry>> {
        Ok(self.0.by_ref().take(WALK_BATCH as usize).collect())
    }
}

fn globs(patterns: &[String]) -> io::Result<GlobSet> {
    let invalid = |error| io::Error::new(ErrorKind::InvalidInput, error);
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let anchored = match pattern.contains('/') {
            true => pattern.trim_start_matches('/').to_owned(),
            false => format!("**/{pattern}"),
        };
        set.add(
            GlobBuilder::new(&anchored)
                .literal_separator(true)
                .build()
                .map_err(invalid)?,
        );
    }
    set.build().map_err(invalid)
}

fn stat(metadata: &fs::Metadata) -> Stat {
    Stat {
        kind: kind(metadata.file_type()),
        size: metadata.len(),
        links: links(metadata),
    }
}

#[cfg(unix)]
fn links(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn links(_metadata: &fs::Metadata) -> u64 {
    1
}

fn kind(of: fs::FileType) -> Kind {
    match of {
        of if of.is_file() => Kind::File,
        of if of.is_dir() => Kind::Directory,
        of if of.is_symlink() => Kind::Symlink,
        _ => Kind::Special("special file"),
    }
}

/// Makes an empty file, or a directory, that only the user can open, at the absolute `path`.
///
/// Errors: the name is taken, or nothing can be made there.
#[cfg(unix)]
pub fn make_private(path: &str, directory: bool) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

    if directory {
        return fs::DirBuilder::new().mode(0o700).create(path);
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path).map(drop)
}

/// Makes an empty file, or a directory, at the absolute `path`.
///
/// Errors: the name is taken, or nothing can be made there.
#[cfg(not(unix))]
pub fn make_private(path: &str, directory: bool) -> io::Result<()> {
    match directory {
        true => fs::create_dir(path),
        false => fs::File::create_new(path).map(drop),
    }
}

/// Gives what was made at `target` the permission bits of `source`; both are absolute.
///
/// Errors: one of the two is missing or not granted.
pub fn copy_mode(source: &str, target: &str) -> io::Result<()> {
    fs::set_permissions(target, fs::metadata(source)?.permissions())
}
