//! Where source code, packages and builds are, and what watches programs.

use super::{Check, Shape, shape};

/// In the order of the providers; the more special before the more general.
pub(super) static SHAPES: &[Shape] = &[
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
        r"glpat-|glptt-|glrt-|glrtr-|glsoat-|gldt-|glcbt-|glft-|glffct-|glimt-|glagent-|gloas-|GR1348941|_gitlab_session=",
        r"\b(?:gl(?:pat|ptt|rtr?|soat|dt|cbt|ft|ffct|imt|agent|oas)-[A-Za-z0-9_-]{20,300}|GR1348941[A-Za-z0-9_-]{20}|_gitlab_session=[0-9a-z]{32})",
        Check::Shape,
    ),
    shape(
        "zeph-host token",
        r"zeph_mcp_",
        r"\bzeph_mcp_[A-Za-z0-9_-]{43}",
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
        "npm token",
        r"\bnpm_{9}",
        r"\bnpm_[A-Za-z0-9]{36}\b",
        Check::Shape,
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
        "Artifactory key",
        r"AKCp|cmVmd",
        r"\b(?:AKCp[A-Za-z0-9]{60,80}|cmVmd[A-Za-z0-9]{59})\b",
        Check::Shape,
    ),
    shape(
        "Grafana token",
        r"glc_|glsa_|eyJrIjoi",
        r"\b(?:gl(?:c|sa)_[A-Za-z0-9+/_=]{32,400}|eyJrIjoi[A-Za-z0-9+/]{70,400})",
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
        "Sourcegraph token",
        r"sgp_",
        r"\bsgp_(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40}\b",
        Check::Shape,
    ),
    shape(
        "Clojars token",
        r"(?i)clojars_",
        r"(?i)\bclojars_[a-z0-9]{60}",
        Check::Shape,
    ),
    shape(
        "Octopus key",
        r"\bAPI-{26}",
        r"\bAPI-[A-Z0-9]{26}\b",
        Check::Random,
    ),
    shape(
        "Harness key",
        r"\b[ps]at.{20}",
        r"\b[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
        Check::Shape,
    ),
    shape(
        "Prefect key",
        r"pnu_|pnb_",
        r"\bpn[ub]_[A-Za-z0-9]{36}\b",
        Check::Shape,
    ),
    shape("ReadMe key", r"rdme_", r"\brdme_[a-z0-9]{70}", Check::Shape),
    shape(
        "Infracost key",
        r"\bico-{32}",
        r"\bico-[A-Za-z0-9]{32}\b",
        Check::Random,
    ),
    shape(
        "LaunchDarkly key",
        r"\bsdk-{36}|\bapi-{36}",
        r"\b(?:api|sdk)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        Check::Shape,
    ),
    shape(
        "Snyk token",
        r"snyk_[us]at.",
        r"\bsnyk_[us]at\.[A-Za-z0-9]{8}\.[A-Za-z0-9_-]{40,120}",
        Check::Shape,
    ),
];
