//! `windlass-lab link`: an access link by name, as a UDP proxy between clients and a server's media port.
//!
//! Each client that comes has both ways of its own, emulated by `windlass-netem`, and a socket of its own to the
//! server. The browser is told the proxy's address in the place of the server's (`windlass serve --advertise`). Where
//! the kernel has them, `tc` and network namespaces emulate links too; this needs neither rights nor a kernel module,
//! and plays the same course each time.

mod path;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use windlass_netem::Profile;

use self::path::{Path, PathStats};
use crate::loadtest::any_for;

/// Maximum number of clients at a time; those beyond are not answered.
const CLIENTS: usize = 1000;
/// Maximum length of a datagram, in bytes.
const DATAGRAM: usize = 2048;
/// Maximum number of datagrams that wait for a client's task; more are dropped and counted.
const WAITING: usize = 1024;
/// Time without datagrams after which a client has gone.
const IDLE: Duration = Duration::from_mins(1);

/// Stand between clients and a server's UDP port as an access link of some kind.
#[derive(Debug, Clone, Args)]
pub(crate) struct LinkArgs {
    /// The link: 3g, lte, wifi-lossy, dsl, step-down, step-up, bursty, or a rate in kbit/s (300k).
    #[arg(long, value_name = "LINK")]
    pub profile: Profile,

    /// Where clients send to; port 0 takes a free one, which is printed.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    pub listen: SocketAddr,

    /// The server's UDP address.
    #[arg(long, default_value = "127.0.0.1:7881", value_name = "ADDR")]
    pub to: SocketAddr,

    /// Leave the way from clients to the server as it is.
    #[arg(long)]
    pub down_only: bool,

    /// Seconds that a client's link is like any other, before its course begins.
    #[arg(long, default_value_t = 0, value_name = "S")]
    pub after: u64,

    /// What is lost when, and how rates walk, is drawn by this.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

/// Runs the proxy until Ctrl-C or SIGTERM, then prints what was lost.
pub(crate) fn run(args: &LinkArgs) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let front = UdpSocket::bind(args.listen)
            .await
            .with_context(|| format!("cannot use UDP address {}", args.listen))?;
        println!("{} is a {} link to {}", front.local_addr()?, args.profile, args.to);
        let total = serve(Arc::new(front), args, asked_to_end()?).await?;
        println!("{total}");
        Ok(())
    })
}

/// A future that ends at SIGINT or SIGTERM, which are handled from now on.
fn asked_to_end() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Serves clients until `stop`, and returns the counters of all their datagrams.
async fn serve(
    front: Arc<UdpSocket>,
    args: &LinkArgs,
    stop: impl Future<Output = ()>,
) -> Result<PathStats> {
    let mut stop = std::pin::pin!(stop);
    let mut total = PathStats::default();
    // The queue by which a client's datagrams get to its task.
    let mut clients: HashMap<SocketAddr, mpsc::Sender<(Instant, Vec<u8>)>> = HashMap::new();
    let (done, mut ended) = mpsc::channel(CLIENTS);
    let mut buffer = vec![0; DATAGRAM];
    let mut seed = args.seed;
    loop {
        let (bytes, from) = tokio::select! {
            received = front.recv_from(&mut buffer) => match received {
                Ok(received) => received,
                // The system reports an ICMP answer to a datagram for a client that has gone.
                Err(_) => continue,
            },
            () = &mut stop => break,
            Some((client, stats)) = ended.recv() => {
                clients.remove(&client);
                total.add(&stats);
                continue;
            }
        };
        if !clients.contains_key(&from) {
            if clients.len() >= CLIENTS {
                total.refused += 1;
                continue;
            }
            let back = UdpSocket::bind(any_for(args.to)).await?;
            back.connect(args.to).await.with_context(|| format!("no way to {}", args.to))?;
            let (waiting, taken) = mpsc::channel(WAITING);
            let path = Path::new(args, seed, Instant::now());
            seed += 2;
            let (front, done) = (front.clone(), done.clone());
            tokio::spawn(async move {
                let stats = path.run(&front, from, &back, taken, IDLE).await;
                let _ = done.send((from, stats)).await;
            });
            clients.insert(from, waiting);
        }
        if let Some(client) = clients.get(&from)
            && client.try_send((Instant::now(), buffer[..bytes].to_vec())).is_err()
        {
            total.overwhelmed += 1;
        }
    }
    // Without their senders, clients' tasks end.
    drop((clients, done));
    while let Some((_, stats)) = ended.recv().await {
        total.add(&stats);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets, and a client that sends datagrams of 972 bytes through the link.
    async fn echoed(profile: Profile, count: usize) -> (usize, Duration) {
        let server = UdpSocket::bind("127.0.0.1:0").await.expect("server");
        let to = server.local_addr().expect("address");
        tokio::spawn(async move {
            let mut buffer = vec![0; DATAGRAM];
            while let Ok((bytes, from)) = server.recv_from(&mut buffer).await {
                let _ = server.send_to(&buffer[..bytes], from).await;
            }
        });
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("front"));
        let at = front.local_addr().expect("address");
        let args = LinkArgs { profile, listen: at, to, down_only: true, after: 0, seed: 1 };
        tokio::spawn(async move {
            let _ = serve(front, &args, std::future::pending()).await;
        });
        let client = UdpSocket::bind("127.0.0.1:0").await.expect("client");
        client.connect(at).await.expect("connected");
        let begin = Instant::now();
        for _ in 0..count {
            client.send(&[7; 972]).await.expect("sent");
        }
        let (mut came, mut last) = (0, begin);
        let mut buffer = vec![0; DATAGRAM];
        while let Ok(Ok(_)) =
            tokio::time::timeout(Duration::from_millis(800), client.recv(&mut buffer)).await
        {
            came += 1;
            last = Instant::now();
        }
        (came, last - begin)
    }

    #[tokio::test]
    async fn what_goes_through_takes_the_links_time() {
        let (came, took) = echoed(Profile::Dsl, 1).await;
        assert_eq!(came, 1);
        assert!(took >= Duration::from_millis(18), "{took:?}");
    }

    #[tokio::test]
    async fn what_does_not_fit_is_lost() {
        // 600 kbit/s and a queue of 300 ms take 22 of these at once, then 75 a second. Sending may take a while.
        let (came, took) = echoed(Profile::StepUp, 100).await;
        let most = 24.0 + 75.0 * took.as_secs_f64();
        assert!(came >= 15 && came as f64 <= most, "{came} in {took:?}");
    }
}
