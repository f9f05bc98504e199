package embedded

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/clusters"
)

// programs by name, as they would be run.
func planned(t *testing.T) map[string][]string {
	t.Helper()
	args := map[string][]string{}
	for _, p := range newPlan(map[string]string{}, loopback, 12345, "").Programs {
		args[p.Name] = p.Args
	}
	if len(args) != len(Components()) {
		t.Fatalf("%d programs, want %v", len(args), Components())
	}
	return args
}

func TestProgramsListenOnLoopback(t *testing.T) {
	for name, args := range planned(t) {
		for _, arg := range args {
			flag, value, _ := strings.Cut(arg, "=")
			address := strings.HasSuffix(flag, "-address") && flag != "--advertise-address"
			if address && value != "127.0.0.1" {
				t.Errorf("%s listens on %s", name, arg)
			}
			if strings.HasPrefix(flag, "--listen-") && !strings.HasPrefix(value, "unix://") && !strings.HasPrefix(value, "http://127.0.0.1:") {
				t.Errorf("%s listens on %s", name, arg)
			}
		}
	}
	for _, name := range []string{controllerManager, scheduler} {
		if !slices.Contains(planned(t)[name], "--secure-port=0") {
			t.Errorf("%s listens, and nobody asks it anything", name)
		}
	}
}

// What the controllers of kind clusters are told, those of embedded ones are told, too: a check must not see a difference.
func TestControllerFlagsMatchKind(t *testing.T) {
	data, err := os.ReadFile("../kind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ KubeadmConfigPatches []string }
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, patch := range config.KubeadmConfigPatches {
		var kubeadm struct {
			ControllerManager, Scheduler struct{ ExtraArgs map[string]string }
		}
		if err := yaml.Unmarshal([]byte(patch), &kubeadm); err != nil {
			t.Fatal(err)
		}
		for program, args := range map[string]map[string]string{controllerManager: kubeadm.ControllerManager.ExtraArgs, scheduler: kubeadm.Scheduler.ExtraArgs} {
			for flag, value := range args {
				told++
				if !slices.Contains(planned(t)[program], "--"+flag+"="+value) {
					t.Errorf("%s runs without --%s=%s", program, flag, value)
				}
			}
		}
	}
	if told == 0 {
		t.Error("kind.yaml tells the controllers nothing: it is read in another way than it is written")
	}
}

func TestCertificateNamesAddress(t *testing.T) {
	const address = "192.168.1.5"
	text, err := writeCertificate(t.TempDir(), address)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{address, "127.0.0.1"} {
		if err := cert.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if err := cert.VerifyHostname("192.168.1.6"); err == nil {
		t.Error("the certificate names an address that nobody asked for")
	}
}

func TestCreateRefusesAddress(t *testing.T) {
	e, err := New(t.TempDir(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"0.0.0.0", "some.host", "192.168.1.5:6443", "::1"} {
		_, err := e.Create(t.Context(), "lab-test", clusters.Spec{APIServerAddress: address})
		if err == nil || !strings.Contains(err.Error(), address) {
			t.Errorf("Create on %s: %v", address, err)
		}
	}
}
