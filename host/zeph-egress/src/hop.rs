//! Headers that are of one connection, and go no further.

use http::header::{
    CONNECTION, HeaderMap, HeaderName, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

/// Those that are so in every message.
const OF_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes what is of one connection, what `Connection` says is, and `others`.
pub(crate) fn strip(headers: &mut HeaderMap, others: &[HeaderName]) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_CONNECTION.iter().chain(others).chain(&named) {
        headers.remove(name);
    }
}
