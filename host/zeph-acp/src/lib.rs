//! The Agent Client Protocol: an agent of zeph-host for editors.
