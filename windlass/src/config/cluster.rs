//! Options of a cluster: how servers and workers find and authenticate each other.

use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::Result;
use windlass_signaling::Origin;

use super::values::files;
use super::{NO_CLUSTER, Settings};
use crate::cluster::{ClusterToken, Files, NatsConfig};

/// Files of mutual TLS: `CA,CERT,KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterFiles(Files);

impl FromStr for ClusterFiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [ca, certificate, key] = files(text).ok_or_else(|| {
            format!("`{text}` is not CA,CERT,KEY: name the files of CA certificate, certificate and private key")
        })?;
        Ok(ClusterFiles(Files { ca, certificate, key }))
    }
}

/// Address for other servers: `IP:PORT`, or `IP:PORT,URL` if other servers reach it at another URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeListen {
    listen: SocketAddr,
    url: Option<String>,
}

impl FromStr for NodeListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (listen, url) = text.split_once(',').map_or((text, None), |(at, url)| (at, Some(url)));
        let known = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if let Some(url) = url.filter(|url| !known(url)) {
            return Err(format!("`{url}` is no URL of this server: write https://host:port"));
        }
        let listen = listen
            .parse::<SocketAddr>()
            .map_err(|_| format!("`{listen}` is no listening address: write IP:PORT"))?;
        Ok(NodeListen { listen, url: url.map(str::to_owned) })
    }
}

/// Names of the options that need cluster support.
const OPTIONS: [&str; 9] = [
    "workers",
    "nats",
    "nats-credentials",
    "nats-ca",
    "cluster-token",
    "cluster-tls",
    "node-url",
    "node-listen",
    "node-max-participants",
];

/// Refuses the cluster's options in a build without cluster support.
pub(super) fn supported(settings: &Settings, has_cluster: bool) -> Result<()> {
    let given = settings.differing(&Settings::default());
    for option in OPTIONS {
        let allowed = has_cluster || given.iter().all(|name| name != option);
        allow!(allowed, option, "cannot be used: {NO_CLUSTER}");
    }
    Ok(())
}

/// Secret and certificates by which servers and workers authenticate each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    /// Shared secret of the cluster.
    pub token: Option<ClusterToken>,
    /// Files of the CA certificate, this machine's certificate and its private key.
    pub files: Option<Files>,
}

pub(super) fn cluster(settings: &Settings) -> Cluster {
    let files = settings.cluster_tls.as_ref().map(|files| files.0.0.clone());
    Cluster { token: settings.cluster_token.clone(), files }
}

pub(super) fn nats(settings: &Settings) -> Result<Option<NatsConfig>> {
    let servers = settings.nats.clone().unwrap_or_default();
    if servers.is_empty() {
        return Ok(None);
    }
    let known =
        |server: &String| ["nats://", "tls://"].iter().any(|scheme| server.starts_with(scheme));
    // The address is not repeated: a password may stand in it.
    allow!(
        servers.iter().all(known),
        "nats",
        "has an address that is no NATS server's: write nats://host:4222 or tls://host:4222"
    );
    allow!(
        settings.cluster_token.is_some(),
        "nats",
        "needs cluster-token, which authenticates messages in NATS: make one (openssl rand -hex 32) for all servers and workers"
    );
    let (credentials, ca) = (settings.nats_credentials.clone(), settings.nats_ca.clone());
    Ok(Some(NatsConfig { servers, credentials, ca }))
}

/// Configuration of a server that is one of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeConfig {
    /// Public URL of the server's signalling.
    pub url: String,
    /// Listening address for other servers. Without it, the server's rooms are on this server only.
    pub listen: Option<SocketAddr>,
    /// URL by which other servers reach this one, if it differs from the listening address.
    pub address: Option<String>,
    /// Number of a room's participants above which new participants go to another server.
    pub max_participants: usize,
}

impl NodeConfig {
    /// Origin of the page that this server has at its public URL.
    pub(super) fn page(&self) -> Option<Origin> {
        let url = self.url.replacen("ws", "http", 1);
        let (scheme, rest) = url.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?;
        format!("{scheme}://{host}").parse().ok()
    }
}

