package embedded

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// validFor is how long certificates are good. A cluster that is kept longer than
	// a year would be the first.
	validFor = 365 * 24 * time.Hour
	// backdated is what a clock may be set back while a cluster exists.
	backdated = time.Hour
)

// authority signs the certificates of one control plane. Keys are of an elliptic
// curve: they are made in no time.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// pair is a certificate and its key, as PEM.
type pair struct{ cert, key []byte }

// newAuthority makes an authority that keeps its files in dir.
func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	template := newTemplate(pkix.Name{CommonName: "operator-lab"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign
	a := &authority{dir: dir, cert: template, key: key}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	a.pem = certPEM(der)
	return a, a.write("ca", pair{a.pem, keyPEM})
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: subject,
		NotBefore: now.Add(-backdated), NotAfter: now.Add(validFor),
	}
}

// server makes the certificate of the API server.
func (a *authority) server(names []string, addresses []net.IP) (pair, error) {
	template := newTemplate(pkix.Name{CommonName: "kube-apiserver"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = names, addresses
	return a.sign(template)
}

// client makes the certificate of a user.
func (a *authority) client(user string, groups ...string) (pair, error) {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	key, keyPEM, err := newKey()
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair{certPEM(der), keyPEM}, nil
}

// write puts a pair into NAME.crt and NAME.key.
func (a *authority) write(name string, p pair) error {
	for suffix, data := range map[string][]byte{".crt": p.cert, ".key": p.key} {
		if err := os.WriteFile(filepath.Join(a.dir, name+suffix), data, 0o600); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
	}
	return nil
}

// readPair reads what write wrote.
func readPair(dir, name string) (pair, error) {
	cert, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return pair{}, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return pair{}, fmt.Errorf("read certificate: %w", err)
	}
	return pair{cert, key}, nil
}

// writeKey puts a key of its own, which signs tokens, into NAME.key and its public
// half into NAME.pub.
func (a *authority) writeKey(name string) error {
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("make key %s: %w", name, err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for suffix, data := range map[string][]byte{".pub": public, ".key": keyPEM} {
		if err := os.WriteFile(filepath.Join(a.dir, name+suffix), data, 0o600); err != nil {
			return fmt.Errorf("write key: %w", err)
		}
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
