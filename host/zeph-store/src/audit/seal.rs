//! Adding events to the chain, in the transaction of what they vouch for. A transaction reads the newest event once.

use std::cell::{Cell, RefCell};

use uuid::Uuid;
use zeph_core::id::CallId;

use super::chain::{ChainMark, EventContent, EventHead, EventKind, ForgottenChain};
use super::code::{Code, NO_CODE};
use super::earlier::{ChainBegin, ChainRemoval, EarlierChain, SealedChain};
use super::mark::{MarkState, StoredMark};
use crate::error::StoreError;
use crate::operations::{OperationFault, Outcome};
use crate::secrets::audit_keys::{AuditKey, AuditKeys};

/// What a writer knows of the chain between its transactions.
#[derive(Debug, Default)]
pub(crate) struct Seal {
    /// None until calls are chained.
    sealing: RefCell<Option<Sealing>>,
    /// Whether it was looked for what others removed of the chain. Nobody removes anything of a host whose processes say that they run.
    has_looked: Cell<bool>,
}

#[derive(Debug)]
struct Sealing {
    keys: AuditKeys,
    /// When calls were chained and what was sealed before, for a chain that has to begin again.
    begin: ChainBegin,
    /// The newest event that is known: that of the transaction, once it was read.
    head: Option<NewestEvent>,
    /// The newest event at the end of an earlier transaction. Only when another host has gone on from it, the key is looked at anew.
    seen: Option<NewestEvent>,
}

/// The newest event of a chain; number 0 when there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewestEvent {
    pub(crate) n: i64,
    pub(crate) code: Code,
}

/// An event to add.
pub(crate) struct NewEvent<'a> {
    pub(crate) kind: EventKind,
    pub(crate) call: CallId,
    pub(crate) seq: i64,
    pub(crate) begun: Option<i64>,
    /// What was recorded, from [`record_bytes`](super::value::record_bytes).
    pub(crate) record: &'a [u8],
}

impl NewestEvent {
    pub(crate) const NONE: Self = Self {
        n: 0,
        code: NO_CODE,
    };
}

impl Seal {
    /// The newest event may not be what it was: a transaction begins, or something was undone.
    pub(crate) fn forget_head(&self) {
        if let Some(sealing) = self.sealing.borrow_mut().as_mut() {
            sealing.seen = sealing.head.take().or(sealing.seen);
        }
    }

    /// This process may not have been heard for long: others may have taken its host for gone.
    pub(crate) fn look_again(&self) {
        self.has_looked.set(false);
    }

    /// Whether it was looked for what others removed, and nothing was found.
    pub(crate) fn has_looked(&self) -> bool {
        self.has_looked.get()
    }

    /// Whether calls are chained.
    pub(crate) fn is_set(&self) -> bool {
        self.sealing.borrow().is_some()
    }

    /// The keys calls are chained with.
    pub(crate) fn keys(&self) -> Option<AuditKeys> {
        self.sealing
            .borrow()
            .as_ref()
            .map(|sealing| sealing.keys.clone())
    }

    fn set(&self, keys: &AuditKeys, begin: ChainBegin, head: Option<NewestEvent>) {
        *self.sealing.borrow_mut() = Some(Sealing {
            keys: keys.clone(),
            begin,
            head,
            seen: None,
        });
    }

    /// Works with the newest key; `None` when calls are not chained.
    fn with_key<T>(&self, work: impl FnOnce(&AuditKey) -> T) -> Outcome<Option<T>> {
        let sealing = self.sealing.borrow();
        let key = sealing.as_ref().map(|sealing| newest(&sealing.keys));
        Ok(key.transpose()?.map(work))
    }

    /// A chain that has to begin again is another than that of `mark`.
    fn know(&self, mark: &ChainMark) {
        if let Some(sealing) = self.sealing.borrow_mut().as_mut() {
            sealing.begin.sealed = SealedChain::Known(mark.origin);
        }
    }

