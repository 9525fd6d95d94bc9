//! Hostile components, each against the walls of the engine: it ends in time with the right category, disturbs nobody, and leaves
//! nothing behind. The components are those of the product's self-test.

mod cancelling;
mod dropped;
mod harness;
mod listing;
mod misdeeds;
mod mixed;
mod network;
mod selftest;
