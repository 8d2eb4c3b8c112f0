//! Counters of what is received, sent, dropped and refused.

use windlass_types::Latencies;

use crate::way_counts::WayCounts;

/// Name of the metric of a counter.
macro_rules! metric {
    ($name:ident) => {
        concat!("windlass_sfu_", stringify!($name), "_total")
    };
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Counters since the start.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)*
            /// Time from a frame's arrival at the server to the sending of its anchor, counted once for each
            /// subscriber.
            pub anchor_ages: Latencies,
            /// Time from a participant's first offer to its media connection.
            pub connects: Latencies,
        }

        impl Counters {
            /// Metric and description of each plain counter.
            pub fn help() -> Vec<(&'static str, &'static str)> {
                vec![$((metric!($name), concat!($($doc),+).trim_ascii()),)*]
            }

            /// The sum of two sets of counters.
            #[must_use]
            pub fn plus(self, other: Counters) -> Counters {
                Counters {
                    $($name: self.$name + other.$name,)*
                    anchor_ages: self.anchor_ages.plus(other.anchor_ages),
                    connects: self.connects.plus(other.connects),
                }
            }

            /// Every plain counter with its metric.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((metric!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Datagrams received.
    datagrams_in,
    /// Datagrams sent.
    datagrams_out,
    /// Datagrams that the socket did not accept.
    datagrams_out_failed,
    /// Datagrams sent together with others by UDP segmentation offload.
    datagrams_out_segmented,
    /// System calls that sent datagrams.
    send_calls,
    /// System calls that received datagrams.
    receive_calls,
    /// Datagrams that are neither STUN, DTLS, RTP nor RTCP.
    datagrams_malformed,
    /// Datagrams of no participant's connection.
    datagrams_unknown,
    /// Datagrams that arrived at another media thread than their connection's, and were handed over.
    datagrams_handed_over,
    /// Datagrams dropped because too many waited for another media thread.
    datagrams_handed_over_full,
    /// Datagrams that a participant's connection accepted.
    datagrams_taken,
    /// Datagrams that connections dropped for RTCP over its limits.
    rtcp_refused,
    /// Datagrams dropped because their connection is over its share of CPU time.
    datagrams_costly,
    /// Datagrams dropped because their address has no connection and is over its rate limit.
    strangers_limited,
    /// TCP connections accepted.
    tcp_connections,
    /// TCP connections refused at the total limit.
    tcp_refused_full,
    /// TCP connections refused at the limit of their address.
    tcp_refused_address,
    /// TCP connections closed because no participant uses them.
    tcp_unanswered,
    /// TCP connections closed because of a malformed frame.
    tcp_malformed,
    /// TCP connections closed because their clients did not read.
    tcp_stalled,
    /// Datagrams received by TCP.
    tcp_frames_in,
    /// Datagrams sent by TCP.
    tcp_frames_out,
    /// Media packets dropped because they waited too long for their TCP connection.
    tcp_dropped_late,
    /// Datagrams dropped because the queue of their TCP connection was full.
    tcp_dropped_full,
    /// Datagrams dropped because their TCP connection had ended.
    tcp_gone,
    /// Frames and packets of recorded tracks dropped because the recorder's queue was full.
    record_overflows,
    /// Anchors of recorded tracks dropped because the recorder's queue was full.
    record_anchors_lost,
    /// Packets of renditions that came from the renderer.
    rendered_packets,
    /// Frames and anchors of rendered tracks dropped because the renderer's queue was full.
    render_overflows,
    /// ICE restarts by clients.
    ice_restarts,
    /// Changes of a client's address or protocol during a call.
    paths_moved,
    /// STUN requests refused because their client used too many addresses without an ICE restart.
    paths_refused,
    /// Datagrams without a kernel arrival time.
    arrival_times_missing,
    /// Participants that joined.
    joins,
    /// Participants that left or were removed.
    leaves,
    /// Connections that ended with a protocol error.
    peers_failed,
    /// Participants removed because their connection was lost.
    peers_timed_out,
    /// Participants removed because they made no offer in time, or their connection did not come up.
    peers_unconnected,
    /// Participants removed because they opened more data channels than they may.
    peers_channels,
    /// Participants removed because they were over their share of CPU time for seconds.
    peers_costly,
    /// Panics of the server: each removed one participant, or dropped one datagram of an unauthenticated source.
    faults,
    /// Participants removed because they did not read their events.
    peers_slow,
    /// Data messages of participants here.
    data_in,
    /// Data messages for participants here, one for each of them.
    data_out,
    /// Unreliable data messages dropped because too much waits for their receiver already.
    data_dropped,
    /// Data messages refused because their room, or all rooms together, sent too many.
    data_limited,
    /// Offers refused.
    offers_refused,
    /// Offers that only the WebRTC stack refused. Their connections ended.
    offers_failed,
    /// Joins refused.
    joins_refused,
    /// Joins refused because the room was full.
    joins_refused_room_full,
    /// Joins refused because the server had its maximum of rooms or participants.
    joins_refused_server_full,
    /// Joins into new rooms refused because the server drains.
    joins_refused_draining,
    /// Offers refused because the room had its maximum of tracks.
    offers_refused_room_tracks,
    /// Participants that joined without the anchors' codec or permission: they get plain rungs.
    joins_without_codec,
    /// RTP packets received from publishers.
    rtp_in,
    /// RTP packets forwarded to subscribers.
    rtp_out,
    /// RTP packets dropped because their publisher sent more than 3,000 a second.
    rtp_limited,
    /// RTP packets of an unknown m-line, layer or codec.
    rtp_unknown,
    /// Video packets whose payload cannot be read.
    video_malformed,
    /// Audio packets with malformed redundancy.
    red_malformed,
    /// Video packets of the current layer from before the switch to it, which are dropped.
    rtp_before_switch,
    /// Video packets of higher temporal layers that are left out, as the subscriber's bandwidth does not suffice.
    rtp_higher_layer,
    /// Requests to publishers to lower the bitrate of their smallest layer, or to raise it again, as a subscriber's
    /// connection carries less than that layer.
    smallest_layer_limits,
    /// Layer switches of subscribers.
    layer_switches,
    /// Key frame requests received from subscribers.
    keyframe_requests_in,
    /// Requests of subscribers for key anchors.
    key_anchor_requests_in,
    /// Key frame requests sent to publishers.
    keyframe_requests_out,
    /// Anchor messages that the data channel did not accept.
    anchor_messages_refused,
    /// Frames sent to the enhancer.
    tap_frames,
    /// Gaps in taps.
    tap_gaps,
    /// Inputs dropped because the enhancer's queue was full.
    tap_overflows,
    /// Requests to the enhancer, and reports, that its queue did not take.
    tap_requests_dropped,
    /// High-resolution frames sent to the enhancer, for captured anchors.
    captured_frames,
    /// High-resolution frames sent to the enhancer whose frame in the tapped layer is unknown.
    captured_unaligned,
    /// Gaps in high-resolution taps.
    captured_gaps,
    /// Requests to publishers for stills.
    region_requests,
    /// Stills received, each an anchor.
    regions_in,
    /// Malformed messages of region channels.
    regions_malformed,
    /// Stills without a request, or too late.
    regions_unasked,
    /// Packets of tracks of other SFUs.
    relay_packets_in,
    /// Packets and anchors of other SFUs dropped because the queue was full.
    relay_overflows,
    /// Packets and anchors of unknown tracks of other SFUs.
    relay_unknown,
    /// Rooms, participants and tracks of other SFUs refused as too many or invalid.
    relay_refused,
    /// Anchors received from the enhancer, or from other SFUs.
    anchors_in,
    /// Anchors dropped because the SFU's queue was full.
    anchors_in_overflows,
    /// Anchors due, counted once for each subscriber, and once if their tap has ended. Each is sent or dropped.
    anchors_due,
    /// Anchors sent, counted once for each subscriber.
    anchors_out,
    /// Anchors dropped because they were older than the budget, counted once for each subscriber.
    anchors_dropped_late,
    /// Anchors dropped because bandwidth or the channel's buffer did not suffice.
    anchors_dropped_full,
    /// Anchors dropped because their frame was not forwarded to the subscriber.
    anchors_dropped_unmapped,
    /// Anchors dropped because their payload or size is outside the message format.
    anchors_dropped_malformed,
    /// Anchors dropped because their subscriber left.
    anchors_dropped_left,
}

