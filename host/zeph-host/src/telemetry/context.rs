//! The trace that a span belongs to, and what a caller says of it.
//!
//! Source: W3C Trace Context, level 1.

use uuid::Uuid;
use zeph_config::Sampler;

/// Most bytes of a `tracestate`; a longer one is dropped, as its specification allows.
const STATE_BYTES_MAX: usize = 512;

/// The bit of the flags that says that the caller keeps its spans.
const SAMPLED: u8 = 1;

/// A span of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceParent {
    trace: u128,
    span: u64,
    flags: u8,
}

/// Where a span stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) parent: Option<u64>,
    /// What the caller passes on; kept as it is.
    pub(super) state: Option<String>,
}

impl TraceParent {
    /// Reads a `traceparent`. What is none counts as no parent.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version, trace, span, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
        let is_hex = |part: &str, n: usize| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            part.len() == n && part.bytes().all(is_digit)
        };
        let lengths = [(version, 2), (trace, 32), (span, 16), (flags, 2)];
        let is_whole = lengths.iter().all(|(part, n)| is_hex(part, *n));
        // A later version may go on behind the flags.
        let is_known = version != "ff" && (version != "00" || parts.next().is_none());
        if !(is_whole && is_known) {
            return None;
        }
        let parsed = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(span, 16).ok()?,
            flags: u8::from_str_radix(flags, 16).ok()?,
        };
        (parsed.trace != 0 && parsed.span != 0).then_some(parsed)
    }
}

impl SpanContext {
    /// A new span below `parent`, in a new trace without one; none where the sampler keeps none.
    pub(super) fn new(
        parent: Option<TraceParent>,
        state: Option<&str>,
        sampler: Sampler,
    ) -> Option<Self> {
        let trace = parent.map_or_else(random, |parent| parent.trace);
        let is_kept = match parent.filter(|_| sampler.follows_parent) {
            Some(parent) => parent.flags & SAMPLED != 0,
            None => is_within(trace, sampler.ratio),
        };
        is_kept.then(|| Self {
            trace,
            span: Uuid::from_u128(random()).as_u64_pair().0,
            parent: parent.map(|parent| parent.span),
            state: state
                .filter(|state| parent.is_some() && state.len() <= STATE_BYTES_MAX)
                .map(str::to_owned),
        })
    }
}

/// A random number. In each of the two some bits are fixed, at other places after turning.
fn random() -> u128 {
    Uuid::new_v4().as_u128() ^ Uuid::new_v4().as_u128().rotate_left(29)
}

/// Whether a trace belongs to this share of all: by its own number, so that every program decides alike.
fn is_within(trace: u128, ratio: f64) -> bool {
    let (_, low) = Uuid::from_u128(trace).as_u64_pair();
    ratio >= 1.0 || (low >> 1) as f64 / ((u64::MAX >> 1) as f64) < ratio
}

#[cfg(test)]
mod tests {
    use zeph_config::Sampler;

    use super::{SpanContext, TraceParent};

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_or_counts_as_none() {
        let parsed = TraceParent::parse(PARENT).unwrap();
        assert_eq!(parsed.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((parsed.span, parsed.flags), (0xb7ad_6b71_6920_3331, 1));
        let later = PARENT.replacen("00-", "01-", 1) + "-more";
        assert!(TraceParent::parse(&later).is_some());
        for bad in [
            String::new(),
            PARENT.replacen("00-", "ff-", 1),
            PARENT.to_uppercase(),
            format!("{PARENT}-more"),
            PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            PARENT.replace("-01", ""),
            PARENT.replace("0af7", "+af7"),
        ] {
            assert_eq!(TraceParent::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn the_callers_decision_counts_where_it_should() {
        let parent = TraceParent::parse(PARENT);
        let unsampled = TraceParent::parse(&PARENT.replace("-01", "-00"));
        let sampler = |follows_parent, ratio| Sampler {
            follows_parent,
            ratio,
        };
        for (parent, sampler, is_kept) in [
            (parent, sampler(true, 0.0), true),
            (unsampled, sampler(true, 1.0), false),
            (unsampled, sampler(false, 1.0), true),
            (parent, sampler(false, 0.0), false),
            (None, sampler(true, 1.0), true),
            (None, sampler(true, 0.0), false),
        ] {
            let made = SpanContext::new(parent, Some("a=b"), sampler);
            assert_eq!(made.is_some(), is_kept, "{parent:?} {sampler:?}");
            let Some(made) = made else { continue };
            assert_eq!(made.parent, parent.map(|parent| parent.span));
            assert_eq!(made.state.is_some(), parent.is_some());
            assert_ne!(made.span, 0);
        }
        let n_kept =
            (0..1_000).filter(|_| SpanContext::new(None, None, sampler(true, 0.5)).is_some());
        assert!((300..700).contains(&n_kept.count()));
    }
}
