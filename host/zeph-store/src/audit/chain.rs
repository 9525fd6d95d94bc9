//! The chain over the table: every begin and every end of a call is an event with a code over the event before it, so that no row can be
//! changed, removed, moved or added without the key.
//!
//! Events never change; rows do, once, when their call ends. Retention removes the oldest rows with their events, and an event says up to
//! where (`Cut`). A row that is not to go yet gets a new event at the end (`Carried`). What the events are made of is here; how they
//! are stored is the database's (`sqlite/chain`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeph_core::id::CallId;

use super::code::{Code, from_hex, hex};
use super::earlier::{self, BegunChain, ChainBegin, EarlierChain, RemovalStatement};
use super::mark::MarkState;
use super::problem::AuditProblem;
use crate::error::StoreError;
use crate::open::{Location, StoreOptions};
use crate::operations::Operations;
use crate::secrets::audit_keys::{AuditKey, AuditKeySource, AuditKeys};
use crate::store::{Access, Store};
use crate::{postgres, sqlite};

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The chain begins.
    Start = 1,
    /// A call began.
    Begin = 2,
    /// A call ended.
    Finish = 3,
    /// A call whose first event is about to go began, as its row says.
    Carried = 4,
    /// Events were removed by retention.
    Cut = 5,
    /// Another key takes over; the event has the code of that key.
    Key = 6,
}

impl EventKind {
    /// The kind of this number.
    pub(crate) fn of(number: i64) -> Option<Self> {
        const ALL: [EventKind; 6] = [
            EventKind::Start,
            EventKind::Begin,
            EventKind::Finish,
            EventKind::Carried,
            EventKind::Cut,
            EventKind::Key,
        ];
        ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub(crate) fn number(self) -> i64 {
        self as i64
    }
}

/// An event without its code and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventHead {
    /// Its number, from 1, without a gap.
    pub(crate) n: i64,
    /// As stored.
    pub(crate) kind: i64,
    /// The row of the call.
    pub(crate) seq: Option<i64>,
    /// The call.
    pub(crate) call: Option<CallId>,
    /// Of an end: the event of the begin; none when that was before the chain.
    pub(crate) begun: Option<i64>,
}

impl EventHead {
    /// The code of this event after that with the code `previous`, with this content.
    pub(crate) fn code(&self, key: &AuditKey, previous: &Code, content: EventContent<'_>) -> Code {
        let mut head = [0_u8; 52];
        let mut place = 0;
        let mut put = |bytes: &[u8]| {
            head[place..place + bytes.len()].copy_from_slice(bytes);
            place += bytes.len();
        };
        put(&self.n.to_be_bytes());
        put(&self.kind.to_be_bytes());
        for number in [self.seq, self.begun] {
            put(&[u8::from(number.is_some())]);
            put(&number.unwrap_or_default().to_be_bytes());
        }
        let call = self.call.map(|call| *call.as_uuid().as_bytes());
        put(&[u8::from(call.is_some())]);
        put(&call.unwrap_or_default());
        put(&[content.tag_byte()]);
        key.event.code(&[previous, &head, content.bytes()])
    }
}

/// What an event says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventContent<'a> {
    /// Of a call: the code of what was recorded.
    Tag(&'a Code),
    /// Of the chain itself: JSON.
    Body(&'a str),
}

impl EventContent<'_> {
    fn tag_byte(&self) -> u8 {
        match self {
            Self::Tag(_) => 1,
            Self::Body(_) => 2,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Tag(tag) => &tag[..],
            Self::Body(body) => body.as_bytes(),
        }
    }
}

