//! `[tools.scheduler]`, exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;

/// Tools that schedule calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawScheduler {
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) enabled: bool,
    #[schemars(extend("x-project" = "never: rules"))]
    pub(crate) missed: RawMissed,
    #[schemars(length(max = 64), extend("x-project" = "never: rules"))]
    pub(crate) time_zone: String,
}

/// What becomes of times that passed while no host ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum RawMissed {
    RunOnce,
    Skip,
    RunAll,
}
