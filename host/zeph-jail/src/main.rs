//! The inner stage of the jail. It runs inside the namespaces, closes the last doors behind itself, and becomes the command.

fn main() {}
