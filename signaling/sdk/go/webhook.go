package windlass

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How far the time of a request may be from ours.
const tolerance = 5 * time.Minute

// ErrWebhook is why a request is no genuine webhook of the server, or too old. Answer it with 400 or
// 401.
var ErrWebhook = errors.New("windlass: the webhook is not signed with the secret, too old, or no event")

// ReadWebhook checks the signature and age of a webhook, and gives its event. Of a type that is not
// known here, ignore it.
//
// secret is the server's webhook-secret (whsec_…). body is the request's as it came, not parsed and
// written again.
func ReadWebhook(secret string, header http.Header, body []byte) (*Event, error) {
	coded := strings.TrimPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || coded == secret || len(key) < 24 {
		return nil, errors.New("windlass: a webhook secret is `whsec_` and 24 bytes or more in Base64")
	}
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || math.Abs(time.Since(time.Unix(seconds, 0)).Seconds()) > tolerance.Seconds() {
		return nil, ErrWebhook
	}
	signed := append([]byte(id+"."+at+"."), body...)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac(key, signed)))
	for _, one := range strings.Split(header.Get("Webhook-Signature"), " ") {
		if hmac.Equal(expected, []byte(one)) {
			event := new(Event)
			if json.Unmarshal(body, event) != nil {
				return nil, ErrWebhook
			}
			return event, nil
		}
	}
	return nil, ErrWebhook
}
