//! Plugins as artifacts: how they are named, fetched from registries, signed, listed in indexes and packed for machines without a network.
