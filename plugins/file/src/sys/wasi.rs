//! The component's side: `wasi:filesystem` and the host's `walk`, one crossing for each operation.

use std::io::{self, ErrorKind};

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags,
};
use zeph_plugin::files;
use zeph_plugin::walk::{self, WalkError};

use super::{Entry, Kind, Links, Stat, WALK_BATCH};

/// What [`WalkError::Limit`] stands for.
const TOO_MUCH: &str = "one directory holds more names, or the call has more globs or open directories, than the host takes";

/// Bytes written in one crossing. The host copies each piece, so this bounds its memory.
const WRITE_BYTES: usize = 1024 * 1024;

/// A granted directory.
#[derive(Debug)]
pub struct Root {
    path: String,
    /// Other absolute paths of it, through symbolic links outside.
    others: Vec<String>,
    directory: Descriptor,
}

/// An open directory.
#[derive(Debug)]
pub struct Directory(Descriptor);

/// An open regular file.
#[derive(Debug)]
pub struct File(Descriptor);

/// A walk under way.
#[derive(Debug)]
pub struct Walk(walk::Walker);

/// Where relative paths start.
pub fn working_directory() -> Option<String> {
    wasip2::cli::environment::initial_cwd()
}

impl Root {
    /// All granted directories.
    pub fn granted() -> Vec<Self> {
        let mut roots: Vec<Self> = Vec::new();
        for (directory, path) in get_directories() {
            let mut known = roots.iter_mut();
            match known.find(|root| root.directory.is_same_object(&directory)) {
                Some(root) => root.others.push(path),
                None => roots.push(Self {
                    path,
                    others: Vec::new(),
                    directory,
                }),
            }
        }
        roots
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
        stat_at(&self.directory, flags(links), path)
    }

    /// Opens a directory, in order to look at several of its entries.
    ///
    /// Errors: it is no directory that can be read.
    pub fn directory(&self, path: &str) -> io::Result<Directory> {
        self.open_directory(path).map(Directory)
    }

    /// Opens a file for reading.
    ///
    /// Errors: there is no file that can be read.
    pub fn open(&self, path: &str) -> io::Result<File> {
        let opened = self.directory.open_at(
            PathFlags::SYMLINK_FOLLOW,
            path,
            OpenFlags::empty(),
            DescriptorFlags::READ,
        );
        opened.map(File).map_err(error)
    }

    /// Makes a file that must not exist yet, for writing.
    ///
    /// Errors: the name is taken, or nothing can be made there.
    pub fn create(&self, path: &str) -> io::Result<File> {
        let opened = self.directory.open_at(
            PathFlags::empty(),
            path,
            OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
            DescriptorFlags::READ | DescriptorFlags::WRITE,
        );
        opened.map(File).map_err(error)
    }

    /// Opens a file that this call made, for writing.
    ///
    /// Errors: the file cannot be written.
    pub fn open_own(&self, path: &str) -> io::Result<File> {
        let opened = self.directory.open_at(
            PathFlags::empty(),
            path,
            OpenFlags::empty(),
            DescriptorFlags::READ | DescriptorFlags::WRITE,
        );
        opened.map(File).map_err(error)
    }

    /// Lists a directory, in no order.
    ///
    /// Errors: it is no directory that can be read.
    pub fn list(&self, path: &str) -> io::Result<Vec<Entry>> {
        let directory = self.open_directory(path)?;
        let stream = directory.read_directory().map_err(error)?;
        let mut entries = Vec::new();
        while let Some(entry) = stream.read_directory_entry().map_err(error)? {
            entries.push(Entry {
                name: entry.name,
                kind: kind(entry.type_),
            });
        }
        Ok(entries)
    }

    fn open_directory(&self, path: &str) -> io::Result<Descriptor> {
        let opened = self.directory.open_at(
            PathFlags::SYMLINK_FOLLOW,
            path,
            OpenFlags::DIRECTORY,
            DescriptorFlags::READ,
        );
        opened.map_err(error)
    }

    /// Makes a directory; its parent must exist.
    ///
    /// Errors: the name is taken, or nothing can be made there.
    pub fn create_directory(&self, path: &str) -> io::Result<()> {
        self.directory.create_directory_at(path).map_err(error)
    }

