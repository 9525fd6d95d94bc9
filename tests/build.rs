//! Compiles the guests of the tests.

#[path = "../plugins/bundle/guest.rs"]
mod guest;

fn main() {
    guest::build("zeph-guest-hostile", "GUEST_HOSTILE");
    println!("cargo::rerun-if-changed=guests");
}
