//! What let a caller in, and whether it still does: what a caller left behind, its schedules and tasks, depends on that, too.

use zeph_core::category::{ErrorCategory, ErrorPhase};
use zeph_core::failure::ToolFailure;
use zeph_core::id::Digest;
use zeph_core::text::counted;
use zeph_mcp::caller::CallRate;
use zeph_mcp::door::OpenDoor;
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

/// What lets callers in, as it was read at one moment.
#[derive(Debug)]
pub(crate) struct Tokens {
    valid: Vec<TokenRecord>,
    /// Whether this process serves those who come with none.
    is_open: bool,
}

impl Tokens {
    /// Reads them; those who come with none are let in through `door`.
    ///
    /// Errors: [`StoreError`].
    pub(crate) async fn read(store: &Store, door: &OpenDoor) -> Result<Self, StoreError> {
        let mut valid = store.list_tokens().await?;
        let is_open = door.is_open_with(!valid.is_empty());
        let now_ms = now_ms();
        valid.retain(|token| !token.has_expired(now_ms));
        Ok(Self { valid, is_open })
    }

    /// What `owner` may do; none when it is let in no more: its token was revoked or has expired, or it had none and the server is open no
    /// more.
    pub(crate) fn admit(&self, owner: &Owner) -> Option<Admission> {
        if owner.is_anonymous() {
            return self.is_open.then(Admission::default);
        }
        let Some(digest) = owner.token else {
            return Some(Admission::default());
        };
        let token = self.valid.iter().find(|token| token.digest == digest)?;
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
    let message = format!(
        "more than {} a minute",
        counted(rate.per_minute, "call", "calls")
    );
    Err(ToolFailure {
        retry_after_ms: Some(wait_ms),
        ..failed(ErrorCategory::RateLimited, message)
    })
}
