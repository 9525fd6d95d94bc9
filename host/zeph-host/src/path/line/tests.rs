//! Lines in a directory of their own, with links and folders.

use std::path::{Path, PathBuf};

use zeph_core::command::{LinePlaces, WordPlace};
use zeph_shell::analysis::analyse;

use super::{Here, places};

struct Lab {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["src", "other/deep", "home"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("other/deep"), root.join("src/link")).unwrap();
        Self { _dir: dir, root }
    }

    fn of(&self, text: &str) -> LinePlaces {
        let line = analyse(text);
        let home = self.root.join("home");
        let here = Here {
            directory: &self.root,
            home: Some(&home),
            has_private_tmp: true,
            kept: &[],
            looks_at_words: true,
        };
        places(&line, here)
    }

    /// Relative to the root.
    fn short(&self, path: &Path) -> String {
        let short = path.strip_prefix(&self.root).unwrap_or(path);
        short.to_string_lossy().into_owned()
    }

    fn redirections(&self, text: &str) -> Vec<Option<Vec<String>>> {
        let places = self.of(text).redirections;
        let shown = |paths: Vec<PathBuf>| paths.iter().map(|path| self.short(path)).collect();
        places.into_iter().map(|place| place.map(shown)).collect()
    }

    fn words(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for word in self.of(text).words {
            match word.place {
                WordPlace::Known(paths) => found.extend(paths.iter().map(|path| self.short(path))),
                WordPlace::Unknown => found.push("?".to_owned()),
                WordPlace::Like { beginnings, end } => {
                    let beginning = self.short(Path::new(&beginnings[0]));
                    found.push(format!("{beginning}…{end}"));
                }
            }
        }
        found
    }
}

#[test]
fn redirections_lead_where_the_line_may_be() {
    let lab = Lab::new();
    let check = |text: &str, expected: &[Option<&[&str]>]| {
        let expected: Vec<Option<Vec<String>>> = expected
            .iter()
            .map(|place| place.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect()))
            .collect();
        assert_eq!(lab.redirections(text), expected, "{text}");
    };
    check("ls > a", &[Some(&["a"])]);
    check("ls > src/../a", &[Some(&["a"])]);
    check("ls > src/link/a", &[Some(&["other/deep/a"])]);
    check("ls > src/link/../a", &[Some(&["other/a"])]);
    check("ls > /dev/null", &[Some(&["/dev/null"])]);
    check("ls > ~/a", &[Some(&["home/a"])]);
    check("HOME=/x ls > ~/a", &[None]);
    check("ls > ~root/a", &[None]);
    check("ls > \"$x\"", &[None]);
    check("cd src && ls > a", &[Some(&["a", "src/a"])]);
    check(
        "cd src/link/.. && ls > a",
        &[Some(&["a", "other/a", "src/a"])],
    );
    check("cd $x && ls > a", &[None]);
    check("cd $x && ls > /dev/null", &[Some(&["/dev/null"])]);
    check("CDPATH=/ ; cd src && ls > a", &[None]);
}

#[test]
fn words_are_the_files_they_may_name() {
    let lab = Lab::new();
    let check = |text: &str, expected: &[&str]| {
        let found = lab.words(text);
        for path in expected {
            assert!(
                found.iter().any(|found| found == path),
                "{text}: {path} is not in {found:?}"
            );
        }
        let is_unknown = found.iter().any(|found| found == "?");
        assert_eq!(is_unknown, expected.contains(&"?"), "{text}: {found:?}");
    };
    check("cat a src/link/b", &["a", "other/deep/b"]);
    check("dd if=a of=src/b", &["a", "src/b"]);
    check("git show HEAD:src/a", &["src/a"]);
    check("curl -d @src/a x", &["src/a"]);
    check("cc -Isrc -o src/a b", &["src", "src/a"]);
    check("tar -C src -cf x a", &["src/a", "a"]);
    check("make --directory=src a", &["src/a"]);
    check("docker run -v src/a:/b x", &["src/a", "/b"]);
    check("./src/run", &["src/run"]);
    check("cat src/*.rs src/a*", &["src….rs", "src/a…"]);
    check("cat '*' src/a", &["*", "src/a"]);
    check("cat $x", &["?"]);
    check("cat \"$x\" src/a", &["?", "src/a"]);
    check("ls | xargs cat", &["?"]);
    check("cat ~/a", &["home/a"]);
    check("cat ~user/a", &["?"]);
    check("cat */../a", &["?"]);
    check("cd $x; cat a", &["?"]);
    check("cd $x; cat /a", &["?", "/a"]);
}

#[test]
fn a_move_to_where_nothing_stays_is_found() {
    let lab = Lab::new();
    let home = lab.root.join("home");
    let work = home.join("src/project");
    std::fs::create_dir_all(work.join("deep")).unwrap();
    let kept = [work.clone(), lab.root.join("other")];
    let lost = |text: &str| {
        let here = Here {
            directory: &work,
            home: Some(&home),
            has_private_tmp: true,
            kept: &kept,
            looks_at_words: false,
        };
        places(&analyse(text), here).lost
    };
    for (text, expected) in [
        ("mv a ..", ".."),
        ("mv a ../b", "../b"),
        ("mv -v a b ../../", "../../"),
        ("mv a ~/", "~/"),
        ("mv a $HOME/b", "$HOME/b"),
        ("mv a \"$HOME\"", "$HOME"),
        ("mv *.txt /tmp/", "/tmp/"),
        ("mv a /tmp/b && ls /tmp", "/tmp/b"),
        ("mv -t /tmp a", "/tmp"),
        ("mv -vt/tmp a", "/tmp"),
        ("mv --target-directory=/var/tmp a", "/var/tmp"),
        ("mv --target=/tmp a", "/tmp"),
        ("mv --t /tmp a", "/tmp"),
        ("rsync -a --remove-source-files a deep /tmp/b/", "/tmp/b/"),
        ("tar --remove-files -czf /tmp/a.tgz deep", "/tmp/a.tgz"),
        ("tar cf ../a.tar --remove-f deep", "../a.tar"),
        ("env mv a /tmp/b", "/tmp/b"),
        ("ls | xargs mv -t /tmp", "/tmp"),
        ("find . -name '*.log' -exec mv {} /tmp \\;", "/tmp"),
        ("for f in *; do mv \"$f\" ..; done", ".."),
        ("cp a b; mv -- -a ~", "~"),
    ] {
        assert_eq!(lost(text), [expected], "{text}");
    }
    for text in [
        "mv a b",
        "mv a deep/",
        "mv /tmp/a b",
        "mv /tmp/a /tmp/b",
        "mv /tmp/*.o /tmp/b",
        "mv a /tmp/b && mv c a && mv /tmp/b c",
        "mv a /tmp/ && make && cp -r /tmp/a out",
        "mv a ~/.cache/b",
        "mv a $T/b",
        "mv a /srv/b",
        "cd deep && mv a ..",
        "cp a ..",
        "git mv a ..",
        "HOME=$PWD/deep; mv a ~/b",
        "mv --help",
        "rsync -a a /tmp/b/",
        "rsync -a --remove-source-files a deep/",
        "tar czf /tmp/a.tgz deep",
        "tar --remove-files -cf a.tar deep",
        "mv",
    ] {
        assert_eq!(lost(text), [""; 0], "{text}");
    }
    let to_other = format!("mv a {}", lab.root.join("other").display());
    assert_eq!(lost(&to_other), [""; 0]);
}
