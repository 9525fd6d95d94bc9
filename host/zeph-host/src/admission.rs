//! What let a caller in, and whether it still does: what a caller left behind, its schedules and tasks, depends on that, too.

use zeph_core::id::Digest;
use zeph_mcp::subset::ToolSubset;
use zeph_store::{Owner, Store, StoreError, TokenRecord};

use crate::clock::now_ms;

/// What let the caller of a session in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admission {
    /// Its token; none for callers that came with none.
    pub(crate) token: Option<Digest>,
    /// The tools that it allows.
    pub(crate) tools: ToolSubset,
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
        let Some(digest) = owner.token else {
            return Some(Admission::default());
        };
        let token = self.0.iter().find(|token| token.digest == digest)?;
        Some(Admission {
            token: Some(digest),
            tools: ToolSubset::of_token(token.tools.as_deref()),
        })
    }
}
