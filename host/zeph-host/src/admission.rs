//! What let a caller in, and whether it still does: what a caller left behind, its schedules and tasks, depends on that, too.

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::Digest;
use zeph_mcp::caller::CallRate;
use zeph_mcp::subset::ToolSubset;
use zeph_store::{CallBucket, Owner, Store, StoreError, TokenRecord};

use crate::clock::now_ms;

/// What let the caller of a session in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admission {
    /// Its token; none for callers that came with none.
    pub(crate) token: Option<Digest>,
    /// The tools that it allows.
    pub(crate) tools: ToolSubset,
    /// How often its calls are made, where no door counts them: those of schedules.
    pub(crate) rate: Option<CallRate>,
}

/// The tokens that let callers in, as they were read at one moment.
#[derive(Debug)]
pub(crate) struct Tokens(Vec<TokenRecord>);

impl Tokens {
    /// Reads them.
    ///
    /// Errors: [`StoreError`].
    pub(crate) async fn read(store: &Store) -> Result<Self, StoreError> {
        let mut tokens = store.list_tokens().await?;
        let now_ms = now_ms();
        tokens.retain(|token| !token.has_expired(now_ms));
        Ok(Self(tokens))
    }

    /// What `owner` may do; none when its token was revoked or has expired.
    pub(crate) fn admit(&self, owner: &Owner) -> Option<Admission> {
        // As long as the server lets everybody in.
        if owner.is_anonymous() {
            return self.0.is_empty().then(Admission::default);
        }
        let Some(digest) = owner.token else {
            return Some(Admission::default());
        };
        let token = self.0.iter().find(|token| token.digest == digest)?;
        Some(Admission {
            token: Some(digest),
            tools: ToolSubset::of_token(token.tools.as_deref()),
            rate: token.rate.map(|per_minute| CallRate {
                token: digest,
                per_minute,
            }),
        })
    }
}

/// Counts a call, for all replicas.
///
/// Errors: `rate_limited`; `server_error` when it cannot be counted.
pub(crate) async fn count_call(store: &Store, rate: Option<&CallRate>) -> Result<(), ToolFailure> {
    let Some(rate) = rate else {
        return Ok(());
    };
    let failed = |category, message: String| ToolFailure::new(category, ErrorPhase::Setup, message);
    let bucket = CallBucket {
        token: rate.token,
        per_minute: rate.per_minute,
    };
    let taken = store.take_call(bucket, now_ms()).await;
    let taken = taken.map_err(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "a call cannot be counted");
        let message = "the store cannot count the call".to_owned();
        failed(ErrorCategory::ServerError, message)
    })?;
    let Some(wait_ms) = taken else {
        return Ok(());
    };
    let message = format!("more than {} calls a minute", rate.per_minute);
    Err(ToolFailure {
        retry_after_ms: Some(wait_ms),
        ..failed(ErrorCategory::RateLimited, message)
    })
}