/// Configuration of this server in its cluster. `max` is the maximum number of participants of a room on this server.
pub(super) fn node(settings: &Settings, max: usize) -> Result<Option<NodeConfig>> {
    let Some(url) = settings.node_url.clone() else { return Ok(None) };
    let known = ["ws://", "wss://"].iter().any(|scheme| url.starts_with(scheme));
    allow!(known, "node-url", "`{url}` is no WebSocket URL: write wss://host/ws");
    let (listen, address) = match settings.node_listen.as_ref().map(|listen| listen.0.clone()) {
        None => (None, None),
        Some(NodeListen { listen, url }) => (Some(listen), url),
    };
    if let Some(listen) = listen {
        let secret = settings.cluster_token.is_some() && settings.cluster_tls.is_some();
        allow!(
            listen.ip().is_loopback() || secret,
            "node-listen",
            "{listen} can be reached by others: cluster-token and cluster-tls are needed, which authenticate servers"
        );
        allow!(
            !listen.ip().is_unspecified() || address.is_some(),
            "node-listen",
            "{listen} needs a URL, as other servers cannot connect to this address: {listen},https://host:{}",
            listen.port()
        );
    }
    if let (Some(address), Some(_)) = (&address, &settings.cluster_tls) {
        let secure = address.starts_with("https://");
        allow!(secure, "node-listen", "needs an https:// URL beside cluster-tls, not {address}");
    }
    // A room on this server admits nobody beyond its own maximum.
    let max_participants = settings.node_max_participants.unwrap_or(max).min(max);
    allow!(max_participants > 0, "node-max-participants", "must be at least 1");
    Ok(Some(NodeConfig { url, listen, address, max_participants }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(yaml: &str) -> Result<Option<NodeConfig>> {
        let settings = Settings::default().over(super::super::file::File::parse(yaml)?.settings);
        node(&settings, 32)
    }

    #[test]
    fn a_build_without_cluster_support_refuses_each_option_of_a_cluster() {
        let given = [
            "workers: ['http://a:7890']",
            "nats: ['nats://a:4222']",
            "nats-credentials: a.creds",
            "nats-ca: ca.pem",
            "cluster-token: a-cluster-of-these-tests",
            "cluster-tls: 'ca,cert,key'",
            "node-url: ws://a/ws",
            "node-listen: 127.0.0.1:0",
            "node-max-participants: 9",
        ];
        for (option, yaml) in OPTIONS.into_iter().zip(given) {
            let settings: Settings = serde_saphyr::from_str(yaml).expect(yaml);
            let error = supported(&settings, false).expect_err(yaml).to_string();
            assert!(error.starts_with(option) && error.contains("no cluster support"), "{error}");
            assert!(supported(&settings, true).is_ok());
        }
        assert!(supported(&Settings::default(), false).is_ok());
    }

    #[test]
    fn nats_wants_a_token_and_says_how_to_make_one() {
        let of = |yaml: &str| {
            nats(&Settings::default().over(super::super::file::File::parse(yaml)?.settings))
        };
        let error = of("{nats: [nats://a:4222]}").expect_err("no token").to_string();
        assert!(error.contains("cluster-token") && error.contains("openssl rand"), "{error}");
        let settings = "{nats: [nats://a:4222], cluster-token: a-cluster-of-these-tests}";
        assert!(of(settings).expect("a token").is_some());
    }

    #[test]
    fn who_may_come_must_be_said_where_others_can() {
        let open = "{node-url: ws://a/ws, node-listen: '0.0.0.0:7883,https://a:7883'}";
        let error = of(open).expect_err("open").to_string();
        assert!(error.contains("cluster-token"), "{error}");
        let node = of("{node-url: ws://a/ws, node-listen: 127.0.0.1:0}").expect("local");
        let node = node.expect("one of several");
        assert_eq!((node.max_participants, node.address), (32, None));
        let many = "{node-url: ws://a/ws, node-listen: 127.0.0.1:0, node-max-participants: 90}";
        assert_eq!(of(many).expect("local").map(|node| node.max_participants), Some(32));
        assert!(of("{node-listen: 0.0.0.0:7883}").expect("alone").is_none());
        let secret = "{node-url: ws://a/ws, cluster-token: a-cluster-of-these-tests, cluster-tls: 'ca,cert,key'";
        for (listen, reason) in [
            ("0.0.0.0:7883", "needs a URL"),
            ("'0.0.0.0:7883,http://a:7883'", "needs an https:// URL"),
            ("'0.0.0.0:7883,a:7883'", "write https://host:port"),
        ] {
            let error = of(&format!("{secret}, node-listen: {listen}}}")).expect_err(listen);
            assert!(error.to_string().contains(reason), "{listen}: {error}");
        }
    }
}
