//! The guard around files, from inside a guest, on a tree with traps in it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use zeph_core::capability::{FsGrant, FsRights, FsRoot};

use crate::lab::{GuestCall, Lab, PATIENT};
use crate::{CheckResult, How, Probe};

const ALL: FsRights = FsRights {
    read: true,
    write: true,
    create: true,
    delete: true,
};

const READ: FsRights = FsRights {
    write: false,
    create: false,
    delete: false,
    ..ALL
};

/// Operations of the guest `files`. None may succeed, whatever is granted inside the root.
const OUTSIDE: &[&str] = &[
    "r../outside/secret|",
    "rsub/../../outside/secret|",
    "r/etc/passwd|",
    "w../outside/new|",
    "u../outside/secret|",
    "m../outside/secret|taken",
    "ma.txt|../outside/given",
    "h../outside/secret|taken",
];

/// The same through symbolic links, of which the last is made by the guest itself.
const LINKS: &[&str] = &[
    "rout|",
    "aout|",
    "wout_dangling|",
    "rout_dir/deep|",
    "rout_absolute|",
    "rloop|",
    "rup/outside/secret|",
    "wout_dir/new|",
    "hout_dir/deep|taken",
    "mout_dir/deep|taken",
    "s/etc/passwd|made",
    "rmade|",
];

/// What patterns hide, by its name, by others, and by names it is given.
const HIDDEN: &[&str] = &[
    "r.env|",
    "a.env|",
    "rto_hidden|",
    "rhard_hidden|",
    "rhidden/key|",
    "m.env|seen",
    "h.env|seen",
    "mhidden|seen",
    "mhidden/key|seen",
    "u.env|",
];

/// What a right to read does not allow.
const READ_ONLY: &[&str] = &[
    "wnew|",
    "aa.txt|",
    "wa.txt|",
    "ua.txt|",
    "ma.txt|b.txt",
    "hsub/b.txt|c.txt",
    "ssub|d",
];

/// What would wait for another process.
const SPECIAL: &[&str] = &["rfifo|", "wfifo|"];

pub(crate) const PROBES: &[Probe] = &[
    Probe {
        name: "files: nothing granted",
        tried: "any directory at all",
        how: How::Own(|lab| Box::pin(ungranted(lab))),
    },
    Probe {
        name: "files: outside",
        tried: "`..`, absolute paths, moving files in and out",
        how: How::Own(|lab| Box::pin(refused(lab, OUTSIDE, ALL))),
    },
    Probe {
        name: "files: symbolic links",
        tried: "links to files and directories outside, dangling, looping, made by the guest",
        how: How::Own(|lab| Box::pin(refused(lab, LINKS, ALL))),
    },
    Probe {
        name: "files: hidden by a pattern",
        tried: "by name, through links and hard links, moved or linked to another name",
        how: How::Own(|lab| Box::pin(refused(lab, HIDDEN, ALL))),
    },
    Probe {
        name: "files: rights",
        tried: "making, changing, removing, moving and linking with the right to read alone",
        how: How::Own(|lab| Box::pin(refused(lab, READ_ONLY, READ))),
    },
    Probe {
        name: "files: special files",
        tried: "a FIFO that nobody writes to",
        how: How::Own(|lab| Box::pin(special(lab))),
    },
];

/// A granted tree with traps in it, and one beside it that is not granted.
struct Trees {
    base: tempfile::TempDir,
}

impl Trees {
    fn new(dir: &Path) -> io::Result<Self> {
        let base = tempfile::tempdir_in(dir)?;
        let this = Self { base };
        let (root, outside) = (this.root(), this.outside());
        fs::create_dir_all(root.join("sub"))?;
        fs::create_dir_all(root.join("hidden"))?;
        fs::create_dir_all(outside.join("dir"))?;
        fs::write(root.join("a.txt"), "a")?;
        fs::write(root.join("sub/b.txt"), "b")?;
        fs::write(root.join(".env"), "hidden")?;
        fs::write(root.join("hidden/key"), "hidden")?;
        fs::write(outside.join("secret"), "secret")?;
        fs::write(outside.join("dir/deep"), "secret")?;
        symlink("../outside/secret", root.join("out"))?;
        symlink("../outside/dir", root.join("out_dir"))?;
        symlink(outside.join("secret"), root.join("out_absolute"))?;
        symlink("../outside/new", root.join("out_dangling"))?;
        symlink("loop", root.join("loop"))?;
        symlink("..", root.join("up"))?;
        symlink(".env", root.join("to_hidden"))?;
        fs::hard_link(root.join(".env"), root.join("hard_hidden"))?;
        Ok(this)
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("root")
    }

    fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    fn grant(&self, rights: FsRights) -> io::Result<FsGrant> {
        Ok(FsGrant {
            roots: vec![FsRoot {
                path: self.root().canonicalize()?,
                rights,
            }],
            deny_read: vec![".env".to_owned(), "hidden".to_owned()],
            allow_read: Vec::new(),
            spelled: Vec::new(),
        })
    }

    /// Every regular file with its content. What a guest may make inside the root is links only.
    fn files(&self) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        let mut dirs = vec![self.base.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    dirs.push(entry.path());
                } else if kind.is_file() {
                    files.insert(entry.path(), fs::read(entry.path())?);
                }
            }
        }
        Ok(files)
    }
}

/// Every operation must fail and change nothing, and one that is allowed must work.
async fn refused(lab: &Lab, operations: &[&str], rights: FsRights) -> CheckResult {
    match try_all(lab, operations, rights).await {
        Ok(verdict) => verdict,
        Err(error) => {
            CheckResult::unavailable(format!("the files to probe cannot be made: {error}"))
        }
    }
}

async fn try_all(lab: &Lab, operations: &[&str], rights: FsRights) -> io::Result<CheckResult> {
    let trees = Trees::new(lab.dir())?;
    let before = trees.files()?;
    let answer = ask(lab, "ra.txt|", trees.grant(rights)?).await;
    if answer.as_deref() != Ok("a") {
        return Ok(CheckResult::broken(format!("`ra.txt|` gave {answer:?}")));
    }
    for operation in operations {
        let answer = ask(lab, operation, trees.grant(rights)?).await;
        let is_refused = answer.as_ref().is_ok_and(|text| text.starts_with('E'));
        if !is_refused {
            return Ok(CheckResult::broken(format!(
                "`{operation}` gave {answer:?}"
            )));
        }
    }
    Ok(match trees.files()? == before {
        true => CheckResult::Holds,
        false => CheckResult::broken("a refused operation changed a file"),
    })
}

async fn ungranted(lab: &Lab) -> CheckResult {
    match ask(lab, "r/etc/passwd|", FsGrant::default())
        .await
        .as_deref()
    {
        Ok("no directory") => CheckResult::Holds,
        other => CheckResult::broken(format!("a guest without a grant got {other:?}")),
    }
}

/// What the guest said; a call that failed or did not end is an error with the reason.
async fn ask(lab: &Lab, operation: &str, files: FsGrant) -> Result<String, String> {
    let call = GuestCall {
        files,
        ..GuestCall::new("files", operation, PATIENT)
    };
    match lab.call(call).await {
        Some(Ok(output)) => Ok(output.to_text()),
        Some(Err(failure)) => Err(failure.message),
        None => Err("no end".to_owned()),
    }
}

#[cfg(target_os = "linux")]
async fn special(lab: &Lab) -> CheckResult {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let tried = async {
        let trees = Trees::new(lab.dir())?;
        let fifo = trees.root().join("fifo");
        mknodat(CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
        for operation in SPECIAL {
            let answer = ask(lab, operation, trees.grant(ALL)?).await;
            if !answer.as_ref().is_ok_and(|text| text.starts_with('E')) {
                return Ok(CheckResult::broken(format!(
                    "`{operation}` gave {answer:?}"
                )));
            }
        }
        io::Result::Ok(CheckResult::Holds)
    };
    tried
        .await
        .unwrap_or_else(|error| CheckResult::unavailable(format!("a FIFO cannot be made: {error}")))
}

#[cfg(not(target_os = "linux"))]
async fn special(_: &Lab) -> CheckResult {
    CheckResult::unavailable(format!("{SPECIAL:?} are tried on Linux only"))
}
