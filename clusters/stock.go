package clusters

import (
	_ "embed"
	"time"
)

// stockConfig is kind's own configuration, and the one setting without which
// nothing starts on an old machine.
//
//go:embed stock.yaml
var stockConfig []byte

// StockConfig returns the configuration of a cluster that is not tuned at all, as
// a [Spec.Config]: kind's defaults. It is there to be compared with.
func StockConfig() []byte { return append([]byte(nil), stockConfig...) }

// StockWait is how long kind may wait by itself: `kind create cluster --wait 5m`.
const StockWait = 5 * time.Minute

// WithKindsWait has Create return when `kind create cluster --wait` would. kind's
// own look at the control plane takes the place of [WaitReady], and CoreDNS stays
// as kubeadm made it. It is there to be compared with: what Create returns then
// may still lack CoreDNS, and kind's wait does not fail when its time is over.
func WithKindsWait(d time.Duration) KindOption {
	return func(k *Kind) { k.kindsWait = d }
}
