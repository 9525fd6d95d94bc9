//! The tables of the specification, row by row.

use super::ErrorCategory as C;
use std::io::ErrorKind as K;

#[test]
fn retry_and_quality_never_overlap() {
    for category in C::ALL {
        assert!(
            !(category.is_retryable() && category.is_quality_failure()),
            "{category}"
        );
        if category.asks_for_reformat() {
            assert!(category.is_quality_failure(), "{category}");
        }
    }
    assert_eq!(C::ALL.iter().filter(|c| c.is_retryable()).count(), 4);
    assert_eq!(C::ALL.iter().filter(|c| c.is_quality_failure()).count(), 3);
}

#[test]
fn labels_are_what_serde_writes() {
    for category in C::ALL {
        let json = serde_json::to_value(category).unwrap();
        assert_eq!(json, category.label());
    }
}

#[test]
fn http_statuses() {
    let table = [
        (400, C::InvalidParameters),
        (422, C::InvalidParameters),
        (401, C::PolicyBlocked),
        (403, C::PolicyBlocked),
        (404, C::PermanentFailure),
        (408, C::PermanentFailure),
        (410, C::PermanentFailure),
        (425, C::PermanentFailure),
        (429, C::RateLimited),
        (500, C::ServerError),
        (503, C::ServerError),
        (599, C::ServerError),
        (600, C::PermanentFailure),
    ];
    for (status, expect) in table {
        assert_eq!(C::from_http_status(status), expect, "{status}");
    }
}

#[test]
fn io_kinds() {
    let table = [
        (K::TimedOut, C::Timeout),
        (K::ConnectionRefused, C::NetworkError),
        (K::BrokenPipe, C::NetworkError),
        (K::WouldBlock, C::ServerError),
        (K::Interrupted, C::ServerError),
        (K::PermissionDenied, C::PolicyBlocked),
        (K::NotFound, C::PermanentFailure),
        (K::StorageFull, C::PermanentFailure),
    ];
    for (kind, expect) in table {
        assert_eq!(C::from_io_kind(kind), expect, "{kind:?}");
    }
}