    /// Removes a file or a symbolic link.
    ///
    /// Errors: there is none, or it cannot be removed.
    pub fn remove_file(&self, path: &str) -> io::Result<()> {
        self.directory.unlink_file_at(path).map_err(error)
    }

    /// Removes an empty directory.
    ///
    /// Errors: there is none, it is not empty, or cannot be removed.
    pub fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.directory.remove_directory_at(path).map_err(error)
    }

    /// Gives `path` the name `new_path` under `target`, in place of what has that name.
    ///
    /// Errors: one of the two names cannot be changed.
    pub fn rename(&self, path: &str, target: &Self, new_path: &str) -> io::Result<()> {
        self.directory
            .rename_at(path, &target.directory, new_path)
            .map_err(error)
    }

    /// Gives `path` the name `name` in `target`, in place of what has that name.
    ///
    /// Errors: one of the two names cannot be changed.
    pub fn rename_into(&self, path: &str, target: &Directory, name: &str) -> io::Result<()> {
        self.directory
            .rename_at(path, &target.0, name)
            .map_err(error)
    }

    /// Makes a symbolic link at `path` with the text `target`.
    ///
    /// Errors: the name is taken, or nothing can be made there.
    pub fn symlink(&self, target: &str, path: &str) -> io::Result<()> {
        self.directory.symlink_at(target, path).map_err(error)
    }

    /// The text of a symbolic link.
    ///
    /// Errors: it is no symbolic link.
    pub fn read_link(&self, path: &str) -> io::Result<String> {
        self.directory.readlink_at(path).map_err(error)
    }

    /// Whether two paths name one object, links not followed.
    pub fn is_same(&self, path: &str, other: &Self, other_path: &str) -> bool {
        let one = self.directory.metadata_hash_at(PathFlags::empty(), path);
        let two = other
            .directory
            .metadata_hash_at(PathFlags::empty(), other_path);
        match (one, two) {
            (Ok(one), Ok(two)) => one.lower == two.lower && one.upper == two.upper,
            _ => false,
        }
    }
}

impl Directory {
    /// Looks at its entry `name`; a link is described itself.
    ///
    /// Errors: there is no such entry, or it is not granted.
    pub fn stat(&self, name: &str) -> io::Result<Stat> {
        stat_at(&self.0, PathFlags::empty(), name)
    }

    /// Opens its file `name` for reading; a link is not followed.
    ///
    /// Errors: there is no file that can be read.
    pub fn open(&self, name: &str) -> io::Result<File> {
        let opened = self.0.open_at(
            PathFlags::empty(),
            name,
            OpenFlags::empty(),
            DescriptorFlags::READ,
        );
        opened.map(File).map_err(error)
    }
}

impl File {
    /// Bytes from `offset` on, at most `len` of them; fewer or none at the end.
    ///
    /// Errors: the file cannot be read.
    pub fn read_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        match self.0.read(len, offset) {
            Ok((bytes, _)) => Ok(bytes),
            Err(code) => Err(error(code)),
        }
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// Errors: the file cannot be written, or the disk is full.
    pub fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(WRITE_BYTES)];
            let written = self.0.write(piece, offset).map_err(error)?;
            if written == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            offset += written;
            bytes = &bytes[usize::try_from(written)
                .unwrap_or(usize::MAX)
                .min(piece.len())..];
        }
        Ok(())
    }

    /// Waits until the content is on the disk.
    ///
    /// Errors: the disk does not take it.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data().map_err(error)
    }
}

impl Walk {
    /// Starts at the absolute path `root`.
    ///
    /// Errors: `root` is no directory that can be read.
    pub fn open(root: &str, options: &walk::Options) -> io::Result<Self> {
        walk::Walker::open(root, options)
            .map(Self)
            .map_err(walk_error)
    }

    /// The next entries, none at the end.
    ///
    /// Errors: a directory cannot be read any more.
    pub fn next_batch(&mut self) -> io::Result<Vec<walk::Entry>> {
        self.0.next(WALK_BATCH).map_err(walk_error)
    }
}

fn stat_at(directory: &Descriptor, flags: PathFlags, path: &str) -> io::Result<Stat> {
    let stat = directory.stat_at(flags, path).map_err(error)?;
    Ok(Stat {
        kind: kind(stat.type_),
        size: stat.size,
        links: stat.link_count,
    })
}

