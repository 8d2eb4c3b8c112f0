//! The loop of the SFU's thread: the socket first, then commands, then anchors, then what is due.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::mpsc;
use windlass_media::{EnhancerOutput, TapFrame, TapInput};

use super::Command;
use super::socket::{AsyncSocket, Socket};
use crate::api::{Joined, ParticipantId, SfuEvent, TapSink};
use crate::config::SfuConfig;
use crate::core::{Core, Output};

/// Datagrams taken before anything else gets its turn.
const BURST: usize = 512;
/// Commands and anchors taken between two looks at the socket.
const TURN: usize = 8;

pub(super) fn run(
    config: &SfuConfig,
    socket: Socket,
    tap: TapSink,
    commands: mpsc::Receiver<Command>,
    anchors: mpsc::Receiver<EnhancerOutput>,
    overflows: &AtomicU64,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "no runtime for the SFU's thread"),
    };
    runtime.block_on(async {
        let local = socket.local_addr();
        match socket.into_async() {
            Ok(socket) => {
                let core = Core::new(config.clone(), local, Instant::now());
                let shell = Shell {
                    core,
                    socket,
                    tap,
                    events: HashMap::new(),
                    events_bound: config.limits.events,
                };
                shell.run(local, commands, anchors, overflows).await;
            }
            Err(error) => tracing::error!(%error, "the socket cannot be used"),
        }
    });
}

struct Shell {
    core: Core,
    socket: AsyncSocket,
    tap: TapSink,
    events: HashMap<ParticipantId, mpsc::Sender<SfuEvent>>,
    events_bound: usize,
}

impl Shell {
    async fn run(
        mut self,
        local: SocketAddr,
        mut commands: mpsc::Receiver<Command>,
        mut anchors: mpsc::Receiver<EnhancerOutput>,
        overflows: &AtomicU64,
    ) {
        tracing::info!(%local, "media socket open");
        let mut buffer = vec![0; 2048];
        loop {
            let (now, more) = self.drain_socket(&mut buffer);
            for _ in 0..TURN {
                let Ok(command) = commands.try_recv() else { break };
                if matches!(command, Command::Stop) {
                    return self.stop(now);
                }
                self.command(now, command);
            }
            for _ in 0..TURN {
                let Ok(output) = anchors.try_recv() else { break };
                self.core.enhancer(now, output);
            }
            self.core.counters.anchors_in_overflows = overflows.load(Ordering::Relaxed);
            self.core.advance(now);
            self.outputs(now);
            if more || !commands.is_empty() || !anchors.is_empty() {
                tokio::task::yield_now().await;
                continue;
            }
            let due = tokio::time::Instant::from_std(self.core.timeout());
            tokio::select! {
                biased;
                _ = self.socket.readable() => {}
                command = commands.recv() => match command {
                    Some(Command::Stop) | None => return self.stop(Instant::now()),
                    Some(command) => self.command(Instant::now(), command),
                },
                Some(output) = anchors.recv() => self.core.enhancer(Instant::now(), output),
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// Takes what has arrived. Returns a time that no datagram still unread can precede, and whether there is more.
    fn drain_socket(&mut self, buffer: &mut [u8]) -> (Instant, bool) {
        let mut now = Instant::now();
        for _ in 0..BURST {
            match self.socket.try_receive(buffer) {
                Ok(got) => {
                    if got.arrival.is_none() {
                        self.core.counters.arrival_times_missing += 1;
                    }
                    let arrival = got.arrival.unwrap_or(now);
                    self.core.datagram(arrival, got.source, &buffer[..got.len]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    return (now, false);
                }
                // An ICMP answer to something sent earlier; the connection's own timers deal with it.
                Err(error) => tracing::trace!(%error, "receive"),
            }
            now = Instant::now();
        }
        (now, true)
    }

    fn command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Join(room, id, options, answer) => {
                let joined =
                    self.core.join(now, &room, id, options).map(|(participants, tracks)| {
                        let (sender, events) = mpsc::channel(self.events_bound);
                        self.events.insert(id, sender);
                        Joined { participants, tracks, events }
                    });
                // A caller that has gone dropped the receiver too: the next look at it makes the participant leave.
                let _ = answer.send(joined);
            }
            Command::Offer(id, offer, answer) => {
                let _ = answer.send(self.core.offer(now, id, &offer));
            }
            Command::SetMaxRung(id, track, max) => self.core.set_max_rung(now, id, track, max),
            Command::SetMuted(id, track, muted) => self.core.set_muted(now, id, track, muted),
            Command::Leave(id) => self.core.leave(now, id),
            Command::Stats(answer) => {
                let _ = answer.send(self.core.stats());
            }
            Command::Stop => {}
        }
    }

    /// Hands out everything that the core has made, and tells it who did not take it.
    fn outputs(&mut self, now: Instant) {
        let gone: Vec<_> =
            self.events.iter().filter(|(_, s)| s.is_closed()).map(|(&id, _)| id).collect();
        for id in gone {
            self.events.remove(&id);
            self.core.leave(now, id);
        }
        while let Some(output) = self.core.poll() {
            match output {
                Output::Transmit { to, data } => match self.socket.try_send(&data, to) {
                    Ok(()) => self.core.counters.datagrams_out += 1,
                    Err(_) => self.core.counters.datagrams_out_failed += 1,
                },
                Output::Event(id, event) => self.event(now, id, event),
                Output::Tap(input) => {
                    let (TapInput::Frame(TapFrame { stream, .. })
                    | TapInput::Gap { stream }
                    | TapInput::Stop { stream }) = input;
                    if !(self.tap)(input) {
                        self.core.tap_refused(now, stream);
                    }
                }
            }
        }
    }

    fn event(&mut self, now: Instant, id: ParticipantId, event: SfuEvent) {
        let last = matches!(event, SfuEvent::Disconnected);
        let Some(sender) = self.events.get(&id) else { return };
        let slow = sender.try_send(event).is_err();
        if slow || last {
            self.events.remove(&id);
        }
        if slow && !last {
            self.core.counters.peers_slow += 1;
            self.core.leave(now, id);
        }
    }

    fn stop(mut self, now: Instant) {
        for id in self.events.keys().copied().collect::<Vec<_>>() {
            self.core.leave(now, id);
        }
        self.outputs(now);
        tracing::info!("media socket closed");
    }
}
