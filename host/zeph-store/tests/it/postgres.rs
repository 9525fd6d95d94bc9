//! What holds for PostgreSQL alone: its URL, its server and what is between.

mod hosts;
mod journeys;
mod listen;
mod many_rows;
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts the servers it breaks"
)]
mod outage;
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts the pooler it needs"
)]
mod pooler;
mod rights;
mod start;
#[expect(
    clippy::disallowed_methods,
    reason = "a test makes the files of its server"
)]
mod tls;
mod upgrade;
mod url;