fn flags(links: Links) -> PathFlags {
    match links {
        Links::Follow => PathFlags::SYMLINK_FOLLOW,
        Links::Keep => PathFlags::empty(),
    }
}

fn kind(of: DescriptorType) -> Kind {
    match of {
        DescriptorType::RegularFile => Kind::File,
        DescriptorType::Directory => Kind::Directory,
        DescriptorType::SymbolicLink => Kind::Symlink,
        DescriptorType::Fifo => Kind::Special("named pipe"),
        DescriptorType::Socket => Kind::Special("socket"),
        DescriptorType::BlockDevice | DescriptorType::CharacterDevice => Kind::Special("device"),
        DescriptorType::Unknown => Kind::Special("special file"),
    }
}

fn walk_error(error: WalkError) -> io::Error {
    match error {
        WalkError::NotFound => ErrorKind::NotFound.into(),
        WalkError::NotADirectory => ErrorKind::NotADirectory.into(),
        WalkError::Denied => ErrorKind::PermissionDenied.into(),
        WalkError::InvalidGlob => io::Error::new(ErrorKind::InvalidInput, "invalid glob"),
        WalkError::Limit => io::Error::other(TOO_MUCH),
    }
}

fn error(code: ErrorCode) -> io::Error {
    let kind = match code {
        ErrorCode::Access | ErrorCode::NotPermitted => ErrorKind::PermissionDenied,
        ErrorCode::NoEntry => ErrorKind::NotFound,
        ErrorCode::Exist => ErrorKind::AlreadyExists,
        ErrorCode::IsDirectory => ErrorKind::IsADirectory,
        ErrorCode::NotDirectory => ErrorKind::NotADirectory,
        ErrorCode::NotEmpty => ErrorKind::DirectoryNotEmpty,
        ErrorCode::InsufficientSpace => ErrorKind::StorageFull,
        ErrorCode::Quota => ErrorKind::QuotaExceeded,
        ErrorCode::FileTooLarge => ErrorKind::FileTooLarge,
        ErrorCode::ReadOnly => ErrorKind::ReadOnlyFilesystem,
        ErrorCode::CrossDevice => ErrorKind::CrossesDevices,
        ErrorCode::NameTooLong => ErrorKind::InvalidFilename,
        ErrorCode::TooManyLinks => ErrorKind::TooManyLinks,
        ErrorCode::Interrupted => ErrorKind::Interrupted,
        ErrorCode::WouldBlock => ErrorKind::WouldBlock,
        ErrorCode::Busy | ErrorCode::TextFileBusy => ErrorKind::ResourceBusy,
        ErrorCode::Unsupported => ErrorKind::Unsupported,
        ErrorCode::InsufficientMemory => ErrorKind::OutOfMemory,
        ErrorCode::Invalid => ErrorKind::InvalidInput,
        ErrorCode::Loop => return io::Error::other("too many symbolic links"),
        ErrorCode::IllegalByteSequence => return io::Error::other("a name is not UTF-8"),
        other => return io::Error::other(other.message()),
    };
    kind.into()
}

/// Makes an empty file, or a directory, that only the host's user can open, at the absolute `path`.
///
/// Errors: the name is taken, or nothing can be made there.
pub fn make_private(path: &str, directory: bool) -> io::Result<()> {
    files::make_private(path, directory).map_err(|error| match error {
        files::MakePrivateError::Exists => ErrorKind::AlreadyExists.into(),
        files::MakePrivateError::NotFound => ErrorKind::NotFound.into(),
        files::MakePrivateError::Denied => ErrorKind::PermissionDenied.into(),
        files::MakePrivateError::Failed => {
            io::Error::other("the disk is full, or the name is too long")
        }
    })
}

/// Gives what was made at `target` the permission bits of `source`; both are absolute.
///
/// Errors: one of the two is missing or not granted.
pub fn copy_mode(source: &str, target: &str) -> io::Result<()> {
    files::copy_mode(source, target).map_err(|error| match error {
        files::CopyModeError::NotFound => ErrorKind::NotFound.into(),
        files::CopyModeError::Denied => ErrorKind::PermissionDenied.into(),
    })
}
