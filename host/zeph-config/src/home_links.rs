//! Links in the home directory with names that programs obey at every start, such as those of a repository of dotfiles: what they lead
//! to is obeyed under their names, wherever it lies.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::Path;

use zeph_core::git_config::HomeLink;
use zeph_core::obeyed::{ANYWHERE, HOME, WHERE_PRESENT, is_fetched};

/// Directories of programs. A home has one more of them than the list of names: in a project, `bin` is an ordinary name.
const PROGRAMS: [(&str, &str); 3] = [
    (".local/bin", ".local/bin"),
    (".cargo/bin", ".cargo/bin"),
    ("bin", ".local/bin"),
];

/// How deep the directories of start-up files are looked through, such as `.config/fish/conf.d`.
const DEPTH_MAX: usize = 3;

/// Most entries that are looked at: a few milliseconds. Plugins of editors can be many.
const ENTRIES_MAX: usize = 2_000;

/// Most links; repositories of dotfiles have some thirty.
const LINKS_MAX: usize = 256;

/// The links in `home`, and in `config_home` in the place of `.config`.
///
/// Limits: names with `*` are omitted. Of programs only scripts count, and none among packages and products: what a build makes
/// has to be replaced by the next one.
pub(crate) fn home_links(home: &Path, config_home: Option<&Path>) -> Vec<HomeLink> {
    let listed = Listed::of(home);
    let path_of = |name: &str| match (name.strip_prefix(".config/"), config_home) {
        (Some(rest), Some(config_home)) => Some(config_home.join(rest)),
        _ => listed.can_hold(name).then(|| home.join(name)),
    };
    let mut search = Search {
        links: Vec::new(),
        left: ENTRIES_MAX,
    };
    for (folder, name) in PROGRAMS {
        search.programs(home, &home.join(folder), name);
    }
    // Of what is a name anywhere, the home may hold the data of a program, which is much: only its uppermost level counts.
    let anywhere = ANYWHERE.iter().chain(&WHERE_PRESENT).map(|name| (name, 1));
    for (name, depth) in HOME.iter().map(|name| (name, DEPTH_MAX)).chain(anywhere) {
        if name.contains('*') || PROGRAMS.iter().any(|(folder, _)| folder == name) {
            continue;
        }
        if let Some(path) = path_of(name) {
            search.name(home, &path, name, depth);
        }
    }
    search.links.truncate(LINKS_MAX);
    search.links
}

/// What lies in a home itself, in lower case; none where that cannot be told. Few of a hundred names begin there.
struct Listed(Option<HashSet<OsString>>);

impl Listed {
    fn of(home: &Path) -> Self {
        let entries = fs::read_dir(home).map(|entries| entries.take(ENTRIES_MAX));
        let name = |entry: io::Result<DirEntry>| Ok(entry?.file_name().to_ascii_lowercase());
        let names: io::Result<HashSet<_>> = entries.and_then(|entries| entries.map(name).collect());
        Self(names.ok().filter(|names| names.len() < ENTRIES_MAX))
    }

    /// Whether something in the home can have a `name`, a relative path in lower case.
    fn can_hold(&self, name: &str) -> bool {
        let first = name.split('/').next().unwrap_or(name);
        let names = self.0.as_ref();
        names.is_none_or(|names| names.contains(OsStr::new(first)))
    }
}

struct Search {
    links: Vec<HomeLink>,
    left: usize,
}

impl Search {
    fn name(&mut self, home: &Path, path: &Path, name: &'static str, depth: usize) {
        if is_through_link(home, path) {
            self.links.push(HomeLink {
                path: path.to_owned(),
                name,
            });
        } else if path.is_dir() {
            self.below(path, name, depth);
        }
    }

    fn below(&mut self, folder: &Path, name: &'static str, depth: usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Some(left) = self.left.checked_sub(1) else {
                return;
            };
            self.left = left;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => self.links.push(HomeLink { path, name }),
                Ok(kind) if kind.is_dir() && depth > 1 => self.below(&path, name, depth - 1),
                _ => {}
            }
        }
    }

    fn programs(&mut self, home: &Path, folder: &Path, name: &'static str) {
        let known = self.links.len();
        self.name(home, folder, name, 1);
        let mut found = self.links.split_off(known);
        found.retain(|link| link.path == folder || is_script(&link.path));
        self.links.extend(found);
    }
}

