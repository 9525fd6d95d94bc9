//! The way out to the network for tools and commands: which host may be reached, at which address, within which limits.
