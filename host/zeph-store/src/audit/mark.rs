//! Events of the chain itself as they are stored: what they say of the chain is believed only as far as their codes fit. Pure.
//!
//! A mark says which events are not there, or cannot be verified, any more. So it is verified before anything is read by it, and before another
//! mark goes on from it.

use super::chain::{ChainMark, EventKind};
use super::code::{Code, NO_CODE, hex};
use super::event::StoredEvent;
use crate::secrets::audit_keys::AuditKeys;

/// An event of the chain itself, and what stands before it.
#[derive(Debug, Clone)]
pub(crate) struct StoredMark {
    pub(crate) event: StoredEvent,
    pub(crate) mark: ChainMark,
    /// The code of the event before; none when that is not there.
    pub(crate) previous: Option<Code>,
}

/// What is known of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkState {
    /// It is as it was written.
    Sound,
    /// Its key is not here.
    KeyMissing,
    /// It is not what was written.
    Changed,
}

impl StoredMark {
    /// What the event says, after one with the code `previous`.
    ///
    /// Errors: it makes no sense.
    pub(crate) fn of(event: StoredEvent, previous: Option<Code>) -> serde_json::Result<Self> {
        let (mark, _) = read(&event)?;
        Ok(Self {
            event,
            mark,
            previous,
        })
    }

    /// Its number.
    pub(crate) fn n(&self) -> i64 {
        self.event.head.n
    }

    /// Whether it is as it was written.
    pub(crate) fn state(&self, keys: &AuditKeys) -> MarkState {
        let n = self.n();
        let Some(key) = keys.named(&self.mark.key) else {
            return MarkState::KeyMissing;
        };
        // The last event that was removed is known by the mark alone.
        let is_first = n - 1 == self.mark.upto;
        let of_cut = self.mark.upto_code().filter(|_| is_first);
        let previous = self.previous.or(of_cut);
        let code = previous.and_then(|previous| self.event.code_as(n, key, &previous));
        match code == Some(self.event.code) {
            true => MarkState::Sound,
            false => MarkState::Changed,
        }
    }

    /// What to verify a chain by whose first event is `first`: of a mark that is not known to be sound nothing counts that exempts events.
    pub(crate) fn believed(&self, state: MarkState, first: i64) -> ChainMark {
        let mark = self.mark.clone();
        let upto = mark.upto.min(first - 1).max(0);
        let upto_code = match upto {
            0 => hex(&NO_CODE),
            _ => mark.upto_code.clone(),
        };
        match state {
            MarkState::Sound => mark,
            MarkState::KeyMissing | MarkState::Changed => ChainMark {
                lost_upto: 0,
                left_upto: 0,
                upto,
                upto_code,
                ..mark
            },
        }
    }
}

/// What an event of the chain itself says, and whether the chain began anew before it, under numbers that were used before.
///
/// Earlier versions did that when retention had removed all events. No mark speaks for events as new as itself, so what it says of such numbers
/// is of events that are gone.
///
/// Errors: it makes no sense.
pub(super) fn read(event: &StoredEvent) -> serde_json::Result<(ChainMark, bool)> {
    let body = event.body.as_deref().unwrap_or_default();
    let mut mark: ChainMark = serde_json::from_str(body)?;
    let n = event.head.n;
    let is_anew = mark.upto >= n;
    if is_anew {
        mark.upto = 0;
        mark.upto_code = hex(&NO_CODE);
    }
    if mark.lost_upto >= n {
        mark.lost_upto = 0;
    }
    Ok((mark, is_anew))
}

impl ChainMark {
    /// Whether it may be said by `event` where `before` was said last: marks go on from each other, and what they count only grows.
    pub(crate) fn follows(&self, before: &Self, event: &StoredEvent) -> bool {
        let loses_key = event.kind() == Some(EventKind::Key) && self.lost_upto == event.head.n - 1;
        self.origin == before.origin
            && self.upto >= before.upto
            && self.n_removed >= before.n_removed
            && self.n_unsound >= before.n_unsound
            && self.n_unverified >= before.n_unverified
            && self.forgotten.len() >= before.forgotten.len()
            && (self.lost_upto == before.lost_upto
                || self.lost_upto > before.lost_upto && loses_key)
    }
}

#[cfg(test)]
mod tests {
    use super::{MarkState, StoredMark};
    use crate::audit::chain::{ChainMark, EventContent, EventHead, EventKind};
    use crate::audit::code::{NO_CODE, hex};
    use crate::audit::event::StoredEvent;
    use crate::secrets::audit_keys::AuditKeys;

