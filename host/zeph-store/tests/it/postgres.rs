//! What holds for PostgreSQL alone: its URL, its server and what is between.

mod listen;
mod url;
