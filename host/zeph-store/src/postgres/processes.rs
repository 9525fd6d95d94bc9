//! Which processes of hosts run, by the clock of the server.

use super::transaction::Transaction;
use super::value::{get, unreadable};
use crate::audit::record::HostProcess;
use crate::operations::Outcome;
use crate::processes::PROCESS_LEASE;

/// How long a process that ended without a word is remembered, in milliseconds: a host is gone when none of its processes has run for a day.
const KEPT_MS: i64 = 7 * 86_400_000;

/// Says that a process of this host runs.
pub(super) fn keep(transaction: &Transaction, process: &HostProcess) -> Outcome<()> {
    const SQL: &str = "
        INSERT INTO host_processes (start, pid, host, until_ms)
        VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $4)
        ON CONFLICT (start, pid) DO UPDATE SET host = excluded.host, until_ms = excluded.until_ms";
    const OLD: &str = "
        DELETE FROM host_processes WHERE (start, pid) IN
            (SELECT start, pid FROM host_processes
             WHERE until_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1
             LIMIT 100 FOR UPDATE SKIP LOCKED)";
    let lease_ms = i64::try_from(PROCESS_LEASE.as_millis()).unwrap_or(i64::MAX);
    let pid = i64::from(process.pid);
    transaction.execute(SQL, &[&process.start, &pid, &transaction.host(), &lease_ms])?;
    transaction.execute(OLD, &[&KEPT_MS]).map(drop)
}

/// Says what replica a process is; whether one of another host that runs has the same name.
pub(super) fn keep_replica(
    transaction: &Transaction,
    process: &HostProcess,
    replica: &str,
) -> Outcome<bool> {
    const SET: &str = "UPDATE host_processes SET replica = $3 WHERE start = $1 AND pid = $2";
    const OTHER: &str = "
        SELECT EXISTS (SELECT 1 FROM host_processes WHERE replica = $1 AND host <> $2
            AND until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
    let pid = i64::from(process.pid);
    transaction.execute(SET, &[&process.start, &pid, &replica])?;
    let row = transaction.query_one(OTHER, &[&replica, &transaction.host()])?;
    get(&row, 0)
}

/// The processes that run.
pub(super) fn running(transaction: &Transaction) -> Outcome<Vec<HostProcess>> {
    const SQL: &str = "
        SELECT pid, start FROM host_processes
        WHERE until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY start, pid";
    let rows = transaction.query(SQL, &[])?;
    let processes = rows.iter().map(|row| {
        let pid: i64 = get(row, 0)?;
        Ok(HostProcess {
            pid: u32::try_from(pid).map_err(|error| unreadable(0, error))?,
            start: get(row, 1)?,
        })
    });
    processes.collect()
}
