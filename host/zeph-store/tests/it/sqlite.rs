//! What holds for SQLite alone: its file, its rows, and hosts in other processes.

mod bad_file;
mod bad_place;
mod bad_row;
mod desk;
mod two_hosts;
