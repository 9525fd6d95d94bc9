//! What credentials look like, provider by provider. A table and nothing else.
//!
//! The formats are those the providers document, with their prefixes and lengths; a prefix of few letters needs a value that
//! looks random as well.

/// What a match has to be besides matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing: the prefix and the length say enough.
    Shape,
    /// It looks random.
    Random,
    /// It looks like a value someone chose to be hard to guess, not like code or a placeholder.
    Value,
    /// It is no placeholder.
    Word,
}

/// One kind of credential.
#[derive(Debug)]
pub(super) struct Shape {
    /// As the warning names it.
    pub(super) kind: &'static str,
    /// What a line must hold for `pattern` to be tried, as [`Hint`](super::hint::Hint) reads it, or [`DOTTED`]: a whole text is searched for all of
    /// them at once.
    pub(super) hint: &'static str,
    /// The credential; the first group, if there is one, is the part that is secret.
    pub(super) pattern: &'static str,
    pub(super) check: Check,
}

/// The hint of what holds no word of its own: many characters, a full stop, six characters, a full stop.
pub(super) const DOTTED: &str = "";

const fn shape(
    kind: &'static str,
    hint: &'static str,
    pattern: &'static str,
    check: Check,
) -> Shape {
    Shape {
        kind,
        hint,
        pattern,
        check,
    }
}

