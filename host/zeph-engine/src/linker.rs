//! What a guest can import. Every WASI 0.2 interface is here, so that guests of every language load; what was not
//! granted is refused inside the interface.

use std::collections::BTreeSet;

use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::WasiClocks;
use wasmtime_wasi::p2::bindings::{cli, clocks, random, sockets};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};
use wasmtime_wasi_http::p2::bindings::http::types as http_types;
use wasmtime_wasi_http::{WasiHttp, WasiHttpView as _};
use wasmtime_wasi_io::bindings::wasi::io;

use crate::bindings::zeph::plugin::{
    context, embeddings, log, process, progress, server_tools, types,
};
use crate::state::GuestState;
use crate::{fs, network};

mod http;

type Guest = Linker<GuestState>;

/// A linker with every interface of the packages that `component` imports from: to link one takes a process that makes a single call longer
/// than the guest takes.
pub(crate) fn linker_for(component: &Component) -> wasmtime::Result<Guest> {
    let engine = component.engine();
    let ty = component.component_type();
    let wanted: BTreeSet<&str> = (ty.imports(engine))
        .filter_map(|(name, _)| Some(name.split_once('/')?.0))
        .collect();
    let mut linker = Linker::new(engine);
    for (packages, add) in PACKAGES {
        if packages.iter().any(|package| wanted.contains(package)) {
            add(&mut linker)?;
        }
    }
    Ok(linker)
}

type AddPackages = fn(&mut Guest) -> wasmtime::Result<()>;

/// What is linked together, for each of these packages.
const PACKAGES: [(&[&str], AddPackages); 8] = [
    (&["wasi:io"], add_io),
    (&["wasi:cli"], add_cli),
    (&["wasi:clocks"], add_clocks),
    (&["wasi:random"], add_random),
    (&["wasi:sockets"], add_sockets),
    (&["wasi:http"], add_http),
    (&["wasi:filesystem", "zeph:plugin"], add_files),
    (&["zeph:plugin"], add_own),
];

struct HasTable;

impl wasmtime::component::HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

fn add_io(linker: &mut Guest) -> wasmtime::Result<()> {
    io::error::add_to_linker::<_, HasTable>(linker, |state| &mut state.table)?;
    io::poll::add_to_linker::<_, HasTable>(linker, |state| &mut state.table)?;
    io::streams::add_to_linker::<_, HasTable>(linker, |state| &mut state.table)
}

/// No arguments, an empty environment, an empty standard input; output goes to the log.
fn add_cli(linker: &mut Guest) -> wasmtime::Result<()> {
    cli::exit::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, GuestState::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, GuestState::cli)
}

fn add_files(linker: &mut Guest) -> wasmtime::Result<()> {
    fs::add_to_linker(linker, GuestState::fs)
}

fn add_own(linker: &mut Guest) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    progress::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    context::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    process::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    embeddings::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    server_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

fn add_clocks(linker: &mut Guest) -> wasmtime::Result<()> {
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(linker, GuestState::calendar)?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(linker, GuestState::stopwatch)
}

fn add_random(linker: &mut Guest) -> wasmtime::Result<()> {
    random::random::add_to_linker::<_, WasiRandom>(linker, GuestState::random)?;
    random::insecure::add_to_linker::<_, WasiRandom>(linker, GuestState::random)?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, |state| state.ctx().ctx.random())
}

/// `network` refuses to create sockets, and the context does not grant them.
fn add_sockets(linker: &mut Guest) -> wasmtime::Result<()> {
    let options = sockets::network::LinkOptions::default();
    sockets::instance_network::add_to_linker::<_, WasiSockets>(linker, GuestState::sockets)?;
    sockets::network::add_to_linker::<_, WasiSockets>(linker, &options, GuestState::sockets)?;
    sockets::tcp::add_to_linker::<_, WasiSockets>(linker, GuestState::sockets)?;
    sockets::udp::add_to_linker::<_, WasiSockets>(linker, GuestState::sockets)?;
    network::add_sockets_to_linker(linker, GuestState::refuser)
}

/// `network` sends requests by the exit of the call, or refuses to.
fn add_http(linker: &mut Guest) -> wasmtime::Result<()> {
    let options = http_types::LinkOptions::default();
    http_types::add_to_linker::<_, WasiHttp>(linker, &options, GuestState::http)?;
    http::add_to_linker(linker)?;
    network::add_http_to_linker(linker, GuestState::refuser)
}
