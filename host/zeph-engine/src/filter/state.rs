//! What a strategy finds outside itself: nothing that differs from one process to the next.
//!
//! Interpreters ask for the time and for random bytes before they run anything, so both are there: a clock that stands still
//! and a fixed row of bytes.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtxBuilder};
use wasmtime_wasi_http::WasiHttpCtx;
use zeph_core::capability::FsGrant;

use super::{ANSWER_BYTES_MAX, FILTER_LIMITS};
use crate::call::{NO_SETTINGS, setup};
use crate::cancel::Cancel;
use crate::context::GuestContext;
use crate::fs::{FsCtx, FsPolicy, FsPolicyError};
use crate::limiter::Limiter;
use crate::log::GuestLog;
use crate::network::GuestNetwork;
use crate::process::Programs;
use crate::services::Services;
use crate::state::{GuestState, Inputs};

/// A store in which nothing is granted.
///
/// Errors: none that can happen: no directory is opened.
pub(super) fn store(
    engine: &wasmtime::Engine,
    log: GuestLog,
) -> Result<Store<GuestState>, FsPolicyError> {
    let nothing = FsPolicy::new(&FsGrant::default())?;
    let deadline = std::time::Instant::now() + FILTER_LIMITS.wall_clock;
    let mut table = ResourceTable::new();
    table.set_max_capacity(FILTER_LIMITS.handles as usize);
    let state = GuestState {
        wasi: WasiCtxBuilder::new()
            .stdout(log.clone())
            .stderr(log.clone())
            .max_random_size(setup::RANDOM_BYTES_MAX)
            .secure_random(Deterministic::new(fixed_bytes()))
            .insecure_random(Deterministic::new(fixed_bytes()))
            .insecure_random_seed(0)
            .wall_clock(Still)
            .monotonic_clock(Still)
            .build(),
        http: WasiHttpCtx::new(),
        network: GuestNetwork::default(),
        table,
        fs: FsCtx::new(Arc::new(nothing)),
        limiter: Limiter::start(FILTER_LIMITS, Cancel::new(), deadline),
        log,
        listener: None,
        context: GuestContext {
            settings: NO_SETTINGS.into(),
            call: None,
        },
        programs: Programs::default(),
        services: Services::default(),
        inputs: Inputs::default(),
    };
    let mut store = setup::store(engine, state, FILTER_LIMITS);
    store.set_hostcall_fuel(ANSWER_BYTES_MAX);
    Ok(store)
}

/// Every byte once, so that drawing until a number fits terminates.
fn fixed_bytes() -> Vec<u8> {
    (0..=u8::MAX)
        .map(|n| n.wrapping_mul(167).wrapping_add(13))
        .collect()
}

/// A clock that stands still.
struct Still;

impl HostWallClock for Still {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for Still {
    fn resolution(&self) -> u64 {
        1_000_000_000
    }

    fn now(&self) -> u64 {
        0
    }
}
