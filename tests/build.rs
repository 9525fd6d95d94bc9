//! Compiles the guests of the tests to components.

#[path = "../plugins/bundle/guest.rs"]
mod guest;

fn main() {
    if let Err(message) = guest::build(
        "zeph-guest-hostile",
        "tests/guests/hostile",
        "GUEST_HOSTILE",
    ) {
        println!("cargo::error={message}");
    }
}