/// What events of the chain itself say: all of it each time, so that the newest is enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainMark {
    /// Names the chain.
    pub(crate) origin: Uuid,
    /// The name of the key from this event on.
    pub(crate) key: String,
    /// When, in Unix milliseconds.
    pub(crate) at_ms: i64,
    /// Rows up to this number that name no event are from before the chain, and how many of them there can be.
    pub(crate) before_seq: i64,
    pub(crate) before_rows: i64,
    /// Events up to this number were removed. The last of them had this code, and was made with the key of this name.
    pub(crate) upto: i64,
    pub(crate) upto_code: String,
    pub(crate) upto_key: String,
    /// Calls that were removed with them in all, and how many of their events were not sound then.
    pub(crate) n_removed: i64,
    pub(crate) n_unsound: i64,
    /// Events that were removed while nobody could verify them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) n_unverified: i64,
    /// Another host began to remove the chain: events up to this number may be there yet, with their rows, until retention has removed the rest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) left_upto: i64,
    /// Events up to this number cannot be verified any more: the operator said that their key is lost.
    #[serde(default)]
    pub(crate) lost_upto: i64,
    /// The names of the keys that are lost, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost_keys: Vec<String>,
    /// The chain that was sealed here before this one, and was not there when this one began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) earlier: Option<EarlierChain>,
    /// Chains of hosts that are gone and were removed by this one, or by one that it removed since; the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forgotten: Vec<ForgottenChain>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Chains, and lost keys, that a mark names at most.
const FORGOTTEN_MAX: usize = 100;

/// Up to where the chain of a host that is gone was removed by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenChain {
    /// The host that is gone.
    pub host: String,
    /// Names its chain.
    pub origin: Uuid,
    /// The number of the last event that was removed.
    pub upto: i64,
    /// The code of that event, as hexadecimal digits.
    pub upto_code: String,
    /// The name of its key.
    pub upto_key: String,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
}

impl ForgottenChain {
    /// Whether it is the chain of `host` whose newest mark is this.
    pub(crate) fn is_of(&self, host: &str, mark: &ChainMark) -> bool {
        self.host == host && self.origin == mark.origin
    }
}

impl ChainMark {
    /// Of a chain that begins.
    pub(crate) fn start(key: &AuditKey, at_ms: i64, (before_seq, before_rows): (i64, i64)) -> Self {
        Self {
            origin: Uuid::new_v4(),
            key: key.id.clone(),
            at_ms,
            before_seq,
            before_rows,
            upto: 0,
            upto_code: hex(&super::code::NO_CODE),
            upto_key: key.id.clone(),
            n_removed: 0,
            n_unsound: 0,
            n_unverified: 0,
            left_upto: 0,
            lost_upto: 0,
            lost_keys: Vec::new(),
            earlier: None,
            forgotten: Vec::new(),
        }
    }

    /// The same, with another chain that was removed.
    pub(crate) fn with_forgotten(mut self, chain: ForgottenChain) -> Self {
        self.forgotten.retain(|known| *known != chain);
        self.forgotten.push(chain);
        let n_more = self.forgotten.len().saturating_sub(FORGOTTEN_MAX);
        self.forgotten.drain(..n_more);
        self
    }

    /// Counts `removed` rows that name no event: those from before the chain become fewer, and any other is unsound.
    pub(crate) fn without_rows(mut self, removed: &[i64]) -> Self {
        let n_before = removed
            .iter()
            .filter(|seq| **seq <= self.before_seq)
            .count();
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.before_rows = self.before_rows.saturating_sub(number(n_before)).max(0);
        let n_others = number(removed.len() - n_before);
        self.n_unsound = self.n_unsound.saturating_add(n_others);
        self
    }

    /// Goes on after what another host removed, if that is more; `n_calls` of them still had their events.
    pub(crate) fn without(mut self, removed: &ForgottenChain, n_calls: i64) -> Self {
        if removed.upto <= self.upto {
            return self;
        }
        self.upto = removed.upto;
        self.upto_code.clone_from(&removed.upto_code);
        self.upto_key.clone_from(&removed.upto_key);
        self.left_upto = removed.upto;
        self.n_removed = self.n_removed.saturating_add(n_calls);
        self
    }

    /// Counts newer marks that were changed as unsound; nothing they say is taken over. `key` seals what comes.
    pub(super) fn with_changed(mut self, n_changed: i64, key: &AuditKey, state: MarkState) -> Self {
        if n_changed > 0 && state == MarkState::Sound {
            self.key = key.id.clone();
        }
        self.n_unsound = self.n_unsound.saturating_add(n_changed);
        self
    }

