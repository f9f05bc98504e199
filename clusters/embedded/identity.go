package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/example/operator-lab/clusters/internal/layout"
)

// The files that say who is who. The API server's certificate is its own authority, and its key signs what Kubernetes
// signs. The programs use the admin's kubeconfig: in the group system:masters they need not wait until the API server has
// written down what everybody may do, and kwok acts for all nodes, of which a kubelet may touch its own only.
const (
	certificateFile = "apiserver.crt"
	keyFile         = "apiserver.key"
	tokensFile      = "tokens.csv"
	kubeconfigFile  = "../kubeconfig"
)

// writeIdentities makes the certificate of the API server, and the token and the kubeconfig of the cluster's admin. It
// returns the token.
func (a *attempt) writeIdentities(dir, server string) (token string, err error) {
	authority, err := writeCertificate(dir, a.address)
	if err != nil {
		return "", fmt.Errorf("make the certificate of the API server: %w", err)
	}
	token = rand.Text()
	config := clientcmdapi.NewConfig()
	config.Clusters[a.name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[a.name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[a.name] = &clientcmdapi.Context{Cluster: a.name, AuthInfo: a.name}
	config.CurrentContext = a.name
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(layout.Kubeconfig(a.state, a.name), data, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, tokensFile), fmt.Appendf(nil, "%s,kubernetes-admin,kubernetes-admin,system:masters\n", token), 0o600)
	}
	return token, err
}

// writeCertificate makes a certificate that is good at an address, and returns it as PEM.
func writeCertificate(dir, address string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // made in no time, unlike one of RSA
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator-lab"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), // clocks are set back, and clusters kept
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(serviceIP), net.ParseIP(address)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	return certificate, errors.Join(os.WriteFile(filepath.Join(dir, certificateFile), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, keyFile), keyPEM, 0o600))
}
