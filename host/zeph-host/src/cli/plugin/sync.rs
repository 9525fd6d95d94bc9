//! `zeph-host plugin sync`: makes the folder of plugins match its lock, from where the lock says or from a bundle.

use std::collections::BTreeMap;

use semver::Version;
use serde_json::{Value, json};
use zeph_artifact::bundle::Bundle;
use zeph_config::Config;
use zeph_plugins::diff::{UpdateRisk, yanked_warning};
use zeph_plugins::lock::{Lock, LockedPlugin};
use zeph_plugins::manage::ManageError;
use zeph_plugins::manage::sync::{
    Adoption, AdoptionItem, SyncAction, SyncFolder, SyncItem, SyncPlan,
};
use zeph_plugins::set::ManifestBy;
use zeph_store::Store;

use super::display::{self, Page};
use super::indexes::{IndexReader, OpenedIndex, yanked};
use super::registry::Transfer;
use super::supply::{self, Supply};
use super::vouching::Voucher;
use super::{consent, folder, said, update};
use crate::cli::args::PluginSync;
use crate::cli::context::{self, Context};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::out;
use crate::clock::now_ms;

/// What the command works with.
struct Work<'a> {
    config: &'a Config,
    options: &'a PluginSync,
    folder: SyncFolder,
    adoption: Adoption,
    supply: Supply,
    store: Store,
    voucher: Voucher<'a>,
}

/// What became of one plugin or file.
struct Done {
    item: SyncItem,
    /// Whether the folder is as it should be in this respect.
    is_done: bool,
    /// Whether a person has to agree to it, because no known signer signed it.
    is_waiting: bool,
    /// Why not, where something went wrong.
    problem: Option<CliError>,
}

/// Runs the command.
pub(super) fn run(context: &Context, options: &PluginSync) -> Result<Exit, CliError> {
    let config = context.config()?;
    super::must_be_on(&config)?;
    let folder = SyncFolder::open(folder(&config)?)?;
    let bundle = options.from.as_ref();
    let bundle = bundle
        .map(|file| supply::bundle(context, file))
        .transpose()?;
    context::block_on(async {
        let transfer = Transfer::new(context.quiet);
        let reader = IndexReader::new(context, &config, &transfer)?;
        let own = folder.lock()?;
        let voucher = Voucher::new(context, &config)?;
        let supply = match bundle {
            Some(bundle) => Supply::Bundle(Box::new(bundle)),
            None => Supply::Network(Box::new(reader.registries.clone())),
        };
        let mut indexes = match &supply {
            Supply::Bundle(bundle) => bundled_indexes(bundle, &reader, context).await,
            Supply::Network(_) => Vec::new(),
        };
        let (adoption, refused) = match &supply {
            Supply::Bundle(bundle) if !options.locked => {
                indexes.extend(reader.usable(context).await);
                let there = (&own, &folder);
                adoption(context, there, (bundle, &supply), &voucher, &indexes).await?
            }
            _ => (Adoption::default(), Vec::new()),
        };
        let mut plan = folder.plan(&adoption.merged(&own))?;
        for item in &mut plan.items {
            look_at_signatures(item, (&folder, &adoption), &voucher).await;
        }
        let is_fetched = |item: &SyncItem| item.locked.is_some() && item.action != SyncAction::Keep;
        if matches!(supply, Supply::Network(_)) && plan.items.iter().any(is_fetched) {
            indexes = reader.usable(context).await;
        }
        for locked in plan.items.iter().filter_map(|item| item.locked.as_ref()) {
            // What is taken over from a bundle is agreed to by name.
            let yanked = match adoption.item(&locked.name) {
                Some(_) => None,
                None => yanked(&indexes, locked, None),
            };
            let told = yanked.map(|reason| yanked_warning(&reason));
            let told = told.map(|told| format!("plugin `{}`: {told}", locked.name));
            context.notes(told.as_slice());
        }
        let store = reader.store;
        let work = Work {
            config: &config,
            options,
            folder,
            adoption,
            supply,
            store,
            voucher,
        };
        let exit = work.run(plan, refused).await;
        transfer.end();
        exit
    })
}

/// Marks a plugin to be fetched although it is what the lock says, if its signatures do not count: its source may have newer ones.
async fn look_at_signatures(
    item: &mut SyncItem,
    (folder, adoption): (&SyncFolder, &Adoption),
    voucher: &Voucher<'_>,
) {
    // What is switched off is used with no signature either.
    let Some(locked) = item.locked.as_ref().filter(|locked| !locked.disabled) else {
        return;
    };
    let is_kept = item.action == SyncAction::Keep && adoption.item(&locked.name).is_none();
    if is_kept && voucher.problem_of_installed(folder, locked).await.is_some() {
        item.action = SyncAction::Renew;
    }
}

