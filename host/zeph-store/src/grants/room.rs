//! Which grants stand beside each other, which cover and which replace another, and which count for a call. Pure.

use zeph_core::capability::Capability;
use zeph_core::id::{ConversationId, Pin, PluginId};
use zeph_core::lifetime::GrantLifetime;
use zeph_core::policy::Mode;

use super::GrantRecord;

/// A grant that has no number yet.
#[derive(Debug)]
pub(crate) struct NewGrant<'a> {
    pub(crate) plugin: &'a PluginId,
    pub(crate) pin: Pin,
    pub(crate) capability: &'a Capability,
    pub(crate) lifetime: GrantLifetime,
    pub(crate) mode: Option<Mode>,
}

/// What has to happen for a grant to be added.
#[derive(Debug)]
pub(crate) enum Room {
    /// Nothing: this one stands for it.
    Covered(Box<GrantRecord>),
    /// It replaces these.
    Made(Vec<i64>),
}

impl Room {
    /// For `grant`, beside the grants that are `there` for the same pin.
    ///
    /// `now_ms` is `None` when it does not matter what has expired: a moved grant keeps its own end.
    pub(crate) fn among(
        mut there: Vec<GrantRecord>,
        grant: &NewGrant<'_>,
        now_ms: Option<i64>,
    ) -> Self {
        there.retain(|other| {
            let is_over = match (other.lifetime, now_ms) {
                (GrantLifetime::Until { at_ms }, Some(now_ms)) => at_ms <= now_ms,
                _ => false,
            };
            other.capability == *grant.capability && !is_over
        });
        let covering = |other: &&GrantRecord| {
            other.mode == grant.mode && covers(other.lifetime, grant.lifetime)
        };
        if let Some(other) = there.iter().find(covering) {
            return Self::Covered(Box::new(other.clone()));
        }
        // Of two modes for one capability the newer counts.
        there.retain(|other| other.mode != grant.mode || replaces(grant.lifetime, other.lifetime));
        Self::Made(there.iter().map(|other| other.id).collect())
    }
}

/// Those of a plugin's grants that count for a call of `conversation` that begins at `now_ms`.
pub(crate) fn counting(
    mut grants: Vec<GrantRecord>,
    conversation: ConversationId,
    now_ms: i64,
) -> Vec<GrantRecord> {
    grants.retain(|grant| match grant.lifetime {
        GrantLifetime::Once | GrantLifetime::Always => true,
        GrantLifetime::Session { conversation: own } => own == conversation,
        GrantLifetime::Until { at_ms } => now_ms < at_ms,
    });
    let (once, mut lasting): (Vec<_>, Vec<_>) = grants.into_iter().partition(GrantRecord::is_once);
    for grant in once {
        // What is granted for longer anyway need not be used up.
        if !lasting
            .iter()
            .any(|other| other.capability == grant.capability && other.mode.is_none())
        {
            lasting.push(grant);
        }
    }
    lasting
}

/// Whether a grant for `held` makes one for `asked` pointless.
fn covers(held: GrantLifetime, asked: GrantLifetime) -> bool {
    use GrantLifetime::{Always, Once, Session, Until};
    match (held, asked) {
        (Always, _) | (Once, Once) | (Until { .. }, Once) => true,
        (Until { at_ms: held }, Until { at_ms: asked }) => held >= asked,
        (
            Session { conversation: held },
            Session {
                conversation: asked,
            },
        ) => held == asked,
        // A session counts for its conversation only: the call that is to be allowed once may belong to another.
        (Session { .. }, Once | Until { .. })
        | (Once, Session { .. } | Until { .. })
        | (Until { .. }, Session { .. })
        | (Once | Session { .. } | Until { .. }, Always) => false,
    }
}

/// Whether a new grant for `new` ends one for `held`.
fn replaces(new: GrantLifetime, held: GrantLifetime) -> bool {
    // "Once" and then something longer: nobody expects a further call after the longer one has ended.
    covers(new, held) || held == GrantLifetime::Once
}
