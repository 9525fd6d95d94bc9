//! The databases that the suite runs on. Another one adds its factory here, and a line to [`on_every_database`].

use std::path::PathBuf;

use tempfile::TempDir;
use zeph_store::Store;

use crate::server::{Schema, Server, programs};
use crate::setup::{fresh, memory, open, open_url};

/// One database, empty at first. Dropping it removes it.
pub(crate) trait Database {
    /// Whether its program is installed; says so where it is not.
    fn is_there() -> bool {
        true
    }

    /// A database of its own for one test.
    fn fresh() -> Self;

    /// A host on it. A lasting database may have many, one after another and at a time, and each finds what the others left.
    fn open(&self) -> Store;
}

/// A file of SQLite. It lasts.
pub(crate) struct SqliteFile {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

impl Database for SqliteFile {
    fn fresh() -> Self {
        let (folder, path) = fresh();
        Self {
            path,
            _folder: folder,
        }
    }

    fn open(&self) -> Store {
        open(&self.path)
    }
}

/// SQLite in the memory of its host, gone with it.
pub(crate) struct SqliteMemory;

impl Database for SqliteMemory {
    fn fresh() -> Self {
        Self
    }

    fn open(&self) -> Store {
        memory()
    }
}

/// A schema of PostgreSQL. It lasts.
pub(crate) struct Postgres {
    pub(crate) schema: Schema,
}

impl Database for Postgres {
    fn is_there() -> bool {
        programs().is_some()
    }

    fn fresh() -> Self {
        let schema = Server::of_run().unwrap().schema();
        Self { schema }
    }

    fn open(&self) -> Store {
        open_url(&self.schema.url())
    }
}

/// Makes a test of each function for each database; the functions under `lasting` run where other hosts find what one left.
macro_rules! on_every_database {
    (any: [$($any:ident),* $(,)?], lasting: [$($lasting:ident),* $(,)?] $(,)?) => {
        mod sqlite_file {
            $crate::database::tests_of!(SqliteFile: $($any)* $($lasting)*);
        }

        mod postgres {
            $crate::database::tests_of!(Postgres: $($any)* $($lasting)*);
        }

        mod sqlite_memory {
            $crate::database::tests_of!(SqliteMemory: $($any)*);
        }
    };
}

/// Makes a test of each function for one database.
macro_rules! tests_of {
    ($database:ident: $($test:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                // The first use may start a server.
                if <$crate::database::$database as $crate::database::Database>::is_there() {
                    super::$test::<$crate::database::$database>().await;
                }
            }
        )*
    };
}

pub(crate) use {on_every_database, tests_of};