/// What the lock of a bundle pins that the one of the folder does not, and what of that is refused. Nothing of it counts yet.
async fn adoption(
    context: &Context,
    (own, folder): (&Lock, &SyncFolder),
    (bundle, supply): (&Bundle, &Supply),
    voucher: &Voucher<'_>,
    indexes: &[OpenedIndex],
) -> Result<(Adoption, Vec<Done>), CliError> {
    let path = std::path::Path::new("zeph.lock (of the bundle)");
    let lock = Lock::parse(bundle.lock(), path).map_err(ManageError::from)?;
    let (mut news, mut refused) = (Vec::new(), Vec::new());
    let mut words = BTreeMap::new();
    for theirs in Adoption::of_other(own, &lock) {
        match found(theirs, supply, voucher).await {
            Ok((new, said)) => {
                words.extend(said.map(|said| (new.name.clone(), said)));
                news.push(new);
            }
            Err(problem) => refused.push(Done::refused(own, theirs, problem)),
        }
    }
    let yanked = |plugin: &LockedPlugin| yanked(indexes, plugin, words.get(&plugin.name).cloned());
    let mut adoption = Adoption::between(own, &news, now_ms(), yanked)?;
    for item in &mut adoption.items {
        let Some(word) = words.get(&item.new.name) else {
            continue;
        };
        said::warn_of_downgrade(item, word, |old| said::said(folder, old));
        let told = said::differs(&item.new, word);
        let told = told.map(|told| format!("plugin `{}`: {told}", item.new.name));
        context.notes(told.as_slice());
    }
    Ok((adoption, refused))
}

/// A plugin of a bundle with the version and the signer that were found of its component, and the version that it says; what the bundle's lock
/// says of them is not trusted.
///
/// Errors: the component is missing from the bundle, is not a plugin, is refused, or does not match the bundle's lock.
async fn found(
    theirs: &LockedPlugin,
    supply: &Supply,
    voucher: &Voucher<'_>,
) -> Result<(LockedPlugin, Option<Version>), CliError> {
    let name = &theirs.name;
    let supplied = supply.get(theirs, voucher.policy()).await?;
    let vouched = voucher.vouched(name, theirs.source(), &supplied).await?;
    voucher.check_claimed(theirs, &vouched)?;
    let good = &vouched.good;
    let pin = match theirs.operator_wants && good.manifest_by == ManifestBy::Nobody {
        true => good.with_wants(theirs.definitions.wants()).pin,
        false => good.pin,
    };
    if pin != theirs.pin {
        return Err(CliError::internal(format!(
            "plugin `{name}` cannot be taken over: its component is not what the lock of the bundle says"
        )));
    }
    let source = theirs.source().cloned();
    let said = good.version();
    let new = LockedPlugin {
        provenance: source.map(|source| update::provenance(source, None, &vouched)),
        ..theirs.clone()
    };
    Ok((new, said))
}

/// The indexes of a bundle that this machine trusts. Others only say what nobody here asked for.
async fn bundled_indexes(
    bundle: &Bundle,
    reader: &IndexReader<'_>,
    context: &Context,
) -> Vec<OpenedIndex> {
    let mut opened = Vec::new();
    for listed in bundle.indexes() {
        let parts = bundle
            .part(listed.document)
            .and_then(|document| Ok((document, bundle.part(listed.signature)?)));
        let checked = match parts {
            Ok((document, signature)) => {
                reader
                    .check(listed.source.clone(), document, signature)
                    .await
            }
            Err(error) => Err(CliError::internal(error.to_string())),
        };
        match checked {
            Ok(index) => opened.push(index),
            Err(error) => context.notes(&error.problems),
        }
    }
    opened
}

