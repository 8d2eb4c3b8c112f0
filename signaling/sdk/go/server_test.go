// The SDK against a real server, which WINDLASS_BIN names.

package windlass

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	key      = "k1=0123456789abcdef0123456789abcdef"
	otherKey = "k1=another secret, which has 32 bytes too"
	secret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

func soon() float64 { return float64(time.Now().Add(10 * time.Minute).Unix()) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program is one that runs, and what it prints.
type program struct {
	t     *testing.T
	lines *bufio.Scanner
}

func run(t *testing.T, command *exec.Cmd) *program {
	t.Helper()
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	check(t, err)
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return &program{t, bufio.NewScanner(out)}
}

func (p *program) line() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("the program has ended")
	}
	return p.lines.Text()
}

func (p *program) until(wanted string) {
	p.t.Helper()
	for p.line() != wanted {
	}
}

// freePort returns a port at which nobody listens, and that no other call returns while this process runs. It is below
// those that systems give to whoever asks for any.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		offset, err := rand.Int(rand.Reader, big.NewInt(12_000))
		check(t, err)
		port := fmt.Sprint(20_000 + offset.Int64())
		// A name that one process at a time can have stands for it, to the tests of all processes.
		taken, err := net.Listen("unix", "@windlass-test-port-"+port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		// Linux alone has such names.
		if err == nil {
			t.Cleanup(func() { taken.Close() })
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			listener.Close()
			return port
		}
	}
}

// buildSample builds the README's sample.
func buildSample(t *testing.T) string {
	readme, err := os.ReadFile("README.md")
	check(t, err)
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	here, err := os.Getwd()
	check(t, err)
	folder := t.TempDir()
	module := "github.com/windlass-sfu/windlass/signaling/sdk/go"
	mod := fmt.Sprintf("module sample\n\ngo 1.19\n\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, here)
	check(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(mod), 0o600))
	check(t, os.WriteFile(filepath.Join(folder, "main.go"), code[1], 0o600))
	build := exec.Command("go", "build", "-o", "sample", ".")
	build.Dir = folder
	said, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return filepath.Join(folder, "sample")
}

// start starts a server that reports to the README's sample.
func start(t *testing.T) (sample *program, url, hook string) {
	bin := os.Getenv("WINDLASS_BIN")
	if bin == "" {
		t.Fatal("WINDLASS_BIN must name the server's program (`cargo build -p windlass`)")
	}
	built := buildSample(t)
	port := freePort(t)
	hook = "http://127.0.0.1:" + port
	server := run(t, exec.Command(bin, "serve", "--device=off", "--http=127.0.0.1:0", "--udp=127.0.0.1:0",
		"--token-key="+key, "--webhook="+hook, "--webhook-secret="+secret))
	url = regexp.MustCompile(`http://[\w.:]+`).FindString(server.line())
	command := exec.Command(built)
	command.Env = append(os.Environ(), "WINDLASS_URL="+url, "WINDLASS_TOKEN_KEY="+key,
		"WINDLASS_WEBHOOK_SECRET="+secret, "PORT="+port)
	return run(t, command), url, hook
}

// enter enters a room with a microphone and a camera, by WHIP.
func enter(t *testing.T, url, room, token string) (status int, code string) {
	t.Helper()
	offer, err := os.ReadFile("../offer.sdp")
	check(t, err)
	request, err := http.NewRequest(http.MethodPost, url+"/whip/"+room, bytes.NewReader(offer))
	check(t, err)
	request.Header.Set("Content-Type", "application/sdp")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer response.Body.Close()
	var refusal struct{ Code string }
	_ = json.NewDecoder(response.Body).Decode(&refusal)
	return response.StatusCode, refusal.Code
}

func sign(t *testing.T, key string, claims Claims) string {
	t.Helper()
	token, err := SignToken(key, claims)
	check(t, err)
	return token
}

func TestServer(t *testing.T) {
	sample, url, hook := start(t)
	admin := &AdminClient{URL: url, Key: key}
	t.Run("a call from its token to its last webhook", func(t *testing.T) { call(t, sample, admin) })
	t.Run("names in paths arrive as they are", func(t *testing.T) { names(t, admin) })
	t.Run("what the server refuses has its reason", func(t *testing.T) { refusals(t, admin) })
	t.Run("a forged webhook is refused", func(t *testing.T) {
		header, body := signed("x", time.Now())
		request, err := http.NewRequest(http.MethodPost, hook, strings.NewReader(body))
		check(t, err)
		header.Set("Webhook-Signature", "v1,AAAA")
		request.Header = header
		response, err := http.DefaultClient.Do(request)
		check(t, err)
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Fatal(response.Status)
		}
	})
}

func call(t *testing.T, sample *program, admin *AdminClient) {
	ctx := context.Background()
	token := sample.line()
	if said := sample.line(); said != "tea-room: 0" {
		t.Fatal(said)
	}
	if status, code := enter(t, admin.URL, "tea-room", token); status != http.StatusCreated {
		t.Fatal(status, code)
	}
	sample.until("room_started tea-room")
	sample.until("participant_joined Ana")
	sample.until("track_published Ana")
	room, err := admin.GetRoom(ctx, "tea-room")
	check(t, err)
	ana := room.Participants[0]
	if *room.MaxParticipants != 8 || ana.Identity != "ana" || len(ana.Grants) != 4 {
		t.Fatalf("%+v", room)
	}
	for _, track := range ana.Tracks {
		if track.Kind == TrackKindVideo {
			muted, err := admin.MuteTrack(ctx, "tea-room", track.ID, Muted{Muted: true})
			check(t, err)
			if !muted.MutedByOperator {
				t.Fatalf("%+v", muted)
			}
		}
	}
	if len(ana.Tracks) != 2 {
		t.Fatalf("%+v", ana)
	}
	entry, err := admin.SetEntry(ctx, "tea-room", RoomEntry{Locked: true})
	check(t, err)
	bo := sign(t, key, Claims{Room: "tea-room", Sub: "bo", Exp: soon()})
	if _, code := enter(t, admin.URL, "tea-room", bo); code != "locked" || !entry.Locked {
		t.Fatal(code)
	}
	_, err = admin.SetEntry(ctx, "tea-room", RoomEntry{})
	check(t, err)
	check(t, admin.RemoveParticipant(ctx, "tea-room", ana.ID))
	sample.until("participant_left Ana")
	sample.until("room_finished tea-room")
}

