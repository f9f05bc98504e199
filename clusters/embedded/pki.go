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
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
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
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "operator-lab", NotBefore: time.Now().Add(-backdated)}, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	a := &authority{dir: dir, cert: ca, key: key, pem: certPEM(ca.Raw)}
	return a, a.write("ca", pair{a.pem, keyPEM})
}

// server makes the certificate of the API server.
func (a *authority) server(names []string, addresses []net.IP) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, DNSNames: names, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// masters is the group that may do everything. The programs of the control plane are
// in it, so that they need not wait until the API server has written down what
// everybody may do; kwok acts for all nodes, of which a kubelet may touch its own only.
const masters = "system:masters"

// client makes the certificate of a user, who may do everything.
func (a *authority) client(user string) (pair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: []string{masters}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return pair{}, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-backdated), now.Add(validFor)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return pair{certPEM(der), keyPEM}, nil
}

// write puts a pair into NAME.crt and NAME.key.
func (a *authority) write(name string, p pair) error {
	return a.writeFiles(name, map[string][]byte{".crt": p.cert, ".key": p.key})
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
	public := pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der})
	return a.writeFiles(name, map[string][]byte{".pub": public, ".key": keyPEM})
}

// writeFiles writes files by what their names end in.
func (a *authority) writeFiles(name string, contents map[string][]byte) error {
	for suffix, data := range contents {
		if err := os.WriteFile(filepath.Join(a.dir, name+suffix), data, 0o600); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	return key, keyPEM, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
