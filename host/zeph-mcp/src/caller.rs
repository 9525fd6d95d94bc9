//! Who is behind a request, as the endpoint that let it in found out.

use axum::http::request::Parts;
use rmcp::model::Extensions;
use tokio_util::sync::CancellationToken;
use zeph_core::id::Digest;

use crate::subset::ToolSubset;

/// Who is behind a request. The endpoint puts it into the extensions of each request; on stdio there is one for the whole process.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The name of its token, or the subject of its access token; none where the endpoint is open.
    pub id: Option<String>,
    /// The token it came with; none for an access token, and where the endpoint is open.
    pub token: Option<Digest>,
    /// Cancelled when what let it in is revoked.
    pub right: CancellationToken,
    /// The tools it is offered and may call.
    pub tools: ToolSubset,
    /// How many calls a minute it may make, if there is a limit.
    pub rate: Option<CallRate>,
}

/// How often a caller may call. All its requests share it, at whichever server they come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    /// Its token: one that is made anew begins anew.
    pub token: Digest,
    /// Calls a minute.
    pub per_minute: u32,
}

impl Caller {
    /// The one that the endpoint found behind a request; `None` for a request that no endpoint let in.
    pub fn of_request(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Parts>()?.extensions.get()
    }
}
