//! Whole-product tests. One file per subject.

mod audit;
mod cache;
mod faults;
mod files;
mod guard;
mod guest;
mod limits;
mod lines;
mod overflow;
mod product;
