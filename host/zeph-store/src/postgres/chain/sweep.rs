//! Retention of the rows of this host: the oldest events go with their rows, and an event says up to where.

use super::rows::FetchedRows;
use super::{event, event_columns};
use crate::audit::chain::{ChainMark, EventKind};
use crate::audit::columns::FIRST_OF_END;
use crate::audit::event::{RowFacts, StoredEvent};
use crate::audit::mark::MarkState;
use crate::audit::retention::{self, ChainSweep, Limits, RetentionPlan};
use crate::audit::seal::{NewEvent, SealedAudit as _};
use crate::audit::value::record_bytes;
use crate::operations::Outcome;
use crate::postgres::transaction::Transaction;
use crate::postgres::value::get;
use crate::sweep::Past;

/// Most of the oldest rows that are looked at.
const N_LOOKED_MAX: i64 = 4_096;

/// The first moment and the first number of some rows.
pub(in crate::postgres) type FirstOfRows = (i64, i64);

/// Removes up to `n_max` rows of this host that are past their time.
///
/// Limits: as a rule some of the `n_max` oldest rows may go. Only where none of them can, more are looked at, and not again before the first of
/// those is past its time.
pub(in crate::postgres) fn sweep(
    transaction: &Transaction,
    limits: &Limits,
    n_max: u32,
) -> Outcome<ChainSweep> {
    for n_looked in [i64::from(n_max), N_LOOKED_MAX] {
        if n_looked == N_LOOKED_MAX && is_none_past(transaction, limits) {
            break;
        }
        let Looked {
            has_chained,
            has_others,
            first,
        } = look(transaction, limits, n_looked)?;
        let mut swept = ChainSweep::default();
        if has_chained || has_others {
            transaction.hold_chain()?;
            let alone = match has_others {
                true => remove_unchained(transaction, limits, n_max)?,
                false => Vec::new(),
            };
            swept = remove_chained(transaction, *limits, n_max, &alone)?;
            swept.n_removed += alone.len();
        }
        if swept.n_removed + swept.n_carried > 0 {
            return Ok(swept);
        }
        if n_looked == N_LOOKED_MAX {
            transaction.first_left.set(first);
        }
    }
    transaction.oldest_row.set(i64::MIN);
    Ok(ChainSweep::default())
}

/// Whether the rows that were looked at and left are still not past their time.
fn is_none_past(transaction: &Transaction, limits: &Limits) -> bool {
    let (before_ms, upto_seq) = bounds(limits);
    let first = transaction.first_left.get();
    first.is_some_and(|(begun_ms, seq)| before_ms <= begun_ms && upto_seq < seq)
}

/// What is past its time, of the rows of all hosts.
pub(in crate::postgres) fn limits(transaction: &Transaction, past: &Past) -> Outcome<Limits> {
    const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM audit";
    let newest = transaction.query_one(NEWEST, &[])?;
    Ok(Limits::new(past, get(&newest, 0)?))
}

/// What the oldest rows are.
struct Looked {
    /// Whether any chained row may go.
    has_chained: bool,
    /// Whether any other may go.
    has_others: bool,
    /// None where there is no row.
    first: Option<FirstOfRows>,
}

/// Looks at the `n_looked` oldest rows; notes which of them is the first.
fn look(transaction: &Transaction, limits: &Limits, n_looked: i64) -> Outcome<Looked> {
    const SQL: &str = "
        SELECT coalesce(bool_or(chain_n IS NOT NULL) FILTER (WHERE may_go), FALSE),
            coalesce(bool_or(chain_n IS NULL) FILTER (WHERE may_go), FALSE), min(seq), min(begun_at_ms) FROM
            (SELECT seq, chain_n, begun_at_ms,
                (begun_at_ms < $2 OR seq <= $3) AND (finished_at_ms IS NOT NULL OR begun_at_ms < $4) AS may_go
             FROM audit WHERE host = $1 AND seq >= $6 ORDER BY seq LIMIT $5) AS oldest";
    let (before_ms, upto_seq) = bounds(limits);
    let (host, oldest) = (transaction.host(), transaction.oldest_row.get());
    let row = transaction.query_one(
        SQL,
        &[
            &host,
            &before_ms,
            &upto_seq,
            &limits.running_ms,
            &n_looked,
            &oldest,
        ],
    )?;
    let (first_seq, first_ms): (Option<i64>, Option<i64>) = (get(&row, 2)?, get(&row, 3)?);
    transaction.oldest_row.set(first_seq.unwrap_or(oldest));
    Ok(Looked {
        has_chained: get(&row, 0)?,
        has_others: get(&row, 1)?,
        first: first_ms.zip(first_seq),
    })
}

/// Moments and numbers below which rows are past their time, where there are any.
pub(super) fn bounds(limits: &Limits) -> (i64, i64) {
    (
        limits.before_ms.unwrap_or(i64::MIN),
        limits.upto_seq.unwrap_or(i64::MIN),
    )
}