impl Work<'_> {
    /// Shape: `refused` are the plugins of the bundle that cannot be taken over, whatever a person says.
    async fn run(&self, plan: SyncPlan, refused: Vec<Done>) -> Result<Exit, CliError> {
        let mut done = refused;
        if self.options.dry_run {
            done.extend(plan.items.into_iter().map(Done::planned));
        } else if self.agreed(&plan) {
            for item in plan.items {
                done.push(self.carry_out(item).await);
            }
        } else {
            if self.options.json.json {
                // A reader of JSON has not seen yet what there is to agree to.
                done.extend(plan.items.into_iter().map(|item| Done {
                    is_waiting: self.asks(&item),
                    ..Done::planned(item)
                }));
                self.print(&done)?;
            }
            tell_problems(&done);
            return Ok(Exit::Confirm);
        }
        self.print(&done)?;
        tell_problems(&done);
        let has_failed = done.iter().any(|done| done.problem.is_some());
        Ok(
            match (has_failed, done.iter().any(|done| done.is_waiting)) {
                (true, _) => Exit::Failure,
                (false, true) => Exit::Confirm,
                (false, false) => Exit::Success,
            },
        )
    }

    /// Shows what the bundle pins otherwise, and asks. Without any of it nothing is asked: the lock was accepted.
    fn agreed(&self, plan: &SyncPlan) -> bool {
        let PluginSync { json, consent, .. } = self.options;
        if self.adoption.items.is_empty() && !plan.items.iter().any(|item| self.asks(item)) {
            return true;
        }
        if !json.json {
            self.page(plan).print_to_stderr();
        }
        let question = match self.adoption.items.is_empty() {
            true => "Remove what is beyond the lock?",
            false => "Accept these plugins?",
        };
        let risks: Vec<UpdateRisk> = self.adoption.risks();
        consent::given((question, &self.command()), consent, json.json, &risks)
    }

    /// Whether a person has to agree to what is done about this plugin.
    fn asks(&self, item: &SyncItem) -> bool {
        match &item.locked {
            Some(locked) => self.adoption.item(&locked.name).is_some(),
            None => self.options.prune && item.action == SyncAction::Beyond,
        }
    }

    fn command(&self) -> String {
        let mut command = "zeph-host plugin sync".to_owned();
        if let Some(file) = &self.options.from {
            command.push_str(&format!(" --from {}", display::path(file)));
        }
        if self.options.prune {
            command.push_str(" --prune");
        }
        command
    }

    fn page(&self, plan: &SyncPlan) -> Page {
        let mut page = Page::for_stderr();
        for item in &self.adoption.items {
            push_adoption(&mut page, item);
        }
        let beyond = plan.items.iter();
        let beyond = beyond.filter(|item| item.action == SyncAction::Beyond);
        for item in beyond.filter(|_| self.options.prune) {
            page.name(0, &item.name(), "is in no lock, and is to be removed");
        }
        page
    }

    async fn carry_out(&self, item: SyncItem) -> Done {
        let result = match (&item.locked, item.action) {
            (None, _) if self.options.prune => {
                let removed = self.folder.remove(&item.file);
                removed.map(|()| true).map_err(CliError::from)
            }
            (None, _) => return Done::planned(item),
            (Some(locked), action) => self.bring(locked, action).await,
        };
        Done {
            item,
            is_done: matches!(result, Ok(true)),
            is_waiting: matches!(result, Ok(false)),
            problem: result.err(),
        }
    }

    /// Brings one plugin in line with the lock, and the lock with what was agreed to; `false` when a person has to agree first.
    async fn bring(&self, locked: &LockedPlugin, action: SyncAction) -> Result<bool, CliError> {
        let voucher = &self.voucher;
        let adopted = self.adoption.item(&locked.name);
        if action == SyncAction::Keep && adopted.is_none() {
            return Ok(true);
        }
        let supplied = match self.supply.get(locked, voucher.policy()).await {
            Err(error) if action == SyncAction::Renew => {
                let problem = voucher.problem_of_installed(&self.folder, locked).await;
                let mut problems = problem.map_or_else(Vec::new, |problem| problem.problems);
                problems.extend(error.problems);
                return Err(CliError { problems, ..error });
            }
            supplied => supplied?,
        };
        let vouched = voucher
            .vouched(&locked.name, locked.source(), &supplied)
            .await?;
        voucher.check_pinned(locked, &vouched)?;
        if vouched.asks && !consent::names(&self.options.consent, UpdateRisk::Unsigned) {
            return Ok(false);
        }
        let content = (&supplied.bytes[..], &supplied.signatures);
        let Some(AdoptionItem { old, new, .. }) = adopted else {
            self.folder.install(locked, content)?;
            return Ok(true);
        };
        self.folder.update(old.as_ref(), new, content)?;
        let place = (self.config, &self.store);
        update::carry_grants(place, &self.folder, old.as_ref(), new).await?;
        Ok(true)
    }

    fn print(&self, done: &[Done]) -> Result<(), CliError> {
        if self.options.json.json {
            let plugins: Vec<Value> = done.iter().map(|done| self.as_json(done)).collect();
            return display::print_json(&json!({
                "folder": self.folder.path(),
                "dry_run": self.options.dry_run,
                "plugins": plugins,
            }));
        }
        let mut page = Page::new();
        if done.iter().all(|done| done.item.action == SyncAction::Keep) {
            let folder = self.folder.path().display();
            page.line(0, &format!("`{folder}` is what its lock says"));
        }
        for done in done {
            page.name(0, &done.item.name(), self.told(done));
        }
        page.print()
    }

    fn told(&self, done: &Done) -> &'static str {
        let is_planned = self.options.dry_run;
        if done.problem.is_some() {
            return "was left as it is";
        }
        if done.is_waiting {
            return "was left as it is: no known signer signed it; `--yes --accept unsigned` installs it";
        }
        match (done.item.action, done.is_done, is_planned) {
            (SyncAction::Keep, true, _) => "is what the lock says",
            (SyncAction::Install, _, true) => "is missing, and would be installed",
            (SyncAction::Replace, _, true) => "is another file, and would be replaced",
            (SyncAction::Renew, _, true) => {
                "has no signature that counts, and its source would be asked for another"
            }
            (SyncAction::Renew, true, _) => "got the signatures of its source",
            (SyncAction::Beyond, _, true) if self.options.prune => {
                "is in no lock, and would be removed"
            }
            (SyncAction::Install, true, _) => "was installed",
            (SyncAction::Replace, true, _) => "was replaced",
            (SyncAction::Beyond, true, _) => "was removed",
            (SyncAction::Beyond, ..) => "is in no lock; `--prune` removes it",
            (_, false, _) => "was left as it is",
        }
    }

    fn as_json(&self, done: &Done) -> Value {
        let Done {
            item,
            is_done,
            is_waiting,
            problem,
        } = done;
        let locked = item.locked.as_ref();
        let adopted = locked.and_then(|locked| self.adoption.item(&locked.name));
        json!({
            "name": item.name(),
            "file": item.file.to_string_lossy(),
            "action": item.action,
            "done": is_done,
            "needs_consent": is_waiting,
            "wasm": locked.map(|locked| locked.pin.wasm),
            "source": locked.and_then(LockedPlugin::source),
            "adopted": adopted.is_some(),
            "changes": adopted.and_then(|adopted| adopted.changes.as_ref()),
            "problem": problem.as_ref().map(|problem| problem.problems.join("; ")),
        })
    }
}

