//! An emulated access link as a proxy on this machine, for a stack whose sockets are its own.
//!
//! The client sends to the tunnel's address in the place of the server's. What comes through leaves by a second socket,
//! which the server answers to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::address::{any_for, local_for};
use crate::loadtest::access::Access;
use crate::loadtest::downlinks::Downlinks;
use crate::loadtest::tally::{LinkTotals, Totals};

/// Maximum length of a datagram, in bytes.
const DATAGRAM: usize = 2048;
/// Time until the link is looked at again where nothing is under way.
const IDLE: Duration = Duration::from_secs(1);

/// An open tunnel.
pub(super) struct Tunnel {
    /// Where the client sends to.
    pub address: SocketAddr,
    access: Arc<Mutex<Access>>,
    task: JoinHandle<()>,
}

impl Tunnel {
    /// Opens a tunnel to the server's media.
    pub(super) async fn open(server: SocketAddr, access: Access) -> Result<Tunnel> {
        let front = UdpSocket::bind((local_for(server)?, 0)).await.context("an emulated link")?;
        let back = UdpSocket::bind(any_for(server)).await.context("an emulated link")?;
        let address = front.local_addr()?;
        let access = Arc::new(Mutex::new(access));
        let task = tokio::spawn(carry(front, back, server, access.clone()));
        Ok(Tunnel { address, access, task })
    }

    /// Brings the totals of the downlink up to date.
    pub(super) fn tell(&self, now: Instant, totals: &mut Downlinks) {
        locked(&self.access).tell(now, totals);
    }

    /// Ends the tunnel, and adds what it carried.
    pub(super) fn close(self, totals: &mut Totals) {
        self.task.abort();
        let stats = locked(&self.access).stats();
        for (to, (stats, underway)) in totals.datagrams.links.iter_mut().zip(stats) {
            to.add(LinkTotals::new(stats, underway));
        }
    }
}

fn locked(access: &Mutex<Access>) -> MutexGuard<'_, Access> {
    access.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries datagrams until the task is ended.
async fn carry(front: UdpSocket, back: UdpSocket, server: SocketAddr, access: Arc<Mutex<Access>>) {
    let (mut up, mut down) = (vec![0; DATAGRAM], vec![0; DATAGRAM]);
    let mut client = None;
    loop {
        let due = locked(&access).timeout().unwrap_or_else(|| Instant::now() + IDLE);
        // An error of a socket is that of an earlier datagram: its receiver has gone.
        tokio::select! {
            Ok((length, from)) = front.recv_from(&mut up) => {
                client = Some(from);
                locked(&access).send(Instant::now(), &up[..length], server);
            }
            Ok((length, from)) = back.recv_from(&mut down) => {
                locked(&access).came(Instant::now(), &down[..length], from);
            }
            () = tokio::time::sleep_until(due.into()) => {}
        }
        loop {
            let sent = locked(&access).sent(Instant::now());
            let Some((data, to)) = sent else { break };
            let _ = back.try_send_to(&data, to);
        }
        loop {
            let arrived = locked(&access).arrived(Instant::now());
            let Some(((data, _), client)) = arrived.zip(client) else { break };
            let _ = front.try_send_to(&data, client);
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_netem::Profile;

    use super::*;

    #[tokio::test]
    async fn datagrams_pass_both_ways_and_are_counted() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let access = Access::of_subscriber(Profile::Dsl, 1, Instant::now());
        let tunnel = Tunnel::open(server.local_addr().unwrap(), access).await.unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.send_to(b"up", tunnel.address).await.unwrap();
        let mut buffer = [0; 9];
        let (length, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"up");
        server.send_to(b"down", from).await.unwrap();
        let (length, from) = client.recv_from(&mut buffer).await.unwrap();
        assert_eq!((&buffer[..length], from), (&b"down"[..], tunnel.address));
        let mut totals = Totals::default();
        tunnel.close(&mut totals);
        assert_eq!(totals.datagrams.links.map(|link| (link.sent, link.arrived)), [(1, 1); 2]);
    }
}