/// Whether `path`, or a directory on the way to it from `home`, is a link.
fn is_through_link(home: &Path, path: &Path) -> bool {
    let above = path.ancestors().skip(1);
    let mut above = above.take_while(|above| above.starts_with(home) && *above != home);
    path.is_symlink() || above.any(Path::is_symlink)
}

/// Whether a program that a link leads to is a script that no tool keeps.
fn is_script(link: &Path) -> bool {
    let Ok(target) = link.canonicalize() else {
        return false;
    };
    let opened = target.is_file().then(|| File::open(&target).ok()).flatten();
    let mut start = [0; 2];
    let is_read = opened.is_some_and(|mut file| file.read_exact(&mut start).is_ok());
    is_read && start == *b"#!" && !target.iter().any(is_fetched)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::{ENTRIES_MAX, home_links};

    #[test]
    fn links_of_a_home_are_those_that_shells_and_programs_obey() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for (path, text) in [
            ("dotfiles/bashrc", ""),
            ("dotfiles/tool", "#!/bin/sh\n"),
            ("dotfiles/built", "\x7fELF"),
            ("dotfiles/dist/cli", "#!/usr/bin/env node\n"),
            (".config/fish/conf.d/own.fish", ""),
            (".zshrc", ""),
            (".local/bin/own", "#!/bin/sh\n"),
            ("notes/x", ""),
        ] {
            let path = home.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (link, target) in [
            (".bashrc", "dotfiles/bashrc"),
            (".profile", "dotfiles/not-there"),
            (".vimrc", "dotfiles/vimrc"),
            (".config/nvim", "../dotfiles/nvim"),
            (
                ".config/fish/conf.d/a.fish",
                "../../../dotfiles/fish/a.fish",
            ),
            (".local/bin/tool", "../../dotfiles/tool"),
            (".local/bin/built", "../../dotfiles/built"),
            (".local/bin/cli", "../../dotfiles/dist/cli"),
            ("notes/y", "x"),
            (".cargo", "dotfiles/cargo"),
        ] {
            symlink(target, home.join(link)).unwrap();
        }
        let links = home_links(home, None);
        let mut found: Vec<_> = links
            .iter()
            .map(|link| (link.path.strip_prefix(home).unwrap(), link.name))
            .collect();
        found.sort();
        let expect = [
            (".bashrc", ".bashrc"),
            (".cargo/bin", ".cargo/bin"),
            (".cargo/config", ".cargo/config"),
            (".cargo/config.toml", ".cargo/config.toml"),
            (".cargo/env", ".cargo/env"),
            (".config/fish/conf.d/a.fish", ".config/fish"),
            (".config/nvim", ".config/nvim"),
            (".local/bin/tool", ".local/bin"),
            (".profile", ".profile"),
            (".vimrc", ".vimrc"),
        ];
        assert_eq!(found, expect.map(|(path, name)| (Path::new(path), name)));
    }

    #[test]
    fn a_directory_of_configuration_elsewhere_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink("/dotfiles/nvim", elsewhere.path().join("nvim")).unwrap();
        let links = home_links(home.path(), Some(elsewhere.path()));
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].path, elsewhere.path().join("nvim"));
        let within = home.path().join("settings");
        fs::create_dir(&within).unwrap();
        symlink("/dotfiles/nvim", within.join("nvim")).unwrap();
        let links = home_links(home.path(), Some(&within));
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].path, within.join("nvim"));
    }

    #[test]
    fn a_home_of_many_entries_is_looked_at_by_name() {
        let home = tempfile::tempdir().unwrap();
        for at in 0..=ENTRIES_MAX {
            fs::write(home.path().join(format!("{at}")), "").unwrap();
        }
        symlink("dotfiles/bashrc", home.path().join(".bashrc")).unwrap();
        let links = home_links(home.path(), None);
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].name, ".bashrc");
    }
}
