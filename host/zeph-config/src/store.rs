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

    /// The folder of the values of secrets: beside the database.
    pub fn secrets(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.with_file_name("secrets")),
            Self::Memory => None,
            Self::Server(server) => Some(server.folder.as_ref()?.join("secrets")),
        }
    }
}
