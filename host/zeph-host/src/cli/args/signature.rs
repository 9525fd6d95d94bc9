//! Arguments of `zeph-host plugin keygen`, `sign` and `verify`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs};
use zeph_core::id::Digest;

use super::Json;
use super::plugin::digest;

/// `zeph-host plugin keygen`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginKeygen {
    /// Where the secret key goes; the public key goes beside it, with the extension `pub`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Do not encrypt the secret key with a password
    #[arg(long)]
    pub(crate) no_password: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin sign`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginSign {
    /// The component, or a project directory with a built component
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Secret key, made by `plugin keygen` or `minisign -G`
    #[arg(long, value_name = "KEY", required_unless_present = "print_document")]
    pub(crate) key: Option<PathBuf>,
    /// Name that is signed: the last part of the repository it is published in [default: the file name, if the project has it too]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Version that is signed [default: the version of the component]
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// When the signature expires: a date (2027-12-31, end of day in UTC), a time, or `365d` from now [default: never]
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    /// Keep the signatures of other keys in the signature file
    #[arg(long)]
    pub(crate) add: bool,
    /// Print the text that is signed, and sign nothing
    #[arg(long, conflicts_with_all = ["key", "add", "json"])]
    pub(crate) print_document: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `zeph-host plugin verify`
#[derive(Debug, ClapArgs)]
pub(crate) struct PluginVerify {
    /// The component, a project directory, the name of an installed plugin, or the reference of a published one
    #[arg(value_name = "FILE|NAME|REF")]
    pub(crate) from: PathBuf,
    /// Accept only this public key, a line or a file, in place of the signers of the configuration; repeatable
    #[arg(long, value_name = "KEY", action = ArgAction::Append)]
    pub(crate) key: Vec<String>,
    /// Digest of the component; required for a URL
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) sha256: Option<Digest>,
    #[command(flatten)]
    pub(crate) json: Json,
}
