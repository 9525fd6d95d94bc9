//! Extended attributes that users set: their own (`user.*`) and access lists. Labels of security modules are left to the system.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

/// Bytes of the list of names, and of one value: the most Linux allows.
const BYTES_MAX: usize = 64 * 1024;

/// The attributes of one object, in the order the kernel lists them.
pub(super) type Attributes = Vec<(CString, Vec<u8>)>;

/// Reads the attributes of the object behind `handle`; none where the file system has none.
pub(super) fn read(handle: impl AsFd) -> Result<Attributes, Errno> {
    let mut short = [0_u8; 256];
    let length = match flistxattr(&handle, &mut short[..]) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Attributes::new()),
        Ok(length) => Ok(length),
        Err(errno) => Err(errno),
    };
    let mut long = Vec::new();
    let names = match length {
        Ok(length) => &short[..length],
        Err(Errno::RANGE) => {
            long.resize(BYTES_MAX, 0);
            let length = flistxattr(&handle, &mut long[..])?;
            &long[..length]
        }
        Err(errno) => return Err(errno),
    };
    let mut found = Attributes::new();
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else {
            continue;
        };
        if !is_ours(name) {
            continue;
        }
        let mut value = vec![0; BYTES_MAX];
        match fgetxattr(&handle, name, &mut value[..]) {
            Ok(length) => value.truncate(length),
            Err(Errno::NODATA | Errno::ACCESS | Errno::PERM) => continue,
            Err(errno) => return Err(errno),
        }
        value.shrink_to_fit();
        found.push((name.to_owned(), value));
    }
    Ok(found)
}

/// Makes the attributes of the object behind `handle` those of `wanted`.
pub(super) fn apply(handle: impl AsFd, wanted: &Attributes) -> Result<(), Errno> {
    let present = read(&handle)?;
    if present == *wanted {
        return Ok(());
    }
    for (name, _) in &present {
        if !wanted.iter().any(|(kept, _)| kept == name) {
            fremovexattr(&handle, name.as_c_str())?;
        }
    }
    for (name, value) in wanted {
        fsetxattr(&handle, name.as_c_str(), value, XattrFlags::empty())?;
    }
    Ok(())
}

fn is_ours(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}
