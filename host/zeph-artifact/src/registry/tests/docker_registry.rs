//! Debian's `docker-registry`, started on a free port of loopback with its data in a temporary directory. Used by the tests of this crate
//! and by those of the whole product.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use tempfile::TempDir;

/// `open` with the password `sesame`, as `htpasswd -B` writes it.
const USERS: &str = "open:$2y$05$abcdefghijklmnopqrstuuKcS.CYWVYVaLiiCKrrc0A5s3mGesJ9O\n";

/// A running registry, which ends with this value.
pub(crate) struct DockerRegistry {
    pub(crate) port: u16,
    child: Child,
    folder: TempDir,
}

impl DockerRegistry {
    /// Starts one; `None`, with the reason printed, where the program is not installed.
    pub(crate) fn start(has_password: bool) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let auth = match has_password {
            true => {
                let path = folder.path().display();
                format!("auth:\n  htpasswd:\n    realm: test\n    path: {path}/users\n")
            }
            false => String::new(),
        };
        Self::start_with(folder, &auth)
    }

    /// Starts one in `folder` with more settings, the first of which may be some of `http`.
    pub(crate) fn start_with(folder: TempDir, settings: &str) -> Option<Self> {
        let path = folder.path().display();
        let config = format!(
            "version: 0.1\nlog:\n  level: info\n  formatter: json\n  accesslog:\n    disabled: true\n\
             storage:\n  filesystem:\n    rootdirectory: {path}/data\n\
             http:\n  addr: 127.0.0.1:0\n  secret: test\n{settings}"
        );
        fs::write(folder.path().join("users"), USERS).unwrap();
        fs::write(folder.path().join("config.yml"), config).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test starts a real registry")]
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(folder.path().join("config.yml"))
            .env_clear()
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                let reason = format!("skipped: `docker-registry` cannot be started: {error}\n");
                drop(std::io::stderr().write_all(reason.as_bytes()));
                return None;
            }
        };
        let port = port(child.stderr.take().unwrap());
        Some(Self {
            port,
            child,
            folder,
        })
    }

    /// Puts a manifest there as it is.
    pub(crate) fn put(&self, path: &str, media_type: &str, bytes: &[u8]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "PUT /v2/{path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n",
            bytes.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// Writes other bytes over those of a blob, as a broken disk would.
    pub(crate) fn overwrite(&self, hex: &str, bytes: &[u8]) {
        let blobs = self
            .folder
            .path()
            .join("data/docker/registry/v2/blobs/sha256");
        fs::write(blobs.join(&hex[..2]).join(hex).join("data"), bytes).unwrap();
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where it listens, from what it logs. The rest of the log is read away, so that the registry never waits for a reader.
fn port(log: ChildStderr) -> u16 {
    let mut lines = BufReader::new(log).lines();
    let mut seen = String::new();
    let port = loop {
        let Some(Ok(line)) = lines.next() else {
            panic!("the registry does not start: {seen}");
        };
        if let Some((_, after)) = line.split_once("listening on 127.0.0.1:") {
            let end = after.find(|letter: char| !letter.is_ascii_digit());
            break after[..end.unwrap_or(after.len())].parse().unwrap();
        }
        seen.push_str(&line);
    };
    std::thread::spawn(move || lines.for_each(drop));
    port
}
