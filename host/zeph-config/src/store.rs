//! Where the database is.

use std::path::{Path, PathBuf};

use super::store_url::StoreUrl;

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// An absolute path; neither file nor folder need exist yet.
    File(PathBuf),
    /// In memory: gone when the process ends.
    Memory,
    /// On a PostgreSQL server.
    Server(StoreServer),
}

/// A PostgreSQL server, and what the host keeps for itself beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreServer {
    /// Where it is (`store.url`).
    pub url: StoreUrl,
    /// The stored secret that is its password (`store.password_secret`).
    pub password_secret: Option<String>,
    /// The folder that the database would be in without a server; it need not exist yet. None where the user has none.
    pub folder: Option<PathBuf>,
}

impl StoreLocation {
    /// The path of the file, when there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Memory | Self::Server(_) => None,
        }
    }

    /// The folder of the values of secrets: beside the database. Where the path is a link and nothing is there, beside the link, if it is
    /// there: so it stayed when the file was moved elsewhere. Never the other way round: the link may lie where tools make folders.
    pub fn secrets(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(beside(path)),
            Self::Memory => None,
            Self::Server(server) => Some(server.folder.as_ref()?.join("secrets")),
        }
    }
}

fn beside(path: &Path) -> PathBuf {
    const SECRETS: &str = "secrets";
    let secrets = path.with_file_name(SECRETS);
    if !path.is_symlink() {
        return secrets;
    }
    match std::fs::canonicalize(path).map(|real| real.with_file_name(SECRETS)) {
        Ok(of_file) if of_file.exists() || !secrets.exists() => of_file,
        _ => secrets,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn secrets_of_a_link_are_beside_the_file_unless_they_stayed_beside_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["real", "link"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let (file, link) = (root.join("real/zeph.db"), root.join("link/zeph.db"));
        symlink(&file, &link).unwrap();
        let secrets = |path: &Path| StoreLocation::File(path.to_owned()).secrets().unwrap();
        // It leads nowhere.
        assert_eq!(secrets(&link), root.join("link/secrets"));
        fs::write(&file, "").unwrap();
        assert_eq!(secrets(&link), root.join("real/secrets"));
        fs::create_dir(root.join("link/secrets")).unwrap();
        assert_eq!(secrets(&link), root.join("link/secrets"));
        // What is made beside the link later takes nothing away.
        fs::create_dir(root.join("real/secrets")).unwrap();
        assert_eq!(secrets(&link), root.join("real/secrets"));
        assert_eq!(secrets(&file), root.join("real/secrets"));
    }
}
