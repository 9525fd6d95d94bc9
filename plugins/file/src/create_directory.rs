//! `create_directory`: a directory and the missing ones above it.

use std::io::ErrorKind;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_plugin::{Output, ToolError};

use crate::area::Area;
use crate::refusal::explain;
use crate::replace::Parents;
use crate::sys::{Kind, Links};

/// The arguments of `create_directory`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The directory, absolute or relative to the working directory.
    pub path: String,
}

/// The structured result of `create_directory`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CreateDirectoryResult {
    /// The directory.
    path: String,
    /// Whether it is new.
    created: bool,
}

/// Runs `create_directory`.
///
/// Errors: the path is not granted, or something else has a name on the way.
pub fn run(area: &Area, args: &Args) -> Result<Output, ToolError> {
    let place = area.place(&args.path)?;
    let path = place.shown();
    let created = match place.root().stat(place.relative(), Links::Follow) {
        Ok(stat) if stat.kind == Kind::Directory => false,
        Ok(_) => {
            let message = format!("`{path}` exists and is not a directory");
            return Err(ToolError::permanent(message));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parents = Parents::make(&place)?;
            if let Err(error) = place.root().create_directory(place.relative()) {
                parents.take_back();
                return Err(explain(&place, "created", &error));
            }
            true
        }
        Err(error) => return Err(explain(&place, "created", &error)),
    };
    let text = match created {
        true => format!("Created directory: {path}"),
        false => format!("Directory exists already: {path}"),
    };
    Ok(Output::text(text).structured(&CreateDirectoryResult {
        path: place.spelled(),
        created,
    }))
}

#[cfg(test)]
mod tests;
