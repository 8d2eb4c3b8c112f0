//! `windlass doctor`: runs the checks of `windlass_doctor` for a configuration.

use std::net::{IpAddr, SocketAddr};
use std::time::SystemTime;

use anyhow::{Result, bail};
use windlass_doctor::{
    Credentials, Finding, Listens, Protocol, Reach, Relay, Report, TIMEOUT, Wanted, address,
    addresses, certificate, clock, connect, limits, name, pace, ports, relay,
};
use windlass_public::AddressError;
use windlass_record::{BucketError, CheckError, RecordTo};
use windlass_sr::EngineChoice;
use windlass_sr::cuda::devices::Devices;

use crate::cluster;
use crate::config::Config;
use crate::serve::spool;
use crate::{public, tls};

/// Checks everything that a server with this configuration needs. Fails if it would not serve.
pub(crate) fn run(config: Result<Config>, json: bool) -> Result<()> {
    let report = Report::new(match config {
        Ok(config) => findings(&config),
        Err(error) => {
            let mend =
                "correct it; `windlass config --annotated` prints every option with its help";
            vec![Finding::fault("configuration", format!("{error:#}"), mend)]
        }
    });
    let text = if json { serde_json::to_string(&report)? } else { report.to_string() };
    windlass_logging::announce(&text)?;
    if report.has_faults() {
        bail!("the server cannot work as configured: correct the faults above, and check again");
    }
    Ok(())
}

fn findings(config: &Config) -> Vec<Finding> {
    let mut all = vec![Finding::ok("configuration", "can be used"), rooms(config)];
    all.extend(ports(config.http, &listens(config)));
    let (relays, seen) = relays(config);
    let config = &mut config.clone();
    match public::find_address(config) {
        Err(error) => all.push(Finding::fault("addresses", error.found(), AddressError::MEND)),
        Ok(_) => all.push(addresses(&Reach {
            http: config.http,
            udp: config.sfu.udp,
            advertised: config.sfu.advertise.iter().map(SocketAddr::ip).collect(),
            outward: windlass_sfu::outward_addresses(),
            seen,
        })),
    }
    if let Some(public) = &config.public {
        let own: Vec<_> = config.sfu.advertise.iter().map(SocketAddr::ip).chain(seen).collect();
        all.push(name(&public.name, &own));
    }
    all.extend(config.tls.iter().flat_map(of_tls));
    all.extend(relays);
    all.extend(machines(config));
    all.extend(config.record_to.as_ref().map(recordings));
    all.push(clock());
    all.extend(limits(&Wanted {
        participants: config.sfu.limits.participants as u64,
        tcp: config.sfu.tcp.as_ref().map_or(0, |tcp| tcp.connections as u64),
        receive_buffer: windlass_sfu::RECEIVE_BUFFER as u64,
    }));
    all.extend(enhancement(config));
    all
}

/// Checks who may enter rooms.
fn rooms(config: &Config) -> Finding {
    match config.closed() {
        Ok(()) if !config.signaling.access.is_open() => {
            Finding::ok("tokens", "rooms need access tokens, for which there are keys")
        }
        Ok(()) if config.open_rooms => Finding::ok(
            "tokens",
            "everybody who reaches the server may enter every room (--open-rooms)",
        ),
        _ if config.public.as_ref().is_some_and(|public| public.key.is_some()) => {
            Finding::ok("tokens", "rooms need access tokens; their key is made at the start")
        }
        Ok(()) => Finding::ok("tokens", "only this machine is served, without access tokens"),
        Err(error) => Finding::fault(
            "tokens",
            error.to_string().lines().next().unwrap_or_default().trim_end_matches('.'),
            "`windlass key windlass.key`, and --token-key k1=@windlass.key; or --open-rooms",
        ),
    }
}

fn listens(config: &Config) -> Vec<Listens> {
    let tcp = |option, addr| Listens { option, protocol: Protocol::Tcp, addr };
    let mut all = vec![
        tcp("--http", config.http),
        Listens { option: "--udp", protocol: Protocol::Udp, addr: config.sfu.udp },
    ];
    all.extend(config.sfu.tcp.as_ref().map(|media| tcp("--tcp", media.listen)));
    all.extend(config.metrics.map(|addr| tcp("--metrics", addr)));
    all
}

