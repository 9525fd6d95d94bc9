//! Retention of the rows of hosts that are gone: nobody removes them else, because only a host itself can vouch for its chain.
//!
//! A host is gone when none of its processes has said for a day that it runs. When its newest row is past its time, all of its rows are:
//! another host says in its own chain up to where that one is removed, and removes rows and events, a few at a time. A host that comes back
//! begins a new chain, or says in its own that it goes on from there, and removes the rest itself.

use super::sweep::bounds;
use super::{hold, hosts, newest_event, newest_mark};
use crate::audit::chain::{ChainMark, EventKind, ForgottenChain};
use crate::audit::code::hex;
use crate::audit::earlier::RemovalStatement;
use crate::audit::mark::MarkState;
use crate::audit::retention::Limits;
use crate::audit::seal::SealedAudit as _;
use crate::operations::Outcome;
use crate::postgres::transaction::Transaction;
use crate::postgres::value::get;
use crate::secrets::audit_keys::AuditKeys;

/// How long no process of a host has to have run, in milliseconds.
const GONE_MS: i64 = 86_400_000;

/// Removes up to `n_max` rows of one host that is gone; says how many rows, and events without a row, went.
pub(in crate::postgres) fn forget(
    transaction: &Transaction,
    (limits, now_ms): (&Limits, i64),
    n_max: u32,
) -> Outcome<usize> {
    if !transaction.seal().is_set() {
        return Ok(0);
    }
    let n_left = remove_left(transaction, i64::from(n_max))?;
    if n_left > 0 {
        return Ok(n_left);
    }
    for host in hosts(transaction)? {
        if host == transaction.host()
            || !is_past(transaction, &host, limits)?
            || !is_gone(transaction, &host)?
        {
            continue;
        }
        transaction.hold_chain()?;
        hold(transaction, &host)?;
        // It may have come back, or another host has done it, while this one waited.
        if is_past(transaction, &host, limits)? && is_gone(transaction, &host)? {
            if !announce(transaction, &host, now_ms)? {
                return Ok(0);
            }
            return remove_some(transaction, &host, i64::from(n_max));
        }
    }
    Ok(0)
}

/// Whether the newest row of a host may go, and so all of them; also when only its events are left.
fn is_past(transaction: &Transaction, host: &str, limits: &Limits) -> Outcome<bool> {
    const SQL: &str = "
        SELECT (begun_at_ms < $2 OR seq <= $3) AND (finished_at_ms IS NOT NULL OR begun_at_ms < $4)
        FROM audit WHERE host = $1 ORDER BY seq DESC LIMIT 1";
    let (before_ms, upto_seq) = bounds(limits);
    let newest = transaction.query_opt(SQL, &[&host, &before_ms, &upto_seq, &limits.running_ms])?;
    newest.map_or(Ok(true), |row| get(&row, 0))
}

fn is_gone(transaction: &Transaction, host: &str) -> Outcome<bool> {
    const SQL: &str = "
        SELECT NOT EXISTS (SELECT 1 FROM host_processes WHERE host = $1
            AND until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $2)";
    get(&transaction.query_one(SQL, &[&host, &GONE_MS])?, 0)
}

/// Says in the chain of this host up to where that of `host` is removed; false when it cannot say so, because nobody can verify that chain.
///
/// What `host` said of the chains that it removed is said on, if that can be verified: else it would go with its chain.
fn announce(transaction: &Transaction, host: &str, at_ms: i64) -> Outcome<bool> {
    let Some(stored) = newest_mark(transaction, host)? else {
        return Ok(true);
    };
    let Some(keys) = transaction.seal().keys() else {
        return Ok(false);
    };
    let Some((own, MarkState::Sound)) = transaction.mark_to_follow(&keys)? else {
        return Ok(false);
    };
    let is_sound = stored.state(&keys) == MarkState::Sound;
    let theirs = stored.mark;
    let newest = newest_event(transaction, host)?;
    let is_known = |known: &ForgottenChain| known.is_of(host, &theirs) && known.upto == newest.n;
    if own.forgotten.iter().any(is_known) {
        return Ok(true);
    }
    let forgotten = ForgottenChain {
        host: host.to_owned(),
        origin: theirs.origin,
        upto: newest.n,
        upto_code: hex(&newest.code),
        upto_key: theirs.key,
        at_ms,
    };
    let said = theirs.forgotten.into_iter().filter(|_| is_sound);
    let mark = said.chain([forgotten]).fold(own, ChainMark::with_forgotten);
    transaction.append_mark(EventKind::Cut, &mark)?;
    Ok(true)
}

