// Package windlass has what an application's server needs of Windlass: access tokens, the admin API,
// webhooks.
package windlass

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// How long a token of the client's own is valid.
	tokenTime = time.Minute
	// The longest time for an answer.
	timeout = 15 * time.Second
	// The largest answer in bytes: some tens of thousands of participants.
	maxAnswer = 32 << 20
)

// AdminClient is a client of the admin API. Each method sends one request; nothing is tried again.
// It may be used by several goroutines.
type AdminClient struct {
	// URL is the server's address, such as https://calls.example.
	URL string
	// Key is the server's token key, by which each request gets a token for all rooms (see SignToken).
	Key string
	// Token is an access token that grants `admin`, in the place of a key.
	Token string
	// HTTP sends the requests. Without one, a client with a limit of 15 seconds does.
	HTTP *http.Client
}

// A token goes nowhere else than to the server that is named.
var plain = &http.Client{
	Timeout:       timeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// APIError is a server's refusal of a request.
type APIError struct {
	// Status of the answer.
	Status int
	// AdminError is its body. A later server may have other codes. With an empty one, no Windlass server
	// answered.
	AdminError
}

func (e *APIError) Error() string {
	return fmt.Sprintf("windlass: %s (%d %s)", e.Message, e.Status, e.Code)
}

// Some gives a pointer to a value, for fields that may be left out.
func Some[T any](value T) *T {
	return &value
}

// send sends a request that has no answer but its success.
func send(ctx context.Context, c *AdminClient, method string, path []string, body any) error {
	_, _, err := c.exchange(ctx, method, path, body)
	return err
}

// ask sends a request, and reads the answer.
func ask[T any](ctx context.Context, c *AdminClient, method string, path []string, body any) (*T, error) {
	status, text, err := c.exchange(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	answer := new(T)
	if json.Unmarshal(text, answer) != nil {
		return nil, foreign(status)
	}
	return answer, nil
}

// exchange gives the status and body of an answer that is no refusal.
func (c *AdminClient) exchange(ctx context.Context, method string, path []string, body any) (int, []byte, error) {
	address := strings.TrimRight(c.URL, "/") + "/admin"
	for _, segment := range path {
		// An address loses these, and would be another one.
		if segment == "" || segment == "." || segment == ".." {
			return 0, nil, fmt.Errorf("windlass: %q is no name that a path can have", segment)
		}
		address += "/" + url.PathEscape(segment)
	}
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return 0, nil, fmt.Errorf("windlass: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, address, &content)
	if err != nil {
		return 0, nil, fmt.Errorf("windlass: %w", err)
	}
	if err := c.authorize(request); err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	sender := c.HTTP
	if sender == nil {
		sender = plain
	}
	response, err := sender.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("windlass: no answer: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("windlass: no whole answer: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return 0, nil, refusal(response.StatusCode, text)
	}
	return response.StatusCode, text, nil
}

func (c *AdminClient) authorize(request *http.Request) error {
	token := c.Token
	if c.Key != "" {
		claims := Claims{
			Room:   "*",
			Sub:    "server-sdk",
			Grants: &[]Grant{GrantAdmin},
			Exp:    float64(time.Now().Add(tokenTime).Unix()),
		}
		signed, err := SignToken(c.Key, claims)
		if err != nil {
			return err
		}
		token = signed
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

func refusal(status int, text []byte) error {
	said := &APIError{Status: status}
	if json.Unmarshal(text, &said.AdminError) != nil || said.Code == "" {
		return foreign(status)
	}
	return said
}

func foreign(status int) error {
	return &APIError{Status: status, AdminError: AdminError{Message: "the answer is not that of a Windlass server"}}
}
