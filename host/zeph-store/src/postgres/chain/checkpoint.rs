//! When a checkpoint of a host's chain was last handed out.

use crate::audit::chain::ChainHead;
use crate::audit::checkpoint::CheckpointDue;
use crate::operations::Outcome;
use crate::postgres::transaction::Transaction;
use crate::postgres::value::get;

/// The newest event of this host, if a checkpoint of it is due.
pub(in crate::postgres) fn take(
    transaction: &Transaction,
    due: &CheckpointDue,
) -> Outcome<Option<ChainHead>> {
    const LAST: &str = "SELECT n, at_ms FROM audit_checkpoint WHERE host = $1";
    const TAKE: &str = "
        INSERT INTO audit_checkpoint (host, n, at_ms) VALUES ($1, $2, $3)
        ON CONFLICT (host) DO UPDATE SET n = excluded.n, at_ms = excluded.at_ms";
    let host = transaction.host();
    transaction.lock(&format!("audit checkpoint of {host}"))?;
    let Some(head) = super::head(transaction)? else {
        return Ok(None);
    };
    let last = match transaction.query_opt(LAST, &[&host])? {
        Some(row) => (get(&row, 0)?, get(&row, 1)?),
        None => (0, 0),
    };
    if !due.is_due(&head, last) {
        return Ok(None);
    }
    transaction.execute(TAKE, &[&host, &head.count, &due.at_ms])?;
    Ok(Some(head))
}

/// Makes a checkpoint due again that was taken of event `n` and not handed over, unless another was taken since.
pub(in crate::postgres) fn give_back(transaction: &Transaction, n: i64) -> Outcome<()> {
    const SQL: &str = "DELETE FROM audit_checkpoint WHERE host = $1 AND n = $2";
    let host = transaction.host();
    transaction.execute(SQL, &[&host, &n]).map(drop)
}
