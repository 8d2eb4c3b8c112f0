//! What SFU and workers show each other, and where they learn of each other.

use std::net::SocketAddr;

use anyhow::Result;
use windlass_cluster::mutual::Files;
use windlass_cluster::nats::NatsConfig;
use windlass_cluster::token::ClusterToken;
use windlass_signaling::Origin;

use super::{Invalid, Settings};

/// What SFU and workers show each other.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The secret of all of them.
    pub token: Option<ClusterToken>,
    /// The files of authority, certificate and key.
    pub files: Option<Files>,
}

pub(super) fn cluster(said: &Settings) -> Result<Cluster> {
    let files = match (&said.cluster_ca, &said.cluster_cert, &said.cluster_key) {
        (Some(ca), Some(certificate), Some(key)) => {
            Some(Files { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() })
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
            "has what is no server's address: write nats://host:4222 or tls://host:4222"
        );
    }
    allow!(
        said.cluster_token.is_some(),
        "nats",
        "needs cluster-token, by which servers and enhancers know each other's words: make one (openssl rand -hex 32) and give it to all"
    );
    let (credentials, ca) = (said.nats_credentials.clone(), said.nats_ca.clone());
    Ok(Some(NatsConfig { servers, credentials, ca }))
}

/// One server of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// Where clients reach its signalling.
    pub url: String,
    /// Where it listens for the others; without, rooms of this one are on this one alone.
    pub listen: Option<SocketAddr>,
    /// Where these reach it, if that is another address.
    pub address: Option<String>,
    /// As many of one room's participants as it wants.
    pub room_most: usize,
}

impl NodeConfig {
    /// The origin of the page that this server has at that address.
    pub(super) fn page(&self) -> Option<Origin> {
        let url = self.url.replacen("ws", "http", 1);
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        format!("{scheme}://{host}").parse().ok()
    }
}

/// `most`: participants of a room, at the most.
pub(super) fn node(said: &Settings, most: usize) -> Result<Option<NodeConfig>> {
    let Some(url) = said.node_url.clone() else { return Ok(None) };
    let known = ["ws://", "wss://"].iter().any(|scheme| url.starts_with(scheme));
    allow!(known, "node-url", "`{url}` is no WebSocket's address: write wss://host/ws");
    let address = said.node_address.clone();
    if let Some(address) = &address {
        let known = ["http://", "https://"].iter().any(|scheme| address.starts_with(scheme));
        allow!(known, "node-address", "`{address}` is no address: write https://host:port");
    }
    if let Some(listen) = said.node_listen {
        let secret = said.cluster_token.is_some() && said.cluster_ca.is_some();
        allow!(
            listen.ip().is_loopback() || secret,
            "node-listen",
            "{listen} can be reached by others: cluster-token and cluster-ca, cluster-cert and cluster-key say who may"
        );
        allow!(
            !listen.ip().is_unspecified() || address.is_some(),
            "node-address",
            "is missing: others cannot go to {listen}"
        );
    }
    if let (Some(address), Some(_)) = (&address, &said.cluster_ca) {
        allow!(
            address.starts_with("https://"),
            "node-address",
            "must be https://… where there are certificates"
        );
    }
    // Beyond what a room may have here nobody is let in.
    let room_most = said.node_room_most.unwrap_or(most).min(most);
    allow!(room_most > 0, "node-room-most", "must be at least 1");
    Ok(Some(NodeConfig { url, listen: said.node_listen, address, room_most }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(yaml: &str) -> Result<Option<NodeConfig>> {
        let settings = Settings::default().over(super::super::file::File::parse(yaml)?.settings);
        node(&settings, 32)
    }

    #[test]
    fn nats_wants_a_token_and_says_how_to_make_one() {
        let of = |yaml: &str| {
            nats(&Settings::default().over(super::super::file::File::parse(yaml)?.settings))
        };
        let error = of("{nats: [nats://a:4222]}").expect_err("no token").to_string();
        assert!(error.contains("cluster-token") && error.contains("openssl rand"), "{error}");
        let said = "{nats: [nats://a:4222], cluster-token: a-cluster-of-these-tests}";
        assert!(of(said).expect("a token").is_some());
    }

    #[test]
    fn who_may_come_must_be_said_where_others_can() {
        let open = "{node-url: ws://a/ws, node-listen: 0.0.0.0:7883, node-address: https://a:7883}";
        let error = of(open).expect_err("open").to_string();
        assert!(error.contains("cluster-token"), "{error}");
        let node = of("{node-url: ws://a/ws, node-listen: 127.0.0.1:0}").expect("local");
        let node = node.expect("one of several");
        assert_eq!((node.room_most, node.address), (32, None));
        let many = "{node-url: ws://a/ws, node-listen: 127.0.0.1:0, node-room-most: 90}";
        assert_eq!(of(many).expect("local").map(|node| node.room_most), Some(32));
        assert!(of("{node-listen: 0.0.0.0:7883}").expect("alone").is_none());
    }
}
