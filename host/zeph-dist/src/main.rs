//! Makes what is handed out. Started by `cargo xtask dist`, `cargo xtask package` and, for the program alone, `cargo xtask bench`.
//!
//! Everything is a function of the sources, the lock file and one time, so that every build of the same state makes the same bytes.

mod archive;
mod check;
mod compile;
mod container;
mod crates;
mod debian;
mod licences;
mod npm;
mod parts;
#[path = "../../xtask/src/program.rs"]
mod program;
mod release;
mod sbom;
mod staging;
mod sums;
mod wheel;
mod zip;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use release::Release;

/// How much is made.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Extent {
    #[default]
    Everything,
    /// The crates only.
    Crates,
    /// The program only, whose path is printed.
    Program,
}

impl Extent {
    /// The command that asks for it.
    fn command(self) -> &'static str {
        match self {
            Self::Everything => "dist",
            Self::Crates => "package",
            Self::Program => "program",
        }
    }
}

/// What was asked for.
#[derive(Debug, Default)]
struct Order {
    extent: Extent,
    /// Where the results go; a folder of the target folder unless one is named.
    folder: Option<PathBuf>,
    /// A program that is there already, instead of one that is built.
    program: Option<PathBuf>,
    /// A folder with components that are packed already, instead of those that are built.
    components: Option<PathBuf>,
    /// Pack little: for trials.
    fast: bool,
    /// Make it twice, in two places, and compare.
    check: bool,
}

fn main() -> ExitCode {
    match order(std::env::args_os().skip(1)).and_then(|order| carry_out(&order)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn order(args: impl Iterator<Item = OsString>) -> Result<Order> {
    let mut args = args;
    let command = args.next();
    let extent = [Extent::Everything, Extent::Crates, Extent::Program]
        .into_iter()
        .find(|extent| command.as_deref() == Some(extent.command().as_ref()));
    let extent =
        extent.context("start this program with `cargo xtask dist` or `cargo xtask package`")?;
    let mut order = Order {
        extent,
        ..Order::default()
    };
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--check") => order.check = true,
            Some("--fast") => order.fast = true,
            Some("--program") => {
                let program = args.next().context("`--program` needs a file")?;
                order.program = Some(std::path::absolute(program)?);
            }
            Some("--components") => {
                let folder = args.next().context("`--components` needs a folder")?;
                order.components = Some(std::path::absolute(folder)?);
            }
            Some(option) if option.starts_with('-') => bail!(
                "no option `{option}`\n\nhint: there are --check, --program FILE, --components FOLDER and --fast"
            ),
            _ if order.folder.is_none() => order.folder = Some(std::path::absolute(arg)?),
            _ => bail!("one folder at most"),
        }
    }
    Ok(order)
}

fn carry_out(order: &Order) -> Result<()> {
    let default = if order.check {
        "dist-check"
    } else {
        "dist-out"
    };
    let folder = match &order.folder {
        Some(folder) => folder.clone(),
        None => program::profile_dir(default)?,
    };
    if order.check {
        return check::twice(&folder, order);
    }
    let release = Release::of_workspace(order.fast)?;
    if order.extent == Extent::Program {
        let program = compile::program(&release)?;
        writeln!(std::io::stdout(), "{}", program.display())?;
        return Ok(());
    }
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create `{}`", folder.display()))?;
    if order.program.is_none() || order.extent == Extent::Crates {
        let components = match &order.components {
            Some(folder) => compile::guests_in(folder)?,
            None => compile::guests(&release)?,
        };
        crates::write(&release, &components, &folder)?;
    }
    if order.extent == Extent::Everything {
        let program = match &order.program {
            Some(program) => program.clone(),
            None => compile::program(&release)?,
        };
        packages(&release, &program, &folder)?;
    }
    sums::write(&folder)?;
    tell(&format!("Everything is in `{}`.", folder.display()));
    Ok(())
}

/// Every package of the program, and the lists of what is in it.
fn packages(release: &Release, program: &Path, folder: &Path) -> Result<()> {
    let parts = parts::of(release)?;
    let contents = release::Contents::gather(release, program, &parts)?;
    let third_party = release.file("THIRD-PARTY.txt");
    release::write(folder, &third_party, contents.third_party.as_bytes())?;
    sbom::write(release, &parts, folder)?;
    release::write_program(release, &contents, folder)?;
    debian::write(release, &contents, folder)?;
    container::write(release, &contents, folder)?;
    npm::write(release, &contents, folder)?;
    wheel::write(release, &contents, folder)
}

/// Writes one message to standard error.
fn tell(message: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(std::io::stderr(), "{message}"));
}
