//! What `wasi:http` keeps for a guest, bounded, and what it says of a body that broke off. No request is ever sent (see `network`), but a guest may prepare them, and the stock
//! implementation keeps a method and an authority of any length: some dozens of requests hold gigabytes of the host.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, Host as _, HostOutgoingRequest as _, IoError, Method,
};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use crate::http_exit::body_error_code;

/// The interface as the stock implementation links it.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Most bytes of a request's method and of its authority. Names of hosts end at 253; 8 KiB is what servers take of a whole line.
const PART_BYTES_MAX: usize = 8 * 1024;

type Set = wasmtime::Result<(Result<(), ()>,)>;

/// Puts bounded functions before the stock ones, which must have been linked.
pub(crate) fn add_to_linker<T: WasiHttpView + Send + 'static>(
    linker: &mut Linker<T>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    types.func_wrap("[method]outgoing-request.set-method", set_method::<T>)?;
    types.func_wrap("[method]outgoing-request.set-authority", set_authority::<T>)?;
    types.func_wrap("http-error-code", http_error_code::<T>)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn set_method<T: WasiHttpView>(
    mut store: StoreContextMut<'_, T>,
    (request, method): (Resource<HostOutgoingRequest>, Method),
) -> Set {
    match &method {
        Method::Other(name) if name.len() > PART_BYTES_MAX => Ok((Err(()),)),
        _ => Ok((store.data_mut().http().set_method(request, method)?,)),
    }
}

fn set_authority<T: WasiHttpView>(
    mut store: StoreContextMut<'_, T>,
    (request, authority): (Resource<HostOutgoingRequest>, Option<String>),
) -> Set {
    match &authority {
        Some(authority) if authority.len() > PART_BYTES_MAX => Ok((Err(()),)),
        _ => Ok((store.data_mut().http().set_authority(request, authority)?,)),
    }
}

/// The code of an error of a stream. The stock function finds none for the body of a response, whose errors have another type: every guest would
/// take a limit that was met for a connection that broke, and try again.
fn http_error_code<T: WasiHttpView>(
    mut store: StoreContextMut<'_, T>,
    (error,): (Resource<IoError>,),
) -> wasmtime::Result<(Option<ErrorCode>,)> {
    let mut http = store.data_mut().http();
    let of_body = http
        .table
        .get(&error)?
        .downcast_ref()
        .and_then(body_error_code);
    match of_body {
        Some(code) => Ok((Some(code),)),
        None => Ok((http.http_error_code(error)?,)),
    }
}
