//! `@file` in a prompt: the file is attached to what the model is sent.
//!
//! A word that begins with `@` names a file when there is one of that name below the working directory, by the rules that tools are
//! held to: hidden files are not attached. What names no file stays text. The name is resolved once; what is opened then is what stands at
//! that path, and no link that came there since.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use zeph_agent::message::{IMAGE_BYTES_MAX, Image};
use zeph_agent::transcript::Attachment;
use zeph_core::capability::FsGrant;
use zeph_engine::fs::FsPolicy;
use zeph_shell::held_object::open_to_read;

/// Bytes of one attached file.
const FILE_BYTES_MAX: u64 = 1_048_576;

/// Files of one prompt.
const FILES_MAX: usize = 32;

/// The ends of the names of images that models can see.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The files that a prompt attaches, each once, with what is wrong with those that cannot be.
pub(crate) fn attached(prompt: &str, grant: &FsGrant) -> (Vec<Attachment>, Vec<String>) {
    let (mut attachments, mut problems) = (Vec::new(), Vec::new());
    let mut seen: Vec<PathBuf> = Vec::new();
    for name in names(prompt) {
        let Some((name, path)) = file(name, grant).filter(|(_, path)| !seen.contains(path)) else {
            continue;
        };
        let read = match attachments.len() < FILES_MAX {
            true => read(name, &path),
            false => Err(format!("a prompt has at most {FILES_MAX} files")),
        };
        match read {
            Ok(attachment) => attachments.push(attachment),
            Err(problem) => problems.push(format!("`@{name}` is not attached: {problem}")),
        }
        seen.push(path);
    }
    (attachments, problems)
}

/// The words that may name files: `@path`, and `@"a path"`.
fn names(prompt: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = prompt;
    let mut before = ' ';
    while let Some(idx) = rest.find('@') {
        before = rest[..idx].chars().next_back().unwrap_or(before);
        let after = &rest[idx + 1..];
        let name = match after.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => after.split(char::is_whitespace).next().unwrap_or_default(),
        };
        if !name.is_empty() && (before.is_whitespace() || "([{".contains(before)) {
            names.push(name);
        }
        before = '@';
        rest = after;
    }
    names
}

/// The file a word means, and its name; a full stop or a comma after it may belong to the sentence.
fn file<'a>(word: &'a str, grant: &FsGrant) -> Option<(&'a str, PathBuf)> {
    let trimmed = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
    let found = |name| Some((name, below(name, grant)?));
    [word, trimmed].into_iter().find_map(found)
}

/// The real path, when it is a visible file below a granted directory.
pub(crate) fn below(name: &str, grant: &FsGrant) -> Option<PathBuf> {
    let first = grant.roots.first()?;
    let path = first.path.join(name).canonicalize().ok()?;
    // The guard of tools decides; without one, as where a pattern cannot be read, nothing is visible.
    let sees = || FsPolicy::new(grant).is_ok_and(|policy| policy.sees(&path));
    (path.is_file() && sees()).then_some(path)
}

fn read(name: &str, path: &Path) -> Result<Attachment, String> {
    let end = path
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default();
    let is_image = IMAGES.iter().any(|known| end.eq_ignore_ascii_case(known));
    let bytes_max = match is_image {
        true => IMAGE_BYTES_MAX as u64,
        false => FILE_BYTES_MAX,
    };
    let file = open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!(
            "it is longer than {bytes_max} bytes; let the model read it in parts"
        ));
    }
    let (text, image) = match is_image {
        true => (None, Some(Image::read(&bytes)?)),
        false => {
            let text = String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
            (Some(text), None)
        }
    };
    Ok(Attachment {
        name: name.to_owned(),
        text,
        image,
    })
}

