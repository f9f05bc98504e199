// Package certificate has the certificate of a room's server. Nobody vouches for it: handouts name its key, and learners'
// machines accept that key and no other.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/roomclient"
)

// FileName is where the certificate and its private key are kept, below the folder of a board.
const FileName = "room.pem"

// Load reads the certificate of the board in dir, and makes one when there is none. It stays the same as long as the file
// does, and so do handouts. key is as [roomclient.Config] has it.
func Load(dir string) (pair tls.Certificate, key string, err error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = create(path)
	}
	if err == nil {
		pair, err = tls.X509KeyPair(data, data)
	}
	if err != nil {
		return tls.Certificate{}, "", fmt.Errorf("read the room's certificate %s: %w", path, err)
	}
	return pair, roomclient.KeyOf(pair.Leaf), nil
}

// create makes a certificate, unless another process has made one meanwhile, and returns the one that is there.
func create(path string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	// Its name and dates do not matter: whoever knows the key asks for nothing else.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "operator-lab-room"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	data := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".room-*") // for its owner alone
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// Fingerprint is the SHA-256 sum of a certificate, as browsers show it.
func Fingerprint(pair tls.Certificate) string {
	sum := sha256.Sum256(pair.Certificate[0])
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}
