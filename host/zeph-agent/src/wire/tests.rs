//! Requests and answers as the documentation of each provider shows them, and what stays the same from turn to turn.

mod answers;
mod prefix;
mod requests;
mod urls;
