//! Whole-product tests. One file per subject.

mod guest;
mod limits;