impl SfuStats {
    /// The sum of two snapshots, as of two media threads.
    #[must_use]
    pub fn plus(self, other: SfuStats) -> SfuStats {
        SfuStats {
            rooms: self.rooms + other.rooms,
            participants: self.participants + other.participants,
            connected: self.connected + other.connected,
            tracks: self.tracks + other.tracks,
            subscriptions: self.subscriptions + other.subscriptions,
            taps: self.taps + other.taps,
            ways: self.ways.plus(&other.ways),
            tcp_open: self.tcp_open + other.tcp_open,
            forwarding: self.forwarding.plus(other.forwarding),
            counters: self.counters.plus(other.counters),
        }
    }
}

/// A snapshot of the SFU's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SfuStats {
    /// Rooms.
    pub rooms: usize,
    /// Participants.
    pub participants: usize,
    /// Participants whose connection is up.
    pub connected: usize,
    /// Published tracks.
    pub tracks: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Number of subscriptions to video by how their pictures are made.
    pub taps: usize,
    /// Subscriptions to video by how their pictures are made.
    pub ways: WayCounts,
    /// Number of open TCP connections.
    pub tcp_open: usize,
    /// Time from a packet's arrival at the kernel to the call that sends it on, pacing included.
    pub forwarding: Latencies,
    /// Counters since the start.
    pub counters: Counters,
}
