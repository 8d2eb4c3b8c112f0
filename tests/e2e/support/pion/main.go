// A WHIP encoder (RFC 9725) and a WHEP player by Pion, the WebRTC stack of Go.
//
//	ffmpeg … -f ivf - | pion whip http://localhost:7880/whip/ROOM vp9 [TOKEN]
//	pion whep http://localhost:7880/whep/ROOM vp9 [TOKEN]
//
// Encoded video comes from standard input, in real time: IVF of VP8 or VP9, or the byte stream of H.264 (Annex B) with
// one slice a picture. The player prints `got FRAMES BYTES` once a second. Both end their session when they are interrupted.
//
// Built without modules, by Debian's packages:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go build -o pion ./tests/e2e/support/pion
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc"
	"github.com/pion/webrtc/pkg/media"
	"github.com/pion/webrtc/pkg/media/h264reader"
	"github.com/pion/webrtc/pkg/media/ivfreader"
)

// Frames a second of what comes from standard input.
const rate = 30

var feedback = []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}, {Type: "ccm", Parameter: "fir"}}

// Codecs of video by their names on the command line.
var codecs = map[string]webrtc.RTPCodecCapability{
	"vp8":  {MimeType: webrtc.MimeTypeVP8, ClockRate: 90000, RTCPFeedback: feedback},
	"vp9":  {MimeType: webrtc.MimeTypeVP9, ClockRate: 90000, SDPFmtpLine: "profile-id=0", RTCPFeedback: feedback},
	"h264": {MimeType: webrtc.MimeTypeH264, ClockRate: 90000, SDPFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f", RTCPFeedback: feedback},
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: pion whip|whep URL vp8|vp9|h264 [TOKEN]")
	}
	way, endpoint, codec, token := os.Args[1], os.Args[2], os.Args[3], ""
	if len(os.Args) > 4 {
		token = os.Args[4]
	}
	connection, err := connect(codec)
	if err != nil {
		log.Fatal(err)
	}
	connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) { fmt.Println(state) })
	if way == "whip" {
		err = send(connection, codec)
	} else {
		err = receive(connection)
	}
	if err != nil {
		log.Fatal(err)
	}
	session, err := begin(connection, endpoint, token)
	if err != nil {
		log.Fatal(err)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	<-interrupted
	if _, _, err := ask(http.MethodDelete, session, token, ""); err != nil {
		log.Print(err)
	}
	if err := connection.Close(); err != nil {
		log.Print(err)
	}
}

// A connection that knows one codec of video, and Opus.
func connect(codec string) (*webrtc.PeerConnection, error) {
	capability, known := codecs[codec]
	if !known {
		return nil, fmt.Errorf("%q is no codec of this program: vp8, vp9 or h264", codec)
	}
	engine := &webrtc.MediaEngine{}
	parameters := webrtc.RTPCodecParameters{RTPCodecCapability: capability, PayloadType: 96}
	if err := engine.RegisterCodec(parameters, webrtc.RTPCodecTypeVideo); err != nil {
		return nil, err
	}
	opus := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}
	parameters = webrtc.RTPCodecParameters{RTPCodecCapability: opus, PayloadType: 111}
	if err := engine.RegisterCodec(parameters, webrtc.RTPCodecTypeAudio); err != nil {
		return nil, err
	}
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine)).NewPeerConnection(webrtc.Configuration{})
}

// Sends what comes from standard input once the connection is up.
func send(connection *webrtc.PeerConnection, codec string) error {
	track, err := webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: codecs[codec].MimeType}, "video", "pion")
	if err != nil {
		return err
	}
	transceiver, err := connection.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly})
	if err != nil {
		return err
	}
	// Reports are read, so that packets that were lost are sent again.
	go func() {
		for {
			if _, _, err := transceiver.Sender().ReadRTCP(); err != nil {
				return
			}
		}
	}()
	up := make(chan struct{})
	connection.OnICEConnectionStateChange(func(state webrtc.ICEConnectionState) {
		if state == webrtc.ICEConnectionStateConnected {
			close(up)
		}
	})
	go func() {
		next, err := frames(os.Stdin, codec)
		for err == nil {
			var frame []byte
			if frame, err = next(); err != nil {
				break
			}
			select {
			case <-up:
				err = track.WriteSample(media.Sample{Data: frame, Duration: time.Second / rate})
			default: // What comes before is dropped, as a camera's is.
			}
		}
		if !errors.Is(err, io.EOF) {
			log.Print(err)
		}
	}()
	return nil
}

// The frames of an input, one by one.
func frames(input io.Reader, codec string) (func() ([]byte, error), error) {
	if codec != "h264" {
		reader, _, err := ivfreader.NewWith(input)
		return func() ([]byte, error) {
			frame, _, err := reader.ParseNextFrame()
			return frame, err
		}, err
	}
	reader, err := h264reader.NewReader(input)
	var waiting []byte // parameter sets, which belong to the picture after them
	return func() ([]byte, error) {
		for {
			nal, err := reader.NextNAL()
			if err != nil {
				return nil, err
			}
			waiting = append(append(waiting, 0, 0, 0, 1), nal.Data...)
			if nal.UnitType == h264reader.NalUnitTypeCodedSliceIdr || nal.UnitType == h264reader.NalUnitTypeCodedSliceNonIdr {
				frame := waiting
				waiting = nil
				return frame, nil
			}
		}
	}, err
}

// Counts the frames and bytes that come.
func receive(connection *webrtc.PeerConnection) error {
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		way := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
		if _, err := connection.AddTransceiverFromKind(kind, way); err != nil {
			return err
		}
	}
	var count, bytes uint64
	connection.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				return
			}
			if track.Kind() == webrtc.RTPCodecTypeVideo && len(packet.Payload) > 0 {
				atomic.AddUint64(&bytes, uint64(len(packet.Payload)))
				if packet.Marker {
					atomic.AddUint64(&count, 1)
				}
			}
		}
	})
	go func() {
		for range time.Tick(time.Second) {
			fmt.Println("got", atomic.LoadUint64(&count), atomic.LoadUint64(&bytes))
		}
	}()
	return nil
}

// Begins a session by one request with all candidates, and returns its address.
func begin(connection *webrtc.PeerConnection, endpoint, token string) (string, error) {
	offer, err := connection.CreateOffer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(connection)
	if err := connection.SetLocalDescription(offer); err != nil {
		return "", err
	}
	<-gathered
	header, answer, err := ask(http.MethodPost, endpoint, token, connection.LocalDescription().SDP)
	if err != nil {
		return "", err
	}
	base, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	session, err := base.Parse(header.Get("Location"))
	if err != nil {
		return "", err
	}
	description := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}
	return session.String(), connection.SetRemoteDescription(description)
}

func ask(method, address, token, body string) (http.Header, string, error) {
	request, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/sdp")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, address, response.Status, text)
	}
	return response.Header, string(text), err
}
