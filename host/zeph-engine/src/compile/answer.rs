//! What a process that compiles answers: in a pipe, or in a file beside the cache, where the next host finds it when the one that asked
//! has ended.
//!
//! A byte says what follows, eight bytes its length, the lowest first, 32 its SHA-256; then the artifact, or what the compiler says, each
//! cause behind a NUL character.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use wasmtime::{Error, Result};

/// What follows in an answer.
const ARTIFACT: u8 = 1;
const REFUSAL: u8 = 0;

/// Separates causes.
const CAUSE_END: char = '\0';

/// Writes what came of compiling.
pub(super) fn write(mut output: impl Write, compiled: Result<Vec<u8>>) -> io::Result<()> {
    let (kind, answer) = match compiled {
        Ok(artifact) => (ARTIFACT, artifact),
        Err(error) => {
            let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
            (REFUSAL, causes.join(&CAUSE_END.to_string()).into_bytes())
        }
    };
    output.write_all(&[kind])?;
    output.write_all(&(answer.len() as u64).to_le_bytes())?;
    output.write_all(&Sha256::digest(&answer))?;
    output.write_all(&answer)?;
    output.flush()
}

/// Reads an answer: the artifact, or the compiler's error.
///
/// Errors: it is not whole.
pub(super) fn read(mut input: impl Read) -> io::Result<Result<Vec<u8>>> {
    let (mut kind, mut length, mut sum) = ([0], [0; 8], [0; 32]);
    input.read_exact(&mut kind)?;
    input.read_exact(&mut length)?;
    input.read_exact(&mut sum)?;
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?;
    let mut answer = Vec::new();
    answer.try_reserve_exact(length).map_err(io::Error::other)?;
    input.take(length as u64).read_to_end(&mut answer)?;
    match kind {
        _ if answer.len() < length => Err(io::ErrorKind::UnexpectedEof.into()),
        _ if Sha256::digest(&answer)[..] != sum => Err(io::ErrorKind::InvalidData.into()),
        [ARTIFACT] => Ok(Ok(answer)),
        _ => Ok(Err(refusal(&String::from_utf8_lossy(&answer)))),
    }
}

/// The error whose causes are in `text`, the first one outermost.
fn refusal(text: &str) -> Error {
    let mut causes = text.split(CAUSE_END).map(str::to_owned).rev();
    let root = Error::msg(causes.next().unwrap_or_default());
    causes.fold(root, |cause, error| cause.context(error))
}

/// Where the process that compiles one component leaves its answer, in the directory of the cache. Dropping it removes the file.
///
/// An answer is code that runs outside of any sandbox. So only the very file that a host made for it counts, which the lock says: one that was
/// copied there, with a directory from elsewhere, was made at another time.
pub(crate) struct AnswerFile {
    path: PathBuf,
    /// Held by the process, too: until it has ended, no other host compiles the same.
    lock: File,
}

/// Most bytes of what is noted of a file.
const IDENTITY_BYTES_MAX: usize = 100;

impl AnswerFile {
    /// The file at `path`, for the holder of `lock`.
    pub(crate) fn new(path: PathBuf, lock: File) -> Self {
        Self { path, lock }
    }

    /// The artifact in the answer to a host that did not wait for it.
    pub(crate) fn left(&self) -> Option<Vec<u8>> {
        let file = File::open(&self.path).ok()?;
        let mut noted = [0; IDENTITY_BYTES_MAX];
        let n_bytes = self.lock.read_at(&mut noted, 0).ok()?;
        let is_own = noted[..n_bytes] == *identity(&file).ok()?.as_bytes();
        is_own.then(|| read(file).ok()?.ok())?
    }

    /// The file, empty, and the lock, for a process.
    pub(super) fn streams(&self) -> io::Result<(File, File)> {
        // A process without a lock may still write to the file that has the name.
        drop(fs::remove_file(&self.path));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)?;
        self.lock.set_len(0)?;
        self.lock.write_all_at(identity(&file)?.as_bytes(), 0)?;
        Ok((file, self.lock.try_clone()?))
    }
}

/// What no other file has: nobody sets when a file was made.
///
/// Errors: the file system does not tell that.
fn identity(file: &File) -> io::Result<String> {
    let about = file.metadata()?;
    Ok(format!("{} {} {}", about.dev(), about.ino(), made(file)?))
}

/// When the file was made. The library of the language does not ask for that with every libc.
#[cfg(target_os = "linux")]
fn made(file: &File) -> io::Result<String> {
    use rustix::fs::{AtFlags, StatxFlags, statx};

    let wanted = StatxFlags::BTIME;
    let about = statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
    match StatxFlags::from_bits_retain(about.stx_mask).contains(wanted) {
        true => Ok(format!(
            "{}.{}",
            about.stx_btime.tv_sec, about.stx_btime.tv_nsec
        )),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn made(file: &File) -> io::Result<String> {
    let made = file.metadata()?.created()?;
    let made = made.duration_since(std::time::SystemTime::UNIX_EPOCH);
    Ok(made.map_err(io::Error::other)?.as_nanos().to_string())
}

/// Reads the answer in a file that a process has written.
pub(super) fn read_file(mut file: File) -> io::Result<Result<Vec<u8>>> {
    file.rewind()?;
    read(file)
}

impl Drop for AnswerFile {
    fn drop(&mut self) {
        // In most cases there is none.
        drop(fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use wasmtime::Error;

    use super::{AnswerFile, read, write};

    #[test]
    fn an_answer_that_is_not_whole_is_none() {
        let mut answer = Vec::new();
        write(&mut answer, Ok(b"code".to_vec())).unwrap();
        assert_eq!(read(&answer[..]).unwrap().unwrap(), b"code");
        for n_bytes in 0..answer.len() {
            assert!(read(&answer[..n_bytes]).is_err(), "{n_bytes}");
        }
        // Blocks that were lost with the power are zeros.
        *answer.last_mut().unwrap() = 0;
        assert!(read(&answer[..]).is_err());
    }

    #[test]
    fn a_refusal_keeps_its_causes() {
        let mut answer = Vec::new();
        write(&mut answer, Err(Error::msg("inner").context("outer"))).unwrap();
        let error = read(&answer[..]).unwrap().unwrap_err();
        assert_eq!(format!("{error:#}"), "outer: inner");
    }

    #[test]
    fn an_answer_is_taken_once_and_from_the_file_made_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.answer");
        let file = || {
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(false);
            let lock = options.open(dir.path().join("a.lock")).unwrap();
            AnswerFile::new(path.clone(), lock)
        };
        let code = || Ok(b"code".to_vec());
        // As when the host is killed.
        let asked = std::mem::ManuallyDrop::new(file());
        let (answer, _lock) = asked.streams().unwrap();
        write(&answer, code()).unwrap();
        assert_eq!(file().left(), Some(b"code".to_vec()));
        assert_eq!(file().left(), None, "taken");

        let (answer, _lock) = asked.streams().unwrap();
        write(&answer, code()).unwrap();
        std::fs::copy(&path, dir.path().join("copy")).unwrap();
        std::fs::rename(dir.path().join("copy"), &path).unwrap();
        assert_eq!(file().left(), None, "another file");
    }
}