    fn advance(&self, head: NewestEvent) {
        if let Some(sealing) = self.sealing.borrow_mut().as_mut() {
            sealing.head = Some(head);
        }
    }
}

/// A transaction of a database with a chain: what adding events needs of it, and the adding.
pub(crate) trait SealedAudit {
    fn seal(&self) -> &Seal;
    /// Waits until no other transaction adds events, and keeps others from it until this one ends.
    fn hold_chain(&self) -> Outcome<()>;
    /// The newest event.
    fn newest_event(&self) -> Outcome<NewestEvent>;
    /// The newest event of the chain itself before event `n`.
    fn mark_before(&self, n: i64) -> Outcome<Option<StoredMark>>;
    /// The number of the oldest event; 1 when there is none.
    fn first_event(&self) -> Outcome<i64>;
    /// Adds an event as it is.
    fn insert_event(
        &self,
        head: &EventHead,
        content: (Option<&str>, Option<&Code>),
        code: &Code,
    ) -> Outcome<()>;
    /// The number of the newest row, and how many rows name no event.
    fn rows_before(&self) -> Outcome<(i64, i64)>;
    /// Whether any row up to number `seq` names no event.
    fn has_before(&self, seq: i64) -> Outcome<bool>;
    /// Which other host says that it removed the chain `origin` of this one.
    fn removal_of(&self, keys: &AuditKeys, origin: Uuid) -> Outcome<Option<ChainRemoval>>;
    /// What another host says it removed of the chain `origin` of this one, the last event of which is there yet, and how many calls its events that
    /// are left vouch for.
    fn removed_of(
        &self,
        keys: &AuditKeys,
        origin: Uuid,
        only_verified: bool,
    ) -> Outcome<Option<(ForgottenChain, i64)>>;

    /// Chains calls from now on; the chain begins when there is none. Gives back the newest mark, with what is known of an earlier chain now.
    fn begin_chain(&self, keys: &AuditKeys, begin: &ChainBegin) -> Outcome<ChainMark> {
        self.hold_chain()?;
        self.seal().set(keys, *begin, None);
        let (newest, _) = self.take_over_removal(keys)?;
        let mark = match newest {
            Some(mark) => ChainMark {
                earlier: self.explained(keys, mark.earlier)?,
                ..mark
            },
            None => self.start_chain(keys, begin)?.1,
        };
        self.seal().know(&mark);
        Ok(mark)
    }

    /// Lets the newest of `keys` vouch for what comes. Gives back the newest mark.
    fn rekey_chain(&self, keys: &AuditKeys, begin: &ChainBegin) -> Outcome<ChainMark> {
        self.hold_chain()?;
        let Some((mark, state)) = self.mark_to_follow(keys)? else {
            return self.begin_chain(keys, begin);
        };
        let head = self.newest_event()?;
        let is_lost = state == MarkState::KeyMissing && !keys.is_out_of_reach(&mark.key);
        let mark = match is_lost {
            true => mark.with_lost_key(head.n, self.rows_before()?),
            false => mark,
        };
        let mark = match self.removed_of(keys, mark.origin, !begin.is_accepted)? {
            Some((removed, n_calls)) => mark.without(&removed, n_calls),
            None => mark,
        };
        let earlier = mark.earlier.map(|earlier| EarlierChain {
            is_accepted: earlier.is_accepted || begin.is_accepted,
            ..earlier
        });
        let mark = ChainMark {
            key: newest(keys)?.id.clone(),
            at_ms: begin.at_ms,
            earlier,
            ..mark
        };
        self.seal().set(keys, *begin, Some(head));
        self.seal().know(&mark);
        self.append_mark(EventKind::Key, &mark)?;
        Ok(mark)
    }

