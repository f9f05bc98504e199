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
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/example/operator-lab/clusters"
)

// The files that say who is who. The API server's certificate is its own authority, and its key signs what Kubernetes signs.
const (
	certificateFile = "apiserver.crt"
	keyFile         = "apiserver.key"
	tokensFile      = "tokens.csv"
)

const (
	// validFor is how long the certificate is good. A cluster that is kept longer than a year would be the first.
	validFor = 365 * 24 * time.Hour
	// backdated is what a clock may be set back while a cluster exists.
	backdated = time.Hour
	// masters is the group that may do everything. The programs of the control plane are in it, so that they need not wait until the
	// API server has written down what everybody may do; kwok acts for all nodes, of which a kubelet may touch its own only.
	masters = "system:masters"
)

// writeIdentities makes the certificate of the API server, and a token and a kubeconfig for everybody who talks to it. It returns the
// controller manager's token.
func (a *attempt) writeIdentities(plane, server string) (token string, err error) {
	authority, err := writeCertificate(plane, a.address)
	if err != nil {
		return "", fmt.Errorf("make the certificate of the API server: %w", err)
	}
	var tokens strings.Builder
	for _, user := range []struct{ file, name string }{
		{clusters.Kubeconfig(a.state, a.name), "kubernetes-admin"},
		{filepath.Join(plane, kubeconfigOf(scheduler)), "system:kube-scheduler"},
		{filepath.Join(plane, kubeconfigOf(kwok)), kwok},
		{filepath.Join(plane, kubeconfigOf(controllerManager)), "system:kube-controller-manager"},
	} {
		token = rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%s\n", token, user.name, user.name, masters)
		if err := writeKubeconfig(user.file, server, a.name, authority, token); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(plane, tokensFile), []byte(tokens.String()), 0o600); err != nil {
		return "", fmt.Errorf("write tokens: %w", err)
	}
	return token, nil
}

// writeCertificate makes a certificate that is good at an address, and returns it as PEM.
func writeCertificate(plane, address string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // made in no time, unlike one of RSA
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator-lab"}, NotBefore: now.Add(-backdated), NotAfter: now.Add(validFor),
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
	return certificate, errors.Join(os.WriteFile(filepath.Join(plane, certificateFile), certificate, 0o600),
		os.WriteFile(filepath.Join(plane, keyFile), keyPEM, 0o600))
}

func writeKubeconfig(file, server, cluster string, authority []byte, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[cluster] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
