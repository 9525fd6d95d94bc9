//! Which processes of hosts run, for hosts on other machines: each says so again and again, in a store that several machines share.
//!
//! A process that has not said so for a while, by the clock of the server, is taken for ended, and so its calls without an end. A file is
//! shared by the processes of one machine, which can look for each other: nothing is kept there.

use std::time::Duration;

use crate::audit::record::HostProcess;
use crate::error::StoreError;
use crate::store::{Access, Store};

/// How long a process is taken for running after it last said so.
pub const PROCESS_LEASE: Duration = Duration::from_secs(30);

impl Store {
    /// Says that `process` runs, for [`PROCESS_LEASE`] from now on. Does nothing where processes can look for each other.
    ///
    /// Errors: what the database says.
    pub async fn keep_process(&self, process: HostProcess) -> Result<(), StoreError> {
        self.run(
            "say that this host runs",
            Access::Write,
            move |operations| operations.keep_process(&process),
        )
        .await
    }

    /// Says what replica `process` is, which said that it runs; gives back whether a process of another host that runs has the same name. Never
    /// where processes can look for each other.
    ///
    /// Errors: what the database says.
    pub async fn keep_replica(
        &self,
        process: HostProcess,
        replica: String,
    ) -> Result<bool, StoreError> {
        self.run(
            "say which replica this host is",
            Access::Write,
            move |operations| operations.keep_replica(&process, &replica),
        )
        .await
    }

    /// The processes that run, wherever they are; `None` where they can look for each other.
    ///
    /// Errors: what the database says.
    pub async fn running_processes(&self) -> Result<Option<Vec<HostProcess>>, StoreError> {
        self.run("read which hosts run", Access::Read, |operations| {
            operations.running_processes()
        })
        .await
    }
}
