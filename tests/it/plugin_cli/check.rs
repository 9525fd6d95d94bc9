//! `plugin check`.