fn tell_problems(done: &[Done]) {
    let problems = done.iter().filter_map(|done| done.problem.as_ref());
    problems.for_each(|problem| out::error(problem, false));
}

impl Done {
    /// A plugin of a bundle that cannot be taken over.
    fn refused(own: &Lock, theirs: &LockedPlugin, problem: CliError) -> Self {
        let item = SyncItem {
            file: format!("{}.wasm", theirs.name).into(),
            action: match own.get(&theirs.name) {
                Some(_) => SyncAction::Replace,
                None => SyncAction::Install,
            },
            locked: Some(theirs.clone()),
        };
        Self {
            item,
            is_done: false,
            is_waiting: false,
            problem: Some(problem),
        }
    }

    /// Nothing was done about it.
    fn planned(item: SyncItem) -> Self {
        Self {
            is_done: item.action == SyncAction::Keep,
            item,
            is_waiting: false,
            problem: None,
        }
    }
}

/// A plugin that the bundle pins otherwise, or that is new: everything a person decides about.
fn push_adoption(page: &mut Page, item: &AdoptionItem) {
    let name = &item.new.name.0;
    if let Some(changes) = &item.changes {
        page.name(0, name, "is pinned otherwise in the bundle");
        page.diff(&changes.lines());
        return;
    }
    page.name(0, name, "is new");
    if let Some(source) = item.new.source() {
        page.line(1, &format!("the bundle says that it is from {source}"));
    }
    match item.new.signer() {
        Some(signer) => page.line(1, &format!("signed by {} ({})", signer.name, signer.key)),
        None => page.line(1, "not signed by a known signer"),
    };
    if let Some(reason) = &item.yanked {
        page.line(1, &zeph_plugins::diff::yanked_warning(reason));
    }
    for tool in item.new.definitions.tools() {
        page.line(1, &format!("tool {}", tool.name));
    }
    for want in item.new.definitions.wants() {
        page.line(1, &format!("requests {}: {}", want.capability, want.reason));
    }
}