fn of_tls(source: &tls::Source) -> Vec<Finding> {
    let mut all = match source.load() {
        Ok(_) if matches!(source, tls::Source::Acme(acme) if acme.kept().is_none()) => {
            Vec::from([Finding::ok(
                "tls",
                "there is no certificate yet: one is asked for at the start",
            )])
        }
        Ok(tls) => vec![certificate(tls.not_after(), SystemTime::now())],
        Err(error) => vec![Finding::fault(
            "tls",
            format!("{error:#}"),
            "--tls CERT,KEY: the certificate with its chain, and its key, both PEM; or --tls self-signed",
        )],
    };
    if let tls::Source::Acme(acme) = source {
        let (host, port) = address(acme.directory());
        all.push(connect("acme", &format!("the ACME server {host}"), host, port, "--tls acme:URL"));
    }
    all
}

/// Checks the TURN and STUN servers with a client's credentials. Also returns where a STUN server sees this machine.
fn relays(config: &Config) -> (Vec<Finding>, Option<IpAddr>) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let servers = config.signaling.turn.servers("doctor", now.as_secs()).servers;
    let (mut findings, mut seen) = (Vec::new(), None);
    for server in servers {
        let user = server
            .username
            .zip(server.credential)
            .map(|(name, password)| Credentials { name, password: password.reveal().to_owned() });
        for url in server.urls {
            let (finding, at) = relay(&Relay { url, user: user.clone() });
            findings.push(finding);
            seen = seen.or(at);
        }
    }
    (findings, seen)
}

/// Checks other machines that the configuration names.
fn machines(config: &Config) -> Vec<Finding> {
    let mut all = Vec::new();
    for url in &config.workers {
        let (host, port) = address(url);
        all.push(connect("workers", &format!("the worker {url}"), host, port, "--workers"));
    }
    for url in &config.signaling.webhooks.urls {
        let (host, port) = url.address();
        all.push(connect(
            "webhooks",
            &format!("the receiver at {host}:{port}"),
            host,
            port,
            "--webhook",
        ));
    }
    all.extend(cluster::nats_answers(config, TIMEOUT).map(|answers| match answers {
        Ok(()) => Finding::ok("nats", "NATS takes this server"),
        Err(error) => Finding::fault(
            "nats",
            format!("NATS does not take this server: {error}"),
            "start it, or correct --nats, --nats-credentials and --nats-ca",
        ),
    }));
    all
}

/// Checks whether recordings would get to their place.
fn recordings(to: &RecordTo) -> Finding {
    match to.check(spool().as_deref(), TIMEOUT) {
        Ok(()) => Finding::ok("recordings", format!("{to} takes them")),
        Err(error @ CheckError::Bucket(BucketError::Forbidden)) => {
            let mend = "check the AWS_… variables, unless these credentials may only write";
            Finding::warning("recordings", format!("{to}: {error}"), mend)
        }
        Err(error) => {
            let mend = "correct --record-to, or the permissions or AWS_… variables of its place";
            Finding::fault("recordings", format!("{to}: {error}"), mend)
        }
    }
}

fn enhancement(config: &Config) -> Vec<Finding> {
    let Some(enhancer) = config.enhancer.as_ref().filter(|_| !cluster::has_workers(config)) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let named = !config.devices.is_empty();
    match Devices::here() {
        Ok(found) => all.push(match found.choose(&config.devices) {
            Ok(chosen) => {
                let used = if named { chosen } else { found.usable() };
                let names: Vec<_> = used.iter().map(|device| device.name.clone()).collect();
                Finding::ok("gpu", format!("driver {}: {}", found.driver, names.join(", ")))
            }
            Err(why) => {
                Finding::fault("gpu", why.to_string(), "--device, as `windlass devices` lists them")
            }
        }),
        Err(why) if named || enhancer.engine == EngineChoice::Cuda => {
            all.push(Finding::fault("gpu", why.to_string(), "--device cpu, or install the driver"));
        }
        Err(_) => {}
    }
    if enhancer.engine != EngineChoice::Cuda {
        all.push(pace(enhancer.threads));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn every_address_that_the_server_listens_at_is_looked_at() {
        let config = Config::resolve(Settings {
            metrics: Some("127.0.0.1:9".parse().unwrap()),
            ..Settings::default()
        });
        let options: Vec<_> = listens(&config.unwrap()).iter().map(|one| one.option).collect();
        assert_eq!(options, ["--http", "--udp", "--tcp", "--metrics"]);
    }
}