/// Every kind, the more special before the more general.
pub(super) static SHAPES: &[Shape] = &[
    shape(
        "AWS access key",
        "AKIA|ASIA|ABIA|ACCA",
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
        Check::Shape,
    ),
    shape(
        "AWS secret key",
        r"(?i)\baws",
        r#"(?i)\baws[a-z0-9_ .-]{0,30}(?:secret|key)[a-z0-9_ .-]{0,30}["']?\s{0,5}[=:]\s{0,5}["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)"#,
        Check::Random,
    ),
    shape(
        "AWS session token",
        "(?i)session_token|sessiontoken",
        r#"(?i)\baws_?session_?token["']?\s{0,5}[=:]\s{0,5}["']?[A-Za-z0-9/+=]{100,}"#,
        Check::Shape,
    ),
    shape(
        "GitHub token",
        r"gh[pousr]_",
        r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b",
        Check::Shape,
    ),
    shape(
        "GitHub fine-grained token",
        r"github_pat_",
        r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b",
        Check::Shape,
    ),
    shape(
        "GitLab token",
        "glpat-|glptt-|glrt-|glsoat-|gldt-|glcbt-|glft-|glimt-|glagent-",
        r"\bgl(?:pat|ptt|rt|soat|dt|cbt|ft|imt|agent)-[A-Za-z0-9_-]{20,300}",
        Check::Shape,
    ),
    shape(
        "Bitbucket token",
        r"ATBB",
        r"\bATBB[A-Za-z0-9]{24,40}\b",
        Check::Shape,
    ),
    shape(
        "Atlassian token",
        r"AT[AC]TT3",
        r"\bAT[AC]TT3[A-Za-z0-9_=-]{50,400}",
        Check::Shape,
    ),
    shape(
        "Slack token",
        r"xox[abeoprs]",
        r"\bxox[abeoprs](?:\.xox[abp])?-[A-Za-z0-9-]{10,400}",
        Check::Shape,
    ),
    shape(
        "Slack app token",
        r"xapp-",
        r"\bxapp-[0-9]-[A-Z0-9]{5,40}-[0-9]{5,20}-[a-z0-9]{20,100}",
        Check::Shape,
    ),
    shape(
        "Slack webhook",
        "hooks.slack",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,200}",
        Check::Shape,
    ),
    shape(
        "Discord webhook",
        r"/api/webhooks/",
        r"https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{20,120}",
        Check::Shape,
    ),
    shape(
        "Discord bot token",
        DOTTED,
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
        Check::Random,
    ),
    shape(
        "Teams webhook",
        "webhook.office",
        r"https://[a-z0-9.-]{1,80}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@-]{30,200}",
        Check::Shape,
    ),
    shape(
        "Telegram bot token",
        ":AA{9}",
        r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b",
        Check::Shape,
    ),
    shape(
        "Anthropic key",
        r"sk-ant-",
        r"\bsk-ant-[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_-]{20,200}",
        Check::Shape,
    ),
    shape(
        "OpenRouter key",
        r"sk-or-",
        r"\bsk-or-(?:v1-)?[0-9a-f]{40,80}",
        Check::Shape,
    ),
    shape(
        "Langfuse key",
        r"sk-lf-",
        r"\bsk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        Check::Shape,
    ),
    shape(
        "OpenAI key",
        r"\bsk-{20}",
        r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,250}",
        Check::Random,
    ),
    shape(
        "Groq key",
        r"gsk_",
        r"\bgsk_[A-Za-z0-9]{40,80}",
        Check::Shape,
    ),
    shape(
        "xAI key",
        r"xai-",
        r"\bxai-[A-Za-z0-9]{40,120}",
        Check::Shape,
    ),
    shape(
        "Perplexity key",
        r"pplx-",
        r"\bpplx-[A-Za-z0-9]{40,80}",
        Check::Shape,
    ),
    shape(
        "Hugging Face token",
        r"\bhf_{9}",
        r"\bhf_[A-Za-z0-9]{30,60}\b",
        Check::Shape,
    ),
    shape(
        "Replicate token",
        r"\br8_{9}",
        r"\br8_[A-Za-z0-9]{37,45}\b",
        Check::Shape,
    ),
    shape(
        "LangSmith key",
        r"lsv2_",
        r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b",
        Check::Shape,
    ),
    shape(
        "Pinecone key",
        r"pcsk_",
        r"\bpcsk_[A-Za-z0-9_]{40,90}",
        Check::Shape,
    ),
    shape(
        "Tavily key",
        r"tvly-",
        r"\btvly-[A-Za-z0-9-]{20,60}",
        Check::Shape,
    ),
    shape(
        "Google API key",
        r"AIza",
        r"\bAIza[A-Za-z0-9_-]{35}",
        Check::Shape,
    ),
    shape(
        "Google OAuth secret",
        r"GOCSPX-",
        r"\bGOCSPX-[A-Za-z0-9_-]{28}",
        Check::Shape,
    ),
    shape(
        "Google access token",
        "ya29.",
        r"\bya29\.[A-Za-z0-9_-]{20,300}",
        Check::Shape,
    ),
    shape(
        "Google refresh token",
        r"1//0",
        r"\b1//0[A-Za-z0-9_-]{30,120}",
        Check::Shape,
    ),
    shape(
        "Azure storage key",
        r"AccountKey=",
        r"\bAccountKey=[A-Za-z0-9+/]{80,90}={0,2}",
        Check::Shape,
    ),
    shape(
        "Azure client secret",
        r"[0-9]Q~",
        r"(?:^|[^A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
        Check::Shape,
    ),
    shape(
        "Azure shared access signature",
        r"[?&;]sig=",
        r"[?&;]sig=[A-Za-z0-9%+/]{40,100}",
        Check::Random,
    ),
    shape(
        "Stripe key",
        "[sr]k_live_|[sr]k_test_",
        r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{10,250}",
        Check::Shape,
    ),
    shape(
        "Stripe webhook secret",
        r"whsec_",
        r"\bwhsec_[A-Za-z0-9+/=]{20,80}",
        Check::Shape,
    ),
    shape(
        "Square token",
        r"\bsq0{3}",
        r"\bsq0[a-z]{3}-[A-Za-z0-9_-]{22,50}",
        Check::Shape,
    ),
    shape(
        "Braintree token",
        "access_token$",
        r"\baccess_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
        Check::Shape,
    ),
    shape(
        "Shopify token",
        "shpat_|shpca_|shppa_|shpss_",
        r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
        Check::Shape,
    ),
    shape(
        "Twilio key",
        r"\bSK[0-9a-f]{7}",
        r"\bSK[0-9a-f]{32}\b",
        Check::Random,
    ),
    shape(
        "SendGrid key",
        r"\bSG.{9}",
        r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
        Check::Random,
    ),
    shape(
        "Mailgun key",
        r"\bkey-{8}",
        r"\bkey-[0-9a-f]{32}\b",
        Check::Random,
    ),
    shape(
        "Mailchimp key",
        r"-us[0-9]",
        r"\b[0-9a-f]{32}-us[0-9]{1,2}\b",
        Check::Random,
    ),
    shape(
        "Brevo key",
        r"xkeysib-",
        r"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b",
        Check::Shape,
    ),
    shape(
        "Resend key",
        r"\bre_{8}",
        r"\bre_[A-Za-z0-9]{8,12}_[A-Za-z0-9]{20,40}\b",
        Check::Random,
    ),
    shape(
        "npm token",
        r"\bnpm_{9}",
        r"\bnpm_[A-Za-z0-9]{36}\b",
        Check::Shape,
    ),
    shape(
        "npm registry token",
        r"_authToken",
        r#"_authToken\s{0,3}=\s{0,3}([^\s"']{8,300})"#,
        Check::Value,
    ),
    shape(
        "PyPI token",
        r"pypi-",
        r"\bpypi-[A-Za-z0-9_-]{50,300}",
        Check::Shape,
    ),
    shape(
        "crates.io token",
        r"\bcio{20}",
        r"\bcio[A-Za-z0-9]{32}\b",
        Check::Random,
    ),
    shape(
        "RubyGems key",
        r"rubygems_",
        r"\brubygems_[0-9a-f]{48}\b",
        Check::Shape,
    ),
    shape(
        "NuGet key",
        r"\boy2{20}",
        r"\boy2[a-z0-9]{43}\b",
        Check::Random,
    ),
    shape(
        "Docker token",
        r"dckr_",
        r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,60}",
        Check::Shape,
    ),
    shape(
        "Docker registry password",
        r#""auth""#,
        r#""auth"\s{0,3}:\s{0,3}"([A-Za-z0-9+/=]{20,400})""#,
        Check::Value,
    ),
    shape(
        "Artifactory key",
        r"AKCp",
        r"\bAKCp[A-Za-z0-9]{60,80}\b",
        Check::Shape,
    ),
    shape(
        "DigitalOcean token",
        r"do[opr]_v1_",
        r"\bdo[opr]_v1_[0-9a-f]{64}\b",
        Check::Shape,
    ),
    shape(
        "Heroku key",
        r"HRKU-",
        r"\bHRKU-[A-Za-z0-9_-]{20,80}",
        Check::Shape,
    ),
    shape(
        "Vercel token",
        r"vc[pkiar]_",
        r"\bvc[pkiar]_[A-Za-z0-9]{24,80}\b",
        Check::Random,
    ),
    shape(
        "Netlify token",
        r"nfp_",
        r"\bnfp_[A-Za-z0-9]{36,60}\b",
        Check::Shape,
    ),
    shape(
        "Fly.io token",
        r"FlyV1 ",
        r"\bFlyV1 fm[0-9][a-z]?_[A-Za-z0-9+/=,_-]{40,600}",
        Check::Shape,
    ),
    shape(
        "Cloudflare key",
        r"\bv1.0-{9}",
        r"\bv1\.0-[0-9a-f]{24}-[0-9a-f]{100,160}",
        Check::Shape,
    ),
    shape(
        "Databricks token",
        r"\bdapi{8}",
        r"\bdapi[0-9a-f]{32}(?:-[0-9])?\b",
        Check::Shape,
    ),
    shape(
        "Snowflake or PlanetScale token",
        r"pscale_",
        r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}",
        Check::Shape,
    ),
    shape(
        "Supabase key",
        "sbp_|sb_secret_",
        r"\bsb(?:p|_secret)_[0-9a-zA-Z_-]{20,60}",
        Check::Shape,
    ),
    shape(
        "Vault token",
        "hv[sbr].",
        r"\bhv[sbr]\.[A-Za-z0-9_-]{20,300}",
        Check::Shape,
    ),
    shape(
        "Terraform Cloud token",
        ".atlasv1.",
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80}",
        Check::Shape,
    ),
    shape(
        "Pulumi token",
        r"\bpul-{8}",
        r"\bpul-[0-9a-f]{40}\b",
        Check::Shape,
    ),
    shape(
        "Doppler token",
        "dp.pt.|dp.st.|dp.ct.|dp.sa.|dp.scim.|dp.audit.",
        r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,60}",
        Check::Shape,
    ),
    shape(
        "Grafana token",
        "glc_|glsa_",
        r"\bgl(?:c|sa)_[A-Za-z0-9+/_=]{32,400}",
        Check::Shape,
    ),
    shape(
        "New Relic key",
        r"NRAK-",
        r"\bNRAK-[A-Z0-9]{27}\b",
        Check::Shape,
    ),
    shape(
        "Sentry token",
        r"sntry[su]_",
        r"\bsntry[su]_[A-Za-z0-9_=+/]{40,400}",
        Check::Shape,
    ),
    shape(
        "Dynatrace token",
        r"\bdt0{3}",
        r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b",
        Check::Shape,
    ),
    shape(
        "Linear key",
        "lin_api_|lin_oauth_",
        r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,80}",
        Check::Shape,
    ),
    shape(
        "Notion token",
        r"\bntn_{20}|\bsecret_{20}",
        r"\b(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43})\b",
        Check::Random,
    ),
    shape(
        "Figma token",
        r"fig[du]_",
        r"\bfig[du]_[A-Za-z0-9_-]{30,60}",
        Check::Shape,
    ),
    shape(
        "Airtable token",
        r"\bpat{14}",
        r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b",
        Check::Shape,
    ),
    shape(
        "Contentful token",
        r"CFPAT-",
        r"\bCFPAT-[A-Za-z0-9_-]{43}",
        Check::Shape,
    ),
    shape(
        "Postman key",
        r"PMAK-",
        r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b",
        Check::Shape,
    ),
    shape(
        "CircleCI token",
        r"CCIPAT_",
        r"\bCCIPAT_[A-Za-z0-9]{20,24}_[0-9a-f]{40}\b",
        Check::Shape,
    ),
    shape(
        "Buildkite token",
        r"bkua_",
        r"\bbkua_[0-9a-f]{40}\b",
        Check::Shape,
    ),
    shape(
        "SonarQube token",
        r"\bsq[apu]_{8}",
        r"\bsq[apu]_[0-9a-f]{40}\b",
        Check::Shape,
    ),
    shape(
        "Tailscale key",
        r"tskey-",
        r"\btskey-[a-z]{3,12}-[A-Za-z0-9]{6,40}(?:-[A-Za-z0-9]{10,80})?",
        Check::Shape,
    ),
    shape(
        "1Password token",
        r"ops_eyJ",
        r"\bops_eyJ[A-Za-z0-9_-]{50,1500}",
        Check::Shape,
    ),
    shape(
        "Okta token",
        r"SSWS ",
        r"\bSSWS 00[A-Za-z0-9_-]{38,45}",
        Check::Shape,
    ),
    shape(
        "Facebook token",
        r"\bEAA{40}",
        r"\bEAA[A-Za-z0-9]{80,300}\b",
        Check::Random,
    ),
    shape(
        "Alibaba key",
        r"LTAI",
        r"\bLTAI[A-Za-z0-9]{12,26}\b",
        Check::Random,
    ),
    shape(
        "age secret key",
        r"AGE-SECRET-KEY",
        r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}",
        Check::Shape,
    ),
    shape(
        "private key",
        r"PRIVATE KEY",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----",
        Check::Shape,
    ),
    shape(
        "PuTTY key",
        r"PuTTY-User",
        r"\bPuTTY-User-Key-File-[0-9]",
        Check::Shape,
    ),
    shape(
        "JSON Web Token",
        r"\beyJ{10}",
        r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}",
        Check::Shape,
    ),
    shape(
        "URL with a password",
        "://…@",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@?#]{0,100}:([^\s@/?#]{3,200})@[^\s/@]",
        Check::Word,
    ),
    shape(
        "authorization header",
        "(?i)authorization",
        r#"(?i)\b(?:proxy-)?authorization["']?\s{0,5}[:=]\s{0,5}["']?(?:basic|bearer|token|apikey)\s{1,5}([A-Za-z0-9+/=._~-]{12,4000})"#,
        Check::Value,
    ),
    shape(
        "netrc password",
        r"\bmachine",
        r"\bmachine\s{1,5}\S{1,100}\s{1,5}login\s{1,5}\S{1,100}\s{1,5}password\s{1,5}(\S{3,200})",
        Check::Word,
    ),
    shape(
        "password hash",
        "$[65y]$|$2[aby]$",
        r"\$(?:6|5|y|2[aby])\$[./A-Za-z0-9$=,]{20,200}",
        Check::Shape,
    ),
    shape(
        "password in an assignment",
        "(?i)passw|pwd|secret|api[_-]key|apikey|access[_-]key|accesskey|auth[_-]token|authtoken|auth[_-]key|authkey|access[_-]token|accesstoken|private[_-]key|privatekey|credential",
        r#"(?i)(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?(?:token|key)|access[_-]?token|private[_-]?key|credential)s?(?:[_-](?:key|token|value|base))?["']?\s{0,5}(?::=|=>|=|:)\s{0,5}["']?([^\s"',;)\]}]{8,400})"#,
        Check::Value,
    ),
];