    /// What the next mark goes on from, and what is known of it: the newest that nobody changed. Those that were changed are counted for ever,
    /// and nothing of what they say is taken over; `None` when there is no chain.
    fn mark_to_follow(&self, keys: &AuditKeys) -> Outcome<Option<(ChainMark, MarkState)>> {
        let Some(newest_mark) = self.mark_before(i64::MAX)? else {
            return Ok(None);
        };
        let mut n_changed = 0;
        let mut next = Some(newest_mark.clone());
        while let Some(stored) = next {
            let state = stored.state(keys);
            if state != MarkState::Changed {
                let mark = stored.mark.with_changed(n_changed, newest(keys)?, state);
                return Ok(Some((mark, state)));
            }
            n_changed += 1;
            next = self.mark_before(stored.n())?;
        }
        let stored = newest_mark.mark;
        let start = ChainMark::start(newest(keys)?, stored.at_ms, self.rows_before()?);
        let mark = ChainMark {
            origin: stored.origin,
            earlier: stored.earlier,
            upto: self.first_event()? - 1,
            n_unsound: n_changed,
            ..start
        };
        Ok(Some((mark, MarkState::Sound)))
    }

    /// Says that what another host removed of this chain is gone, if its word can be verified: it took this one for gone, and may not have come to
    /// the end. Must come before anything else is added, which that host did not mean. Gives back the newest mark after it, and the event that
    /// says so, if one was added.
    fn take_over_removal(
        &self,
        keys: &AuditKeys,
    ) -> Outcome<(Option<ChainMark>, Option<NewestEvent>)> {
        let newest = self.mark_before(i64::MAX)?.map(|stored| stored.mark);
        let removed = match &newest {
            Some(mark) => self.mark_after_removal(keys, mark.origin)?,
            None => None,
        };
        let Some(mark) = removed else {
            self.seal().has_looked.set(true);
            return Ok((newest, None));
        };
        // What is added may be undone: then it is looked for again.
        let added = self.insert_mark(EventKind::Cut, &mark, self.newest_event()?)?;
        Ok((Some(mark), Some(added)))
    }

    /// What the chain `origin` says of itself without what another host removed; none when nothing of that can be verified.
    fn mark_after_removal(&self, keys: &AuditKeys, origin: Uuid) -> Outcome<Option<ChainMark>> {
        let Some((removed, n_calls)) = self.removed_of(keys, origin, true)? else {
            return Ok(None);
        };
        let Some((mark, MarkState::Sound)) = self.mark_to_follow(keys)? else {
            return Ok(None);
        };
        let before = mark.upto;
        let mark = mark.without(&removed, n_calls);
        Ok((mark.upto > before).then_some(mark))
    }

    /// The number that the next event gets; `None` when calls are not chained.
    fn next_event(&self) -> Outcome<Option<i64>> {
        Ok(self.head()?.map(|head| head.n + 1))
    }

