//! The providers of the configuration, with their keys.

use std::sync::Arc;

use zeph_agent::{
    ApiKey, Prices, Provider, ProviderError, ProviderKind, ProviderSettings, Timeouts,
};
use zeph_config::Config;
use zeph_core::execution::SecretValue;
use zeph_egress::Egress;

use crate::host::Host;
use crate::known_secrets::KnownSecrets;

/// Why there is no model: what is missing, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoModel {
    /// What is missing.
    pub(crate) problem: String,
    /// What to do.
    pub(crate) hint: String,
}

impl NoModel {
    /// What a provider says that cannot be reached with its settings.
    pub(crate) fn of(error: &ProviderError) -> Self {
        Self {
            problem: error.to_string(),
            hint: "see `llm.providers` in `zeph-host config show --origin`".to_owned(),
        }
    }
}

/// The provider called `name`, or the one in use.
///
/// Errors: [`NoModel`].
pub(crate) fn provider(host: &Host, name: Option<&str>) -> Result<Arc<dyn Provider>, NoModel> {
    let config = host.config();
    let Some(name) = name.or(config.agent.provider.as_deref()) else {
        return Err(not_configured());
    };
    connect(config, host.secrets(), host.egress(), name)
}

/// The provider called `name`.
///
/// Errors: [`NoModel`].
pub(crate) fn connect(
    config: &Config,
    secrets: &KnownSecrets,
    egress: &Egress,
    name: &str,
) -> Result<Arc<dyn Provider>, NoModel> {
    let found = found(config, name)?;
    has_prices(config, found)?;
    let settings = settings(found, key(secrets, found)?);
    let provider = zeph_agent::connect(settings, egress);
    Ok(Arc::from(provider.map_err(|error| NoModel::of(&error))?))
}

/// What reaches a model for embeddings of the provider called `name`. Without a price of its own it costs what input of the provider does.
///
/// Errors: [`NoModel`].
pub(crate) fn settings_of(
    (config, secrets): (&Config, &KnownSecrets),
    name: &str,
    (model, price): (&str, Option<f64>),
) -> Result<ProviderSettings, NoModel> {
    let found = found(config, name)?;
    let price = price.or(found.prices.input);
    if config.agent.max_cost_usd.is_some() && price.is_none() {
        return Err(NoModel {
            problem: format!(
                "`agent.max_cost_usd` is set, and the model for embeddings `{model}` has no price"
            ),
            hint: format!(
                "set `agent.embedding.price_input`, or `price_input` of the provider `{name}`, to 0 where it costs nothing"
            ),
        });
    }
    let mut settings = settings(found, key(secrets, found)?);
    settings.model = model.to_owned();
    settings.prices.input = price;
    Ok(settings)
}

fn found<'a>(config: &'a Config, name: &str) -> Result<&'a zeph_config::ProviderSettings, NoModel> {
    let mut providers = config.providers.iter();
    let found = providers.find(|provider| provider.name == name);
    found.ok_or_else(|| unknown(config, name))
}

/// What tokens of a provider cost.
pub(crate) fn prices(provider: &zeph_config::ProviderSettings) -> Prices {
    Prices {
        input: provider.prices.input,
        output: provider.prices.output,
        cache_read: provider.prices.cache_read,
        cache_write: provider.prices.cache_write,
    }
}

/// A limit of the cost needs prices: without them nothing would ever reach it.
fn has_prices(config: &Config, provider: &zeph_config::ProviderSettings) -> Result<(), NoModel> {
    let prices = provider.prices;
    if config.agent.max_cost_usd.is_none() || (prices.input.is_some() && prices.output.is_some()) {
        return Ok(());
    }
    Err(NoModel {
        problem: format!(
            "`agent.max_cost_usd` is set, and the provider `{}` has no prices",
            provider.name
        ),
        hint: "set its `price_input` and `price_output`, 0 where it costs nothing".to_owned(),
    })
}

fn not_configured() -> NoModel {
    NoModel {
        problem: "no model is configured".to_owned(),
        hint: "add one to your configuration, such as:\n\n\
            [[llm.providers]]\nname = \"large\"\ntype = \"anthropic\"    # or openai, openai-responses, ollama, gemini\n\
            model = \"MODEL\"\n\nand set its key, such as ANTHROPIC_API_KEY"
            .to_owned(),
    }
}

fn unknown(config: &Config, name: &str) -> NoModel {
    let problem = format!("there is no provider `{name}`");
    if config.providers.is_empty() {
        return NoModel {
            problem,
            ..not_configured()
        };
    }
    let names: Vec<&str> = config
        .providers
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    NoModel {
        problem,
        hint: format!("`llm.providers` has: {}", names.join(", ")),
    }
}

/// The key of a provider; from now on it is removed from everything that is shown, stored or logged.
fn key(
    secrets: &KnownSecrets,
    provider: &zeph_config::ProviderSettings,
) -> Result<Option<ApiKey>, NoModel> {
    let (name, value) = match &provider.api_key {
        zeph_config::ApiKey::None => return Ok(None),
        zeph_config::ApiKey::Variable(name) => (name, zeph_config::variable(name)),
        zeph_config::ApiKey::Secret(name) => (name, secrets.value(name)),
    };
    let value = value.filter(|value| !value.trim().is_empty());
    let Some(value) = value else {
        return Err(no_key(provider, name));
    };
    secrets.learn(vec![SecretValue {
        name: name.clone(),
        value: value.trim().to_owned(),
    }]);
    Ok(Some(ApiKey::new(&value)))
}

fn no_key(provider: &zeph_config::ProviderSettings, name: &str) -> NoModel {
    let problem = format!("the provider `{}` has no key", provider.name);
    let hint = match &provider.api_key {
        zeph_config::ApiKey::Secret(_) => format!("store it with `zeph-host secret set {name}`"),
        _ => format!(
            "set the variable {name}, or store the key with `zeph-host secret set {name}` and write `api_key_secret = \"{name}\"`"
        ),
    };
    NoModel { problem, hint }
}

fn settings(provider: &zeph_config::ProviderSettings, key: Option<ApiKey>) -> ProviderSettings {
    ProviderSettings {
        name: provider.name.clone(),
        kind: kind(provider.kind),
        base_url: Some(provider.base_url.clone()),
        model: provider.model.clone(),
        key,
        max_tokens: provider.max_tokens,
        temperature: provider.temperature,
        prices: prices(provider),
        timeouts: Timeouts {
            headers: provider.idle_timeout,
            idle: provider.idle_timeout,
            total: provider.timeout,
        },
        retries: provider.retries,
        native_tools: provider.native_tools,
        stream: provider.stream,
        num_ctx: provider.num_ctx,
    }
}

fn kind(kind: zeph_config::ProviderKind) -> ProviderKind {
    match kind {
        zeph_config::ProviderKind::Anthropic => ProviderKind::Anthropic,
        zeph_config::ProviderKind::OpenAi => ProviderKind::OpenAi,
        zeph_config::ProviderKind::OpenAiResponses => ProviderKind::OpenAiResponses,
        zeph_config::ProviderKind::Ollama => ProviderKind::Ollama,
        zeph_config::ProviderKind::Gemini => ProviderKind::Gemini,
    }
}