/// What `hosts` say they removed of the chains of others, but for what somebody else made them say; and whether that could be verified.
pub(super) fn statements(
    transaction: &Transaction,
    hosts: &[String],
    keys: &AuditKeys,
) -> Outcome<Vec<RemovalStatement>> {
    let mut all = Vec::new();
    for host in hosts {
        let Some(stored) = newest_mark(transaction, host)? else {
            continue;
        };
        let state = stored.state(keys);
        if state == MarkState::Changed {
            continue;
        }
        let said = stored.mark.forgotten.into_iter();
        all.extend(said.map(|chain| RemovalStatement {
            by: host.clone(),
            chain,
            is_verified: state == MarkState::Sound,
        }));
    }
    Ok(all)
}

/// Goes on with what another host began to remove of the chain of this one, which has said that it is gone.
fn remove_left(transaction: &Transaction, n_max: i64) -> Outcome<usize> {
    const ROWS: &str = "
        DELETE FROM audit WHERE seq IN
            (SELECT seq FROM audit WHERE host = $1 AND chain_n <= $2 ORDER BY seq LIMIT $3)";
    const EVENTS: &str = "
        DELETE FROM audit_chain WHERE host = $1 AND n IN
            (SELECT n FROM audit_chain WHERE host = $1 AND n <= $2 ORDER BY n LIMIT $3)";
    let host = transaction.host();
    let is_left = |mark: &ChainMark| mark.left_upto > 0;
    let stored = newest_mark(transaction, host)?.map(|stored| stored.mark);
    let Some(keys) = transaction
        .seal()
        .keys()
        .filter(|_| stored.as_ref().is_some_and(is_left))
    else {
        return Ok(0);
    };
    transaction.hold_chain()?;
    let Some((mark, MarkState::Sound)) = transaction.mark_to_follow(&keys)? else {
        return Ok(0);
    };
    for sql in [ROWS, EVENTS] {
        let n_gone = transaction.execute(sql, &[&host, &mark.left_upto, &n_max])?;
        if n_gone > 0 {
            return Ok(usize::try_from(n_gone).unwrap_or(usize::MAX));
        }
    }
    if is_left(&mark) {
        let left_upto = 0;
        transaction.append_mark(EventKind::Cut, &ChainMark { left_upto, ..mark })?;
    }
    Ok(0)
}

/// Rows first, then events; the newest of them last, so that a host that comes back finds where its chain is, and what it says of itself can be verified
/// until then.
fn remove_some(transaction: &Transaction, host: &str, n_max: i64) -> Outcome<usize> {
    const ROWS: &str = "
        DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE host = $1 ORDER BY seq LIMIT $2)";
    const EVENTS: &str = "
        DELETE FROM audit_chain WHERE host = $1 AND n IN
            (SELECT n FROM audit_chain AS event WHERE host = $1 AND body IS NULL
             AND n < (SELECT max(n) FROM audit_chain WHERE host = $1)
             AND NOT EXISTS (SELECT FROM audit_chain AS next
                WHERE next.host = $1 AND next.n = event.n + 1 AND next.body IS NOT NULL) ORDER BY n LIMIT $2)";
    const REST: [&str; 3] = [
        "DELETE FROM audit_chain WHERE host = $1",
        "DELETE FROM audit_checkpoint WHERE host = $1",
        "DELETE FROM host_processes WHERE host = $1",
    ];
    let n_rows = transaction.execute(ROWS, &[&host, &n_max])?;
    if n_rows > 0 {
        return Ok(usize::try_from(n_rows).unwrap_or(usize::MAX));
    }
    let mut n_events = transaction.execute(EVENTS, &[&host, &n_max])?;
    if n_events == 0 {
        for sql in REST {
            n_events += transaction.execute(sql, &[&host])?;
        }
    }
    // Not counted as rows: the caller goes on while there is anything.
    Ok(usize::try_from(n_events).unwrap_or(usize::MAX))
}
