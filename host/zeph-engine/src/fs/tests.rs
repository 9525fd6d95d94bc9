//! Tests of the guard through its border.
