use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use zeph_config::{DependencyRule, DependencySettings};
use zeph_core::argument::Parameters;
use zeph_core::catalog::Catalog;
use zeph_core::id::{PluginId, ToolName};
use zeph_core::tool::{Annotations, Backend, Tool, ToolKind};
use zeph_engine::Cancel;

use super::{Dependencies, Progress};

fn tool(name: &str, backend: Backend) -> Tool {
    Tool {
        name: ToolName::new(name).unwrap(),
        title: None,
        description: String::new(),
        parameters: Parameters::new(json!({ "type": "object" })).unwrap(),
        output: None,
        kind: ToolKind::Other,
        annotations: Annotations::default(),
        backend,
    }
}

fn catalog() -> Catalog {
    let of_plugin = Backend::Wasm(PluginId("ci".to_owned()));
    Catalog::new([
        tool("build", of_plugin.clone()),
        tool("deploy", of_plugin.clone()),
        tool("lint", of_plugin),
        tool("bash", Backend::Shell),
    ])
    .unwrap()
}

fn dependencies(rules: &[(&str, &[&str], &[&str])]) -> Dependencies {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let rules = rules.iter().map(|(tool, requires, prefers)| {
        let rule = DependencyRule {
            requires: texts(requires),
            prefers: texts(prefers),
        };
        ((*tool).to_owned(), rule)
    });
    Dependencies::new(Some(&DependencySettings {
        boost_per_dep: 0.15,
        max_total_boost: 0.2,
        rules: rules.collect::<BTreeMap<_, _>>(),
    }))
}

fn of<'a>(catalog: &'a Catalog, name: &str) -> &'a Tool {
    catalog.resolve(name).unwrap()
}

async fn reason(
    dependencies: &Dependencies,
    progress: &Progress,
    catalog: &Catalog,
    name: &str,
) -> Option<String> {
    let (asked, cancel) = (progress.ask(name), Cancel::new());
    let refusal = dependencies.refusal(&asked, of(catalog, name), catalog, &cancel);
    let refusal = tokio::time::timeout(Duration::from_secs(60), refusal)
        .await
        .unwrap();
    refusal.map(|refusal| refusal.failure.message)
}

#[tokio::test]
async fn a_call_needs_the_success_of_others_under_whatever_name() {
    let catalog = catalog();
    // The rule is for the full name, what it requires for the short one and an alias.
    let rules = dependencies(&[("ci__deploy", &["build", "sh"], &[])]);
    let progress = Progress::of(false);
    let message = reason(&rules, &progress, &catalog, "deploy").await.unwrap();
    assert_eq!(
        message,
        "`deploy` needs a successful call of `build` and `sh` before it in this conversation \
         (`tools.dependencies.rules.ci__deploy.requires`); there is no tool `sh`, so only the operator can change this, in the \
         configuration"
    );
    drop(progress.ask("build"));
    assert!(
        reason(&rules, &progress, &catalog, "deploy")
            .await
            .unwrap()
            .contains("`build`")
    );
    progress.ask("ci__build").succeeded(of(&catalog, "build"));
    progress.ask("bash").succeeded(of(&catalog, "bash"));
    assert_eq!(reason(&rules, &progress, &catalog, "deploy").await, None);
    assert_eq!(
        reason(&rules, &Progress::of(false), &catalog, "build").await,
        None
    );
    progress.clear();
    assert!(
        reason(&rules, &progress, &catalog, "deploy")
            .await
            .is_some()
    );
}

#[tokio::test]
async fn a_call_waits_for_earlier_ones_and_not_for_later_ones() {
    let catalog = catalog();
    let rules = dependencies(&[("deploy", &["build"], &[])]);
    let progress = Progress::of(false);
    let (build, deploy) = (progress.ask("build"), progress.ask("deploy"));
    let later = progress.ask("build");
    let cancel = Cancel::new();
    let refusal = rules.refusal(&deploy, of(&catalog, "deploy"), &catalog, &cancel);
    let mut refusal = std::pin::pin!(refusal);
    let early = tokio::time::timeout(Duration::from_millis(20), &mut refusal).await;
    assert!(early.is_err(), "it has to wait for the build");
    build.succeeded(of(&catalog, "build"));
    assert!(refusal.await.is_none());
    drop(later);
    // One that fails does not help, and one that is cancelled waits no longer.
    progress.clear();
    let (build, deploy) = (progress.ask("build"), progress.ask("deploy"));
    let refusal = async {
        tokio::join!(
            rules.refusal(&deploy, of(&catalog, "deploy"), &catalog, &cancel),
            async { drop(build) }
        )
        .0
    };
    assert!(refusal.await.unwrap().reason.contains("`build`"));
    let _running = progress.ask("build");
    let deploy = progress.ask("deploy");
    cancel.cancel();
    assert!(
        rules
            .refusal(&deploy, of(&catalog, "deploy"), &catalog, &cancel)
            .await
            .is_some()
    );
}

#[test]
fn preferred_tools_raise_the_similarity_up_to_a_bound() {
    let catalog = catalog();
    let rules = dependencies(&[("deploy", &[], &["build", "lint"])]);
    let progress = Progress::of(false);
    let boost = || rules.boost(&progress, of(&catalog, "deploy"), &catalog);
    assert!(boost().abs() < 1e-9);
    progress.ask("build").succeeded(of(&catalog, "build"));
    assert!((boost() - 0.15).abs() < 1e-9);
    progress.ask("lint").succeeded(of(&catalog, "lint"));
    assert!((boost() - 0.2).abs() < 1e-9);
}

#[tokio::test]
async fn what_goes_on_in_the_background_has_not_succeeded() {
    let catalog = catalog();
    let rules = dependencies(&[("deploy", &["bash"], &[])]);
    let progress = Progress::of(false);
    progress.ended_well();
    progress.ask("bash").began(of(&catalog, "bash"));
    let message = reason(&rules, &progress, &catalog, "deploy").await;
    assert!(message.is_some_and(|message| message.contains("`bash`")));
    progress.ended_well();
    assert_eq!(reason(&rules, &progress, &catalog, "deploy").await, None);
}
