package windlass

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// The shortest secret in bytes (RFC 7518 §3.2).
const minSecretBytes = 32

var keyID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// SignToken makes an access token (RFC 7519): HS256 with a secret, EdDSA with an Ed25519 key.
//
// key is as the server has it, ID=SECRET or ID=@FILE; of an Ed25519 key (PEM) the private half.
func SignToken(key string, claims Claims) (string, error) {
	id, secret, err := readKey(key)
	if err != nil {
		return "", err
	}
	algorithm, sign, err := signer(id, secret)
	if err != nil {
		return "", err
	}
	header := map[string]string{"typ": "JWT", "alg": algorithm, "kid": id}
	var parts []string
	for _, value := range []any{header, claims} {
		text, err := json.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("windlass: a token's claims: %w", err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	head := strings.Join(parts, ".")
	return head + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(head))), nil
}

func readKey(key string) (id string, secret []byte, err error) {
	id, said, _ := strings.Cut(key, "=")
	if !keyID.MatchString(id) {
		return "", nil, errors.New("windlass: a token key must be ID=SECRET or ID=@FILE")
	}
	if !strings.HasPrefix(said, "@") {
		return id, []byte(said), nil
	}
	secret, err = os.ReadFile(said[1:])
	if err != nil {
		return "", nil, fmt.Errorf("windlass: token key %q: %w", id, err)
	}
	return id, bytes.TrimSpace(secret), nil
}

func signer(id string, secret []byte) (algorithm string, sign func([]byte) []byte, err error) {
	if bytes.HasPrefix(secret, []byte("-----BEGIN ")) {
		key, err := privateKey(secret)
		if err != nil {
			return "", nil, fmt.Errorf("windlass: token key %q: %w", id, err)
		}
		return "EdDSA", func(head []byte) []byte { return ed25519.Sign(key, head) }, nil
	}
	if len(secret) < minSecretBytes {
		return "", nil, fmt.Errorf("windlass: the secret of token key %q has less than %d bytes", id, minSecretBytes)
	}
	return "HS256", func(head []byte) []byte { return mac(secret, head) }, nil
}

func privateKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is no PEM")
	}
	var key crypto.PrivateKey
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is no key of Ed25519")
	}
	return private, nil
}

func mac(secret, text []byte) []byte {
	hash := hmac.New(sha256.New, secret)
	hash.Write(text)
	return hash.Sum(nil)
}
