//! A tool that fails a number of times before it works: each call adds a byte to a file, whose length says which attempt it is.

use std::fs::OpenOptions;
use std::io::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use zeph_plugin::{Category, Output, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Flaky {
    /// The file that counts.
    path: String,
    /// How often it fails.
    fails: u64,
    /// As what it fails.
    category: FailsAs,
    /// How long it asks to wait.
    retry_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FailsAs {
    InvalidParameters,
    TypeMismatch,
    PolicyBlocked,
    PermanentFailure,
    Cancelled,
    RateLimited,
    ServerError,
    NetworkError,
    Timeout,
}

/// Fails, or says which attempt it is.
pub(crate) fn run(flaky: Flaky) -> Result<Output, ToolError> {
    let counter = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&flaky.path);
    let counted = counter.and_then(|mut file| {
        file.write_all(b".")?;
        file.metadata()
    });
    let n = counted
        .map_err(|error| ToolError::io(error.kind(), error.to_string()))?
        .len();
    if n > flaky.fails {
        return Ok(Output::text(format!("attempt {n}")));
    }
    Err(ToolError {
        retry_after_ms: flaky.retry_after_ms,
        ..ToolError::new(category(flaky.category), format!("attempt {n} fails"))
    })
}

fn category(fails_as: FailsAs) -> Category {
    match fails_as {
        FailsAs::InvalidParameters => Category::InvalidParameters,
        FailsAs::TypeMismatch => Category::TypeMismatch,
        FailsAs::PolicyBlocked => Category::PolicyBlocked,
        FailsAs::PermanentFailure => Category::PermanentFailure,
        FailsAs::Cancelled => Category::Cancelled,
        FailsAs::RateLimited => Category::RateLimited,
        FailsAs::ServerError => Category::ServerError,
        FailsAs::NetworkError => Category::NetworkError,
        FailsAs::Timeout => Category::Timeout,
    }
}
