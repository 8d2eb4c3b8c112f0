//! What SFU and workers show each other, and where they learn of each other.

use std::path::PathBuf;

use anyhow::Result;
use windlass_cluster::nats::NatsConfig;
use windlass_cluster::token::ClusterToken;

use super::{Invalid, Settings};

/// What SFU and workers show each other.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The secret of all of them.
    pub token: Option<ClusterToken>,
    /// The files of authority, certificate and key.
    pub files: Option<(PathBuf, PathBuf, PathBuf)>,
}

pub(super) fn cluster(said: &Settings) -> Result<Cluster> {
    let files = match (&said.cluster_ca, &said.cluster_cert, &said.cluster_key) {
        (Some(ca), Some(certificate), Some(key)) => {
            Some((ca.clone(), certificate.clone(), key.clone()))
        }
        (None, None, None) => None,
        _ => {
            let needs = "needs cluster-cert and cluster-key, and they it";
            return Err(Invalid::new("cluster-ca", needs).into());
        }
    };
    Ok(Cluster { token: said.cluster_token.clone(), files })
}

pub(super) fn nats(said: &Settings) -> Result<Option<NatsConfig>> {
    let servers = said.nats.clone().unwrap_or_default();
    if servers.is_empty() {
        return Ok(None);
    }
    for server in &servers {
        let known = ["nats://", "tls://"].iter().any(|scheme| server.starts_with(scheme));
        allow!(
            known,
            "nats",
            "`{server}` is no server's address: write nats://host:4222 or tls://host:4222"
        );
    }
    let (credentials, ca) = (said.nats_credentials.clone(), said.nats_ca.clone());
    Ok(Some(NatsConfig { servers, credentials, ca }))
}

pub(super) fn node_url(said: &Settings) -> Result<Option<String>> {
    let Some(url) = said.node_url.clone() else { return Ok(None) };
    let known = ["ws://", "wss://"].iter().any(|scheme| url.starts_with(scheme));
    allow!(known, "node-url", "`{url}` is no WebSocket's address: write wss://host/ws");
    Ok(Some(url))
}