func names(t *testing.T, admin *AdminClient) {
	ctx, identity := context.Background(), "a/b ?é%2F"
	check(t, admin.Ban(ctx, "ban-room", identity, Period{Seconds: Some[int64](60)}))
	bans, err := admin.ListBans(ctx, "ban-room")
	check(t, err)
	if len(bans.Bans) != 1 || bans.Bans[0].Identity != identity {
		t.Fatalf("%+v", bans)
	}
	check(t, admin.Unban(ctx, "ban-room", identity))
	if admin.Unban(ctx, "ban-room", "..") == nil {
		t.Fatal("another path")
	}
}

func refusals(t *testing.T, admin *AdminClient) {
	refused := func(client AdminClient, room string, status int, code AdminErrorCode) {
		t.Helper()
		_, err := client.GetRoom(context.Background(), room)
		var refusal *APIError
		if !errors.As(err, &refusal) || refusal.Status != status || refusal.Code != code || refusal.Message == "" {
			t.Fatal(err)
		}
	}
	refused(*admin, "nowhere", 404, AdminErrorCodeUnknownRoom)
	refused(AdminClient{URL: admin.URL, Key: otherKey}, "x", 401, AdminErrorCodeUnauthorized)
	one := sign(t, key, Claims{Room: "one", Sub: "ops", Grants: &[]Grant{GrantAdmin}, Exp: soon()})
	refused(AdminClient{URL: admin.URL, Token: one}, "x", 403, AdminErrorCodeForbidden)
	eve := sign(t, otherKey, Claims{Room: "x", Sub: "eve", Exp: soon()})
	if status, _ := enter(t, admin.URL, "x", eve); status != http.StatusUnauthorized {
		t.Fatal(status)
	}
	nothing := sign(t, key, Claims{Room: "x", Sub: "eve", Grants: &[]Grant{}, Exp: soon()})
	if status, _ := enter(t, admin.URL, "x", nothing); status != http.StatusForbidden {
		t.Fatal(status)
	}
	proxy := httptest.NewServer(http.RedirectHandler(admin.URL+"/admin/rooms/tea-room", http.StatusTemporaryRedirect))
	defer proxy.Close()
	refused(AdminClient{URL: proxy.URL, Key: key}, "x", http.StatusTemporaryRedirect, "")
	_, err := (&AdminClient{URL: "http://127.0.0.1:" + freePort(t), Key: key}).ListRooms(context.Background())
	var refusal *APIError
	if err == nil || errors.As(err, &refusal) {
		t.Fatal(err)
	}
}

func TestEd25519KeysSignByTheirAlgorithm(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	coded, err := x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: coded})
	check(t, os.WriteFile(file, text, 0o600))
	token := sign(t, "k2=@"+file, Claims{Room: "x", Sub: "ana", Exp: soon()})
	head, signature := token[:strings.LastIndex(token, ".")], token[strings.LastIndex(token, ".")+1:]
	given, err := base64.RawURLEncoding.DecodeString(signature)
	check(t, err)
	if !ed25519.Verify(public, []byte(head), given) {
		t.Fatal(token)
	}
}

func TestKeysThatTheServerWouldNotTakeAreRefused(t *testing.T) {
	for _, key := range []string{"", "k1", "=x", "a b=0123456789abcdef0123456789abcdef", "k1=short"} {
		if _, err := SignToken(key, Claims{Room: "x", Sub: "ana", Exp: soon()}); err == nil {
			t.Error(key)
		}
	}
}

func signed(room string, at time.Time) (http.Header, string) {
	body := fmt.Sprintf(`{"id": "evt_1", "type": "of_later", "at": 1, "room": %q, "more": 1}`, room)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	header, seconds := http.Header{}, fmt.Sprint(at.Unix())
	signature := base64.StdEncoding.EncodeToString(mac(key, []byte("evt_1."+seconds+"."+body)))
	header.Set("Webhook-Id", "evt_1")
	header.Set("Webhook-Timestamp", seconds)
	header.Set("Webhook-Signature", "v1,AAAA v1,"+signature)
	return header, body
}

func TestAWebhookIsReadIfItIsGenuineAndNew(t *testing.T) {
	header, body := signed("x", time.Now())
	event, err := ReadWebhook(secret, header, []byte(body))
	check(t, err)
	if event.Type != "of_later" || event.Room != "x" {
		t.Fatalf("%+v", event)
	}
	refused := func(name string, header http.Header, body string) {
		t.Helper()
		if _, err := ReadWebhook(secret, header, []byte(body)); !errors.Is(err, ErrWebhook) {
			t.Error(name, err)
		}
	}
	refused("another body", header, strings.Replace(body, `"x"`, `"y"`, 1))
	old, _ := signed("x", time.Now().Add(-301*time.Second))
	refused("too old", old, body)
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		changed := header.Clone()
		changed.Set(name, "1")
		refused(name, changed, body)
	}
}