    /// Notes that the key of the events up to number `n` is lost. What the mark said of rows from before the chain cannot be verified any more,
    /// so it is limited to what is there: at most `n_rows` rows, up to number `seq`.
    pub(crate) fn with_lost_key(mut self, n: i64, (seq, n_rows): (i64, i64)) -> Self {
        self.before_seq = self.before_seq.min(seq);
        self.before_rows = self.before_rows.min(n_rows);
        self.lost_upto = n;
        self.lost_keys.push(self.key.clone());
        let n_more = self.lost_keys.len().saturating_sub(FORGOTTEN_MAX);
        self.lost_keys.drain(..n_more);
        self
    }

    /// The code of the last event that was removed.
    pub(crate) fn upto_code(&self) -> Option<Code> {
        from_hex(self.upto_code.as_bytes())
    }
}

/// The newest event of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// Names the chain: a random UUID.
    pub origin: String,
    /// How many events there have been, those that retention removed among them.
    pub count: i64,
    /// The code of the last, as hexadecimal digits.
    pub head: String,
}

/// What the verification of the table found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChainReport {
    /// Of a store that several hosts share: the host whose chain it is.
    pub host: Option<String>,
    /// Whether it is of the host that verifies.
    pub is_own: bool,
    /// Names the chain; empty when it has not begun.
    pub origin: String,
    /// The chain that was sealed here before this one and was not there when this one began, or is not there now.
    pub earlier: Option<EarlierChain>,
    /// The last chains of other hosts that this host reports to have removed. Reports with a broken seal are left out.
    pub forgotten: Vec<RemovalStatement>,
    /// Calls whose rows are as they were recorded.
    pub n_calls: u64,
    /// Events that were verified: begins and ends of calls, and those of the chain itself.
    pub n_events: u64,
    /// The number of the newest event.
    pub count: i64,
    /// Its code, as hexadecimal digits.
    pub head: String,
    /// Rows from before the chain. Nothing vouches for them.
    pub n_before: u64,
    /// Events that retention removed, and the calls that went with them.
    pub n_removed_events: i64,
    /// Calls that retention removed.
    pub n_removed_calls: i64,
    /// Events that retention removed while nobody could verify them.
    pub n_unverified: i64,
    /// Events that cannot be verified, because the operator said that their key is lost.
    pub n_lost: u64,
    /// The names of the keys that the operator said are lost, the last ones.
    pub lost_keys: Vec<String>,
    /// The codes of the events that were asked for, by number.
    pub codes: BTreeMap<i64, String>,
    /// What is wrong, the first 1,000.
    pub problems: Vec<AuditProblem>,
    /// How many more problems there are.
    pub n_more: u64,
}

const BEGIN: &str = "begin the audit chain";

impl Store {
    /// Vouches for every call from now on, with the newest key of `source`. Must come before the first call is recorded.
    ///
    /// While the key is in a keyring that cannot be reached, another one takes over. Where the keys remember another chain of this store and there is
    /// none, one begins that says so; also where it cannot be read what they remember.
    /// Errors: [`StoreError::AuditKeys`], [`StoreError::AuditKeyMissing`]; then nothing must be recorded.
    pub async fn begin_chain(
        &self,
        source: &AuditKeySource,
        at_ms: i64,
    ) -> Result<BegunChain, StoreError> {
        let begun = self.chain_key().await?;
        let keys = keys(source, begun.as_deref(), at_ms)?;
        let is_out_of_reach = begun.as_ref().is_some_and(|id| keys.is_out_of_reach(id));
        let (begin, unknown) = self.chain_begin(&keys, at_ms);
        let own = keys.clone();
        // On the connection that will chain calls, even where nothing has to be written.
        let work = move |operations: &dyn Operations| match is_out_of_reach {
            true => operations.rekey_chain(&own, &begin),
            false => operations.begin_chain(&own, &begin),
        };
        let mark = self.run(BEGIN, Access::Write, work).await?;
        earlier::remember(&keys, &self.chain_place, (begin.sealed, mark.origin));
        let notices = earlier::notice(&mark).into_iter().chain(unknown).collect();
        Ok(BegunChain { keys, notices })
    }

