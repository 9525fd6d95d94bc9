//! `zeph-host plugin dev`: builds a project whenever it changes, and puts what comes out into the folder of plugins, where a
//! running host finds it.

use std::path::Path;
use std::time::Instant;

use zeph_core::id::PluginId;
use zeph_engine::ComponentBytes;
use zeph_plugins::author::build::{BuildError, Project};
use zeph_plugins::author::sources::Sources;
use zeph_plugins::manage::approval;
use zeph_plugins::manage::install::{self, InstallTarget, Replace};
use zeph_plugins::manage::{ManageError, names, source, trial};
use zeph_plugins::set::Status;
use zeph_plugins::signature::{FoundSignatures, SignatureFile};

use super::{add, approve, display};
use crate::cli::args::PluginDev;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;
use crate::host::StartError;
use crate::run::interrupt::Interrupts;
use crate::run::render::{duration, escape};

/// Runs the command until it is interrupted.
pub(super) fn run(context: &Context, options: &PluginDev) -> Result<Exit, CliError> {
    super::must_be_on(&context.config()?)?;
    let dev = Dev::new(context, options)?;
    if !context.quiet {
        let command = dev.project.command();
        out::remark(&format!("`{command}` at every change; Ctrl-C ends it"));
    }
    context::block_on(async {
        let mut interrupts = Interrupts::listen()
            .map_err(|error| CliError::internal("signals cannot be heard").because(error))?;
        let mut sources = Sources::note(&dev.folder);
        loop {
            tokio::select! {
                ended = dev.round() => dev.say(ended)?,
                _ = interrupts.next() => return Ok(Exit::Success),
            }
            tokio::select! {
                () = sources.changed() => {}
                _ = interrupts.next() => return Ok(Exit::Success),
            }
        }
    })
}

/// One project under development.
struct Dev<'a> {
    context: &'a Context,
    project: Project,
    folder: std::path::PathBuf,
    /// Whether changes are accepted without a look at them.
    approve: bool,
}

impl<'a> Dev<'a> {
    fn new(context: &'a Context, options: &PluginDev) -> Result<Self, CliError> {
        let folder = context.surroundings.working_directory.join(&options.dir);
        let project = Project::open(&folder).map_err(failed)?;
        Ok(Self {
            context,
            project,
            folder,
            approve: options.approve,
        })
    }

    /// Prints how a round ended. A failure of one is not the end: the next change may mend it.
    fn say(&self, ended: Result<String, CliError>) -> Result<(), CliError> {
        match ended {
            Ok(line) => out::data(&(line + "\n")),
            Err(error) => {
                out::error(&error, self.context.quiet);
                Ok(())
            }
        }
    }

    /// Builds, tries what was built, and puts it into the folder; says in one line what came of it.
    async fn round(&self) -> Result<String, CliError> {
        let start = Instant::now();
        let built = self.project.build().await.map_err(failed)?;
        let took = duration(start.elapsed());
        // As the tool wrote them, but for what could drive the terminal.
        if !built.warnings.is_empty() {
            out::stderr(&escape(&built.warnings));
        }
        let source = match built.component {
            Some(made) => made.into(),
            None => source::component(&self.folder)?,
        };
        let name = source::name(None, &source, &self.context.first_party())?;
        let file = source.file;
        let bytes = add::read(&file)?;
        self.install(&name, &file, bytes).await?;
        let state = self.settle(&name).await;
        super::announce(self.context, &self.context.config()?).await?;
        let state = state?;
        Ok(format!("plugin `{name}` built in {took}; {state}"))
    }

    /// A component that cannot be loaded never takes the place of one that can.
    async fn install(
        &self,
        name: &PluginId,
        file: &Path,
        bytes: ComponentBytes,
    ) -> Result<(), CliError> {
        // Read anew each time: what is granted and where plugins stand may have been changed meanwhile.
        let config = self.context.config()?;
        let known = names::known(&config.plugins.typed_first())?;
        let wasm = zeph_engine::digest(&bytes);
        let folder = config.plugins.add_to.as_deref();
        let place = install::place(name, wasm, &known, folder, Replace::Yes)?;
        let signatures = self.signatures(file)?;
        if let InstallTarget::Same(_) = place {
            return Ok(install::put(&bytes, &signatures, &place)?);
        }
        let tell = super::progress(self.context);
        let engine =
            trial::engine(config.engine.cache_dir.clone(), tell).map_err(StartError::Engine)?;
        let tried = trial::load(&engine, name, bytes.clone(), config.limits).await;
        tried.map_err(|reason| {
            let error = ManageError::Bad {
                path: file.to_owned(),
                reason,
            };
            let file = display::path(file);
            CliError::from(error).hint(format!("`zeph-host plugin check {file}` says more"))
        })?;
        Ok(install::put(&bytes, &signatures, &place)?)
    }

    /// The signatures beside what was built. One that is older is of another build, and would only keep this one from being used.
    fn signatures(&self, file: &Path) -> Result<FoundSignatures, CliError> {
        let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
        let built = changed(file);
        let beside = SignatureFile::ALL.map(|signature| signature.beside(file));
        let older = beside
            .iter()
            .find(|path| changed(path).is_some_and(|signed| Some(signed) < built));
        let Some(older) = older else {
            return FoundSignatures::beside(file).map_err(CliError::internal);
        };
        if !self.context.quiet {
            let older = display::path(older);
            out::note(&format!(
                "`{older}` is older than what was built, and is left out; `zeph-host plugin sign` signs it again"
            ));
        }
        Ok(FoundSignatures::default())
    }

    /// What a host makes of it, which pins what is new; and the approval of a change, where that is wanted.
    async fn settle(&self, name: &PluginId) -> Result<String, CliError> {
        let config = self.context.config()?;
        let host = super::settled(self.context, config).await?;
        let set = host.plugins();
        let standing = names::standing(&set, &name.0, &self.context.first_party())?;
        let state = match &standing.status {
            Status::Active => "it is active".to_owned(),
            Status::Loading => "it is still being loaded".to_owned(),
            Status::Disabled => format!("it is off until `zeph-host plugin enable {name}`"),
            Status::Quarantined(_) if self.approve && standing.awaits_agreement => {
                let folder = &host.config().plugins.folders[standing.folder_idx];
                approval::agree(standing, folder, now_ms())?;
                "it is approved, and active".to_owned()
            }
            Status::Quarantined(reason) => format!("it cannot be used: {}", escape(reason)),
            Status::Changed if self.approve => {
                let folder = &host.config().plugins.folders[standing.folder_idx];
                if let Some(approval) = approval::compare(standing, folder, now_ms())? {
                    approve::accept(&host, &approval).await?;
                }
                "the change is approved".to_owned()
            }
            Status::Changed => {
                let off = format!("it is off until `zeph-host plugin approve {name}`");
                format!("{off}; `plugin dev --approve` accepts every change")
            }
        };
        Ok(state)
    }
}

fn failed(error: BuildError) -> CliError {
    let problem = error.to_string();
    match error {
        BuildError::NoProject(_) => CliError::user(problem)
            .hint("`zeph-host plugin new --lang LANGUAGE NAME` begins a project"),
        BuildError::Start { source, .. } | BuildError::Output { source, .. } => {
            CliError::internal(problem).because(source)
        }
        BuildError::Failed { output, .. } => {
            // As the tool wrote it, but for what could drive the terminal.
            out::stderr(&escape(&output));
            CliError::internal(problem)
        }
    }
}
