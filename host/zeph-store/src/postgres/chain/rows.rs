//! Rows of the audit table, fetched for many events at once.

use std::collections::HashMap;

use crate::audit::columns::{FIRST_OF_END, N_BEGIN, begin_columns, end_columns};
use crate::audit::event::{EventRows, FoundRow, RowFacts, RowState, StoredEvent};
use crate::audit::value::{Value, put_all};
use crate::operations::{OperationFault, Outcome};
use crate::postgres::audit;
use crate::postgres::transaction::Transaction;
use crate::postgres::value::get;
use crate::secrets::audit_keys::AuditKey;

/// The rows of some events, by number.
pub(super) struct FetchedRows {
    rows: HashMap<i64, FetchedRow>,
    bytes: Vec<u8>,
}

struct FetchedRow {
    chain_n: Option<i64>,
    facts: RowFacts,
    call: String,
    values: Vec<Value<'static>>,
}

impl FetchedRows {
    /// The rows of `host` that `events` vouch for.
    pub(super) fn fetch(
        transaction: &Transaction,
        host: &str,
        events: &[StoredEvent],
    ) -> Outcome<Self> {
        const SQL: &str = concat!(
            "SELECT seq, chain_n, call_id, begun_at_ms, finished_at_ms IS NOT NULL, ",
            begin_columns!(),
            ", ",
            end_columns!(),
            " FROM audit WHERE seq = ANY($1::bigint[]) AND host = $2"
        );
        let mut wanted: Vec<i64> = events.iter().filter_map(|event| event.head.seq).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut rows = HashMap::with_capacity(wanted.len());
        for row in transaction.query(SQL, &[&wanted, &host])? {
            let fetched = FetchedRow {
                chain_n: get(&row, 1)?,
                call: get(&row, 2)?,
                facts: RowFacts {
                    begun_at_ms: get(&row, 3)?,
                    has_ended: get(&row, 4)?,
                },
                values: audit::values(&row, 5)?,
            };
            rows.insert(get(&row, 0)?, fetched);
        }
        Ok(Self {
            rows,
            bytes: Vec::with_capacity(4096),
        })
    }

    /// What was recorded of the begin of a row, and of its end.
    pub(super) fn halves(&self, seq: i64) -> Option<(&[Value<'static>], &[Value<'static>])> {
        let row = self.rows.get(&seq)?;
        Some(row.values.split_at(N_BEGIN))
    }

    fn compared(
        &mut self,
        event: &StoredEvent,
        key: &AuditKey,
        of: impl FnOnce(&FetchedRow) -> (u8, &[Value<'static>]),
    ) -> RowState {
        let row = event.head.seq.and_then(|seq| self.rows.get(&seq));
        let Some(row) = row else {
            return RowState::Gone;
        };
        let (first, values) = of(row);
        self.bytes.clear();
        put_all(&mut self.bytes, first, values);
        let found = FoundRow {
            facts: row.facts,
            call: &row.call,
            chain_n: row.chain_n,
        };
        found.placed(event).tagged(event, key, &self.bytes)
    }
}

impl EventRows for FetchedRows {
    type Fault = OperationFault;

    fn begin(&mut self, event: &StoredEvent, key: &AuditKey) -> Outcome<RowState> {
        Ok(self.compared(event, key, |row| (0, &row.values[..N_BEGIN])))
    }

    fn end(&mut self, event: &StoredEvent, key: &AuditKey) -> Outcome<RowState> {
        Ok(self.compared(event, key, |row| (FIRST_OF_END, &row.values[N_BEGIN..])))
    }
}