    /// A mark as event `n` after one with the code of fives.
    fn stored(keys: &AuditKeys, n: i64, mark: ChainMark) -> StoredMark {
        let key = keys.newest().unwrap();
        let head = EventHead {
            n,
            kind: EventKind::Cut.number(),
            seq: None,
            call: None,
            begun: None,
        };
        let previous = [5; 32];
        let body = serde_json::to_string(&mark).unwrap();
        let code = head.code(key, &previous, EventContent::Body(&body));
        let body = Some(body);
        let event = StoredEvent {
            head,
            body,
            tag: None,
            code,
        };
        StoredMark {
            event,
            mark,
            previous: Some(previous),
        }
    }

    fn forged(stored: &StoredMark, change: impl FnOnce(&mut ChainMark)) -> StoredMark {
        let mut forged = stored.clone();
        change(&mut forged.mark);
        forged.event.body = serde_json::to_string(&forged.mark).ok();
        StoredMark::of(forged.event, forged.previous).unwrap()
    }

    #[test]
    fn a_mark_is_believed_only_under_its_seal() {
        let keys = AuditKeys::of_process();
        let start = ChainMark::start(keys.newest().unwrap(), 1, (0, 0));
        let mark = ChainMark {
            upto: 3,
            upto_code: hex(&[3; 32]),
            ..start
        };
        let sound = stored(&keys, 9, mark.clone());
        assert_eq!(sound.state(&keys), MarkState::Sound);
        assert_eq!(sound.believed(MarkState::Sound, 4), mark);
        let other_keys = AuditKeys::of_process();
        assert_eq!(sound.state(&other_keys), MarkState::KeyMissing);
        let tries: [fn(&mut ChainMark); 4] = [
            |mark| mark.lost_upto = 1_000_000_000,
            |mark| mark.lost_upto = 8,
            |mark| mark.upto = 9,
            |mark| mark.n_unsound = -1,
        ];
        for change in tries {
            let forged = forged(&sound, change);
            assert_eq!(forged.state(&keys), MarkState::Changed, "{:?}", forged.mark);
            let believed = forged.believed(MarkState::Changed, 1);
            assert_eq!((believed.upto, believed.lost_upto), (0, 0));
            assert_eq!(believed.upto_code(), Some(NO_CODE));
        }
    }

    /// An earlier version began anew at 1 when retention had removed all events.
    #[test]
    fn a_mark_says_nothing_of_events_as_new_as_itself() {
        let keys = AuditKeys::of_process();
        let start = ChainMark::start(keys.newest().unwrap(), 1, (0, 0));
        let mark = ChainMark {
            upto: 37,
            lost_upto: 12,
            ..start
        };
        let StoredMark {
            event, previous, ..
        } = stored(&keys, 2, mark);
        let sealed = StoredMark::of(event, previous).unwrap();
        assert_eq!(sealed.state(&keys), MarkState::Sound);
        assert_eq!((sealed.mark.upto, sealed.mark.lost_upto), (0, 0));
    }

    #[test]
    fn what_marks_count_only_grows() {
        let keys = AuditKeys::of_process();
        let start = ChainMark::start(keys.newest().unwrap(), 1, (0, 0));
        let before = ChainMark {
            upto: 3,
            n_removed: 2,
            n_unsound: 1,
            lost_upto: 4,
            ..start
        };
        let follows = |change: fn(&mut ChainMark), kind: EventKind| {
            let mut mark = before.clone();
            change(&mut mark);
            let mut stored = stored(&keys, 9, mark);
            stored.event.head.kind = kind.number();
            stored.mark.follows(&before, &stored.event)
        };
        assert!(follows(|mark| mark.upto = 5, EventKind::Cut));
        assert!(follows(|mark| mark.lost_upto = 8, EventKind::Key));
        assert!(!follows(|mark| mark.lost_upto = 8, EventKind::Cut));
        assert!(!follows(|mark| mark.lost_upto = 7, EventKind::Key));
        assert!(!follows(|mark| mark.lost_upto = 0, EventKind::Key));
        assert!(!follows(|mark| mark.upto = 2, EventKind::Cut));
        assert!(!follows(|mark| mark.n_removed = 0, EventKind::Cut));
        assert!(!follows(|mark| mark.n_unsound = 0, EventKind::Cut));
        assert!(!follows(
            |mark| mark.origin = uuid::Uuid::new_v4(),
            EventKind::Cut
        ));
    }
}
