//! An archive of `zip`, as wheels are: as much of the format as they need (APPNOTE 6.3, without extensions).

use std::io::Write as _;

use anyhow::{Context as _, Result};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use crate::archive::Item;
use crate::release::Release;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;

/// Made by version 2.0, on Unix: modes count.
const MADE_BY: u16 = 3 << 8 | 20;

/// The version that is needed to unpack what is deflated.
const NEEDED: u16 = 20;

const DEFLATED: u16 = 8;

/// `S_IFREG`, the kind of a file beside its mode.
const REGULAR: u32 = 0o100_000;

/// The items in their order, deflated.
///
/// Errors: for a file or an archive of 4 GB.
pub(crate) fn zip(release: &Release, items: &[Item]) -> Result<Vec<u8>> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for item in items {
        let start = u32::try_from(archive.len()).context("the archive is too large")?;
        let bytes = item.bytes.as_deref().unwrap_or_default();
        let packed = deflated(release, bytes)?;
        let shared = shared(release, item, bytes, &packed)?;
        put(&mut archive, LOCAL);
        archive.extend(&shared);
        archive.extend(item.path.as_bytes());
        archive.extend(&packed);
        put(&mut directory, CENTRAL);
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(&shared);
        // No comment, on the first disk, no inner attributes.
        directory.extend([0; 6]);
        put(&mut directory, (REGULAR | item.mode) << 16);
        put(&mut directory, start);
        directory.extend(item.path.as_bytes());
    }
    let start = u32::try_from(archive.len()).context("the archive is too large")?;
    archive.extend(&directory);
    put(&mut archive, END);
    // On one disk.
    archive.extend([0; 4]);
    let count = u16::try_from(items.len()).context("too many files")?;
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    put(&mut archive, u32::try_from(directory.len())?);
    put(&mut archive, start);
    // No comment.
    archive.extend([0; 2]);
    Ok(archive)
}

/// What both heads of a file say.
fn shared(release: &Release, item: &Item, bytes: &[u8], packed: &[u8]) -> Result<Vec<u8>> {
    let mut crc = Crc::new();
    crc.update(bytes);
    let (day, time) = dos_time(release)?;
    let mut head = Vec::new();
    for word in [NEEDED, 0, DEFLATED, time, day] {
        head.extend(word.to_le_bytes());
    }
    put(&mut head, crc.sum());
    put(
        &mut head,
        u32::try_from(packed.len()).context("a file is too large")?,
    );
    put(
        &mut head,
        u32::try_from(bytes.len()).context("a file is too large")?,
    );
    head.extend(u16::try_from(item.path.len())?.to_le_bytes());
    // No extra field.
    head.extend([0; 2]);
    Ok(head)
}

/// The day and the time of a release as DOS wrote them, in UTC and steps of two seconds, from 1980 on.
fn dos_time(release: &Release) -> Result<(u16, u16)> {
    let moment = release.time.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let year = u16::try_from(moment.year() - 1980).context("`zip` knows no time before 1980")?;
    let number = |value: i8| u16::try_from(value).unwrap_or_default();
    let day = year << 9 | number(moment.month()) << 5 | number(moment.day());
    let time =
        number(moment.hour()) << 11 | number(moment.minute()) << 5 | (number(moment.second()) / 2);
    Ok((day, time))
}

fn deflated(release: &Release, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::new(release.level));
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

fn put(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_le_bytes());
}