/// Rows from before the chain go alone: no event is of them. Gives back their numbers.
fn remove_unchained(transaction: &Transaction, limits: &Limits, n_max: u32) -> Outcome<Vec<i64>> {
    const SQL: &str = "
        DELETE FROM audit WHERE seq IN (SELECT seq FROM
            (SELECT seq, begun_at_ms, finished_at_ms, chain_n FROM audit WHERE host = $1 AND seq >= $6
             ORDER BY seq LIMIT 4096) AS oldest
            WHERE chain_n IS NULL AND (begun_at_ms < $2 OR seq <= $3) AND (finished_at_ms IS NOT NULL OR begun_at_ms < $4)
            LIMIT $5) RETURNING seq";
    let (before_ms, upto_seq) = bounds(limits);
    let rows = transaction.query(
        SQL,
        &[
            &transaction.host(),
            &before_ms,
            &upto_seq,
            &limits.running_ms,
            &i64::from(n_max),
            &transaction.oldest_row.get(),
        ],
    )?;
    rows.iter().map(|row| get(row, 0)).collect()
}

/// Removes rows with their events, and says so, and that rows were removed `alone`.
fn remove_chained(
    transaction: &Transaction,
    limits: Limits,
    n_max: u32,
    alone: &[i64],
) -> Outcome<ChainSweep> {
    let Some(keys) = transaction.seal().keys() else {
        return Ok(ChainSweep::default());
    };
    // Nothing goes by what nobody can verify.
    let Some((mark, MarkState::Sound)) = transaction.mark_to_follow(&keys)? else {
        return Ok(ChainSweep::default());
    };
    let upto = mark.upto;
    let mark = mark.without_rows(alone);
    let said = (!alone.is_empty()).then(|| mark.clone());
    let events = events(transaction, &mark, n_max)?;
    let mut rows = FetchedRows::fetch(transaction, transaction.host(), &events)?;
    let mut plan = retention::plan(events, &mut rows, (&keys, mark), limits, n_max)?;
    plan.cut = plan.cut.or(said);
    let swept = ChainSweep {
        n_removed: plan.remove.len(),
        n_carried: plan.carry.len(),
    };
    carry_out(transaction, plan, &rows, upto)?;
    Ok(swept)
}

fn events(transaction: &Transaction, mark: &ChainMark, n_max: u32) -> Outcome<Vec<StoredEvent>> {
    const SQL: &str = concat!(
        "SELECT ",
        event_columns!(),
        " FROM audit_chain WHERE host = $1 AND n > $2 ORDER BY n LIMIT $3"
    );
    let n_max = i64::from(retention::n_events(n_max));
    let rows = transaction.query(SQL, &[&transaction.host(), &mark.upto, &n_max])?;
    rows.iter().map(event).collect()
}

/// Does what is planned, for a chain whose events up to `upto` were removed before.
fn carry_out(
    transaction: &Transaction,
    plan: RetentionPlan,
    rows: &FetchedRows,
    upto: i64,
) -> Outcome<()> {
    const REMOVE: &str = "DELETE FROM audit WHERE seq = ANY($1::bigint[])";
    // Not from the first number on: what was removed stays in the index until the server has cleaned it up.
    const CUT: &str = "DELETE FROM audit_chain WHERE host = $1 AND n > $3 AND n <= $2";
    if !plan.remove.is_empty() {
        transaction.execute(REMOVE, &[&plan.remove])?;
    }
    for (event, facts) in &plan.carry {
        carry(transaction, event, *facts, rows)?;
    }
    if let Some(mark) = plan.cut {
        // The newest event is read before it goes, too: the chain goes on from it.
        transaction.next_event()?;
        transaction.execute(CUT, &[&transaction.host(), &mark.upto, &upto])?;
        transaction.append_cut(mark)?;
    }
    Ok(())
}

/// Vouches for a row anew, as it is.
fn carry(
    transaction: &Transaction,
    event: &StoredEvent,
    facts: RowFacts,
    rows: &FetchedRows,
) -> Outcome<()> {
    let (Some(seq), Some(call)) = (event.head.seq, event.head.call) else {
        return Ok(());
    };
    let Some((begin, end)) = rows.halves(seq) else {
        return Ok(());
    };
    let carried = transaction.append(&NewEvent {
        kind: EventKind::Carried,
        call,
        seq,
        begun: None,
        record: &record_bytes(0, begin),
    })?;
    if facts.has_ended {
        transaction.append(&NewEvent {
            kind: EventKind::Finish,
            call,
            seq,
            begun: carried,
            record: &record_bytes(FIRST_OF_END, end),
        })?;
    }
    let set = "UPDATE audit SET chain_n = $2 WHERE seq = $1";
    transaction.execute(set, &[&seq, &carried]).map(drop)
}