    /// Adds an event of a call; its number.
    fn append(&self, event: &NewEvent<'_>) -> Outcome<Option<i64>> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let new = EventHead {
            n: head.n + 1,
            kind: event.kind.number(),
            seq: Some(event.seq),
            call: Some(event.call),
            begun: event.begun,
        };
        let codes = self.seal().with_key(|key| {
            let tag = key.record.code(&[event.record]);
            let code = new.code(key, &head.code, EventContent::Tag(&tag));
            (tag, code)
        })?;
        let Some((tag, code)) = codes else {
            return Ok(None);
        };
        self.insert_event(&new, (None, Some(&tag)), &code)?;
        self.seal().advance(NewestEvent { n: new.n, code });
        Ok(Some(new.n))
    }

    /// Adds an event of the chain itself.
    fn append_mark(&self, kind: EventKind, mark: &ChainMark) -> Outcome<()> {
        let Some(head) = self.head()? else {
            return Ok(());
        };
        self.insert_mark(kind, mark, head).map(drop)
    }

    /// Says what was removed.
    fn append_cut(&self, mark: ChainMark) -> Outcome<()> {
        let has_none = mark.before_rows > 0 && !self.has_before(mark.before_seq)?;
        let before_rows = match has_none {
            true => 0,
            false => mark.before_rows,
        };
        let mark = ChainMark {
            before_rows,
            ..mark
        };
        self.append_mark(EventKind::Cut, &mark)
    }

    /// Adds an event of the chain itself after `head`; gives it back.
    fn insert_mark(
        &self,
        kind: EventKind,
        mark: &ChainMark,
        head: NewestEvent,
    ) -> Outcome<NewestEvent> {
        let body = serde_json::to_string(mark).unwrap_or_default();
        let new = EventHead {
            n: head.n + 1,
            kind: kind.number(),
            seq: None,
            call: None,
            begun: None,
        };
        let content = EventContent::Body(&body);
        let code = self
            .seal()
            .with_key(|key| new.code(key, &head.code, content))?;
        let Some(code) = code else { return Ok(head) };
        self.insert_event(&new, (Some(&body), None), &code)?;
        let head = NewestEvent { n: new.n, code };
        self.seal().advance(head);
        Ok(head)
    }

    /// Begins the chain; gives back its first event, and what that says.
    fn start_chain(
        &self,
        keys: &AuditKeys,
        begin: &ChainBegin,
    ) -> Outcome<(NewestEvent, ChainMark)> {
        let start = ChainMark::start(newest(keys)?, begin.at_ms, self.rows_before()?);
        let mark = ChainMark {
            earlier: self.explained(keys, begin.earlier())?,
            ..start
        };
        let head = self.insert_mark(EventKind::Start, &mark, NewestEvent::NONE)?;
        Ok((head, mark))
    }

    /// An earlier chain with what other hosts say of it, if it is missed.
    fn explained(
        &self,
        keys: &AuditKeys,
        earlier: Option<EarlierChain>,
    ) -> Outcome<Option<EarlierChain>> {
        let missed = earlier
            .as_ref()
            .filter(|earlier| earlier.missed().is_some());
        let Some(origin) = missed.and_then(|earlier| earlier.origin) else {
            return Ok(earlier);
        };
        let removal = self.removal_of(keys, origin)?;
        Ok(earlier.map(|earlier| earlier.explained(removal)))
    }

    /// The newest event, read once in a transaction; `None` when calls are not chained.
    fn head(&self) -> Outcome<Option<NewestEvent>> {
        let (mut keys, begin, seen) = {
            let sealing = self.seal().sealing.borrow();
            let Some(sealing) = sealing.as_ref() else {
                return Ok(None);
            };
            if let Some(head) = sealing.head {
                return Ok(Some(head));
            }
            (sealing.keys.clone(), sealing.begin, sealing.seen)
        };
        self.hold_chain()?;
        let mut head = self.newest_event()?;
        if seen != Some(head) {
            self.renew_keys(&mut keys)?;
            self.seal().set(&keys, begin, None);
        }
        if head == NewestEvent::NONE {
            // Retention may remove the whole chain of a host that was away. Who else did it, nobody accepted.
            head = self.start_chain(&keys, &begin)?.0;
        } else if !self.seal().has_looked()
            && let (_, Some(added)) = self.take_over_removal(&keys)?
        {
            head = added;
        }
        self.seal().advance(head);
        Ok(Some(head))
    }

    /// Goes on with the key that vouches for what comes: another may have taken over while this host ran.
    fn renew_keys(&self, keys: &mut AuditKeys) -> Outcome<()> {
        let mark = self.mark_before(i64::MAX)?;
        let key = mark.map(|stored| stored.mark.key);
        let Some(id) = key.filter(|id| newest(keys).is_ok_and(|key| key.id != *id)) else {
            return Ok(());
        };
        let renewed = keys.read_again(&id);
        *keys = renewed.ok_or(OperationFault::Told(StoreError::AuditKeyChanged))?;
        Ok(())
    }
}

fn newest(keys: &AuditKeys) -> Outcome<&AuditKey> {
    let none = || OperationFault::Told(StoreError::AuditKeyChanged);
    keys.newest().ok_or_else(none)
}

/// The call of an event as it is stored.
pub(crate) fn call_of(bytes: Option<&[u8]>) -> Result<Option<CallId>, uuid::Error> {
    let uuid = bytes.map(Uuid::from_slice).transpose()?;
    Ok(uuid.map(CallId::from))
}
