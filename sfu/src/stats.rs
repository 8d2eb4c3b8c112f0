//! Counters of everything that is sent, dropped or refused.

use crate::latency::Percentiles;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Totals since the start.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            /// What each counter counts, by its name.
            pub fn help() -> Vec<(&'static str, &'static str)> {
                vec![$((stringify!($name), concat!($($doc),+).trim_ascii()),)*]
            }

            /// These and others.
            #[must_use]
            pub fn plus(self, other: Counters) -> Counters {
                Counters { $($name: self.$name + other.$name,)* }
            }

            /// Every counter with its name, for `/metrics`.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Datagrams received.
    datagrams_in,
    /// Datagrams sent.
    datagrams_out,
    /// Datagrams that the socket did not take.
    datagrams_out_failed,
    /// Datagrams sent that shared a message with others of the same size to the same address.
    datagrams_out_segmented,
    /// System calls that sent datagrams.
    send_calls,
    /// System calls that received datagrams.
    receive_calls,
    /// Datagrams that are neither STUN, DTLS, RTP nor RTCP.
    datagrams_malformed,
    /// Datagrams of nobody's connection.
    datagrams_unknown,
    /// Datagrams that came to another of the SFU's threads than their connection's, and were handed over.
    datagrams_handed_over,
    /// Datagrams dropped because too many waited to be handed over.
    datagrams_handed_over_full,
    /// Datagrams that a participant's connection took.
    datagrams_taken,
    /// Of these, the ones with RTCP that asks for more than a client may: they count as lost.
    rtcp_refused,
    /// Datagrams dropped because those before them, of the same connection, took more of the media thread's time than they may.
    datagrams_costly,
    /// Datagrams of addresses that belong to nobody and send more than they may.
    strangers_limited,
    /// TCP connections taken in.
    tcp_connections,
    /// TCP connections refused because there were as many as there may be.
    tcp_refused_full,
    /// TCP connections refused because their address had as many as it may have.
    tcp_refused_address,
    /// TCP connections ended because they are no participant's, or not any more.
    tcp_unanswered,
    /// TCP connections ended because what came was no datagram of at most 2048 bytes behind its length.
    tcp_malformed,
    /// TCP connections ended because their clients did not read.
    tcp_stalled,
    /// Datagrams received by TCP.
    tcp_frames_in,
    /// Datagrams sent by TCP.
    tcp_frames_out,
    /// Media dropped because it had waited too long for its TCP connection.
    tcp_dropped_late,
    /// Datagrams dropped because too much waited for their TCP connection.
    tcp_dropped_full,
    /// Datagrams dropped because their TCP connection had ended.
    tcp_gone,
    /// Restarts of ICE by clients whose path had gone.
    ice_restarts,
    /// Clients that went on from another address or by another protocol, without a restart or after one.
    paths_moved,
    /// Requests refused because their client has come from too many addresses without a restart.
    paths_refused,
    /// Datagrams that came without a kernel arrival time.
    arrival_times_missing,
    /// Participants let in.
    joins,
    /// Participants gone, for whatever reason.
    leaves,
    /// Connections that ended with a protocol error.
    peers_failed,
    /// Participants removed because their connection was lost.
    peers_timed_out,
    /// Participants removed because they made no offer in time, or their connection did not come up.
    peers_unconnected,
    /// Participants removed because they opened more data channels than they may.
    peers_channels,
    /// Participants removed because what they sent took more of the media thread's time than it may, for seconds.
    peers_costly,
    /// Faults of the server's: each ended one participant's connection, or dropped one stranger's datagram.
    faults,
    /// Participants removed because they did not take their events.
    peers_slow,
    /// Offers refused.
    offers_refused,
    /// Of these, the ones that the stack refused although we had not: their connections ended.
    offers_failed,
    /// Joins refused.
    joins_refused,
    /// Of these, the ones into rooms that were full.
    joins_refused_room_full,
    /// Of these, the ones while there were as many rooms or participants as there may be.
    joins_refused_server_full,
    /// Of these, the ones into new rooms while the server drains.
    joins_refused_draining,
    /// Offers refused because the room had as many tracks as it may.
    offers_refused_room_tracks,
    /// Participants let in who cannot decode the anchors' codec: they get plain rungs.
    joins_without_codec,
    /// RTP packets received from publishers.
    rtp_in,
    /// RTP packets handed on to subscribers.
    rtp_out,
    /// RTP packets of an unknown m-line, layer or codec.
    rtp_unknown,
    /// Video packets whose VP9 payload descriptor is malformed.
    vp9_malformed,
    /// Audio packets with redundancy that is malformed.
    red_malformed,
    /// Video packets of the current layer from before the switch to it.
    rtp_before_switch,
    /// Layer switches done.
    layer_switches,
    /// Key frame requests received from subscribers.
    keyframe_requests_in,
    /// Requests of subscribers for anchors that rest on no other.
    whole_anchor_requests_in,
    /// Key frame requests sent to publishers.
    keyframe_requests_out,
    /// Messages of anchors that the data channel did not take.
    anchor_messages_refused,
    /// Frames handed to the enhancer.
    tap_frames,
    /// Gaps in taps.
    tap_gaps,
    /// Frames that the enhancer's queue did not take.
    tap_overflows,
    /// Frames at HR size handed to the enhancer, for captured anchors.
    captured_frames,
    /// Of these, the ones of which it is not known which frame of the tapped layer shows the same.
    captured_unaligned,
    /// Gaps among them.
    captured_gaps,
    /// Requests to publishers for regions of their pictures.
    region_requests,
    /// Answers to them, each an anchor.
    regions_in,
    /// Messages of region channels that are malformed.
    regions_malformed,
    /// Answers that nobody asked for, or that came too late.
    regions_unasked,
    /// Packets of tracks that are published at other SFUs.
    relay_packets_in,
    /// Packets and anchors of other SFUs' tracks that the SFU's queue did not take.
    relay_overflows,
    /// Packets and anchors of other SFUs' tracks that are not known.
    relay_unknown,
    /// Rooms, participants and tracks of other SFUs that were too many or made no sense.
    relay_refused,
    /// Anchors received from the enhancer, or from other SFUs.
    anchors_in,
    /// Anchors that the SFU's queue did not take.
    anchors_in_overflows,
    /// Anchors that a subscriber was to have, counted once for each, and once where their publisher's tap has gone: sent or dropped.
    anchors_due,
    /// Anchors sent, counted once for each subscriber.
    anchors_out,
    /// Milliseconds from the arrival of their frames to their sending, all of them together.
    anchors_out_age_ms,
    /// Anchors dropped because they were older than the budget, counted once for each subscriber.
    anchors_dropped_late,
    /// Anchors dropped because the bandwidth or the channel had no room.
    anchors_dropped_full,
    /// Anchors dropped because their frame has no place in the subscriber's timeline.
    anchors_dropped_unmapped,
    /// Anchors dropped because their payload or size is outside the message format.
    anchors_dropped_malformed,
    /// Anchors that waited for a subscriber who left.
    anchors_dropped_left,
}

impl SfuStats {
    /// These and those of another thread; percentiles, which do not add up, stay these.
    #[must_use]
    pub fn plus(self, other: SfuStats) -> SfuStats {
        SfuStats {
            rooms: self.rooms + other.rooms,
            participants: self.participants + other.participants,
            connected: self.connected + other.connected,
            tracks: self.tracks + other.tracks,
            subscriptions: self.subscriptions + other.subscriptions,
            taps: self.taps + other.taps,
            tcp_open: self.tcp_open + other.tcp_open,
            forwarding: self.forwarding,
            counters: self.counters.plus(other.counters),
        }
    }
}

/// A snapshot of the SFU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SfuStats {
    /// Rooms now.
    pub rooms: usize,
    /// Participants now.
    pub participants: usize,
    /// Connections that are up now.
    pub connected: usize,
    /// Published tracks now.
    pub tracks: usize,
    /// Subscriptions now.
    pub subscriptions: usize,
    /// Taps that run now.
    pub taps: usize,
    /// TCP connections now.
    pub tcp_open: usize,
    /// From the arrival of a packet at the kernel to the call that sends it on, pacing included; of the last ten to twenty seconds.
    pub forwarding: Percentiles,
    /// Totals.
    pub counters: Counters,
}
