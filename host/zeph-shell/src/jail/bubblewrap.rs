//! Mounts as options of bubblewrap. They travel over a descriptor: the command line of the jail's first process can be read
//! inside the jail.

use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::mount::{Mode, Mount};
use super::policy::Network;
use super::{JailError, memory};

/// Options, and the descriptors they speak of.
#[derive(Debug, Default)]
pub(super) struct BwrapOptions {
    bytes: Vec<u8>,
    files: Vec<OwnedFd>,
}

impl BwrapOptions {
    /// Namespaces of every kind, no capability, no terminal; everything ends with the process that started it.
    pub(super) fn namespaces(network: Network) -> Self {
        let mut options = Self::default();
        options.words(&[
            "--unshare-all",
            "--unshare-user",
            "--disable-userns",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--hostname",
            "jail",
        ]);
        if network == Network::Open {
            options.words(&["--share-net"]);
        }
        options
    }

    /// Adds one mount.
    ///
    /// Errors: `JailError::System`, when no file in memory can be made.
    pub(super) fn mount(&mut self, mount: &Mount) -> Result<(), JailError> {
        match mount {
            Mount::Read(path) => self.at("--ro-bind", &[path, path]),
            Mount::Write(path) => self.at("--bind", &[path, path]),
            Mount::WriteAt { source, path } => self.at("--bind", &[source, path]),
            Mount::Memory { path, bytes, mode } => {
                let mode = match mode {
                    Mode::Own => "0700",
                    Mode::Shared => "1777",
                };
                self.words(&["--perms", mode]);
                if *bytes > 0 {
                    self.words(&["--size", &bytes.to_string()]);
                }
                self.at("--tmpfs", &[path]);
            }
            Mount::Link { path, target } => self.at("--symlink", &[target, path]),
            Mount::File { path, bytes } => self.content("--file", path, bytes)?,
            Mount::FixedFile { path, bytes } => self.content("--ro-bind-data", path, bytes)?,
            Mount::Copied { path, entries } => {
                self.words(&["--perms", "0755"]);
                self.at("--dir", &[path]);
                for entry in entries.iter() {
                    self.mount(entry)?;
                }
            }
            Mount::Directory(path) => self.at("--dir", &[path]),
            Mount::Devices(path) => self.at("--dev", &[path]),
            Mount::Processes(path) => self.at("--proc", &[path]),
            Mount::Fixed(path) => self.at("--remount-ro", &[path]),
        }
        Ok(())
    }

    /// The arguments of bubblewrap, which starts `program` with the numbers of `descriptors`, and the descriptors it must inherit.
    ///
    /// Errors: `JailError::System`, when no file in memory can be made.
    pub(super) fn finish(
        self,
        program: &OwnedFd,
        descriptors: &[RawFd],
    ) -> Result<(Vec<OsString>, Vec<OwnedFd>), JailError> {
        let options = memory::sealed("options", &self.bytes)?;
        let mut arguments: Vec<OsString> = vec![
            "--args".into(),
            options.as_raw_fd().to_string().into(),
            "--".into(),
            format!("/proc/self/fd/{}", program.as_raw_fd()).into(),
        ];
        arguments.extend(descriptors.iter().map(|number| number.to_string().into()));
        let mut files = self.files;
        files.push(options);
        Ok((arguments, files))
    }

    fn content(&mut self, option: &str, path: &Path, bytes: &[u8]) -> Result<(), JailError> {
        let file = memory::sealed("file", bytes)?;
        self.words(&["--perms", "0644", option, &file.as_raw_fd().to_string()]);
        self.word(path.as_os_str().as_bytes());
        self.files.push(file);
        Ok(())
    }

    fn at(&mut self, option: &str, paths: &[&Path]) {
        self.words(&[option]);
        for path in paths {
            self.word(path.as_os_str().as_bytes());
        }
    }

    fn words(&mut self, words: &[&str]) {
        for word in words {
            self.word(word.as_bytes());
        }
    }

    /// Paths and words cannot hold the byte that ends them.
    fn word(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.bytes.push(0);
    }
}