/// Opens a regular file at its real path.
fn open(path: &Path) -> io::Result<File> {
    let file = File::from(open_to_read(path)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use zeph_core::capability::{FsGrant, FsRights, FsRoot};

    use super::{FILES_MAX, attached, below, names, read};

    #[test]
    fn what_tools_do_not_see_is_not_attached() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("keys/old")).unwrap();
        for path in ["keys/a.pem", "keys/old/b.pem", "keys/old/c.txt", "d.key"] {
            fs::write(top.join(path), path).unwrap();
        }
        let grant = |deny: &[&str], allow: &[&str]| FsGrant {
            deny_read: deny.iter().map(|&text| text.to_owned()).collect(),
            allow_read: allow.iter().map(|&text| text.to_owned()).collect(),
            ..readable(&top)
        };
        for (deny, allow, name, is_attached) in [
            (&["*.pem"][..], &[][..], "keys/old/b.pem", false),
            (&["keys/*.pem"], &[], "keys/a.pem", false),
            (&["keys"], &[], "keys/old/c.txt", false),
            (&["**/keys/**"], &["keys/*.pem"], "keys/a.pem", true),
            // An exception does not reach beyond a `/` either.
            (&["**/keys/**"], &["keys/*.pem"], "keys/old/b.pem", false),
            (&["*.pem"], &[], "d.key", true),
            (&["{"], &[], "d.key", false),
        ] {
            let found = below(name, &grant(deny, allow));
            assert_eq!(found.is_some(), is_attached, "{name} {deny:?} {allow:?}");
        }
    }

    #[test]
    fn a_link_that_came_after_the_name_was_resolved_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("work/docs")).unwrap();
        fs::create_dir(top.join("outside")).unwrap();
        for path in ["work/docs/notes", "work/notes", "outside/notes"] {
            fs::write(top.join(path), path).unwrap();
        }
        let resolved = [top.join("work/docs/notes"), top.join("work/notes")];
        let text = |path| read("notes", path).map(|one| one.text.unwrap_or_default());
        assert_eq!(text(&resolved[0]).unwrap(), "work/docs/notes");
        fs::rename(top.join("work/docs"), top.join("work/aside")).unwrap();
        symlink(top.join("outside"), top.join("work/docs")).unwrap();
        fs::remove_file(&resolved[1]).unwrap();
        symlink(top.join("outside/notes"), &resolved[1]).unwrap();
        for path in &resolved {
            assert!(text(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn what_is_no_regular_file_is_neither_read_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let pipe = top.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        for path in [pipe, top] {
            let problem = read("it", &path).unwrap_err();
            assert!(problem.contains("regular file"), "{problem}");
        }
    }

    #[test]
    fn a_file_is_attached_once_and_under_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir(top.join("many")).unwrap();
        fs::write(top.join("t.txt"), "text").unwrap();
        let many = (0..FILES_MAX).map(|n| format!("many/{n}"));
        let many: Vec<String> = many.collect();
        for name in &many {
            fs::write(top.join(name), "text").unwrap();
        }
        let names = |prompt: &str| {
            let (attachments, problems) = attached(prompt, &readable(&top));
            let names: Vec<String> = attachments.into_iter().map(|one| one.name).collect();
            (names, problems)
        };
        let (attached, problems) = names("see @t.txt, and (@t.txt), @./t.txt.");
        assert_eq!((attached, problems.len()), (vec!["t.txt".to_owned()], 0));
        let (attached, problems) = names(&format!("@{} @t.txt", many.join(" @")));
        assert_eq!(attached, many);
        assert!(problems[0].contains("`@t.txt`"), "{problems:?}");
    }

    fn readable(top: &Path) -> FsGrant {
        FsGrant {
            roots: vec![FsRoot {
                path: top.to_owned(),
                rights: FsRights {
                    read: true,
                    ..FsRights::default()
                },
            }],
            deny_read: Vec::new(),
            allow_read: Vec::new(),
            spelled: Vec::new(),
        }
    }

    #[test]
    fn words_with_an_at_sign_name_files() {
        assert_eq!(
            names("see @src/lib.rs and (@\"a b.txt\")"),
            ["src/lib.rs", "a b.txt"]
        );
        assert_eq!(names("mail a@b.example, @ nothing"), Vec::<&str>::new());
        assert_eq!(names("@first"), ["first"]);
    }
}