    /// How a chain begins that nobody accepted to be another one; and why it is not known what was sealed before.
    fn chain_begin(&self, keys: &AuditKeys, at_ms: i64) -> (ChainBegin, Option<String>) {
        let (sealed, unknown) = earlier::sealed(keys, &self.chain_place);
        let begin = ChainBegin {
            at_ms,
            sealed,
            is_accepted: false,
        };
        (begin, unknown)
    }

    /// Verifies the audit table of the store at `location`, which may be in use: what was recorded when it began is what it looks at. Hosts
    /// that record calls in a file wait for some milliseconds meanwhile.
    ///
    /// A report for each host of a store that several share, by name; else one. Without `keys` no record of a chain can be verified.
    /// Errors: what the database says. Limits: O(size of the table); the first 1,000 problems of each chain are told.
    pub fn verify_audit(
        location: &Location,
        options: &StoreOptions,
        keys: Option<&AuditKeys>,
        wanted: &BTreeSet<i64>,
    ) -> Result<Vec<ChainReport>, StoreError> {
        let mut reports = match location {
            Location::Server(url) => {
                postgres::chain::verify::verify((**url).clone(), options, keys, wanted)?
            }
            Location::File(_) | Location::Memory => {
                let report = sqlite::chain::verify::verify_file(location, options, keys, wanted)?;
                vec![report]
            }
        };
        earlier::tell_missed(&mut reports, location, keys);
        Ok(reports)
    }

    /// The name of the key that vouches for the newest records; `None` when the chain has not begun.
    ///
    /// Errors: what the database says.
    pub async fn chain_key(&self) -> Result<Option<String>, StoreError> {
        let work = |operations: &dyn Operations| operations.chain_key();
        self.run("read the audit chain", Access::Read, work).await
    }

    /// The newest event; `None` when the chain has not begun.
    ///
    /// Errors: what the database says.
    pub async fn chain_head(&self) -> Result<Option<ChainHead>, StoreError> {
        let work = |operations: &dyn Operations| operations.chain_head();
        self.run("read the audit chain", Access::Read, work).await
    }

    /// Lets the newest key of `keys` vouch for what comes, for the operator, who accepts that an earlier chain is gone. Hosts that run meanwhile read
    /// it from its folder.
    ///
    /// Errors: [`StoreError::AuditKeys`]; what the database says.
    pub async fn rekey_chain(&self, keys: AuditKeys, at_ms: i64) -> Result<(), StoreError> {
        let begin = ChainBegin {
            is_accepted: true,
            ..self.chain_begin(&keys, at_ms).0
        };
        let own = keys.clone();
        let work = move |operations: &dyn Operations| operations.rekey_chain(&own, &begin);
        let what = "change the key of the audit chain";
        let mark = self.run(what, Access::Write, work).await?;
        earlier::remember(&keys, &self.chain_place, (begin.sealed, mark.origin));
        Ok(())
    }
}

/// The keys to go on with when the chain has the key `begun`.
fn keys(source: &AuditKeySource, begun: Option<&str>, at_ms: i64) -> Result<AuditKeys, StoreError> {
    let AuditKeySource::Folder(folder) = source else {
        return Ok(AuditKeys::of_process());
    };
    let fault = |source| StoreError::AuditKeys { source };
    let Some(begun) = begun else {
        return folder.read_or_make(at_ms).map_err(fault);
    };
    let keys = folder.read().map_err(fault)?;
    if keys
        .as_ref()
        .is_some_and(|keys| keys.is_out_of_reach(begun))
    {
        return folder.read_or_make(at_ms).map_err(fault);
    }
    // A key that was made for a change that did not happen waits for the next.
    let keys = keys.and_then(|keys| keys.until(begun));
    keys.ok_or_else(|| StoreError::AuditKeyMissing {
        key: begun.to_owned(),
        path: folder.file(),
    })
}
