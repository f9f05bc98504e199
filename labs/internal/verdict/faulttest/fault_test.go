//go:build linux

package faulttest

import (
	"testing"
	"time"
)

const (
	// answerLimit is how long a verdict may take from the moment at which something broke. What cannot be
	// seen at once has to last for some seconds before anybody believes it: 5 to 12 s here, and far from the
	// two minutes that a check may take.
	answerLimit = 40 * time.Second
	// createLimit is the same where no node starts: kind waits 30 s for systemd in it.
	createLimit = 90 * time.Second
	// squeezeLimit is how long a node may outgrow each limit of its memory: it does while it starts Pods, which takes
	// seconds on a quiet machine. A run that ends before takes its node along.
	squeezeLimit = time.Minute
	// answerShare is how many times longer than the beginning of the checks an answer may take. They begin within seconds,
	// so this only counts on a busy machine, where both take longer.
	answerShare = 5
	// disk is for the engine's images, and for one node beside them.
	disk = "2600m"
)

// TestWhateverIsTheMachinesFaultIsEnvironment goes through the faults one after the other, because they
// share an engine, and some of them a cluster.
func TestWhateverIsTheMachinesFaultIsEnvironment(t *testing.T) {
	b := newFixture(t)

	t.Run("the node image is missing", func(t *testing.T) {
		b.fails(t, fault{says: "is not on this machine", fix: "make node-image"})
	})
	started := time.Now()
	b.engine.Copy(b.image.Ref)
	t.Logf("copied the node image in %.1f s", time.Since(started).Seconds())
	t.Run("inotify instances are used up", func(t *testing.T) {
		release := exhaustInotify(t)
		defer release()
		b.fails(t, fault{says: "instances are in use", fix: "max_user_instances=", limit: createLimit})
	})

	t.Run("on one cluster", func(t *testing.T) {
		cluster := b.create(t)
		node := cluster.Name + "-control-plane"
		inNode := func(command ...string) func() {
			return func() { b.engine.Docker(append([]string{"exec", node}, command...)...) }
		}
		docker := func(args ...string) func() { return func() { b.engine.Docker(args...) } }
		for _, tc := range []struct {
			name  string
			fault fault
		}{
			{"the node is paused", fault{
				breaks: docker("pause", node), heals: docker("unpause", node),
				says: "is paused", fix: "make down",
			}},
			{"the kubelet stops", fault{
				breaks: inNode("systemctl", "stop", "kubelet"), heals: inNode("systemctl", "start", "kubelet"),
				says: "kubelet", fix: "make down",
			}},
			{"the kubelet hangs", fault{
				breaks: inNode("pkill", "-STOP", "-x", "kubelet"), heals: inNode("pkill", "-CONT", "-x", "kubelet"),
				says: "kubelet", fix: "make down",
			}},
			{"the API server hangs", fault{
				breaks: inNode("pkill", "-STOP", "-x", "kube-apiserver"), heals: inNode("pkill", "-CONT", "-x", "kube-apiserver"),
				says: "API server", fix: "make down",
			}},
			{"the API server is killed, and comes back", fault{
				breaks: inNode("pkill", "-KILL", "-x", "kube-apiserver"),
				says:   "API server", fix: "make down", passing: true,
			}},
			{"somebody deletes the cluster", fault{
				breaks: docker("rm", "-f", "-v", node),
				says:   "0 of its 1 nodes|is exited", // killed, and then removed
				fix:    "make down",
			}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				tc.fault.cluster = cluster
				b.fails(t, tc.fault)
				if tc.fault.heals != nil {
					b.awaitHealthy(t, cluster)
				}
			})
		}
	})

	t.Run("the disk is full", func(t *testing.T) {
		b.engine.Fill()
		defer b.engine.Empty()
		b.fails(t, fault{says: "disk", fix: "docker image ls", limit: createLimit})
	})
	t.Run("memory runs out", func(t *testing.T) {
		b.fails(t, fault{breaks: func() { squeeze(t, b) }, says: "memory ran out", fix: "make down, then close other programs"})
	})
	for _, signal := range []string{"TERM", "KILL"} {
		t.Run("the engine gets SIG"+signal, func(t *testing.T) {
			heal := func() {
				b.engine.AwaitEnd()
				b.engine.Start()
			}
			b.fails(t, fault{breaks: func() { b.engine.Signal(signal) }, heals: heal, says: "docker", fix: "make setup", orphans: true})
		})
	}
}
