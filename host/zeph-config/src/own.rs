//! The host's own files: no tool reads or alters them, whatever is granted.
//!
//! They are hidden by patterns of `deny_read`, so an exception of the operator can still show them; that is a warning.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use zeph_core::capability::FsRoot;

use super::locate::{self, PROGRAM, PROJECT_FOLDER};
use super::origin::path_text;
use super::paths::{join_glob, spellings};
use super::surroundings::Surroundings;

/// The host's own files and folders, in all their spellings: those are looked up once, when a path is added.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles {
    /// With all that is below them.
    trees: Vec<PathBuf>,
    /// With their companions: `-wal`, `-shm`, `.1`, a copy set aside.
    files: Vec<PathBuf>,
    /// Folders, and the ending of the names in them that count.
    kinds: Vec<(PathBuf, &'static str)>,
}

impl OwnFiles {
    /// The program's folders in the base directories, used or not.
    pub(crate) fn of_program(surroundings: &Surroundings) -> Self {
        let Surroundings {
            config_home,
            data_home,
            state_home,
            cache_home,
            ..
        } = surroundings;
        let homes = [config_home, data_home, state_home, cache_home];
        let mut own = Self::default();
        for home in homes.into_iter().flatten() {
            own.add_tree(Some(&home.join(PROGRAM)));
        }
        own
    }

    pub(crate) fn add_tree(&mut self, tree: Option<&Path>) {
        add(&mut self.trees, tree);
    }

    pub(crate) fn add_file(&mut self, file: Option<&Path>) {
        add(&mut self.files, file);
    }

    /// The files of `folder` itself whose names end in `.ending`. For tools only: a jail cannot hide what is not there yet.
    pub(crate) fn add_kind(&mut self, folder: &Path, ending: &'static str) {
        self.kinds.push((folder.to_owned(), ending));
    }

    /// The `.zeph` folders that can count in this run, and those at the roots, which count in runs started there.
    ///
    /// Not `**/.zeph`: a pattern without a fixed beginning makes the guard search whole roots for second names.
    pub(crate) fn add_project_folders(&mut self, surroundings: &Surroundings, roots: &[FsRoot]) {
        let at_roots = roots.iter().map(|root| root.path.join(PROJECT_FOLDER));
        for folder in locate::project_folders(surroundings)
            .into_iter()
            .chain(at_roots)
        {
            self.add_tree(Some(&folder));
        }
    }

    /// Them all as paths, in all spellings, the companions of a file included, those that may come and those that are there: for what
    /// cannot match a glob. Blocks.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        const COMPANIONS: [&str; 7] = [
            "",
            "-wal",
            "-shm",
            "-journal",
            ".1",
            ".lock",
            ".plugin-folders",
        ];
        // What hides a folder hides what is in it.
        let is_within = |path: &&PathBuf| self.trees.iter().any(|tree| path.starts_with(tree));
        let alone = self.files.iter().filter(|path| !is_within(path));
        let files = alone.flat_map(|path| {
            let expected = COMPANIONS.map(|companion| {
                let mut name = path.clone().into_os_string();
                name.push(companion);
                PathBuf::from(name)
            });
            let mut paths = Vec::from(expected);
            for there in companions_of(path) {
                if !paths.contains(&there) {
                    paths.push(there);
                }
            }
            paths
        });
        self.trees.iter().cloned().chain(files).collect()
    }

    /// The globs that hide them.
    pub(crate) fn patterns(&self) -> Vec<String> {
        let trees = self.trees.iter().map(|path| join_glob(path, ""));
        let files = self.files.iter().map(|path| join_glob(path, "") + "*");
        let kinds = self.kinds.iter().flat_map(|(folder, ending)| {
            let folders = spellings(folder).into_iter();
            folders.map(move |folder| join_glob(&folder, &format!("*.{ending}")))
        });
        trees.chain(files).chain(kinds).collect()
    }

    /// What the operator may not have meant: a root among the hidden files, an exception that shows them.
    pub(crate) fn warnings(&self, roots: &[FsRoot], allow_read: &[String]) -> Vec<String> {
        let paths = self.trees.iter().chain(&self.files);
        let hidden = roots
            .iter()
            .filter(|root| paths.clone().any(|own| root.path.starts_with(own)))
            .map(|root| {
                let path = path_text(&root.path);
                format!("`tools.file.allowed_paths`: {path} belongs to the host's own files and is hidden from tools")
            });
        let revealed = allow_read
            .iter()
            .filter_map(|glob| Some((glob, paths.clone().find(|own| shows(glob, own))?)))
            .map(|(glob, own)| {
                let own = path_text(own);
                format!("`tools.file.allow_read`: \"{glob}\" also shows tools the host's own {own}")
            });
        hidden.chain(revealed).collect()
    }
}

fn add(known: &mut Vec<PathBuf>, path: Option<&Path>) {
    let Some(path) = path.filter(|path| !known.iter().any(|known| known == path)) else {
        return;
    };
    for spelled in spellings(path) {
        if !known.contains(&spelled) {
            known.push(spelled);
        }
    }
}

/// What stands beside `file` with its name and more behind it. Blocks.
fn companions_of(file: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Vec::new();
    };
    let Ok(entries) = folder.read_dir() else {
        return Vec::new();
    };
    let name = name.as_bytes();
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().as_bytes().starts_with(name))
        .map(|entry| folder.join(entry.file_name()))
        .collect()
}

/// Whether an exception covers `path` or a folder above it, which is as good.
fn shows(glob: &str, path: &Path) -> bool {
    let compiled = GlobBuilder::new(glob).literal_separator(true).build();
    compiled.is_ok_and(|glob| {
        let glob = glob.compile_matcher();
        path.ancestors().any(|ancestor| glob.is_match(ancestor))
    })
}
